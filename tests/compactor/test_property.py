"""Random worlds of two Regions against a plain set: every read a true sum, in the end everything once."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ledger import items
from ledger.add import add
from ledger.requests import Key
from ledger.values import Delta
from tests.support import KEEP_MS, LATENESS_MS, READ_MS, A, B, compact_for_long, compactor, delta, two_regions, value

DELTAS_MAX = 25
regions = st.sampled_from([A, B])


class TwoRegions(RuleBasedStateMachine):
    """Adds, retries, compactions, replication item by item in any order, and a clock that goes and steps back."""

    @initialize(page_size=st.integers(1, 4))
    def begin(self, page_size: int) -> None:
        home, away = two_regions(page_size=page_size)
        self.tables = {A: home, B: away}
        self.sent: list[Delta] = []
        self.at_home: set[int] = set()
        self.highest_ms = home.now_ms
        self.promised: set[int] = set()

    def _add(self, n: int, region: str) -> None:
        self.tables[region].run(add(self.sent[n]))
        if region == A:
            self.at_home.add(n)

    @precondition(lambda self: len(self.sent) < DELTAS_MAX)
    @rule(region=regions, age_ms=st.sampled_from([0, 1, LATENESS_MS - 1, LATENESS_MS, 500_000, 990_000]))
    def adds(self, region: str, age_ms: int) -> None:
        n, at_ms = len(self.sent), max(self.tables[A].now_ms - age_ms, 0)
        self.sent.append(delta(n, at_ms=at_ms))
        self._add(n, region)
        if region == A and at_ms > self.highest_ms - LATENESS_MS:
            self.promised.add(n)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), region=regions)
    def retries(self, data: st.DataObject, region: str) -> None:
        self._add(data.draw(st.integers(0, len(self.sent) - 1)), region)

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
        if source == B:
            self.at_home |= {n for n, each in enumerate(self.sent) if items.delta_key(each) in arriving}

    @rule(data=st.data())
    def replicates_deletes(self, data: st.DataObject) -> None:
        """A delete made at home arrives, after the checkpoint that counts its delta: `keep` lies between."""
        home, away = self.tables[A], self.tables[B]
        home.copy_to(away, *(key for key in home.items if key.sk == "checkpoint"))
        gone = sorted(key for key in away.items if key.pk.startswith("delta#") and key not in home.items)
        cleaned = [key for key in gone if any(key == items.delta_key(self.sent[n]) for n in self.at_home)]
        if cleaned:
            away.drop(*data.draw(st.lists(st.sampled_from(cleaned), unique=True)))

    @rule(by_ms=st.sampled_from([1, LATENESS_MS, READ_MS + 1, KEEP_MS, -1, -LATENESS_MS, -KEEP_MS // 2]))
    def time_goes(self, by_ms: int) -> None:
        for table in self.tables.values():
            table.now_ms += by_ms
            table.steady_ms += max(by_ms, 0)
        self.highest_ms = max(self.highest_ms, self.tables[A].now_ms)

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
            assert compactor(home, away).verify(self.sent[0].lane.counter).ok if self.sent else True


Test: Any = TwoRegions.TestCase
Test.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
