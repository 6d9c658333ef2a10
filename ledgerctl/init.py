"""`init`: makes the table as the library needs it, in every Region of the settings. `restore` ends
by the same steps.

Rule 1: It only makes things and turns them on; it deletes nothing.
Rule 2: It skips each step that is done already, so you run it again after it was cut off.
Rule 4: It succeeds only where `doctor` would find nothing that fails, and with backups on.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from ledger.core.errors import LedgerError, NotAllowed, SettingsMismatch, TableMissing
from ledger.core.items import RETIRES
from ledger.core.limit import Shape
from ledger.lane.fits import unlike
from ledger.lane.shape import check_growth, is_strong, stored, write
from ledgerctl import shape
from ledgerctl.call import Call
from ledgerctl.command import Unprotected, command
from ledgerctl.failures import DATA, NO_ANSWER, Wrong, meaning

# half an hour, because a replica of a large table takes its time
POLL_S, ACTIVE_LOOKS_MAX = 2.0, 900
RECOVERY_TRIES_MAX = 60  # DynamoDB refuses it for a moment after it made a table
SHAPE_STEPS = {
    "written": "wrote the shape",
    "grown": "added new Regions, limits or periods to the shape",
}
PITR = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
STREAM: dict[str, Any] = {
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": shape.IMAGES}
}
CREATE: dict[str, Any] = {
    "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind, _ in shape.KEYS],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": type_} for name, _, type_ in shape.KEYS
    ],
    "BillingMode": "PAY_PER_REQUEST",
    **STREAM,
}


@command("init")
def init(call: Call, no_deletion_protection: Unprotected = False) -> None:
    """Make the table, with a replica in every Region of --regions. Run it again after any
    failure.

    It turns point-in-time recovery on in every Region. It stores the Regions, LEDGER_LIMITS,
    LEDGER_PERIODS and LEDGER_SHARDS in the table: from then on a process that contradicts them is
    refused. Run it again to add a Region, a limit, a period or the shards of a period to come.
    """
    home, name = call.settings.region, call.settings.table
    steps = Steps(call)
    there = call.ask(home, "describe_table", TableName=name)
    if isinstance(there, TableMissing):
        protected = {"DeletionProtectionEnabled": not no_deletion_protection}
        do(call, home, "create_table", **CREATE, **protected)
        steps.say(f"{home}: made the table {name}")
    elif isinstance(there, LedgerError):
        raise there
    else:
        refuse(call, home, there["Table"], "Nothing was changed.", new=True)
        shape_there = refuse_another_shape(call)
        call.on_table(check_growth(call.settings, shape_there))
    make_ready(call, steps, deletion_protection=not no_deletion_protection)
    call.document({"table": name, "regions": list(call.settings.regions), "steps": steps.done})
    nothing = f"{name} is there already in {' '.join(call.settings.regions)}: nothing to do"
    call.say(
        "ready; `ledgerctl doctor` checks everything" if steps.done else nothing, style="green"
    )


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps that were done to a table; each is printed at once."""

    call: Call
    done: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.done.append(text)
        self.call.say(text)


def make_ready(call: Call, steps: Steps, *, deletion_protection: bool) -> None:
    """Make and turn on what a table lacks, in every Region; in this one first, because replicas
    need a stream.
    """
    home, regions = call.settings.region, call.settings.regions

    def turn_on(region: str, text: str, **change: Any) -> None:
        do(call, region, "update_table", **change)
        steps.say(f"{region}: turned {text} on")

    for region in sorted(regions, key=lambda region: region != home):
        if region != home:
            there = {each["RegionName"] for each in active(call, home).get("Replicas", [])}
            if region not in there:
                do(call, home, "update_table", ReplicaUpdates=[{"Create": {"RegionName": region}}])
            active(call, home, region)  # DynamoDB adds one Region at a time
            if region not in there:
                steps.say(f"{region}: made a replica")
        table = active(call, region)
        if not table.get("StreamSpecification", {}).get("StreamEnabled"):
            turn_on(region, "the stream", **STREAM)
            active(call, region)
        if deletion_protection and not table.get("DeletionProtectionEnabled"):
            turn_on(region, "deletion protection", DeletionProtectionEnabled=True)
        if region == home and call.settings.periods and _turned_retiring_on(call, home):
            # replicas follow, and refuse the request within the hour
            steps.say(f"{home}: items of periods retire")
        if _turned_recovery_on(call, region):
            steps.say(f"{region}: point-in-time recovery is on")
    strong = False
    for region in regions:
        table = active(call, region)
        refuse(call, region, table, "Nothing was changed there.")
        strong = strong or is_strong(table)
    # last, because from then on every process refuses to run that does not name them
    for region in regions:
        done = call.on_table(
            write(replace(call.settings, region=region), strong), call.tables[region]
        )
        if done != "kept":
            steps.say(f"{region}: {SHAPE_STEPS[done]}")


