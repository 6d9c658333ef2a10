"""`rebuild`: writes checkpoints anew from their segments, after a restore or damage, or when a
replica was made again.

Rule 1: It works on the lanes of one Region, that of --region. A counter with a limit has gates
instead, which it rebuilds all at once, in every Region, because rights belong to all of them
together.
Rule 2: It asks first; where nobody can answer, it does nothing. A dry run shows what it would
write.
Rule 3: It prints each lane when that is done, and one that it cannot rebuild stops no other.
"""

from collections.abc import Sequence
from typing import Annotated

import typer

from compactor.gate_rebuild import rebuild as rebuilding_gates
from compactor.rebuild import rebuild as rebuilding
from ledger.core import clocks
from ledger.core.errors import PAGES, GaveUp, LedgerError
from ledger.core.values import Lane
from ledger.gate.gates import Gates
from ledger.lane.shape import ShapeCheck
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import Scan, agree, command
from ledgerctl.failures import DATA, NO_ANSWER, Wrong, of_step
from ledgerctl.lanes import each, exit_code_of, found
from ledgerctl.rebuilding import Unwritten, plan, rebuild_all

STOP_COMPACTOR = (
    "Stop the compactor of the Region first "
    f"({PAGES}docs/operations/runbooks.md#stop-and-start-the-compactor)."
)
STOP_WRITERS = (
    "Stop all that add to the counter or hold a part of it "
    f"({PAGES}docs/operations/runbooks.md#a-limited-counter-after-a-restore)."
)
UNDONE = "Nothing was rebuilt."


@command("rebuild")
def rebuild(
    call: Call,
    counter: Annotated[str | None, typer.Argument(help="The counter's name; or --all.")] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="All of the directory; with --scan, of the table."),
    ] = False,
    scan: Scan = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be written.")
    ] = False,
) -> None:
    """Write the checkpoints of a counter, or of --all, anew from their segments; asks first.

    Use it after a restore or damage, or when the replica of this Region was made again. It works on
    the lanes of this Region. For a limited counter it rebuilds the gates of every Region.
    """
    if (counter is None) != every:
        remedy = "`ledgerctl list` names the counters there are."
        raise Wrong("BadArguments", f"Name one counter, or give --all. {UNDONE}", remedy)
    if counter is None:
        _of_all(call, found(call, scan=scan).lanes, yes, dry_run)
        return
    call.settings.plan(counter).check_kept(call.surroundings.clock())
    gates = Gates.of(call.settings, counter)
    try:
        if gates is None:
            _of_lanes(call, counter, yes, dry_run)
        else:
            _of_gates(call, counter, gates, yes, dry_run)
    except GaveUp as error:
        raise Wrong(
            "GaveUp", str(error), STOP_COMPACTOR if gates is None else STOP_WRITERS, NO_ANSWER
        ) from None


def _planned(call: Call, lanes: list[Lane], limited: list[str], what: str) -> dict[str, str]:
    """Say what a rebuild would do. Returns why it would fail, by lane."""
    plans = each(call, "lanes", lanes, lambda lane: plan(call, lane))
    would = {
        how: sum(planned.would == how for planned in plans)
        for how in ("write", "delete", "nothing", "fail")
    }
    failing = {
        str(planned.lane): str(planned.error) for planned in plans if planned.error is not None
    }
    fields = {"region": call.settings.region, "would": would, "limited": limited}
    call.document(fields | {"failing": failing, "written": False})
    call.say(f"{what}; lanes: {', '.join(f'{how} {count:,}' for how, count in would.items())}")
    return failing


