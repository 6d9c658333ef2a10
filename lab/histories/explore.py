"""Every order of the steps of a few small casts: not some histories, all of them. `make explore` prints them.

Rule 1: a cast is small enough to be gone through whole; the number of its states is counted, not guessed.
Rule 2: a state is the world and what each process was told, because a process that was told the same is in the same
state; the search goes on from it once.
Rule 3: in every state everything stops for good, as in a crash. Then a strong read in each Region is judged, and the
end as that of the long histories: with fresh compactors, and with every delta sent once more.
Rule 4: states are reached with the fewest steps first, so the first that is wrong has one of the shortest traces.
"""

import argparse
import sys
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from compactor.clean import clean
from compactor.fold import fold
from compactor.rebuild import rebuild
from compactor.report import Tally
from compactor.settle import settle
from compactor.visit import visit
from lab.designs import naive
from lab.histories import checker
from lab.histories.cast import COUNTER, Asked, Record, Seen
from lab.histories.history import REGIONS, finish, judge_end, timed
from ledger import items, tokens
from ledger.add import add
from ledger.errors import GaveUp, LedgerError
from ledger.requests import DeleteMany, Get, Key, Program, Request
from ledger.through import through
from ledger.values import Delta, Lane
from reader.read import read
from simulator.choices import Replayed
from simulator.faults import NONE
from simulator.process import Log, Process, Script
from simulator.trace import Trace
from simulator.world import Landing, Stamp, World

HOME, AWAY = REGIONS[:2]
LANE = Lane(HOME, 0, COUNTER)
SETTINGS = replace(timed(1), fold_min=1, fold_max=3)
FOLD = {"allowed_lateness_ms": SETTINGS.allowed_lateness_ms, "fold_min": 1}
NOTHING = Get(Key("nothing", "nothing"))
"""Asked between two steps that a process takes whole."""


class Stage:
    """A world with a few deltas in it, and the processes that are let loose on it."""

    def __init__(self, order: tuple[int, ...], log: Log | None = None) -> None:
        self.choices, self.order = Replayed(order), order
        self.world = World((HOME, AWAY), self.choices, page_size=10, lag_steps=0)
        self.settings = replace(SETTINGS, regions=(HOME, AWAY))
        self.record = Record()
        self.processes: list[Process] = []
        self.told: list[list[int]] = []
        self.passes_ms = 0
        self.time_goes = False
        """Whether it matters when a process asks for the time."""
        self.judge: Callable[[Stage], list[str]] = judged
        self.stops = True
        """Whether everything stops in every state, or only at the end."""
        self.log = log
        self.everywhere: set[int] = set()

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
        self.everywhere = {asked.number for asked in self.record.asked}

    def wait(self, ms: int) -> None:
        self.world.now_ms += ms

    def tell(self, who: str, what: object, came: object) -> None:
        if self.log is not None:
            self.log(who, what, came)

    # -- the processes -------------------------------------------------------------------------------------------------

    def enter(self, name: str, region: str, make: Callable[[], Program[object]]) -> None:
        """A process that runs one program; its failures end it, as they end a visit. Deletes happen one by one."""
        told: list[int] = []

        def step(request: Request) -> Generator[Any, Any, Any]:
            try:
                if isinstance(request, DeleteMany):
                    answers: tuple[Any, ...] = ()
                    for item in request.items:
                        answers += yield DeleteMany((item,))
                        told.append(hash(repr(answers)))
                    return answers
                answer = yield request
            except LedgerError as error:
                told.append(hash(repr(error)))
                raise
            told.append(hash(repr(answer)))
            return answer

        def script() -> Script:
            try:
                yield from through(make(), step)
            except (GaveUp, LedgerError):
                return

        self.told.append(told)
        self.processes.append(Process(name, region, script, self.world, NONE, self.log))

    def fold(self, name: str = "fold", times: int = 1, fold_max: int = 5) -> None:
        most = 1 if times > 1 else fold_max
        self.enter(name, HOME, partial(fold, LANE, Tally(), **FOLD, fold_max=most, commits_max=times))

    def folded(self) -> None:
        self.alone(fold(LANE, Tally(), **FOLD, fold_max=5))

    def settle(self, name: str = "settle") -> None:
        """Of what is below the watermark that there is now."""
        watermark = max(asked.delta.token for asked in self.record.asked if asked.on_time)
        self.enter(name, HOME, partial(settle, LANE, Tally(), watermark, fold_max=5))

    def cleaning(self) -> Program[object]:
        return clean(LANE, Tally(), (HOME, AWAY), units_per_s=500, keep_ms=self.settings.keep_ms)

    def clean(self, name: str = "clean") -> None:
        self.enter(name, HOME, self.cleaning)

    def noted(self) -> None:
        """What is folded arrives everywhere and is noted; then `keep` passes."""
        self.everything_arrives()
        self.alone(self.cleaning())
        self.wait(self.settings.keep_ms)

    def visiting(self) -> Program[object]:
        return visit(LANE, Tally(), self.settings)

    def rebuild(self) -> None:
        self.enter("rebuild", HOME, partial(rebuild, LANE))

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
        self.passes_ms, self.time_goes = ms, True

    def must(self, region: str) -> frozenset[int]:
        """What a strong read must hold that begins now: what was on time and is in its Region."""
        there = (asked for asked in self.record.asked if region == HOME or asked.number in self.everywhere)
        return frozenset(asked.number for asked in there if asked.on_time)

    def reading(self) -> Program[tuple[int, int]]:
        limit = self.settings.read_time_max_ms
        _, sums = yield from read(self.settings.lanes_of(COUNTER), consistent=True, read_time_max_ms=limit)
        return sum(each.value for each in sums), sum(each.count for each in sums)

    def read(self, region: str = HOME, reads: Callable[[], Program[tuple[int, int]]] | None = None) -> None:
        """A strong read, judged by what it must hold."""

        def program() -> Program[None]:
            must = self.must(region)
            value, count = yield from (reads or self.reading)()
            self.record.seen.append(Seen(region, True, value, count, len(self.record.asked), must))

        self.enter(f"read in {region}", region, program)

    def compactions(self, times: int, everywhere: bool) -> None:
        """Visits, each whole, and `keep` passes after each; what they write arrives `everywhere` before that."""

        def program() -> Program[None]:
            for _ in range(times):
                yield NOTHING
                finish(self.world, HOME, self.visiting())
                if everywhere:
                    self.world.quiesce()
                yield NOTHING
                self.wait(self.settings.keep_ms)

        self.time_goes, self.stops = True, False  # between two visits alone it could stop
        self.enter("compactor", HOME, program)