def do(call: Call, region: str, operation: str, **arguments: Any) -> None:
    answer = call.ask(region, operation, TableName=call.settings.table, **arguments)
    if isinstance(answer, LedgerError):
        raise answer


def refuse(call: Call, region: str, table: Any, nothing: str, *, new: bool = False) -> None:
    """Raises Wrong where `doctor` fails; not for replicas and a stream that are missing, which a
    run on a `new` table makes. nothing: a sentence that says what was left."""
    # Rule 3: it refuses a table of another shape, and does not touch it.
    settings = call.settings
    findings = shape.table_findings(region, {"Table": table}, new or len(settings.regions) == 1)
    replicas = shape.replica_findings(settings, table) if region == settings.region else []
    findings += [each for each in replicas if not (new and each.what == shape.REPLICAS)]
    answer = call.ask(region, "describe_time_to_live", TableName=settings.table)
    if isinstance(answer, LedgerError):
        call.note(
            f"{region}: time to live could not be read; it must be off, or by {RETIRES}: {answer}",
            "yellow",
        )
    else:
        findings += shape.ttl_findings(region, answer)
    wrong = [each for each in findings if each.level == "fail"]
    if wrong:
        said = "; ".join(f"{each.what}: {each.says}" for each in wrong)
        message = (
            f"There is a table {settings.table}, and it does not have the library's shape "
            f"({said}). {nothing}"
        )
        raise Wrong("TableDiffers", message, f"Name another with --table. {wrong[0].remedy}", DATA)


def refuse_another_shape(call: Call) -> Shape | None:
    there = call.on_table(stored())
    if there is not None and (wrong := unlike(call.settings, there)):
        raise SettingsMismatch(f"{' '.join(wrong)} Nothing was changed.")
    return there


def _turned_retiring_on(call: Call, region: str) -> bool:
    there = call.ask(region, "describe_time_to_live", TableName=call.settings.table)
    described = {} if isinstance(there, LedgerError) else there.get("TimeToLiveDescription", {})
    if described.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"):
        return False
    specification = {"Enabled": True, "AttributeName": RETIRES}
    do(call, region, "update_time_to_live", TimeToLiveSpecification=specification)
    return True


def _turned_recovery_on(call: Call, region: str) -> bool:
    """Whether there was anything to do. Raises Wrong where AWS does not turn it on."""
    name = call.settings.table
    backups = call.ask(region, "describe_continuous_backups", TableName=name)
    if (
        not isinstance(backups, LedgerError)
        and shape.backups_findings(region, backups)[0].level == "ok"
    ):
        return False
    answer: Any = None
    for _ in range(RECOVERY_TRIES_MAX):
        answer = call.ask(region, "update_continuous_backups", TableName=name, **PITR)
        if not isinstance(answer, LedgerError):
            return True
        if isinstance(answer, NotAllowed):
            break
        call.surroundings.pause(POLL_S)
    why = meaning(answer, call.where)
    message = (
        f"{region}: point-in-time recovery is not on, and nothing else can bring a deleted "
        f"item back. {why.message}"
    )
    raise Wrong("NoRecovery", message, why.remedy, NO_ANSWER)


def active(call: Call, region: str, *others: str) -> dict[str, Any]:
    """The table, once it and its replicas in `others` are active."""
    status = "not there"
    for _ in range(ACTIVE_LOOKS_MAX):
        answer = call.ask(region, "describe_table", TableName=call.settings.table)
        if not isinstance(answer, LedgerError):
            table: dict[str, Any] = answer["Table"]
            states = {
                each["RegionName"]: each.get("ReplicaStatus") for each in table.get("Replicas", [])
            }
            if table["TableStatus"] == "ACTIVE" and all(
                states.get(other) == "ACTIVE" for other in others
            ):
                return table
            status = f"{table['TableStatus']}, replicas {states}"
        elif not isinstance(answer, TableMissing):  # a replica may not be there yet
            raise answer
        call.surroundings.pause(POLL_S)
    message = f"The table is not active in {region} yet: {status}. DynamoDB is still at work."
    raise Wrong("NotActive", message, "Run it again later: it goes on from there.", NO_ANSWER)
