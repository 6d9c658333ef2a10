"""Random worlds of two Regions against a plain set: every read a true sum, in the end everything once."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ledger import tokens
from ledger.lane.add import add, add_packed
from ledger.requests import Key
from ledger.values import Delta
from tests.world import (
    COUNTER,
    KEEP_MS,
    LATENESS_MS,
    READ_MS,
    A,
    B,
    compact_for_long,
    compactor,
    delta,
    two_regions,
    value,
)

DELTAS_MAX = 25
regions = st.sampled_from([A, B])
ages_ms = st.sampled_from([0, 1, LATENESS_MS - 1, LATENESS_MS, 500_000, 990_000])


class TwoRegions(RuleBasedStateMachine):
    """Adds, packs, retries, compactions, replication item by item in any order, a clock that goes and steps back."""

    @initialize(page_size=st.integers(1, 4))
    def begin(self, page_size: int) -> None:
        home, away = two_regions(page_size=page_size)
        self.tables = {A: home, B: away}
        self.sent: list[Delta] = []
        self.at_home: set[Key] = set()  # items of deltas that are there, or were
        self.highest_ms = home.now_ms
        self.promised: set[int] = set()

    def _new(self, region: str, at_ms: int) -> Delta:
        """A change to be put in this Region."""
        at_ms = max(at_ms, 0)
        made = delta(len(self.sent), at_ms=at_ms)
        if region == A and at_ms > self.highest_ms - LATENESS_MS:
            self.promised.add(len(self.sent))
        self.sent.append(made)
        return made

    def _reached_home(self) -> None:
        self.at_home |= {key for key in self.tables[A].items if key.pk.startswith("delta#")}

    def _old(self, data: st.DataObject, most: int) -> list[Delta]:
        return data.draw(st.lists(st.sampled_from(self.sent), unique=True, max_size=most)) if self.sent else []

    @precondition(lambda self: len(self.sent) < DELTAS_MAX)
    @rule(region=regions, age_ms=ages_ms)
    def adds(self, region: str, age_ms: int) -> None:
        self.tables[region].run(add(self._new(region, self.tables[A].now_ms - age_ms)))
        self._reached_home()

    @precondition(lambda self: len(self.sent) < DELTAS_MAX - 2)
    @rule(data=st.data(), region=regions, ages=st.lists(ages_ms, max_size=3))
    def packs(self, data: st.DataObject, region: str, ages: list[int]) -> None:
        """New changes, and old ones again in other company, wherever they stand or stood."""
        again = self._old(data, 5)
        now_ms = tokens.time_ms(again[0].token) if again else self.tables[A].now_ms
        self.tables[region].run(add_packed([*again, *(self._new(region, now_ms - age_ms) for age_ms in ages)]))
        self._reached_home()

    @rule(data=st.data(), region=regions)
    def retries(self, data: st.DataObject, region: str) -> None:
        for each in self._old(data, 1):
            self.tables[region].run(add(each))
        self._reached_home()

    @rule(fold_max=st.integers(1, 5), fold_min=st.integers(1, 2))
    def compacts(self, fold_max: int, fold_min: int) -> None:
        home, away = self.tables[A], self.tables[B]
        compactor(home, away, fold_max=max(fold_max, fold_min), fold_min=fold_min).run()

    @rule(data=st.data(), source=regions)
    def replicates(self, data: st.DataObject, source: str) -> None:
        """Some items arrive; what only the home compactor writes comes from home alone, and no older one wins."""
        here, there = self.tables[source], self.tables[B if source == A else A]
        keys = sorted(key for key in here.items if source == A or key.pk.startswith("delta#"))
        arriving: list[Key] = data.draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
        here.copy_to(there, *arriving) if arriving else None
        self._reached_home()

    @rule(data=st.data())
    def replicates_deletes(self, data: st.DataObject) -> None:
        """A delete made at home arrives, after the checkpoint that counts what it held: `keep` lies between."""
        home, away = self.tables[A], self.tables[B]
        home.copy_to(away, *(key for key in home.items if key.sk == "checkpoint"))
        gone = sorted(key for key in away.items if key.pk.startswith("delta#") and key not in home.items)
        cleaned = [key for key in gone if key in self.at_home]
        if cleaned:
            away.drop(*data.draw(st.lists(st.sampled_from(cleaned), unique=True)))

    @precondition(lambda self: self.sent)
    @rule(visits=st.integers(1, 3))
    def rests(self, visits: int) -> None:
        """All arrives and is visited, `keep` apart: what was folded is noted, then deleted, and no stray is left."""
        home, away = self.tables[A], self.tables[B]
        away.copy_to(home, *(key for key in away.items if key.pk.startswith("delta#")))
        self._reached_home()
        compact_for_long(home, away, visits)
        assert compactor(home, away).verify(COUNTER).strays == 0
        self._set_clocks(home.now_ms, home.steady_ms + visits * KEEP_MS)

    def _set_clocks(self, now_ms: int, steady_ms: int) -> None:
        for table in self.tables.values():
            table.now_ms, table.steady_ms = now_ms, steady_ms
        self.highest_ms = max(self.highest_ms, now_ms)

    @rule(by_ms=st.sampled_from([1, LATENESS_MS, READ_MS + 1, KEEP_MS, -1, -LATENESS_MS, -KEEP_MS // 2]))
    def time_goes(self, by_ms: int) -> None:
        home = self.tables[A]
        self._set_clocks(home.now_ms + by_ms, home.steady_ms + max(by_ms, 0))

    @invariant()
    def every_read_is_the_sum_of_a_real_set(self) -> None:
        if hasattr(self, "tables"):
            everything = set(range(len(self.sent)))
            assert self.promised <= value(self.tables[A]) <= everything
            assert value(self.tables[B], B) <= everything

    def teardown(self) -> None:
        if hasattr(self, "tables"):
            home, away = self.tables[A], self.tables[B]
            home.now_ms = max(home.now_ms, self.highest_ms) + LATENESS_MS
            compact_for_long(home, away, 3)
            assert value(home) == value(away, B) == set(range(len(self.sent)))
            assert compactor(home, away).verify(COUNTER).ok


Test: Any = TwoRegions.TestCase
Test.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
