"""Where a small cast of lanes plays: a world with a few deltas in it, and the programs that are let
loose on them.

A step names a delta by its number.
"""

from dataclasses import replace

from compactor.clean import clean
from compactor.fold import fold
from compactor.rebuild import rebuild
from compactor.report import Tally
from compactor.settle import settle
from compactor.visit import visit
from lab.designs.item_collection import Ours, merge, read_all
from lab.histories.casts.part import AWAY, HOME, Part, process
from lab.histories.judges import checker
from lab.histories.judges.checker import Asked, Record, Seen
from lab.histories.judges.lanes import COUNTER, AtRest, Reads
from lab.histories.stage.judge import ended
from lab.histories.stage.stage import finish, timed
from ledger.core import items, tokens
from ledger.core.errors import LedgerError
from ledger.core.requests import Get, Key, Program
from ledger.core.values import Delta, Lane
from ledger.lane.add import add, add_packed
from simulator.process import Log

LANE = Lane(HOME, 0, COUNTER)
SETTINGS = replace(timed(1), fold_min=1, fold_max=3)
KEEP_MS = SETTINGS.keep_ms
NOTHING = Get(Key("nothing", "nothing"))
"""Asked between two steps that a process takes whole."""


class LaneSteps(Part):
    stays: int | None = None
    """A delta that has to be there whenever everything stops, since not every Region counts it."""
    rebuilt_at_the_end = False
    """Whether the lane is rebuilt once more, with nobody else there."""

    def __init__(self, order: tuple[int, ...], log: Log | None = None) -> None:
        super().__init__(order, log)
        self.settings = replace(SETTINGS, regions=(HOME, AWAY))
        self.record = Record()
        self.stage.judged_by(Reads(self.record))
        self.everywhere: set[int] = set()
        self.strays: set[int] = set()

    def seen(self) -> list[str]:
        return list(checker.check_reads(self.record))

    # -- what there is before

    def asks(self, number: int, *, old: int = 1_000, stray: bool = False) -> Asked:
        """Delta `number` is asked for, by who asked `old` ms ago; it is going to be a stray, or
        not.
        """
        token = tokens.keyed(COUNTER, str(number), self.world.now_ms - old)
        self.record.asked.append(Asked(number, Delta(LANE, token, 4**number)))
        self.strays |= {number} if stray else set()
        return self.record.asked[-1]

    def delta(self, number: int, *, old: int = 1_000, stray: bool = False) -> None:
        """It is there, and acknowledged."""
        self.alone(add(self.asks(number, old=old, stray=stray).delta))
        self._is_acknowledged(number)

    def pack(self, *numbers: int) -> None:
        """One item with all of them is there, too."""
        self.alone(add_packed([self.asked(number).delta for number in numbers]))
        self._is_acknowledged(*numbers)

    def _is_acknowledged(self, *numbers: int) -> None:
        for asked in map(self.asked, numbers):
            asked.acknowledged, asked.on_time = (
                True,
                asked.on_time or asked.number not in self.strays,
            )

    def asked(self, number: int) -> Asked:
        return next(asked for asked in self.record.asked if asked.number == number)

    def arrive(self) -> None:
        """All of it, everywhere."""
        self.world.quiesce()
        self.everywhere = {asked.number for asked in self.record.asked}

    def folded(self) -> None:
        self.alone(fold(LANE, Tally(), replace(self.settings, fold_max=5)))

    def noted(self) -> None:
        """What is folded arrives everywhere and is noted; then `keep` passes."""
        self.arrive()
        self.alone(self._cleaning())
        self.wait(self.settings.keep_ms)

    def cleaned(self, number: int, region: str) -> None:
        del self.world.replicas[region].cells[items.delta_pk(LANE)][self.asked(number).delta.token]

    # -- the processes

    @process
    def fold(self, region: str, *, fold_max: int = 5, commits_max: int = 1) -> Program[object]:
        return fold(
            LANE, Tally(), replace(self.settings, fold_max=fold_max), commits_max=commits_max
        )

    @process
    def settle(self, region: str) -> Program[object]:
        """Of what is below the watermark that there is now."""
        watermark = max(asked.delta.token for asked in self.record.asked if asked.on_time)
        return settle(LANE, Tally(), watermark, fold_max=5)

    def _cleaning(self) -> Program[object]:
        return clean(LANE, Tally(), self.settings)

    @process
    def clean(self, region: str, *, times: int = 1) -> Program[None]:
        yield from self._cleaning()
        for _ in range(times - 1):
            self.wait(self.settings.keep_ms)
            yield from self._cleaning()

    @process
    def visit(self, region: str) -> Program[object]:
        return visit(LANE, Tally(), self.settings)

    @process
    def rebuild(self, region: str) -> Program[object]:
        return rebuild(LANE)

    @process
    def add(self, region: str, *numbers: int) -> Program[None]:
        """One alone, or several in a pack."""
        added = [self.asked(number) for number in numbers]
        if len(added) == 1:
            yield from add(added[0].delta)
        else:
            for outcome in (yield from add_packed([asked.delta for asked in added])):
                if isinstance(outcome, LedgerError):
                    raise outcome
        for asked in added:
            asked.acknowledged = True
            late_ms = self.world.now_ms - tokens.time_ms(asked.delta.token)
            asked.on_time = asked.on_time or (
                region == HOME and late_ms <= self.settings.allowed_lateness_ms
            )

    def must(self, region: str) -> frozenset[int]:
        """What a strong read must hold that begins now: what was on time and is in its Region."""
        there = (
            asked
            for asked in self.record.asked
            if region == HOME or asked.number in self.everywhere
        )
        return frozenset(asked.number for asked in there if asked.on_time)

    def reading(self) -> Program[tuple[int, int]]:
        return Ours(settings=self.settings).sum_of(COUNTER)

    @process
    def read(self, region: str) -> Program[None]:
        must = self.must(region)
        value, count = yield from self.reading()
        seen = Seen(region, True, value, count, len(self.record.asked), must)
        self.stage.answered(seen)

    @process
    def compactions(
        self, region: str, times: int, *, everywhere: bool, apart_ms: int = KEEP_MS
    ) -> Program[None]:
        """Visits, each whole, and a time passes after each; what they write arrives `everywhere`
        before that.
        """
        for _ in range(times):
            yield NOTHING
            finish(self.world, region, visit(LANE, Tally(), self.settings))
            if everywhere:
                self.world.quiesce()
            yield NOTHING
            self.wait(apart_ms)

    # -- the judgement

    def decides(self) -> object | None:
        return self.known(), repr(self.record)

    def judged(self) -> list[str]:
        world = self.world
        stays = [] if self.stays is None else [items.delta_key(self.asked(self.stays).delta)]
        if any(world.replicas[HOME].item(key) is None for key in stays):
            return ["the stray is deleted, and not every Region counts it"]
        if self.rebuilt_at_the_end and self._wrong_read(HOME) is None:
            world.quiesce()
            finish(world, HOME, rebuild(LANE))
        wrong = [why for region in (HOME, AWAY) if (why := self._wrong_read(region))]
        return wrong or ended([AtRest(world, self.settings, self.record)])

    def _wrong_read(self, region: str) -> str | None:
        asked = self.record.asked
        seen = Seen(
            region, True, *finish(self.world, region, self.reading()), len(asked), self.must(region)
        )
        return checker.check_read(seen, asked)


class NaiveSteps(LaneSteps):
    """Of the obvious design, which goes wrong: one transaction deletes deltas and adds their
    sum.
    """

    stops = False

    def reading(self) -> Program[tuple[int, int]]:
        return read_all(LANE)

    def merged(self) -> None:
        self.alone(merge(LANE))

    def merge(self, name: str = "merge", region: str = HOME, *, cut: bool = False) -> None:
        """cut: the Region is, for a while."""
        self.world.cut |= {region} if cut else set()
        self.enter(merge(LANE), region, name)

    def judged(self) -> list[str]:
        self.world.quiesce()
        values = {region: finish(self.world, region, read_all(LANE))[0] for region in (HOME, AWAY)}
        held = {region: sorted(checker.deltas_in(value) or ()) for region, value in values.items()}
        return list(
            checker.check_end(self.record, values, {r: [4**n for n in held[r]] for r in held})
        )