def judged(stage: Stage) -> list[str]:
    """What is wrong if everything stops here."""
    world, asked = stage.world, stage.record.asked
    seen = [Seen(at, True, *finish(world, at, stage.reading()), len(asked), stage.must(at)) for at in (HOME, AWAY)]
    wrong = [why for each in seen if (why := checker.check_read(each, asked))]
    return wrong or judge_end(world, stage.settings, stage.record)


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


def a_read_elsewhere_through_a_fold_and_a_clean(stage: Stage) -> None:
    stage.delta(0)
    stage.everything_arrives()
    stage.folded()
    stage.compactions(2, everywhere=False)
    stage.read(AWAY)


def a_read_that_a_clean_overtakes(stage: Stage) -> None:
    stage.delta(0)
    stage.delta(1, old_ms=900)
    stage.everything_arrives()
    stage.compactions(3, everywhere=True)
    stage.read()


def an_add_in_time_among_two_folds_and_a_read(stage: Stage) -> None:
    stage.delta(1)
    stage.add(stage.delta(0, old_ms=SETTINGS.allowed_lateness_ms - 1, put=False))
    stage.fold(times=2)
    stage.read()


def a_delta_that_is_only_just_on_time_against_a_fold(stage: Stage) -> None:
    delta = stage.delta(0, old_ms=249, put=False)
    stage.delta(1, old_ms=248)
    stage.add(delta)
    stage.time(250)
    stage.fold()