def _of_all(call: Call, lanes: list[Lane], yes: bool, dry_run: bool) -> None:
    region, settings = call.settings.region, call.settings
    limited = sorted(
        {lane.counter for lane in lanes if settings.limit_of(lane.counter) is not None}
    )
    own = [
        lane for lane in lanes if lane.region == region and settings.limit_of(lane.counter) is None
    ]
    what = (
        f"{show.counted(len(own), 'lane')} of {region} and "
        f"{show.counted(len(limited), 'limited counter')}"
    )
    if dry_run:
        failing, code = _planned(call, own, limited, what), DATA
    else:
        warning = (
            f"{STOP_COMPACTOR} Until this ends no compactor may work on these lanes, and no "
            "process may use a limited counter."
        )
        agree(call, yes, warning, f"Rebuild {what}?", UNDONE)
        done, failed = rebuild_all(call, lanes)
        losses = {name: lost for name, lost in done.items() if lost}
        for name, lost in losses.items():
            call.note(f"{name}: {' '.join(lost)}", "yellow")
        failing = {name: of_step(error) for name, error in failed.items()}
        call.document({"region": region, "rebuilt": len(done), "failed": failing, "told": losses})
        call.say(f"rebuilt {show.counted(len(done), 'counter')} in {region}", style="green")
        code = exit_code_of(list(failed.values()))
    for name, why in failing.items():
        call.note(f"{name}: {why}", "red")
    call.note_cost()
    if failing:
        raise typer.Exit(code)


def _of_lanes(call: Call, counter: str, yes: bool, dry_run: bool) -> None:
    lanes = call.settings.lanes_of(counter, call.settings.region)
    if dry_run:
        plans = [plan(call, lane) for lane in lanes]
        for planned in plans:
            call.say(f"{planned.lane}: {planned.now}\n  {planned.why}")
        _document(call, counter, [planned.fields() for planned in plans], written=False)
        if wrong := [planned.error for planned in plans if planned.error is not None]:
            raise wrong[0]
        return
    agree(
        call,
        yes,
        f"{STOP_COMPACTOR} Until this ends no compactor may work on these lanes.",
        "Rebuild them?",
        UNDONE,
    )
    found: list[dict[str, object]] = []
    errors: list[LedgerError] = []
    try:
        for lane in lanes:
            try:
                checkpoint = call.run(rebuilding(lane))
            except LedgerError as error:
                errors.append(error)
                found.append({"lane": str(lane), "error": of_step(error)})
                call.note(f"{lane}: {of_step(error)}", "red")
                continue
            found.append({"lane": str(lane), "total": checkpoint.total if checkpoint else None})
            now = (
                f"total {checkpoint.total:,}"
                if checkpoint
                else "no checkpoint, as it has no segments"
            )
            call.say(f"rebuilt {lane}: {now}", style="green")
    finally:  # also of what was rebuilt before Ctrl-C
        _document(call, counter, found, written=True)
    if errors:
        raise errors[0]


def _of_gates(call: Call, counter: str, gates: Gates, yes: bool, dry_run: bool) -> None:
    ShapeCheck(call.settings).ask(call.table, clocks.instants(call.surroundings.clock), counter)
    if not dry_run:
        agree(
            call,
            yes,
            f"{STOP_WRITERS} Do so in every Region, until this is done.",
            "Rebuild them?",
            UNDONE,
        )
    rebuilt = call.on_table(rebuilding_gates(gates), Unwritten(call.table) if dry_run else None)
    lanes = []
    for gate, losses in ((made.gate, made.told) for made in rebuilt):
        lanes.append(
            {"lane": str(gate.lane), "value": gate.value, "count": gate.number, "told": losses}
        )
        call.say(
            f"{'' if dry_run else 'rebuilt '}{gate.lane}: value {gate.value:,}, count "
            f"{gate.number:,}"
        )
        for lost in losses:  # or taken too much
            call.say(f"  {lost.removeprefix(f'{gate.lane}: ')}", style="yellow")
    _document(call, counter, lanes, written=not dry_run)


def _document(
    call: Call, counter: str, lanes: Sequence[dict[str, object]], *, written: bool
) -> None:
    call.document(
        {
            "counter": counter,
            "region": call.settings.region,
            "lanes": list(lanes),
            "written": written,
        }
    )
