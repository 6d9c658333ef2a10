"""`init`: makes the table as the library needs it, in every Region of the settings (ready.py)."""

from typing import Any

from ledger.errors import LedgerError, TableMissing
from ledger.lane.shape import check_new_limits
from ledgerctl import shape
from ledgerctl.call import Call
from ledgerctl.command import TABLE, Unprotected, command
from ledgerctl.ready import STREAM, Steps, do, make_ready, refuse, refuse_another_shape

CREATE: dict[str, Any] = {
    "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind, _ in shape.KEYS],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": type_} for name, _, type_ in shape.KEYS],
    "BillingMode": "PAY_PER_REQUEST",
    **STREAM,
}


@command("init", TABLE)
def init(call: Call, no_deletion_protection: Unprotected = False) -> None:
    """Make the table, with a replica in every Region of --regions."""
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
        call.on_table(check_new_limits(call.settings, shape_there))
    make_ready(call, steps, deletion_protection=not no_deletion_protection)
    call.document({"table": name, "regions": list(call.settings.regions), "steps": steps.done})
    nothing = f"{name} is there already in {' '.join(call.settings.regions)}: nothing to do"
    call.say("ready; `ledgerctl doctor` looks at everything" if steps.done else nothing, style="green")
