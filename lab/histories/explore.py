"""Every order of the steps of a few small casts: not some histories, all of them. `make explore` prints them.

Rules: a cast is small enough to be gone through whole; each order is judged by the same checker as the long histories,
and ends with the compactors at rest and every delta sent once more; the number of orders is counted, not guessed. Where
a cast says `crash`, one process ends at some step, at every one of them in turn, and begins again from its start.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from compactor.clean import clean
from compactor.fold import fold
from compactor.rebuild import rebuild
from compactor.report import Tally
from compactor.settle import settle
from compactor.visit import visit
from lab.designs import naive
from lab.histories import checker
from lab.histories.cast import COUNTER, Asked, Record, Seen
from lab.histories.history import REGIONS, SETTINGS, finish, judge_end
from ledger import tokens
from ledger.add import add
from ledger.errors import GaveUp, LedgerError
from ledger.requests import Key, Program
from ledger.values import Delta, Lane
from reader.read import read
from simulator.choices import Choices, Enumerated, Replayed
from simulator.faults import NONE
from simulator.process import Log, Process, Script
from simulator.trace import Trace
from simulator.world import Landing, World

HOME, AWAY = REGIONS[:2]
LANE = Lane(HOME, 0, COUNTER)
FOLD = {"allowed_lateness_ms": SETTINGS.allowed_lateness_ms, "fold_min": 1}


class Stage:
    """A world with a few deltas in it, and the processes that are let loose on it."""

    def __init__(self, choices: Choices, log: Log | None = None) -> None:
        self.world = World((HOME, AWAY), choices, page_size=10, lag_steps=0)
        self.settings = replace(SETTINGS, regions=(HOME, AWAY))
        self.record = Record()
        self.processes: list[Process] = []
        self.passes_ms = 0
        self.crashes = False
        self.judge: Callable[[Stage], list[str]] = lambda stage: judge_end(stage.world, stage.settings, stage.record)
        self.log = log
        self._everywhere: set[int] = set()

    def delta(self, number: int, *, old_ms: int = 1_000, put: bool = True, stray: bool = False) -> Delta:
        """Delta `number`, asked for `old_ms` ago; `put` at home and acknowledged (as a stray?), or only made."""
        token = tokens.keyed(COUNTER, str(number), self.world.now_ms - old_ms)
        asked = Asked(number, Delta(LANE, token, 4**number))
        self.record.asked.append(asked)
        if put:
            self.alone(add(asked.delta))
            asked.acknowledged, asked.on_time = True, not stray
        return asked.delta

    def alone(self, program: Program[object]) -> None:
        """Run a program at home before the others begin."""
        finish(self.world, HOME, program)

    def everything_arrives(self) -> None:
        self.world.quiesce()
        self._everywhere = {asked.number for asked in self.record.asked}

    def wait(self, ms: int) -> None:
        self.world.now_ms += ms

    def crash(self) -> None:
        """One process crashes, somewhere."""
        self.crashes = True

    def tell(self, who: str, what: object, came: object) -> None:
        if self.log is not None:
            self.log(who, what, came)

    # -- the processes -------------------------------------------------------------------------------------------------

    def enter(self, name: str, region: str, make: Callable[[], Program[object]]) -> None:
        """A process that runs one program; its failures end it, as they end a visit."""

        def script() -> Script:
            try:
                yield from make()
            except (GaveUp, LedgerError):
                return

        self.processes.append(Process(name, region, script, self.world, NONE, self.log))

    def fold(self, name: str = "fold", times: int = 1) -> None:
        self.enter(name, HOME, partial(fold, LANE, Tally(), **FOLD, fold_max=1 if times > 1 else 5, commits_max=times))

    def folded(self) -> None:
        self.alone(fold(LANE, Tally(), **FOLD, fold_max=5))

    def settle(self, watermark: str, name: str = "settle") -> None:
        self.enter(name, HOME, partial(settle, LANE, Tally(), watermark, fold_max=5))

    def clean(self, name: str = "clean") -> None:
        self.enter(
            name, HOME, partial(clean, LANE, Tally(), (HOME, AWAY), units_per_s=500, keep_ms=self.settings.keep_ms)
        )

    def noted(self) -> None:
        """What is folded arrives everywhere and is noted; then `keep` passes."""
        self.everything_arrives()
        self.alone(clean(LANE, Tally(), (HOME, AWAY), units_per_s=500, keep_ms=self.settings.keep_ms))
        self.wait(self.settings.keep_ms)

    def visit(self, name: str = "visit") -> None:
        self.enter(name, HOME, partial(visit, LANE, Tally(), self.settings))

    def add(self, delta: Delta, region: str = HOME, name: str = "") -> None:
        asked = next(each for each in self.record.asked if each.delta == delta)

        def program() -> Program[None]:
            yield from add(delta)
            asked.acknowledged = True
            late_ms = self.world.now_ms - tokens.time_ms(delta.token)
            asked.on_time = asked.on_time or (region == HOME and late_ms <= self.settings.allowed_lateness_ms)

        self.enter(name or f"add through {region}", region, program)

    def time(self, ms: int) -> None:
        """Some time passes, at some moment."""
        self.passes_ms = ms

    def read(self, region: str = HOME, reads: Callable[[], Program[tuple[int, int]]] | None = None) -> None:
        """A strong read; it must hold what was on time and is in its Region when it begins."""

        def ours() -> Program[tuple[int, int]]:
            limit = self.settings.read_time_max_ms
            _, sums = yield from read(self.settings.lanes_of(COUNTER), consistent=True, read_time_max_ms=limit)
            return sum(each.value for each in sums), sum(each.count for each in sums)

        def program() -> Program[None]:
            there = (asked for asked in self.record.asked if region == HOME or asked.number in self._everywhere)
            must = frozenset(asked.number for asked in there if asked.on_time)
            value, count = yield from (reads or ours)()
            self.record.seen.append(Seen(region, True, value, count, len(self.record.asked), must))

        self.enter(f"read in {region}", region, program)


# -- the casts ---------------------------------------------------------------------------------------------------------


def one_read_against_two_folds(stage: Stage) -> None:
    stage.delta(0)
    stage.delta(1, old_ms=900)
    stage.fold(times=2)
    stage.read()


def a_read_elsewhere_while_a_fold_replicates(stage: Stage) -> None:
    stage.delta(0)
    stage.everything_arrives()
    stage.fold()
    stage.read(AWAY)


def two_compactors(stage: Stage) -> None:
    stage.delta(0)
    stage.delta(1, old_ms=900)
    stage.fold("one")
    stage.fold("the other")


def settle_against_clean(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.folded()
    stage.noted()
    stage.delta(0, old_ms=3_000, stray=True)
    stage.settle(stage.record.asked[0].delta.token)
    stage.clean()


def two_settles(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.folded()
    stage.delta(0, stray=True)
    stage.settle(stage.record.asked[0].delta.token, "one")
    stage.settle(stage.record.asked[0].delta.token, "the other")


def a_retry_against_a_clean(stage: Stage) -> None:
    delta = stage.delta(0)
    stage.folded()
    stage.noted()
    stage.clean()
    stage.add(delta)
    stage.read()


def a_fail_over_against_a_fold(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.everything_arrives()
    stage.add(stage.delta(0, put=False), AWAY)
    stage.fold()
    stage.read()


def a_delta_that_is_only_just_on_time_against_a_fold(stage: Stage) -> None:
    delta = stage.delta(0, old_ms=249, put=False)
    stage.delta(1, old_ms=248)
    stage.add(delta)
    stage.time(250)
    stage.fold()


def a_fold_that_crashes(stage: Stage) -> None:
    stage.delta(0)
    stage.fold()
    stage.read()
    stage.crash()


def a_settle_that_crashes(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.folded()
    stage.delta(0, stray=True)
    stage.settle(stage.record.asked[0].delta.token)
    stage.crash()


def a_clean_that_crashes(stage: Stage) -> None:
    stage.delta(0)
    stage.folded()
    stage.noted()
    stage.clean()
    stage.crash()


def a_visit_that_crashes(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.folded()
    stage.noted()
    stage.delta(0, old_ms=3_000, stray=True)
    stage.delta(2, old_ms=800)
    stage.visit()
    stage.crash()


def an_add_that_crashes_and_is_sent_again(stage: Stage) -> None:
    stage.add(stage.delta(0, put=False))
    stage.fold()
    stage.crash()


def a_rebuild_that_crashes(stage: Stage) -> None:
    stage.delta(0)
    stage.folded()
    stage.enter("rebuild", HOME, partial(rebuild, LANE))
    stage.crash()


CASTS = (
    one_read_against_two_folds,
    a_read_elsewhere_while_a_fold_replicates,
    two_compactors,
    settle_against_clean,
    two_settles,
    a_retry_against_a_clean,
    a_fail_over_against_a_fold,
    a_delta_that_is_only_just_on_time_against_a_fold,
    a_fold_that_crashes,
    a_settle_that_crashes,
    a_clean_that_crashes,
    a_visit_that_crashes,
    an_add_that_crashes_and_is_sent_again,
    a_rebuild_that_crashes,
)

# -- the obvious design ------------------------------------------------------------------------------------------------


def _naive(stage: Stage) -> None:
    def judge(stage: Stage) -> list[str]:
        stage.world.quiesce()
        values = {region: finish(stage.world, region, naive.read(LANE))[0] for region in (HOME, AWAY)}
        held = {region: sorted(checker.deltas_in(value) or ()) for region, value in values.items()}
        return list(checker.check_end(stage.record, values, {r: [4**n for n in held[r]] for r in held}))

    stage.judge = judge
    stage.delta(0)
    stage.everything_arrives()


def a_read_while_the_merge_becomes_visible(stage: Stage) -> None:
    _naive(stage)
    stage.enter("merge", HOME, partial(naive.merge, LANE))
    stage.read(HOME, partial(naive.read, LANE))


def a_read_elsewhere_while_the_merge_replicates(stage: Stage) -> None:
    _naive(stage)
    stage.alone(naive.merge(LANE))
    stage.read(AWAY, partial(naive.read, LANE))


def a_retry_after_the_merge(stage: Stage) -> None:
    _naive(stage)
    stage.enter("merge", HOME, partial(naive.merge, LANE))
    stage.add(stage.record.asked[0].delta, name="the same add again")


def two_regions_merge(stage: Stage) -> None:
    _naive(stage)
    stage.world.cut.add(AWAY)  # for a while
    stage.add(stage.delta(1, old_ms=900, put=False), AWAY)
    stage.enter("merge", HOME, partial(naive.merge, LANE))
    stage.enter("merge elsewhere", AWAY, partial(naive.merge, LANE))


NAIVE_CASTS = (
    a_read_while_the_merge_becomes_visible,
    a_read_elsewhere_while_the_merge_replicates,
    a_retry_after_the_merge,
    two_regions_merge,
)

# -- going through them ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Explored:
    """A cast gone through: how many orders there are, how many are wrong, and the trace of the shortest of those."""

    name: str
    orders: int
    wrong: int
    trace: tuple[str, ...]


def explore(cast: Callable[[Stage], None]) -> Explored:
    """Go through every order of a cast."""
    orders = wrong = 0
    shortest: tuple[int, tuple[int, ...]] | None = None
    choices = Enumerated()
    while True:
        orders += 1
        stage, said = _play(cast, choices)
        if said:
            wrong += 1
            if shortest is None or stage.world.step < shortest[0]:
                shortest = stage.world.step, choices.picked
        if not choices.advance():
            break
    trace = Trace()
    if shortest is not None:
        _, said = _play(cast, Replayed(shortest[1]), trace)
        trace.lines.append(f"WRONG: {said[0]}")
    return Explored(cast.__name__.replace("_", " "), orders, wrong, tuple(trace.lines))


def _play(cast: Callable[[Stage], None], choices: Choices, log: Log | None = None) -> tuple[Stage, list[str]]:
    stage = Stage(choices, log)
    cast(stage)
    stage.world.step = 0
    _interleave(stage)
    steps = stage.world.step
    said = list(checker.check_reads(stage.record)) or stage.judge(stage)
    stage.world.step = steps
    return stage, said


def _interleave(stage: Stage) -> None:
    """One order of the steps: of the processes, of a transaction's items landing and of items arriving elsewhere."""
    world = stage.world
    while True:
        ready = [process for process in stage.processes if process.ready]
        # What nobody else can see or change is done at once: in which order makes no difference.
        local = next((p for p in ready if p.is_local or (p.asks_the_time and not stage.passes_ms)), None)
        if local is not None:
            local.step()
            continue
        moves: list[Callable[[], None]] = [process.step for process in ready]
        moves += [partial(_land, stage, landing, i) for landing in world.landings for i in range(len(landing.left))]
        if not moves:
            return
        if stage.passes_ms:
            moves.append(partial(_time_passes, stage))
        if stage.crashes:
            moves += [partial(_crash, stage, process) for process in stage.processes if process.can_crash]
        busy = {process.region for process in stage.processes if not process.done}  # elsewhere nobody could tell
        moves += [partial(_arrive, stage, region, key) for region, key in world.deliverable() if region in busy]
        world.step += 1
        moves[world.choices.pick(len(moves))]()