def a_fail_over_against_a_fold(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.everything_arrives()
    stage.add(stage.delta(0, put=False), AWAY)
    stage.fold()
    stage.read()


def two_compactors(stage: Stage) -> None:
    stage.delta(0)
    stage.delta(1, old_ms=900)
    stage.fold("one")
    stage.fold("the other", fold_max=1)


def two_settles(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.folded()
    stage.delta(0, stray=True)
    stage.settle("one")
    stage.settle("the other")


def a_fold_against_a_settle(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.folded()
    stage.settle()
    stage.delta(0, stray=True)
    stage.delta(2, old_ms=800)
    stage.fold()


def settle_against_clean_and_a_retry(stage: Stage) -> None:
    delta = stage.delta(1, old_ms=900)
    stage.folded()
    stage.noted()
    stage.delta(0, old_ms=3_000, stray=True)
    stage.settle()
    stage.clean()
    stage.add(delta)


def a_stray_that_is_settled_while_an_older_version_is_cleaned(stage: Stage) -> None:
    """It stays until every Region counts it."""
    stage.delta(1, old_ms=900)
    stage.delta(2, old_ms=800)
    stage.folded()
    stage.noted()
    stray = stage.delta(0, old_ms=3_000, stray=True)

    def cleans() -> Program[None]:
        yield from stage.cleaning()
        stage.wait(stage.settings.keep_ms)
        yield from stage.cleaning()

    def judge(stage: Stage) -> list[str]:
        there = stage.world.replicas[HOME].item(items.delta_key(stray))
        return judged(stage) if there else ["the stray is deleted, and not every Region counts it"]

    stage.judge = judge
    stage.settle()
    stage.enter("clean", HOME, cleans)


def two_cleans_and_a_retry_elsewhere(stage: Stage) -> None:
    delta = stage.delta(0)
    stage.folded()
    stage.noted()
    del stage.world.replicas[AWAY].cells[items.delta_pk(LANE)][delta.token]  # as another clean did
    stage.clean("one")
    stage.clean("the other")
    stage.add(delta, AWAY)


def a_retry_against_a_clean(stage: Stage) -> None:
    delta = stage.delta(0)
    stage.folded()
    stage.noted()
    stage.clean()
    stage.add(delta)
    stage.read()


def a_visit_a_retry_and_a_read(stage: Stage) -> None:
    delta = stage.delta(1, old_ms=900)
    stage.folded()
    stage.noted()
    stage.delta(0, old_ms=3_000, stray=True)
    stage.delta(2, old_ms=800)
    stage.enter("visit", HOME, stage.visiting)
    stage.add(delta)
    stage.read()


def a_rebuild_while_the_first_commit_lands(stage: Stage) -> None:
    """An operator should not, but may: no read is wrong, and a rebuild with nobody else there puts it right."""

    def judge(stage: Stage) -> list[str]:
        value, count = finish(stage.world, HOME, stage.reading())
        wrong = checker.check_read(Seen(HOME, True, value, count, 2, stage.must(HOME)), stage.record.asked)
        stage.world.quiesce()
        finish(stage.world, HOME, rebuild(LANE))
        return [wrong] if wrong else judged(stage)

    stage.judge = judge
    stage.delta(0)
    stage.delta(1, old_ms=900)
    stage.fold()
    stage.rebuild()


def a_rebuild_while_a_settle_commits(stage: Stage) -> None:
    """Also when the compactor was stopped before, its last commit may still be landing."""
    stage.delta(1, old_ms=900)
    stage.folded()
    stage.delta(0, stray=True)
    stage.settle()
    stage.rebuild()


CASTS = (
    one_read_against_two_folds,
    a_read_elsewhere_while_a_fold_replicates,
    a_read_elsewhere_through_a_fold_and_a_clean,
    a_read_that_a_clean_overtakes,
    an_add_in_time_among_two_folds_and_a_read,
    a_delta_that_is_only_just_on_time_against_a_fold,
    a_fail_over_against_a_fold,
    two_compactors,
    two_settles,
    a_fold_against_a_settle,
    settle_against_clean_and_a_retry,
    a_stray_that_is_settled_while_an_older_version_is_cleaned,
    two_cleans_and_a_retry_elsewhere,
    a_retry_against_a_clean,
    a_visit_a_retry_and_a_read,
    a_rebuild_while_the_first_commit_lands,
    a_rebuild_while_a_settle_commits,
)

# -- the obvious design ------------------------------------------------------------------------------------------------


def _naive(stage: Stage) -> None:
    def judge(stage: Stage) -> list[str]:
        stage.world.quiesce()
        values = {region: finish(stage.world, region, naive.read(LANE))[0] for region in (HOME, AWAY)}
        held = {region: sorted(checker.deltas_in(value) or ()) for region, value in values.items()}
        return list(checker.check_end(stage.record, values, {r: [4**n for n in held[r]] for r in held}))

    stage.judge, stage.stops = judge, False
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
    """A cast gone through: how many states it reaches, in how many it is wrong, and the trace of the first of those."""

    name: str
    states: int
    wrong: int
    trace: tuple[str, ...]


def explore(cast: Callable[[Stage], None]) -> Explored:
    """Go through every order of a cast."""
    states: set[int] = set()
    wrong: list[tuple[tuple[int, ...], str]] = []
    orders: deque[tuple[int, ...]] = deque([()])
    while orders:
        order = orders.popleft()
        stage = Stage(order)
        cast(stage)
        moves = _interleave(stage)
        state = _state(stage)
        if state in states:
            continue
        states.add(state)
        orders += [(*order, pick) for pick in range(moves)]
        why = list(checker.check_reads(stage.record))
        if not why and (stage.stops or not moves):
            why = stage.judge(stage)
        wrong += [(order, each) for each in why[:1]]
    trace = Trace()
    if wrong:
        order, why_first = wrong[0]
        stage = Stage(order, trace)
        cast(stage)
        _interleave(stage)
        trace.lines.append(f"WRONG: {why_first}")
    return Explored(cast.__name__.replace("_", " "), len(states), len(wrong), tuple(trace.lines))


def _interleave(stage: Stage) -> int:
    """The steps of one order, as far as it goes, and how many there are to go on with.

    Steps are those of the processes, of a transaction's items landing and of items arriving elsewhere.
    """
    world = stage.world
    while True:
        ready = [process for process in stage.processes if process.ready]
        # What nobody else can see or change is done at once: in which order makes no difference.
        local = next((p for p in ready if p.is_local or (p.asks_the_time and not stage.time_goes)), None)
        if local is not None:
            local.step()
            continue
        moves: list[Callable[[], None]] = [process.step for process in ready]
        moves += [partial(_land, stage, landing, i) for landing in world.landings for i in range(len(landing.left))]
        if moves and stage.passes_ms:
            moves.append(partial(_time_passes, stage))
        busy = {process.region for process in stage.processes if not process.done}  # elsewhere nobody could tell
        if moves:
            moves += [partial(_arrive, stage, region, key) for region, key in world.deliverable() if region in busy]
        if not moves or stage.choices.used == len(stage.order):
            return len(moves)
        world.step += 1
        moves[world.choices.pick(len(moves))]()


def _state(stage: Stage) -> int:
    """The world, and what each process was told: all that decides what can happen from here."""
    world = stage.world
    held: list[tuple[Key, Stamp, str, str, str]] = []
    for region, replica in world.replicas.items():
        for pk, cells in replica.cells.items():
            for sk, cell in cells.items():
                held.append((Key(pk, sk), cell.stamp, region, "", repr(cell.item)))
        held += [(key, stamp, region, home, repr(item)) for key, (item, stamp, home) in replica.inbox.items()]
    # Of two writes of an item in one millisecond the order is what counts, not their running numbers.
    ranked = [(key, stamp[0], region, home, item) for key, stamp, region, home, item in sorted(held)]
    landing = [(each.region, repr(each.left)) for each in world.landings]
    done = [process.done for process in stage.processes]
    on_time = [(asked.acknowledged, asked.on_time) for asked in stage.record.asked]
    return hash(repr((world.now_ms, stage.passes_ms, ranked, landing, done, stage.told, on_time)))


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


def main() -> None:
    """Go through every cast, and print how many states it has. Exit code 1 when one of this library is wrong."""
    states = wrong = 0
    print(f"{'every order of the steps of':<62}{'states':>9}{'wrong':>8}")
    for explored in map(explore, CASTS):
        print(f"{explored.name:<62}{explored.states:>9,}{explored.wrong:>8,}", flush=True)
        print(*explored.trace, sep="\n", end="\n" if explored.trace else "")
        states, wrong = states + explored.states, wrong + explored.wrong
    print(f"{len(CASTS)} casts, {states:,} states, {wrong:,} wrong")
    print("\nthe obvious design: one transaction deletes deltas and adds their sum; the shortest of each kind")
    for explored in map(explore, NAIVE_CASTS):
        print(f"\n{explored.name}: {explored.wrong:,} of {explored.states:,} states are wrong")
        print(*explored.trace, sep="\n")
        wrong += explored.wrong == 0  # whoever finds nothing there would find nothing here
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m lab.histories.explore", description=main.__doc__).parse_args()
    main()
