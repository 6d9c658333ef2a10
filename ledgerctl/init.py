"""`init`: makes the table as the library needs it, in every Region of the settings (ready.py)."""

from typing import Any

from ledger import clocks
from ledger.errors import LedgerError, TableMissing
from ledger.lane.shape import check_new_limits
from ledger.requests import run
from ledgerctl import shape
from ledgerctl.arguments import Unprotected
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command
from ledgerctl.ready import STREAM, do, make_ready, refuse, refuse_another_shape

CREATE: dict[str, Any] = {
    "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind, _ in shape.KEYS],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": type_} for name, _, type_ in shape.KEYS],
    "BillingMode": "PAY_PER_REQUEST",
    **STREAM,
}


@command("init", TABLE)
def init(
    call: Call,
    no_deletion_protection: Unprotected = False,
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
        protected = {"DeletionProtectionEnabled": not no_deletion_protection}
        do(call, home, "create_table", **CREATE, **protected)
        step(f"{home}: made the table {name}")
    elif isinstance(there, LedgerError):
        raise there
    else:
        refuse(call, home, there["Table"], "Nothing was changed.", new=True)
        shape_there = refuse_another_shape(call)
        run(check_new_limits(call.settings, shape_there), call.table, clocks.instants(call.surroundings.clock))
    make_ready(call, step, deletion_protection=not no_deletion_protection)
    if call.json:
        call.document({"table": name, "regions": list(call.settings.regions), "steps": steps})
    elif not steps:
        call.say(f"{name} is there already in {' '.join(call.settings.regions)}: nothing to do")
    else:
        call.say("ready; `ledgerctl doctor` looks at everything", style="green")
