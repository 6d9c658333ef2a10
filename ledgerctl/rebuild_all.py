"""`rebuild --all`: every counter's lanes of one Region anew, after a restore; and the gates of those that have a limit.

Rule 1: What fails for one counter stops no other; when so many fail that it is not about them, it ends.
Rule 2: In the order of names, from the first one on, always: a run that was cut off is run again as a whole, because
nobody knows what happened to the table meanwhile.
Rule 3: Lanes that no directory has are not seen: `adopt` comes first, or --scan.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import typer

from compactor.rebuild import rebuild as rebuilding
from ledger import clocks
from ledger.errors import GaveUp, LedgerError, TableError
from ledger.gate.gates import Gates
from ledger.gate.rebuild import rebuild as rebuilding_gates
from ledger.requests import run
from ledger.table import ByRegion
from ledger.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.failures import DATA, INTERRUPTED, NO_ANSWER, Wrong, told
from ledgerctl.lanes import Found, named
from ledgerctl.list import each
from ledgerctl.unwritten import agree

CHUNK = 256
"""Counters between two looks at how many failed."""

FAILED_MAX = 200
"""Counters that may fail before it is not about them."""


@dataclass(slots=True)
class Progress:
    """after: the last counter that was tried. rebuilt: how many were. told, failed: what was found out, by counter."""

    after: str = ""
    rebuilt: int = 0
    told: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, LedgerError] = field(default_factory=dict)


class Planned(Protocol):
    """What a rebuild of a lane would do: write, delete, nothing or fail."""

    @property
    def lane(self) -> Lane: ...
    @property
    def would(self) -> str: ...
    @property
    def error(self) -> LedgerError | None: ...


def rebuild_all(
    call: Call,
    every: Found,
    plan: Callable[[Call, Lane], Planned],
    warning: str,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """The command, of all counters. Raises Wrong."""
    region, settings = call.settings.region, call.settings
    limited = sorted({lane.counter for lane in every.lanes if settings.limit_of(lane.counter) is not None})
    own = [lane for lane in every.lanes if lane.region == region and settings.limit_of(lane.counter) is None]
    said = f"{show.counted(len(own), 'lane')} of {region} and {show.counted(len(limited), 'limited counter')}"
    if not dry_run:
        if not yes:
            agree(call, warning, f"Rebuild {said}?")
        tell(call, rebuilt(call, every))
        return
    plans = each(call, "looking", own, lambda lane: plan(call, lane))
    would = {how: sum(planned.would == how for planned in plans) for how in ("write", "delete", "nothing", "fail")}
    failing = {str(planned.lane): str(planned.error) for planned in plans if planned.error is not None}
    if call.json:
        call.document({"region": region, "would": would, "limited": limited, "failing": failing, "written": False})
    else:
        call.say(f"{said}; lanes: {', '.join(f'{how} {count:,}' for how, count in would.items())}")
        call.note(show.cost(call.meter.take()))
    for lane, why in failing.items():
        call.note(f"{lane}: {why}", "red")
    if failing:
        raise typer.Exit(DATA)


def rebuilt(call: Call, every: Found, *, gates: bool = True) -> Progress:
    """Rebuild the lanes of --region, of all counters in `every`; raises Wrong when it cannot go on."""
    region = call.settings.region
    progress = Progress()
    lanes_of: dict[str, list[Lane]] = {}
    for lane in every.lanes:
        limited = call.settings.limit_of(lane.counter) is not None
        if (limited and gates) or (not limited and lane.region == region):
            lanes_of.setdefault(lane.counter, []).append(lane)
    names = sorted(lanes_of)
    try:
        for start in range(0, len(names), CHUNK):
            _rebuild(call, names[start : start + CHUNK], lanes_of, progress)
    except (LedgerError, KeyboardInterrupt) as failure:
        raise _cut_off(call, failure, progress, len(names)) from None
    return progress


def tell(call: Call, progress: Progress) -> None:
    """What was done; ends with an exit code when some counters failed."""
    for name, said in progress.told.items():
        for line in said:
            call.note(f"{name}: {line}", "yellow")
    for name, error in progress.failed.items():
        call.note(f"{name}: {error}", "red")
    region = call.settings.region
    if call.json:
        failed = {name: str(error) for name, error in progress.failed.items()}
        call.document({"region": region, "rebuilt": progress.rebuilt, "failed": failed, "told": progress.told})
    else:
        call.say(f"rebuilt {show.counted(progress.rebuilt, 'counter')} in {region}", style="green")
        call.note(show.cost(call.meter.take()))
    if progress.failed:
        may_pass = all(isinstance(error, GaveUp | TableError) for error in progress.failed.values())
        raise typer.Exit(NO_ANSWER if may_pass else DATA)


def _rebuild(call: Call, names: Sequence[str], lanes_of: dict[str, list[Lane]], progress: Progress) -> None:
    """Some counters; what failed is noted."""

    def one(name: str) -> tuple[str, list[str], LedgerError | None]:
        try:
            return name, _lanes(call, name, lanes_of[name]), None
        except LedgerError as error:
            return name, [], error

    for name, said, error in each(call, "rebuilding", names, one):
        if error is not None:
            progress.failed[name] = error
        else:
            progress.rebuilt += 1
        if said:
            progress.told[name] = said
    progress.after = names[-1]
    if len(progress.failed) > FAILED_MAX:
        raise next(iter(progress.failed.values()))


def _lanes(call: Call, name: str, lanes: Sequence[Lane]) -> list[str]:
    """Rebuild a counter's lanes of this Region, or its gates. What must be told of it. Raises LedgerError."""
    limited = Gates.of(call.settings, name)
    if limited is not None:
        table = ByRegion(call.settings.region, call.tables)
        done = run(rebuilding_gates(limited), table, clocks.instants(call.surroundings.clock))
        return [said for gate in done for said in gate.told]
    failed: LedgerError | None = None
    for lane in sorted({*lanes, *call.settings.lanes_of(name, call.settings.region)}):
        try:
            call.run(rebuilding(call.settings.known(lane)))
        except LedgerError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return []


def _cut_off(call: Call, failure: BaseException, progress: Progress, count: int) -> Wrong:
    said = f"Rebuilt {progress.rebuilt:,} of {show.counted(count, 'counter')}"
    said += f", up to {progress.after}." if progress.after else "."
    if progress.failed:
        said += f" Failed: {named(progress.failed)}."
    remedy = "Run it again, before a compactor runs: it begins at the beginning."
    if isinstance(failure, Exception):
        wrong = told(failure, call.where)
        return Wrong(wrong.kind, f"{wrong.message} {said}", f"{wrong.remedy}\n{remedy}".strip(), wrong.code)
    return Wrong("Interrupted", f"Interrupted. {said}", remedy, INTERRUPTED)
