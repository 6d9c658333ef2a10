"""Every order of the steps of a few small casts: not some histories, all of them.

Rules: a cast is small enough to be gone through whole; each order is judged by the same checker as the long histories,
and ends with the compactors at rest and every delta sent once more; the number of orders is counted, not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from compactor.clean import clean
from compactor.fold import fold
from compactor.report import Tally
from compactor.settle import settle
from compactor.visit import visit
from ledger import tokens
from ledger.add import add
from ledger.errors import GaveUp, LedgerError
from ledger.requests import Program
from ledger.values import Delta, Lane
from reader.read import read
from simulator import checker
from simulator.cast import COUNTER, Asked, Record, Seen
from simulator.choices import Choices, Enumerated
from simulator.faults import NONE
from simulator.history import REGIONS, SETTINGS, finish, judge_end
from simulator.process import Process, Script
from simulator.world import World

HOME, AWAY = REGIONS[:2]
LANE = Lane(HOME, 0, COUNTER)
FOLD = {"allowed_lateness_ms": SETTINGS.allowed_lateness_ms, "fold_min": 1}


class Stage:
    """A world with a few deltas in it, and the processes that are let loose on it."""

    def __init__(self, choices: Choices, regions: Sequence[str] = (HOME, AWAY)) -> None:
        self.world = World(regions, choices, page_size=10, lag_steps=0)
        self.settings = replace(SETTINGS, regions=tuple(regions))
        self.record = Record()
        self.processes: list[Process] = []

    def delta(self, number: int, *, old_ms: int = 1_000, put: bool = True) -> Delta:
        """Delta `number`, asked for `old_ms` ago; `put` at home and acknowledged, or only made."""
        token = tokens.keyed(COUNTER, str(number), self.world.now_ms - old_ms)
        asked = Asked(number, Delta(LANE, token, 4**number))
        self.record.asked.append(asked)
        if put:
            self.alone(HOME, add(asked.delta))
            asked.acknowledged, asked.home_by_ms = True, self.world.now_ms
        return asked.delta

    def alone(self, region: str, program: Program[object]) -> None:
        """Run a program before the others begin."""
        finish(self.world, region, program)

    def everything_arrives(self) -> None:
        self.world.quiesce()

    def wait(self, ms: int) -> None:
        self.world.now_ms += ms

    # -- the processes -------------------------------------------------------------------------------------------------

    def enter(self, name: str, region: str, make: Callable[[], Program[object]]) -> None:
        """A process that runs one program; its failures end it, as they end a visit."""

        def script() -> Script:
            try:
                yield from make()
            except (GaveUp, LedgerError):
                return

        self.processes.append(Process(name, region, script, self.world, NONE, None))

    def fold(self, name: str = "fold", times: int = 1) -> None:
        self.enter(name, HOME, partial(fold, LANE, Tally(), **FOLD, fold_max=1 if times > 1 else 5, commits_max=times))

    def settle(self, watermark: str, name: str = "settle") -> None:
        self.enter(name, HOME, partial(settle, LANE, Tally(), watermark, fold_max=5))

    def clean(self, name: str = "clean") -> None:
        self.enter(name, HOME, partial(clean, LANE, Tally(), self.world.regions, keep_ms=self.settings.keep_ms))

    def visit(self, name: str) -> None:
        self.enter(name, HOME, partial(visit, LANE, Tally(), self.settings))

    def add(self, delta: Delta, region: str = HOME) -> None:
        self.enter(f"add through {region}", region, partial(add, delta))

    def read(self, region: str = HOME) -> None:
        def program() -> Program[None]:
            must = frozenset(a.number for a in self.record.asked if region == HOME and a.home_by_ms is not None)
            limit = self.settings.read_time_max_ms
            _, sums = yield from read(self.settings.lanes_of(COUNTER), consistent=True, read_time_max_ms=limit)
            value, count = sum(s.value for s in sums), sum(s.count for s in sums)
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
    stage.alone(HOME, fold(LANE, Tally(), **FOLD, fold_max=5))
    stage.everything_arrives()
    stage.alone(HOME, clean(LANE, Tally(), (HOME, AWAY), keep_ms=stage.settings.keep_ms))
    stage.delta(0)  # a stray
    stage.wait(stage.settings.keep_ms)
    stage.settle(stage.record.asked[0].delta.token)
    stage.clean()


def two_settles(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.alone(HOME, fold(LANE, Tally(), **FOLD, fold_max=5))
    stage.delta(0)
    stage.settle(stage.record.asked[0].delta.token, "one")
    stage.settle(stage.record.asked[0].delta.token, "the other")


def a_retry_against_a_clean(stage: Stage) -> None:
    delta = stage.delta(0)
    stage.alone(HOME, fold(LANE, Tally(), **FOLD, fold_max=5))
    stage.everything_arrives()
    stage.alone(HOME, clean(LANE, Tally(), (HOME, AWAY), keep_ms=stage.settings.keep_ms))
    stage.wait(stage.settings.keep_ms)
    stage.clean()
    stage.add(delta)
    stage.read()


def a_fail_over_against_a_fold(stage: Stage) -> None:
    delta = stage.delta(0, put=False)
    stage.delta(1, old_ms=900)
    stage.add(delta, AWAY)
    stage.fold()
    stage.read()


CASTS = (
    one_read_against_two_folds,
    a_read_elsewhere_while_a_fold_replicates,
    two_compactors,
    settle_against_clean,
    two_settles,
    a_retry_against_a_clean,
    a_fail_over_against_a_fold,
)


@dataclass(frozen=True, slots=True)
class Explored:
    """A cast gone through: how many orders there are, and the first that is wrong, if any."""

    name: str
    orders: int
    wrong: str | None


def explore(cast: Callable[[Stage], None], orders_max: int | None = None) -> Explored:
    """Go through every order of a cast, or the first `orders_max`; stops at the first that is wrong."""
    name = cast.__name__.replace("_", " ")
    for orders, wrong in enumerate(_orders(cast), start=1):
        if wrong is not None or orders == orders_max:
            return Explored(name, orders, wrong)
    return Explored(name, orders, None)


def _orders(cast: Callable[[Stage], None]) -> Iterator[str | None]:
    choices = Enumerated()
    while True:
        stage = Stage(choices)
        cast(stage)
        _interleave(stage)
        wrong = list(checker.check_reads(stage.record)) or judge_end(stage.world, stage.settings, stage.record)
        yield wrong[0] if wrong else None
        if not choices.advance():
            return


def _interleave(stage: Stage) -> None:
    """One order of the steps: of the processes, of a transaction's items landing and of items arriving elsewhere."""
    world = stage.world
    while True:
        local = next((process for process in stage.processes if process.ready and process.is_local), None)
        if local is not None:  # in whatever order: nobody can tell
            local.step()
            continue
        moves: list[Callable[[], None]] = [process.step for process in stage.processes if process.ready]
        moves += [partial(world.land, landing, i) for landing in world.landings for i in range(len(landing.left))]
        if not moves:
            return
        readers = [process for process in stage.processes if process.region != HOME and not process.done]
        moves += [partial(world.deliver, region, key) for region, key in world.deliverable() if readers]
        world.step += 1
        moves[world.choices.pick(len(moves))]()
