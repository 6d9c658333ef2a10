"""`rebuild` of a limited counter: its gates anew from what they filed, after a restore or damage.

Rule 1: All its lanes at once, in every Region, because rights are of all of them together.
Rule 2: It shows what it would write, decided by the very program that writes, and asks first.
Rule 3: What is lost and what is owed is said before and after.
"""

from collections.abc import Sequence

from ledger import clocks
from ledger.errors import GaveUp
from ledger.gate.gates import Gates
from ledger.gate.rebuild import Rebuilt
from ledger.gate.rebuild import rebuild as rebuilding
from ledger.lane.shape import ShapeCheck
from ledger.requests import Table
from ledgerctl.call import Call
from ledgerctl.failures import NO_ANSWER, Wrong
from ledgerctl.unwritten import Unwritten, agree

REBUILD = "Stop whoever adds to the counter or holds of it (docs/operations.md#a-limited-counter-after-a-restore)."


def rebuild_gates(call: Call, counter: str, gates: Gates, *, yes: bool, dry_run: bool) -> None:
    """Raises Wrong, LaneDamaged, DamagedItem, SettingsMismatch, LimitMismatch and the TableErrors."""
    ShapeCheck(call.settings).ask(call.table, clocks.instants(call.surroundings.clock), counter)
    planned = _run(call, gates, Unwritten(call.table))
    if dry_run or not yes:
        _show(call, planned)
    if not (dry_run or yes):
        agree(call, f"{REBUILD} In every Region, until this is done.", "Rebuild them?")
    rebuilt = planned if dry_run else _run(call, gates, call.table)
    if not dry_run:
        _show(call, rebuilt, "rebuilt ")
    lanes = [
        {"lane": str(each.gate.lane), "value": each.gate.value, "count": each.gate.number, "told": each.told}
        for each in rebuilt
    ]
    call.document({"counter": counter, "region": call.settings.region, "lanes": lanes, "written": not dry_run})


def _run(call: Call, gates: Gates, table: Table) -> list[Rebuilt]:
    try:
        return call.on_table(rebuilding(gates), table)
    except GaveUp as error:
        raise Wrong("GaveUp", str(error), REBUILD, NO_ANSWER) from None


def _show(call: Call, rebuilt: Sequence[Rebuilt], done: str = "") -> None:
    for each in rebuilt:
        gate = each.gate
        call.say(f"{done}{gate.lane}: value {gate.value:,}, count {gate.number:,}", style="green" if done else None)
        for said in each.told:
            call.say(f"  {said.removeprefix(f'{gate.lane}: ')}", style="yellow")