def _land(stage: Stage, landing: Landing, which: int) -> None:
    stage.tell("the world", "a transaction's item becomes visible", landing.left[which])
    stage.world.land(landing, which)


def _arrive(stage: Stage, region: str, key: Key) -> None:
    stage.tell("the world", f"arrives in {region}", key)
    stage.world.deliver(region, key)


def _time_passes(stage: Stage) -> None:
    stage.tell("the world", f"{stage.passes_ms} ms pass", "")
    stage.wait(stage.passes_ms)
    stage.passes_ms = 0


def _crash(stage: Stage, process: Process) -> None:
    stage.crashes = False
    process.crash()


def main() -> None:
    """Go through every cast, and print how many orders it has. Exit code 1 when one of this library is wrong."""
    orders = wrong = 0
    print(f"{'every order of the steps of':<52}{'orders':>9}{'wrong':>8}")
    for explored in map(explore, CASTS):
        print(f"{explored.name:<52}{explored.orders:>9,}{explored.wrong:>8,}", flush=True)
        print(*explored.trace, sep="\n", end="\n" if explored.trace else "")
        orders, wrong = orders + explored.orders, wrong + explored.wrong
    print(f"{len(CASTS)} casts, {orders:,} orders, {wrong:,} wrong")
    print("\nthe obvious design: one transaction deletes deltas and adds their sum; the shortest of each kind")
    for explored in map(explore, NAIVE_CASTS):
        print(f"\n{explored.name}: {explored.wrong:,} of {explored.orders:,} orders are wrong")
        print(*explored.trace, sep="\n")
        wrong += explored.wrong == 0  # whoever finds nothing there would find nothing here
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m lab.histories.explore", description=main.__doc__).parse_args()
    main()
