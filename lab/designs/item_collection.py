"""Design 6: an item for each change, and a value that is their sum.

Plain. Promises: a change is one conditional put and counts once for ever; nothing is lost, whatever
Regions write; all of it can be listed. Limits: a read costs a unit for every 4 KB of all changes
ever made, and nothing holds a limit.

Merged as everybody does first: a transaction deletes items and adds their sum to a total. Promises:
short reads.
Limits: a change that comes again after its merge counts twice; a read during a merge sees half of
it; two Regions merge the same items and lose or double them; 99 items a transaction, three write
units for each of them over its life.

Ours: the programs of `ledger`, `reader` and `compactor` as they are shipped. Promises and limits:
docs/protocol.md.
In packs: the same, but a change is put in an item with others, without a condition, so that another
change under its key is not refused. By group commit: changes of many threads, which go together
while a put is under way.
Source: https://aws.amazon.com/blogs/database/implement-resource-counters-with-amazon-dynamodb/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from compactor.report import Tally
from compactor.visit import visit
from lab.designs.design import FOR_EVER, Claims, Design, Memory, Outcome, integer
from ledger.core import items, tokens
from ledger.core.actions import Add
from ledger.core.conditions import Absent, Not
from ledger.core.requests import Delete, Item, Key, Program, Put, Transact, Update, key_of
from ledger.core.settings import Settings
from ledger.core.values import Delta, Lane
from ledger.lane.add import Outcome as Told
from ledger.lane.add import add, add_packed, pack_of
from ledger.lane.tail import every_item
from reader.history import entries, history
from reader.read import read

MERGE_MAX = 99  # a transaction has at most 100 actions, and one is the total's


def merging(lane: Lane, deltas: Sequence[Item]) -> Transact:
    """Delete these deltas and add their sum to the total."""
    total = Update(Key(items.delta_pk(lane), "total"), (Add("total", sum(map(_amount, deltas))),))
    return Transact((total, *(Delete(key_of(delta), condition=Not(Absent())) for delta in deltas)))


def deltas_of(lane: Lane) -> Program[list[Item]]:
    found = yield from every_item(items.delta_pk(lane), None, None, consistent=True)
    return [item for item in found if "change" in item]


def merge(lane: Lane) -> Program[None]:
    """Every delta in one transaction."""
    deltas = yield from deltas_of(lane)
    if deltas:
        yield merging(lane, deltas)


def read_all(lane: Lane, *, consistent: bool = True) -> Program[tuple[int, int]]:
    """The sum of the total and of the deltas, and how many items it is the sum of."""
    found = yield from every_item(items.delta_pk(lane), None, None, consistent=consistent)
    return sum(map(_amount, found)), len(found)


def _amount(item: Item) -> int:
    return integer(item, "change" if "change" in item else "total")


@dataclass(frozen=True, kw_only=True)
class ItemCollection(Design):
    """`settings`: ours. The lane is the one of its Region, from wherever a change is sent."""

    name: str = "item collection"
    settings: Settings
    claims: ClassVar = Claims(memory=FOR_EVER, mismatch=True, regions=True, history=True)

    def add(self, counter: str, change: int, key: str, at_ms: int) -> Program[Outcome]:
        token = tokens.keyed(counter, key, at_ms)
        receipt = yield from add(Delta(self._lane(counter, token), token, change))
        return receipt.outcome

    def value(self, counter: str, *, consistent: bool = True) -> Program[int]:
        return (yield from self.sum_of(counter, consistent=consistent))[0]

    def sum_of(self, counter: str, *, consistent: bool = True) -> Program[tuple[int, int]]:
        """The value, and of how many items it is the sum: of ours, of how many changes."""
        return read_all(self._lane(counter), consistent=consistent)

    def history(self, counter: str) -> Program[list[int]]:
        found = yield from every_item(
            items.delta_pk(self._lane(counter)), None, None, consistent=True
        )
        return [integer(item, "change") for item in found]

    def _lane(self, counter: str, token: str = "") -> Lane:
        return Lane(self.settings.region, 0, counter)


@dataclass(frozen=True, kw_only=True)
class NaiveMerge(ItemCollection):
    """The total stands beside the deltas, and a read sums all."""

    name: str = "item collection, naive merge"
    claims: ClassVar = Claims(memory=Memory(merges=False), mismatch=True)

    def housekeep(self, counter: str, region: str) -> Program[None]:
        lane = self._lane(counter)
        deltas = yield from deltas_of(lane)
        for start in range(0, len(deltas), MERGE_MAX):
            yield merging(lane, deltas[start : start + MERGE_MAX])


@dataclass(frozen=True, kw_only=True)
class Ours(ItemCollection):
    name: str = "this library"

    def of(self, region: str, regions: tuple[str, ...]) -> Ours:
        return replace(self, settings=replace(self.settings, region=region, regions=regions))

    def _lane(self, counter: str, token: str = "") -> Lane:
        return self.settings.lane_for(counter, token, self.settings.region)

    def sum_of(self, counter: str, *, consistent: bool = True) -> Program[tuple[int, int]]:
        lanes, most_ms = self.settings.lanes_of(counter), self.settings.read_time_max_ms
        _, sums = yield from read(lanes, consistent=consistent, read_time_max_ms=most_ms)
        return sum(each.value for each in sums), sum(each.count for each in sums)

    def housekeep(self, counter: str, region: str) -> Program[None]:
        if region == self.settings.region:
            for lane in self.settings.lanes_of(counter, region):
                yield from visit(lane, Tally(), self.settings)

    def history(self, counter: str) -> Program[list[int]]:
        most_ms, changes = self.settings.read_time_max_ms, []
        for lane in self.settings.lanes_of(counter):
            segments, tail = yield from history(lane, consistent=True, read_time_max_ms=most_ms)
            changes += [entry.change for entry in entries(lane, segments, tail)]
        return changes


@dataclass(frozen=True, kw_only=True)
class Packed(Ours):
    """`together`: how many changes a producer has at once; one that comes alone is a pack, too.
    `gathers`: threads that add at once go together; one after another, as on the simulator, each
    change is alone."""

    name: str = "this library, packs"
    together: int = 100
    gathers: bool = False
    claims: ClassVar = Claims(memory=FOR_EVER, regions=True, history=True)

    def add(self, counter: str, change: int, key: str, at_ms: int) -> Program[Outcome]:
        yield Put(items.pack_item(pack_of([self.delta(counter, change, key, at_ms)])))
        return "accepted"

    def put(self, deltas: Sequence[Delta]) -> Program[list[Told]]:
        """Changes that go together."""
        return add_packed(deltas)

    def delta(self, counter: str, change: int, key: str, at_ms: int) -> Delta:
        token = tokens.keyed(counter, key, at_ms)
        return Delta(self._lane(counter, token), token, change)
