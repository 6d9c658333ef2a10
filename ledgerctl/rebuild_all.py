"""`rebuild --all`: every counter's lanes of one Region anew, after a restore; and the gates of those that have a limit.

Rule 1: What fails for one counter stops no other; when so many fail that it is not about them, it ends.
Rule 2: It always begins at the beginning, because nobody knows what happened to the table since a run was cut off.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import typer

from compactor.rebuild import rebuild as rebuilding
from ledger.errors import LedgerError
from ledger.gate.gates import Gates
from ledger.gate.rebuild import rebuild as rebuilding_gates
from ledger.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.failures import DATA, cut_off
from ledgerctl.lanes import Found, named
from ledgerctl.several import each, exit_code_of
from ledgerctl.unwritten import agree, plan

FAILED_MAX = 200
"""Counters that may fail before it is not about them."""


@dataclass(slots=True)
class Progress:
    """done: counters that were rebuilt. lost: what a rebuild of gates says is lost or owed. failed: why, by counter."""

    done: list[str] = field(default_factory=list)
    lost: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, LedgerError] = field(default_factory=dict)

    def losses(self) -> list[str]:
        return [f"{name}: {line}" for name, lines in sorted(self.lost.items()) for line in lines]


def rebuild_all(call: Call, every: Found, warning: str, *, yes: bool, dry_run: bool) -> None:
    """The command, of all counters. Raises Wrong."""
    region, settings = call.settings.region, call.settings
    limited = sorted({lane.counter for lane in every.lanes if settings.limit_of(lane.counter) is not None})
    own = [lane for lane in every.lanes if lane.region == region and settings.limit_of(lane.counter) is None]
    said = f"{show.counted(len(own), 'lane')} of {region} and {show.counted(len(limited), 'limited counter')}"
    if not dry_run:
        if not yes:
            agree(call, warning, f"Rebuild {said}?")
        _show(call, rebuilt(call, every))
        return
    plans = each(call, "looking", own, lambda lane: plan(call, lane))
    would = {how: sum(planned.would == how for planned in plans) for how in ("write", "delete", "nothing", "fail")}
    failing = {str(planned.lane): str(planned.error) for planned in plans if planned.error is not None}
    call.document({"region": region, "would": would, "limited": limited, "failing": failing, "written": False})
    call.say(f"{said}; lanes: {', '.join(f'{how} {count:,}' for how, count in would.items())}")
    call.note_cost()
    for lane, why in failing.items():
        call.note(f"{lane}: {why}", "red")
    if failing:
        raise typer.Exit(DATA)


def rebuilt(call: Call, every: Found, *, gates: bool = True) -> Progress:
    """Rebuild the lanes of --region, of all counters in `every`; raises Wrong when it cannot go on."""
    progress = Progress()
    lanes_of: dict[str, list[Lane]] = {}
    for lane in every.lanes:
        limited = call.settings.limit_of(lane.counter) is not None
        if (limited and gates) or (not limited and lane.region == call.settings.region):
            lanes_of.setdefault(lane.counter, []).append(lane)

    def one(name: str) -> None:
        try:
            lost = _lanes(call, name, lanes_of[name])
        except LedgerError as error:
            progress.failed[name] = error
            if len(progress.failed) > FAILED_MAX:
                raise
            return
        progress.done.append(name)
        if lost:
            progress.lost[name] = lost

    try:
        each(call, "rebuilding", sorted(lanes_of), one)
    except (LedgerError, KeyboardInterrupt) as failure:
        done = f"Rebuilt {len(progress.done):,} of {show.counted(len(lanes_of), 'counter')}."
        done += f" Failed: {named(sorted(progress.failed))}." if progress.failed else ""
        remedy = "Run it again, before a compactor runs: it begins at the beginning."
        raise cut_off(failure, call.where, done, remedy) from None
    return progress


def _show(call: Call, progress: Progress) -> None:
    """Print what was done; ends with an exit code when some counters failed."""
    for line in progress.losses():
        call.note(line, "yellow")
    failed = {name: str(error) for name, error in sorted(progress.failed.items())}
    for name, why in failed.items():
        call.note(f"{name}: {why}", "red")
    region, count = call.settings.region, len(progress.done)
    call.document({"region": region, "rebuilt": count, "failed": failed, "told": progress.lost})
    call.say(f"rebuilt {show.counted(count, 'counter')} in {region}", style="green")
    call.note_cost()
    if failed:
        raise typer.Exit(exit_code_of(list(progress.failed.values())))


def _lanes(call: Call, name: str, lanes: Sequence[Lane]) -> list[str]:
    """Rebuild a counter's lanes of this Region, or its gates. What is lost of it. Raises LedgerError."""
    limited = Gates.of(call.settings, name)
    if limited is not None:
        return [lost for gate in call.on_table(rebuilding_gates(limited)) for lost in gate.told]
    failed: LedgerError | None = None
    for lane in sorted({*lanes, *call.settings.lanes_of(name, call.settings.region)}):
        try:
            call.run(rebuilding(call.settings.known(lane)))
        except LedgerError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return []
