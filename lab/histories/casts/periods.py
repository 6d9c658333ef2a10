"""Where a small cast of periods plays: a day of a limited counter that is over, the next one, and
one that retires.

Rule 1: every write of a gate is judged as in the long histories: judges/periods.py.
Rule 2: when everything stops, whoever is short next gets all that the day before has left, as far
as it may be carried.
Rule 3: items of a period whose time is over are deleted one by one, in any order, beside whoever
comes.
"""

from datetime import timedelta

from compactor.report import Tally
from compactor.visit import visit
from lab.histories.casts.part import AWAY, HOME, Casts, Part, do, process
from lab.histories.judges.periods import CARRY, CEILING, PeriodJudge
from lab.histories.judges.periods_end import PeriodsAtEnd
from lab.histories.stage.stage import finish
from lab.histories.stage.world import WatchedWorld
from ledger.client import programs
from ledger.core.checks import to_datetime
from ledger.core.errors import LedgerError, LimitReached, PeriodOver
from ledger.core.keep import Keep
from ledger.core.limit import Limit
from ledger.core.requests import Key, Program
from ledger.core.settings import Settings
from ledger.core.values import Change
from simulator.process import Log

OLD, NEW, PLAIN = "q:a@1970-12-14", "q:a@1970-12-15", "p:a@1970-11-01"
OLD_WINDOW, NEW_WINDOW = "q:a@1970-12-14T04+20h", "q:a@1970-12-15T00+20h"
"""They end and begin with the days."""

KEEP = Keep(late=timedelta(days=1), keep=timedelta(days=4))


class PeriodSteps(Part):
    kind = WatchedWorld
    world: WatchedWorld
    resting = False
    """Whether nothing arrives in another Region meanwhile."""
    new = NEW
    """What takes what the one before has left."""

    def __init__(self, order: tuple[int, ...], log: Log | None = None) -> None:
        super().__init__(order, log)
        limits = {"q:": Limit(ceiling=CEILING, region=HOME)}
        periods = {"q:": Keep(late=KEEP.late, keep=KEEP.keep, carry=CARRY), "p:": KEEP}
        settings = Settings(
            table="counters",
            region=HOME,
            regions=(HOME, AWAY),
            limits=limits,
            periods=periods,
            fold_min=1,
            unshared_limits=True,
        )
        self.judge = PeriodJudge(self.stage, self.world, settings)
        self.stage.judged_by(self.judge)
        self.world.now_ms = self.judge.term(OLD).end_ms - 10_000

    def may_fail(self, error: LedgerError) -> bool:
        return isinstance(error, LimitReached | PeriodOver)

    def judged(self) -> list[str]:
        self.world.quiesce()
        if self.world.now_ms < self.judge.term(self.new).end_ms:
            PeriodsAtEnd(self.judge).short(self.new)
        return self.judge.wrong

    def arrivals(self) -> list[tuple[str, Key]]:
        return [] if self.resting else super().arrivals()

    def expiries(self) -> list[tuple[str, Key]]:
        return [
            (region, key)
            for region, key in self.world.expired()
            if region == HOME and "@" in key.pk
        ]

    # -- what there is before

    def sold(self, name: str, change: int, region: str = HOME) -> None:
        finish(self.world, region, self._adding(name, change, region))
        self.world.quiesce()

    def is_over(self) -> None:
        """The old day, in every zone."""
        self.world.now_ms += 20_000

    def folded(self) -> None:
        """A change of a period of long ago, which has retired since."""
        now_ms, self.world.now_ms = self.world.now_ms, self.judge.term(PLAIN).end_ms - 10**6
        finish(self.world, HOME, self._adding(PLAIN, 1, HOME))
        self.world.now_ms += 10**5
        finish(self.world, HOME, self._visiting())
        self.world.quiesce()
        self.world.now_ms = now_ms + self.judge.term(PLAIN).retires_s * 1_000

    # -- the processes

    def _adding(self, name: str, change: int, region: str) -> Program[object]:
        term = self.judge.term(name)
        at_ms = min(self.world.now_ms, term.end_ms - 1)
        rules = self.judge.rules(region)
        asked = Change(name, change, f"{change} {region}", to_datetime(at_ms), region)
        return programs.add(rules, self.judge.prepared(rules, asked))

    @process
    def add(self, region: str, name: str, change: int) -> Program[object]:
        self.judge.running[len(self.processes)] = 0
        return self._adding(name, change, region)

    @process
    def take(self, region: str, name: str, change: int, least: int) -> Program[None]:
        """As much as there is, up to so much; nobody else takes the least of it."""
        self.judge.running[len(self.processes)] = 0
        rules = self.judge.rules(region)
        asked = Change(name, change, "part", to_datetime(self.world.now_ms), region)
        delta = self.judge.prepared(rules, asked, up_to=True)
        receipt = yield from programs.add_up_to(rules, delta)
        if receipt.change < least:
            self.judge.wrong.append(f"{receipt.change} of {change} counts, and {least} were left")

    @process
    def set_limit(self, region: str, counter: str, ceiling: int) -> Program[None]:
        return programs.set_limit(self.judge.rules(region), counter, ceiling=ceiling)

    def _visiting(self) -> Program[object]:
        (lane,) = self.judge.settings.lanes_of(PLAIN, HOME)
        return visit(lane, Tally(), self.judge.settings)

    @process
    def visit(self, region: str) -> Program[object]:
        return self._visiting()

    @process
    def read(self, region: str) -> Program[object]:
        return self.judge.reads(region).balances([PLAIN])


