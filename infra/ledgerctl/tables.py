"""`init`: makes the table as the library needs it, in every Region of the settings.

Rules: it only ever makes and turns on, and deletes nothing; each step is left out where it is done already, so a run
that was cut off is run again; a table of another shape is refused and not touched.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from infra.ledgerctl import shape
from infra.ledgerctl.call import Call
from infra.ledgerctl.command import command
from infra.ledgerctl.failures import DATA, NO_ANSWER, Wrong
from ledger.errors import LedgerError, TableMissing

ACTIVE_POLL_S, ACTIVE_LOOKS_MAX = 2.0, 900  # a replica of a large table takes its time: half an hour
PITR = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
CREATE: dict[str, Any] = {
    "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind, _ in shape.KEYS],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": type_} for name, _, type_ in shape.KEYS],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": shape.IMAGES},
}


@command("init")
def init(
    call: Call,
    deletion_protection: Annotated[bool, typer.Option(help="Nobody deletes it by mistake.")] = True,
) -> None:
    """Make the table, with a replica in every Region of --regions."""
    home, name = call.settings.region, call.settings.table
    steps: list[str] = []

    def step(text: str) -> None:
        steps.append(text)
        if not call.json:
            call.say(text)

    there = call.ask(home, "describe_table", TableName=name)
    if isinstance(there, TableMissing):
        protected = {"DeletionProtectionEnabled": deletion_protection}
        _do(call, home, "create_table", TableName=name, **CREATE, **protected)
        step(f"{home}: made the table {name}")
    elif isinstance(there, LedgerError):
        raise there
    else:
        _refuse_other_shape(name, home, there["Table"])
    table = _active(call, home, ())
    for region in call.settings.regions:
        if region != home and region not in {each["RegionName"] for each in table.get("Replicas", [])}:
            _do(call, home, "update_table", TableName=name, ReplicaUpdates=[{"Create": {"RegionName": region}}])
            table = _active(call, home, (region,))  # DynamoDB adds one Region at a time
            step(f"{region}: made a replica")
    for region in call.settings.regions:
        if deletion_protection and not _active(call, region, ()).get("DeletionProtectionEnabled"):
            _do(call, region, "update_table", TableName=name, DeletionProtectionEnabled=True)
            step(f"{region}: turned deletion protection on")
        backups = call.ask(region, "describe_continuous_backups", TableName=name)
        if isinstance(backups, LedgerError) or shape.backups_finding(region, backups).level != "ok":
            answer = call.ask(region, "update_continuous_backups", TableName=name, **PITR)
            refused = isinstance(answer, LedgerError)
            step(
                f"{region}: point-in-time recovery {f'is not on yet, run this again: {answer}' if refused else 'is on'}"
            )
    if call.json:
        call.document({"table": name, "regions": list(call.settings.regions), "steps": steps})
    elif not steps:
        call.say(f"{name} is there already in {' '.join(call.settings.regions)}: nothing to do")
    else:
        call.say("ready; `ledgerctl doctor` looks at everything", style="green")


def _refuse_other_shape(name: str, region: str, table: Any) -> None:
    wrong = [each for each in shape.table_findings(region, table) if each.level == "fail"]
    if wrong:
        said = "; ".join(f"{each.what}: {each.says}" for each in wrong)
        message = f"There is a table {name}, and it is not of the library's shape ({said}). Nothing was changed."
        raise Wrong("TableDiffers", message, f"Name another with --table. {wrong[0].remedy}", DATA)


def _do(call: Call, region: str, operation: str, **arguments: Any) -> None:
    answer = call.ask(region, operation, **arguments)
    if isinstance(answer, LedgerError):
        raise answer


def _active(call: Call, region: str, others: tuple[str, ...]) -> dict[str, Any]:
    """The table, once it and its replicas in `others` are active."""
    status = "not there"
    for _ in range(ACTIVE_LOOKS_MAX):
        answer = call.ask(region, "describe_table", TableName=call.settings.table)
        if not isinstance(answer, LedgerError):
            table: dict[str, Any] = answer["Table"]
            states = {each["RegionName"]: each.get("ReplicaStatus") for each in table.get("Replicas", [])}
            if table["TableStatus"] == "ACTIVE" and all(states.get(other) == "ACTIVE" for other in others):
                return table
            status = f"{table['TableStatus']}, replicas {states}"
        elif not isinstance(answer, TableMissing):  # a replica may not be there yet
            raise answer
        call.world.pause(ACTIVE_POLL_S)
    raise Wrong("NotActive", f"The table is not active yet: {status}.", "Run it again later.", NO_ANSWER)
