"""`verify`: counters recounted from their events, in every Region, and compared.

Rule 1: It writes nothing.
Rule 2: What fails for one counter stops no other.
"""

from dataclasses import replace

import typer

from compactor import Verification
from ledger.errors import LedgerError
from ledgerctl.call import Call
from ledgerctl.command import COMPACTION, Counters, Prefix, Scan, command
from ledgerctl.failures import DATA
from ledgerctl.lanes import Found, added_to, each_of, exit_code_of, found


@command("verify", COMPACTION)
def verify(call: Call, counters: Counters = None, prefix: Prefix = "", scan: Scan = False) -> None:
    """Recount counters from their events and compare.

    Exit code 1 when something differs. Writes nothing.
    """
    every = Found([]) if counters else found(call, prefix, scan=scan)
    names = added_to(call, counters) if counters else every.counters
    seen = every.unread(call.settings)

    def verified(name: str) -> Verification:
        checked = call.compactor.verify(name)
        unread = {*checked.unread, *(lane for lane in seen if lane.counter == name)}
        return replace(checked, unread=tuple(sorted(unread)))

    different = strays = 0
    failed: list[LedgerError] = []
    for name, outcome in each_of(call, "recounting", names, verified):
        if isinstance(outcome, LedgerError):
            failed.append(outcome)
            call.note(f"{name}: {outcome}", "red")
            call.document({"counter": name, "ok": None, "error": str(outcome)})
            continue
        different, strays = different + (not outcome.ok), strays + outcome.strays
        fields = {"counter": name, "ok": outcome.ok, "value": outcome.value, "strays": outcome.strays}
        fields |= {"differences": list(outcome.differences), "unread": [str(lane) for lane in outcome.unread]}
        call.document(fields)
        if not outcome.ok or len(names) == 1:
            _show(call, name, outcome)
    waiting = f"; strays that wait for the next settle: {strays:,}" if strays else ""
    right = len(names) - different - len(failed)
    said = f"counters that add up: {right:,} of {len(names):,}{waiting}{'' if counters else every.limits}"
    call.say(said, style=None if different else "green")
    call.note_cost()
    if different:
        call.note("docs/operations.md#verify-difference-a-recount-differs says what to do.", "yellow")
    if different or failed:
        raise typer.Exit(DATA if different else exit_code_of(failed))


def _show(call: Call, name: str, verification: Verification) -> None:
    value = "cannot be told" if verification.value is None else f"{verification.value:,}"
    call.say(f"{name}: its events give {value}")
    rows = [
        (str(lane.lane), "?" if lane.value is None else f"{lane.value:,}", f"{lane.pending:,}", f"{lane.strays:,}")
        for lane in verification.lanes
    ]
    call.table_of(("lane", "sum", "pending", "strays"), rows)
    for difference in verification.differences:
        call.say(f"differs: {difference}", style="bold red")
