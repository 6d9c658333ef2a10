"""`rebuild`: checkpoints anew from their segments, after a restore or damage, or when a replica was made again.

Rule 1: For the lanes of one Region, that of --region. A counter with a limit has gates instead, which are rebuilt all
at once, in every Region, because rights are of all of them together.
Rule 2: It shows what it would write, decided by the very program that writes, and asks first.
Rule 3: Each lane is printed as it is done, and one that cannot be rebuilt stops no other.
"""

from collections.abc import Sequence
from typing import Annotated

import typer

from compactor.rebuild import rebuild as rebuilding
from ledger import clocks, items
from ledger.errors import GaveUp, LedgerError
from ledger.gate.gates import Gates
from ledger.gate.rebuild import Rebuilt
from ledger.gate.rebuild import rebuild as rebuilding_gates
from ledger.lane.shape import ShapeCheck
from ledger.requests import Get, Item
from ledger.values import Lane
from ledgerctl import completion
from ledgerctl.arguments import Scan, Yes
from ledgerctl.call import Call
from ledgerctl.command import COMPACTION, command
from ledgerctl.failures import NO_ANSWER, Wrong
from ledgerctl.lanes import found
from ledgerctl.rebuild_all import rebuild_all
from ledgerctl.unwritten import Unwritten, agree, plan

STOP_COMPACTOR = "Stop the compactor of the Region first (docs/operations.md#stop-and-start-the-compactor)."
STOP_WRITERS = "Stop whoever adds to the counter or holds of it (docs/operations.md#a-limited-counter-after-a-restore)."


@command("rebuild", COMPACTION)
def rebuild(
    call: Call,
    counter: Annotated[
        str | None, typer.Argument(help="The counter's name; or --all.", autocompletion=completion.counters)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All counters, by the directory; or by --scan.")] = False,
    scan: Scan = False,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written.")] = False,
) -> None:
    """Write a counter's checkpoints anew from its segments, or those of --all; asks first.

    For the lanes of this Region, after a restore or damage, or when its replica was made again. Of a limited counter:
    all its gates, from what they filed.
    """
    if (counter is None) != every:
        remedy = "`ledgerctl list` names the counters there are."
        raise Wrong("BadArguments", "Name one counter, or give --all.", remedy)
    if counter is None:
        warning = f"{STOP_COMPACTOR} No compactor may work on these lanes meanwhile, and nobody use what has a limit."
        rebuild_all(call, found(call, scan=scan), warning, yes=yes, dry_run=dry_run)
        return
    gates = Gates.of(call.settings, counter)
    stop = STOP_COMPACTOR if gates is None else STOP_WRITERS
    try:
        if gates is None:
            _of_lanes(call, counter, yes, dry_run)
        else:
            _of_gates(call, counter, gates, yes, dry_run)
    except GaveUp as error:
        raise Wrong("GaveUp", str(error), stop, NO_ANSWER) from None


def _of_lanes(call: Call, counter: str, yes: bool, dry_run: bool) -> None:
    plans = [plan(call, lane) for lane in call.settings.lanes_of(counter, call.settings.region)]
    for each in plans:
        call.say(f"{each.lane}: {each.now}\n  {each.why}")
    errors = [each.error for each in plans if each.error is not None]
    if dry_run:
        _document(call, counter, [each.fields() for each in plans], written=False)
    if errors and (dry_run or len(errors) == len(plans)):
        raise errors[0]
    if dry_run:
        return
    if not yes:
        agree(call, f"{STOP_COMPACTOR} No compactor may work on these lanes meanwhile.", "Rebuild them?")
    lanes: list[dict[str, object]] = []
    try:
        failed = [error for each in plans if (error := _rebuilt(call, each.lane, lanes)) is not None]
    finally:
        _document(call, counter, lanes, written=True)
    if failed:
        raise failed[0]
    if not lanes:
        call.say("there are no segments, so there is nothing to rebuild: every change is in the tail")


def _rebuilt(call: Call, lane: Lane, lanes: list[dict[str, object]]) -> LedgerError | None:
    """Rebuilds a lane, prints that, and adds what became of it to `lanes`."""
    try:
        before: Item | None = call.table.answer(Get(items.checkpoint_key(lane)))
        checkpoint = call.run(rebuilding(lane))
    except LedgerError as error:
        lanes.append({"lane": str(lane), "error": str(error)})
        call.note(f"{lane}: {error}", "red")
        return error
    if checkpoint is None and before is None:
        return None
    lanes.append({"lane": str(lane), "total": checkpoint.total if checkpoint else None})
    call.say(f"rebuilt {lane}: {f'total {checkpoint.total:,}' if checkpoint else 'no checkpoint'}", style="green")
    return None


def _of_gates(call: Call, counter: str, gates: Gates, yes: bool, dry_run: bool) -> None:
    ShapeCheck(call.settings).ask(call.table, clocks.instants(call.surroundings.clock), counter)
    rebuilt = call.on_table(rebuilding_gates(gates), Unwritten(call.table))
    if dry_run or not yes:
        _show(call, rebuilt)
    if not dry_run:
        if not yes:
            agree(call, f"{STOP_WRITERS} In every Region, until this is done.", "Rebuild them?")
        rebuilt = call.on_table(rebuilding_gates(gates))
        _show(call, rebuilt, "rebuilt ")
    fields = [(each.gate, each.told) for each in rebuilt]
    lanes = [{"lane": str(g.lane), "value": g.value, "count": g.number, "told": told} for g, told in fields]
    _document(call, counter, lanes, written=not dry_run)


def _show(call: Call, rebuilt: Sequence[Rebuilt], done: str = "") -> None:
    """What is there, and what is lost and owed."""
    for each in rebuilt:
        gate = each.gate
        call.say(f"{done}{gate.lane}: value {gate.value:,}, count {gate.number:,}", style="green" if done else None)
        for lost in each.told:
            call.say(f"  {lost.removeprefix(f'{gate.lane}: ')}", style="yellow")


def _document(call: Call, counter: str, lanes: Sequence[dict[str, object]], *, written: bool) -> None:
    call.document({"counter": counter, "region": call.settings.region, "lanes": list(lanes), "written": written})
