"""Where a small cast plays: a world with a few deltas in it, and the processes that are let loose on it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from compactor.clean import clean
from compactor.fold import fold
from compactor.rebuild import rebuild
from compactor.report import Tally
from compactor.settle import settle
from compactor.visit import visit
from lab.histories import checker
from lab.histories.boards import AWAY, HOME, Boards
from lab.histories.cast import COUNTER, Asked, Record, Seen
from lab.histories.history import finish, judge_end, timed
from ledger import tokens
from ledger.errors import LedgerError
from ledger.lane.add import add, add_packed
from ledger.requests import Get, Key, Program
from ledger.values import Delta, Lane
from reader.read import read
from simulator.process import Log

LANE = Lane(HOME, 0, COUNTER)
SETTINGS = replace(timed(1), fold_min=1, fold_max=3)
FOLD = {"allowed_lateness_ms": SETTINGS.allowed_lateness_ms, "fold_min": 1}
NOTHING = Get(Key("nothing", "nothing"))
"""Asked between two steps that a process takes whole."""


class Stage(Boards):
    """A world with a few deltas in it, and the processes that are let loose on it."""

    def __init__(self, order: tuple[int, ...], log: Log | None = None) -> None:
        super().__init__(order, log)
        self.settings = replace(SETTINGS, regions=(HOME, AWAY))
        self.record = Record()
        self.judge: Callable[[Stage], list[str]] = judged
        self.everywhere: set[int] = set()
        self.strays: list[Asked] = []

    def seen(self) -> list[str]:
        return list(checker.check_reads(self.record))

    def judged(self) -> list[str]:
        return self.judge(self)

    def known(self) -> object:
        return [(asked.acknowledged, asked.on_time) for asked in self.record.asked]

    def delta(self, number: int, *, old_ms: int = 1_000, put: bool = True, stray: bool = False) -> Delta:
        """Delta `number`, asked for `old_ms` ago; `put` at home and acknowledged (as a stray?), or only made."""
        token = tokens.keyed(COUNTER, str(number), self.world.now_ms - old_ms)
        asked = Asked(number, Delta(LANE, token, 4**number))
        self.record.asked.append(asked)
        if stray:
            self.strays.append(asked)
        if put:
            self.alone(add(asked.delta))
            asked.acknowledged, asked.on_time = True, not stray
        return asked.delta

    def everything_is_acknowledged(self) -> None:
        """What was asked for is in the table, on time unless it was to be a stray."""
        for asked in self.record.asked:
            asked.on_time = asked.on_time or (asked not in self.strays and not asked.acknowledged)
            asked.acknowledged = True

    def everything_arrives(self) -> None:
        self.world.quiesce()
        self.everywhere = {asked.number for asked in self.record.asked}

    # -- the processes -------------------------------------------------------------------------------------------------

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

    def pack(self, *deltas: Delta) -> None:
        """One item with all of them is there, too."""
        self.alone(add_packed(deltas))

    def add_pack(self, *deltas: Delta, region: str = HOME) -> None:
        asked = [each for each in self.record.asked if each.delta in deltas]

        def program() -> Program[None]:
            for outcome in (yield from add_packed(deltas)):
                if isinstance(outcome, LedgerError):
                    raise outcome
            for each in asked:
                each.acknowledged = True
                late_ms = self.world.now_ms - tokens.time_ms(each.delta.token)
                each.on_time = each.on_time or (region == HOME and late_ms <= self.settings.allowed_lateness_ms)

        self.enter(f"add a pack through {region}", region, program)

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

    def compactions(self, times: int, everywhere: bool, apart_ms: int = SETTINGS.keep_ms) -> None:
        """Visits, each whole, and a time passes after each; what they write arrives `everywhere` before that."""

        def program() -> Program[None]:
            for _ in range(times):
                yield NOTHING
                finish(self.world, HOME, self.visiting())
                if everywhere:
                    self.world.quiesce()
                yield NOTHING
                self.wait(apart_ms)

        self.time_goes, self.stops = True, False  # between two visits alone it could stop
        self.enter("compactor", HOME, program)


def judged(stage: Stage) -> list[str]:
    """What is wrong if everything stops here."""
    world, asked = stage.world, stage.record.asked
    seen = [Seen(at, True, *finish(world, at, stage.reading()), len(asked), stage.must(at)) for at in (HOME, AWAY)]
    wrong = [why for each in seen if (why := checker.check_read(each, asked))]
    return wrong or judge_end(world, stage.settings, stage.record)
