"""The public classes in two Regions against a plain dictionary: what was asked for, and where it
has arrived.
"""

from dataclasses import asdict
from itertools import count
from typing import Any

from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from compactor import Report
from ledger import Change, Delta, Receipt
from ledger.core import items
from ledger.core.checks import to_datetime, to_ms
from ledger.core.errors import InvalidCounter
from ledger.core.requests import Key
from reader import Balance
from tests.strategies import effort
from tests.world import KEEP_MS, LATENESS_MS, NOW_MS, A, B, World, summed

COUNTERS = ("likes", "hot:likes")
SHARDS = {"hot:": 2}
TTL_S = 5
CHANGES_MAX = 29  # 4**29 is the largest power of four that a change may be

regions = st.sampled_from([A, B])
homes = st.sampled_from([A, A, B])
# lanes in which much happens are the telling ones
counters = st.sampled_from([COUNTERS[0], *COUNTERS])
ages_ms = st.sampled_from([LATENESS_MS, LATENESS_MS + 1, 20_000, 500_000, 0, 1, -300_000])


class Public(RuleBasedStateMachine):
    """Change n is 4**n, so a value says which changes it holds.

    A change that arrives at or below the time up to which its lane may have been folded is a stray:
    a read may or may not hold it until its home Region has compacted. Every other one that arrived
    must be in every read.
    """

    @initialize(page_size=st.integers(1, 5), first=st.lists(ages_ms, min_size=3, max_size=6))
    def begin(self, page_size: int, first: list[int]) -> None:
        """Some changes in one lane, of which some are folded: else most worlds would stay empty."""
        self.world = World(now_ms=NOW_MS, shards=SHARDS)
        self.tables, self.highest_ms = self.world.regions, NOW_MS
        for table in self.tables.values():
            table.page_size = page_size
        numbers = count(1)
        self.world.entropy = lambda size: next(numbers).to_bytes(size, "big")
        self.sent: dict[int, Delta] = {}
        self.keyed: set[int] = set()  # whose token is not random
        self.arrived: dict[str, set[int]] = {A: set(), B: set()}
        self.reached: dict[str, set[Key]] = {A: set(), B: set()}  # items that are there, or were
        # seen by a compaction whose checkpoint is here
        self.counted: dict[str, set[int]] = {A: set(), B: set()}
        # (Region, home, counter): folded at most up to here
        self.upto_ms: dict[tuple[str, str, str], int] = {}
        self.restarts(fold_min=1, fold_max=3, clean=True)
        for age_ms in first:
            self.adds(A, A, COUNTERS[0], age_ms, prepared=False)
        self.runs(A)

    # -- what the dictionary says
    # ------------------------------------------------------------------------------------

    def of(self, counter: str) -> set[int]:
        return {n for n, each in self.sent.items() if each.lane.counter == counter}

    def certain(self, region: str, counter: str) -> set[int]:
        """What every read in this Region holds."""

        def is_certain(n: int) -> bool:
            each = self.sent[n]
            upto_ms = self.upto_ms.get((region, each.lane.region, counter), -1)
            return n in self.counted[region] or to_ms(each.at) > upto_ms

        return {n for n in self.of(counter) & self.arrived[region] if is_certain(n)}

    def is_true(self, region: str, counter: str, balance: Balance) -> None:
        held = summed(balance.value)
        assert self.certain(region, counter) <= held <= self.of(counter) & self.arrived[region]
        assert balance.count == len(held) >= balance.pending
        assert {home: part for home, part in balance.by_region.items() if part} == {
            home: part
            for home in (A, B)
            if (part := sum(4**n for n in held if self.home(n) == home))
        }

    def home(self, n: int) -> str:
        return self.sent[n].lane.region

    def is_there(self, region: str, n: int) -> bool:
        return items.delta_key(self.sent[n]) in self.tables[region].items

    def again(self, n: int) -> Change:
        """An old change as it is asked for by its key."""
        each = self.sent[n]
        return Change(each.lane.counter, each.change, str(n), each.at, each.lane.region)

    def by_key(self) -> list[int]:
        """The old changes that can be."""
        return [n for n in sorted(self.keyed) if to_ms(self.sent[n].at) <= self.world.now_ms]

    def old(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.sent)), label="which")

    # -- writers
    # ----------------------------------------------------------------------------------------------

    def asked(
        self, counter: str, age_ms: int | None, home: str, after: int = 0
    ) -> tuple[int, dict[str, Any]]:
        """A new change as `add` and Change take it; `after` so many others that are new."""
        n = len(self.sent) + after
        call: dict[str, Any] = {"counter": counter, "change": 4**n, "region": home}
        if age_ms is not None:
            call |= {
                "idempotency_key": str(n),
                "at": to_datetime(max(self.world.now_ms - age_ms, 0)),
            }
        return n, call

    def took(
        self, n: int, region: str, receipt: object, there: bool, *, pack: bool = False
    ) -> None:
        assert isinstance(receipt, Receipt)
        alone = "replayed" if there else "recorded"
        assert receipt.outcome in ((alone, "accepted") if pack else (alone,))
        assert receipt.delta == self.sent[n]
        self.arrived[region].add(n)
        self.reached[region] |= self.tables[region].items.keys()

    @precondition(lambda self: len(self.sent) < CHANGES_MAX)
    @rule(
        region=regions,
        home=homes,
        counter=counters,
        age_ms=st.none() | ages_ms,
        prepared=st.booleans(),
    )
    def adds(
        self, region: str, home: str, counter: str, age_ms: int | None, prepared: bool
    ) -> None:
        n, call = self.asked(counter, age_ms, home)
        ledger = self.ledgers[region]
        receipt = ledger.apply(ledger.prepare(**call)) if prepared else ledger.add(**call)
        self.sent[n] = receipt.delta
        if age_ms is not None:
            self.keyed.add(n)
        assert receipt.delta.lane.region == home
        self.took(n, region, receipt, there=False)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), region=regions)
    def retries(self, data: st.DataObject, region: str) -> None:
        n = self.old(data)
        each, there = self.sent[n], self.is_there(region, n)
        ledger, at_ms = self.ledgers[region], to_ms(each.at)
        if (
            n not in self.keyed
            or data.draw(st.booleans(), label="apply")
            or at_ms > self.world.now_ms + 300_000
        ):
            receipt = ledger.apply(each)
        else:
            named = asdict(self.again(n))
            del named["then"]
            receipt = ledger.add(**named)
        self.took(n, region, receipt, there)

    @precondition(lambda self: len(self.sent) < CHANGES_MAX - 2)
    @rule(
        data=st.data(),
        region=regions,
        home=homes,
        counter=counters,
        ages=st.lists(ages_ms, max_size=3),
        pack=st.sampled_from([True, True, False]),
    )
    def adds_many(
        self, data: st.DataObject, region: str, home: str, counter: str, ages: list[int], pack: bool
    ) -> None:
        """New changes, the first of them twice, one that is not valid, and old ones again in other
        company, wherever they stand or stood."""
        again = self.by_key()
        old = (
            data.draw(st.lists(st.sampled_from(again), unique=True, max_size=5), label="old")
            if again
            else []
        )
        older_ms = 0
        if old:  # the new ones go beside one of them
            lane, older_ms = self.sent[old[0]].lane, self.world.now_ms - to_ms(self.sent[old[0]].at)
            counter, home = lane.counter, lane.region
        new = [
            self.asked(counter, older_ms + age_ms, home, after) for after, age_ms in enumerate(ages)
        ]
        new += new[:1]
        numbers = [*old, *(n for n, _ in new)]
        there = [
            *(self.is_there(region, n) for n in old),
            *(i == len(ages) for i in range(len(new))),
        ]
        batch = [
            *map(self.again, old),
            *(Change(**call) for _, call in new),
            Change("not a name", 1),
        ]
        *receipts, invalid = self.ledgers[region].add_many(iter(batch), pack=pack)
        assert isinstance(invalid, InvalidCounter)
        for n, receipt, was_there in zip(numbers, receipts, there, strict=True):
            assert isinstance(receipt, Receipt)
            self.sent.setdefault(n, receipt.delta)
            self.keyed.add(n)
            self.took(n, region, receipt, was_there, pack=pack)

    # -- readers
    # ----------------------------------------------------------------------------------------------

    @rule(region=regions, counter=counters, max_age=st.sampled_from([0, 1, 5, 60]))
    def reads(self, region: str, counter: str, max_age: int) -> None:
        loaded, young_s = self.loaded.get((region, counter)), min(max_age, TTL_S)
        is_young = (
            loaded is not None and 0 <= self.world.now_ms - to_ms(loaded.as_of) < young_s * 1_000
        )
        balance = self.readers[region].read(counter, max_age=max_age)
        assert balance.cached == is_young
        if balance.cached:
            assert loaded is not None
            assert (balance.value, balance.as_of) == (loaded.value, loaded.as_of)
        else:
            assert to_ms(balance.as_of) == self.world.now_ms
            self.is_true(region, counter, balance)
            self.loaded[region, counter] = balance

    @rule(region=regions, counter=counters)
    def lists_history(self, region: str, counter: str) -> None:
        reader = self.readers[region]
        entries = list(reader.history(counter))
        assert [entry.token for entry in entries] == sorted(entry.token for entry in entries)
        assert sum(entry.change for entry in entries) == reader.read(counter).value
        self.loaded[region, counter] = reader.read(counter)
        by_token = {each.token: each for each in self.sent.values()}
        for entry in entries:
            each = by_token[entry.token]
            assert (entry.change, entry.at, entry.region) == (
                each.change,
                each.at,
                each.lane.region,
            )

    # -- compactors
    # ----------------------------------------------------------------------------------------------

    def compacted(self, home: str, counter: str, report: Report) -> None:
        """From now on the home Region's checkpoint, or its tail, has all that arrived there."""
        assert (report.gave_up, report.conflicts, report.problems) == (0, (), {})
        here = home, home, counter
        self.upto_ms[here] = max(self.upto_ms.get(here, -1), self.world.now_ms - LATENESS_MS)
        self.counted[home] |= {
            n for n in self.of(counter) & self.arrived[home] if self.home(n) == home
        }

    @rule(home=homes, counter=counters)
    def compacts(self, home: str, counter: str) -> None:
        self.compacted(home, counter, self.compactors[home].compact(counter))

    @rule(home=homes)
    def runs(self, home: str) -> None:
        report = self.compactors[home].run()
        for counter in COUNTERS:
            self.compacted(home, counter, report)

    @rule(region=regions, counter=counters)
    def verifies(self, region: str, counter: str) -> None:
        """Each lane in its own Region, strays too."""
        verification = self.compactors[region].verify(counter)
        assert verification.differences == ()
        assert verification.value == sum(
            4**n for n in self.of(counter) if n in self.arrived[self.home(n)]
        )

    @rule(home=homes, counter=counters)
    def rebuilds(self, home: str, counter: str) -> None:
        held = summed(sum(self.compactors[home].rebuild(counter).values()))
        assert held <= {n for n in self.of(counter) & self.counted[home] if self.home(n) == home}

    # -- the world
    # ----------------------------------------------------------------------------------------------

    @rule(from_retries=st.booleans())
    def replicates(self, from_retries: bool) -> None:
        """Everything arrives everywhere; deltas that were cleaned at home go, or a late retry
        brings them back.
        """
        for home, away in ((A, B), (B, A)):
            here, there = self.tables[home], self.tables[away]
            for key in {*here.items, *there.items}:
                kind, lane = items.lane_of(key.pk) or ("", None)
                if lane is None or lane.region != home:
                    continue
                if (
                    kind == "fold"
                    or key in here.items
                    or (key in self.reached[home] and not from_retries)
                ):
                    here.copy_to(there, key)
                else:
                    there.copy_to(here, key)
            self.reached[home] |= here.items.keys()
        everywhere = self.arrived[A] | self.arrived[B]
        self.arrived = {A: set(everywhere), B: set(everywhere)}
        for home, away in ((A, B), (B, A)):
            self.counted[away] |= {n for n in self.counted[home] if self.home(n) == home}
            for counter in COUNTERS:
                self.upto_ms[away, home, counter] = self.upto_ms.get((home, home, counter), -1)

    @rule(visits=st.integers(1, 3))
    def rests(self, visits: int) -> None:
        """All arrives and is visited, `keep` apart: what was folded is noted, then deleted."""
        for _ in range(visits):
            self.replicates(from_retries=False)
            self.runs(A)
            self.runs(B)
            self.time_goes(KEEP_MS)
        self.replicates(from_retries=False)

    @rule(
        by_ms=st.sampled_from([1, 4_999, 5_000, LATENESS_MS, KEEP_MS, -1, -LATENESS_MS, -KEEP_MS])
    )
    def time_goes(self, by_ms: int) -> None:
        self.world.now_ms = max(self.world.now_ms + by_ms, 0)
        self.highest_ms = max(self.highest_ms, self.world.now_ms)

    @rule(fold_min=st.integers(1, 3), fold_max=st.integers(3, 5), clean=st.booleans())
    def restarts(self, fold_min: int, fold_max: int, clean: bool) -> None:
        self.world.changed |= {"fold_min": fold_min, "fold_max": fold_max, "clean": clean}
        self.ledgers = {region: self.world.ledger(region) for region in (A, B)}
        self.readers = {region: self.world.reader(region, TTL_S) for region in (A, B)}
        self.compactors = {region: self.world.compactor(region) for region in (A, B)}
        self.loaded: dict[tuple[str, str], Balance] = {}

    @invariant()
    def every_read_of_now_is_true(self) -> None:
        for region in self.tables:
            for counter in COUNTERS:
                self.is_true(region, counter, self.world.reader(region).read(counter))

    def teardown(self) -> None:
        """In the end every change counts once, everywhere."""
        if not hasattr(self, "tables"):
            return
        self.world.now_ms = self.highest_ms + KEEP_MS
        self.restarts(fold_min=1, fold_max=5, clean=True)
        self.rests(visits=3)
        for region in (A, B):
            for counter in COUNTERS:
                assert summed(self.readers[region].read(counter).value) == self.of(counter)
                assert self.compactors[region].verify(counter).ok


Test: Any = Public.TestCase
Test.settings = profile(effort(1.5), stateful_step_count=40)
