"""`rebuild` of a limited counter: its gates anew from what they filed, after a restore or damage.

Rule 1: All its lanes at once, in every Region, because rights are of all of them together.
Rule 2: It shows what it would write, decided by the very program that writes, and asks first.
Rule 3: What is lost and what is owed is said before and after.
"""

from collections.abc import Sequence

from ledger import clocks
from ledger.by_region import ByRegion
from ledger.errors import GaveUp
from ledger.gate.gates import Gates
from ledger.gate.rebuild import Rebuilt
from ledger.gate.rebuild import rebuild as rebuilding
from ledger.requests import Table, run
from ledger.shape import ShapeCheck
from ledgerctl.call import Call
from ledgerctl.failures import NO_ANSWER, Wrong
from ledgerctl.unwritten import Unwritten, agree

REBUILD = "Stop whoever adds to the counter or holds of it (docs/operations.md#a-limited-counter-after-a-restore)."


def rebuild_gates(call: Call, counter: str, gates: Gates, *, yes: bool, dry_run: bool) -> None:
    """Raises Wrong, LaneDamaged, DamagedItem, SettingsMismatch, LimitMismatch and the TableErrors."""
    table = ByRegion(call.settings.region, call.tables)
    ShapeCheck(call.settings).ask(call.table, clocks.instants(call.surroundings.clock), counter)
    planned = _run(call, gates, Unwritten(table))
    if dry_run:
        _tell(call, counter, planned, written=False)
        return
    if not yes:
        _show(call, planned)
        agree(call, f"{REBUILD} In every Region, until this is done.", "Rebuild them?")
    _tell(call, counter, _run(call, gates, table), written=True)


def _run(call: Call, gates: Gates, table: Table) -> list[Rebuilt]:
    try:
        return run(rebuilding(gates), table, clocks.instants(call.surroundings.clock))
    except GaveUp as error:
        raise Wrong("GaveUp", str(error), REBUILD, NO_ANSWER) from None


def _tell(call: Call, counter: str, rebuilt: Sequence[Rebuilt], *, written: bool) -> None:
    if not call.json:
        _show(call, rebuilt, "rebuilt " if written else "")
        return
    lanes = [
        {"lane": str(each.gate.lane), "value": each.gate.value, "count": each.gate.number, "told": each.told}
        for each in rebuilt
    ]
    call.document({"counter": counter, "region": call.settings.region, "lanes": lanes, "written": written})


def _show(call: Call, rebuilt: Sequence[Rebuilt], done: str = "") -> None:
    for each in rebuilt:
        gate = each.gate
        call.say(f"{done}{gate.lane}: value {gate.value:,}, count {gate.number:,}", style="green" if done else None)
        for said in each.told:
            call.say(f"  {said.removeprefix(f'{gate.lane}: ')}", style="yellow")