SHORT = (do.having(resting=True), do.sold(NEW, 6))
"""Of the new day all is sold."""

# fmt: off
PERIOD_CASTS: Casts = {
    "two_who_are_short_carry_at_once": (
        *SHORT, do.sold(OLD, 3), do.is_over(), do.add(NEW, 2), do.add(NEW, 1)),
    "a_carry_against_a_late_change_of_the_old_day": (
        *SHORT, do.sold(OLD, 2), do.is_over(), do.add(NEW, 3), do.add(OLD, 3)),
    "a_carry_against_another_limit_of_the_old_day": (
        *SHORT, do.sold(OLD, 1), do.is_over(), do.add(NEW, 3), do.set_limit(OLD, 5)),
    "a_carry_against_another_limit_of_the_new_day": (
        *SHORT, do.sold(OLD, 2), do.is_over(), do.add(NEW, 3), do.set_limit(NEW, 8)),
    "a_carry_of_what_another_region_has_left": (
        *SHORT, do.sold(OLD, 1, AWAY), do.sold(OLD, 3), do.is_over(), do.add(NEW, 2)),
    "a_carry_of_what_comes_back_after_another": (
        *SHORT, do.sold(OLD, 5), do.is_over(), do.sold(NEW, 1), do.add(OLD, -1), do.add(NEW, 1)),
    "a_late_first_add_of_the_old_day_against_a_carry": (
        *SHORT, do.is_over(), do.add(OLD, 2), do.add(NEW, 3)),
    "a_first_add_of_a_day_against_another_limit_of_its_base": (
        do.having(resting=True), do.is_over(), do.set_limit("q:a", 3), do.add(NEW, 2)),
    "a_carry_from_the_window_before": (
        do.having(resting=True, new=NEW_WINDOW), do.sold(NEW_WINDOW, 6), do.sold(OLD_WINDOW, 3),
        do.is_over(), do.add(NEW_WINDOW, 2), do.add(NEW_WINDOW, 1)),
    "a_part_with_what_the_old_day_has_left_against_a_late_change_of_it": (
        do.having(resting=True), do.sold(NEW, 5), do.sold(OLD, 4), do.is_over(),
        do.take(NEW, 9, 2), do.add(OLD, 1)),
    "who_is_short_before_the_old_day_is_over": (
        *SHORT, do.sold(OLD, 2), do.add(NEW, 3)),
    "a_visit_and_a_read_while_a_period_retires": (
        do.folded(), do.having(steps_max=12), do.visit(), do.read()),
}
