"""What every Region is known to hold, which write of an item won, and what is due where.

The pure half of the replicator: no I/O, no clock, no thread; time and randomness are given. The rules a change must
keep:

- Last writer wins, item by item, by the order of the writes; items never wait for one another.
- Only a Region's own stream says what the Region holds. So a write that a delivery overwrote before it was seen shows
  up as a Region that does not hold the winner, and the winner is sent there again.
- The stream record of a delivery is not a write. It is known by its image: the first record of that item with the image
  just sent. A put that changes nothing makes no record, so what is still unrecorded when the stream was read to its end
  was such a put.
- A Region with a delivery in flight is sent nothing more until that is settled, else two echoes could be mistaken for
  each other.

Known limit: a write with the very same image as a delivery that is in flight to its item is taken for the delivery. The
bytes are the same and all Regions still converge, but a third write between the two by order can win where the last one
should (A, B, A in milliseconds). Memory grows with the number of distinct items: this is for demos and tests.
"""

import heapq
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Key: TypeAlias = tuple[tuple[str, str, Any], ...]
"""A primary key as (attribute, DynamoDB type, value), sorted by attribute."""
Image: TypeAlias = dict[str, Any] | None  # an item as the low-level client shows it; None: the item is absent


@dataclass(frozen=True, slots=True)
class Version:
    """One write of one item: where it was made, its place in the order of all writes, and what it left."""

    order: int
    region: str
    image: Image


NEVER_WRITTEN = Version(order=0, region="", image=None)


@dataclass(frozen=True, slots=True)
class Change:
    """One record of a stream: at `order`, the item `key` became `image`. Writes and deliveries look the same."""

    key: Key
    image: Image
    order: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """A winner to be written into a Region now; `since` is the order of the oldest write the Region waits for."""

    key: Key
    version: Version
    since: int


class Replicas:
    """The registry of all items in all Regions. Lags are milliseconds, both ends included.

    Raises ValueError for fewer than two Regions, a Region named twice, or lags that are not 0 <= min <= max.
    """

    def __init__(self, regions: Sequence[str], rng: random.Random, min_lag_ms: int, max_lag_ms: int) -> None:
        if len(regions) < 2 or len(set(regions)) != len(regions):
            raise ValueError(f"replication needs two or more different Regions, got {list(regions)}")
        if not 0 <= min_lag_ms <= max_lag_ms:
            raise ValueError(f"lags must be 0 <= min <= max, got {min_lag_ms} and {max_lag_ms}")
        self.regions = tuple(regions)
        self._rng = rng
        self._lag_ms = (min_lag_ms, max_lag_ms)
        self._winners: dict[Key, Version] = {}
        self._at = {region: _Replica() for region in regions}
        self._cut: frozenset[str] = frozenset()
        self.newest_order = 0  # the highest order seen in any stream
        self.applied = 0  # deliveries that a Region is known to have taken
        self.overwritten = 0
        """Writes that lost to a concurrent one of another Region (one made without having received them)."""

    @property
    def pending(self) -> int:
        """Deliveries due, waiting or in flight, and records that a cut-off Region holds back."""
        return sum(len(at.waiting) + len(at.in_flight) + len(at.held_back) for at in self._at.values())

    def oldest_pending(self) -> int | None:
        """The order of the oldest write that some Region still waits for; None: nobody waits."""
        orders: list[int] = []
        for at in self._at.values():
            orders += (awaited.since for awaited in at.waiting.values())
            orders += (delivery.since for delivery in at.in_flight.values())
            orders += (change.order for change in at.held_back)
        return min(orders, default=None)

    def unsettled(self, region: str) -> bool:
        """Whether a delivery to this Region is not yet accounted for by its stream."""
        return bool(self._at[region].in_flight)

    def saw(self, region: str, change: Change, now_ms: int) -> None:
        """Takes the next record of a Region's stream: a write of its own, or the echo of a delivery."""
        self.newest_order = max(self.newest_order, change.order)
        at = self._at[region]
        if region in self._cut:
            at.held_back.append(change)
            return
        sent = at.in_flight.get(change.key)
        if sent is not None and sent.version.image == change.image:
            self._settle(region, sent, now_ms)
        else:
            self._wrote(region, change, now_ms)

    def caught_up(self, region: str, now_ms: int) -> None:
        """Says that the stream was read to its end after the last deliveries.

        One that is still in flight changed nothing, so it left no record.
        """
        if region not in self._cut:
            for delivery in list(self._at[region].in_flight.values()):
                self._settle(region, delivery, now_ms)

    def take(self, region: str, now_ms: int, limit: int) -> list[Delivery]:
        """At most `limit` due deliveries, picked at random and now in flight; none while others are unsettled."""
        at = self._at[region]
        if region in self._cut or at.in_flight:
            return []
        while at.timetable and at.timetable[0][0] <= now_ms:
            at.due.append(heapq.heappop(at.timetable)[1])
        taken: list[Delivery] = []
        while at.due and len(taken) < limit:
            pick = self._rng.randrange(len(at.due))
            at.due[pick], at.due[-1] = at.due[-1], at.due[pick]
            key = at.due.pop()
            awaited = at.waiting.get(key)
            if awaited is None or awaited.due_ms > now_ms:
                continue  # the Region came to hold the winner by itself; at most a later change is under way
            del at.waiting[key]
            taken.append(Delivery(key, self._winners[key], awaited.since))
        at.in_flight.update((delivery.key, delivery) for delivery in taken)
        return taken

    def refused(self, region: str, keys: Iterable[Key], now_ms: int) -> None:
        """Takes back deliveries that were not written (UnprocessedItems); they become due again after a new lag."""
        at = self._at[region]
        for key in keys:
            at.expect(key, at.in_flight.pop(key).since, self._due_ms(now_ms))

    def cut(self, regions: Iterable[str]) -> None:
        """Cuts each of these Regions off from every other: nothing reaches it, and its own writes are held back."""
        self._cut = frozenset(regions)

    def join(self, now_ms: int) -> None:
        """Ends the cut: what was held back counts as seen now, in its order."""
        self._cut = frozenset()
        for region, at in self._at.items():
            held_back, at.held_back = at.held_back, []
            for change in held_back:
                self.saw(region, change, now_ms)

    def _wrote(self, region: str, change: Change, now_ms: int) -> None:
        version = Version(change.order, region, change.image)
        winner = self._winners.get(change.key, NEVER_WRITTEN)
        at = self._at[region]
        concurrent = winner.region != region and at.holds(change.key).image != winner.image
        if (version.order < winner.order or concurrent) and version.image != winner.image:
            self.overwritten += 1  # of two writes of the same bytes (a retry through another Region) none is lost
        at.held[change.key] = version
        if version.order > winner.order:
            self._winners[change.key] = version
        for each in self.regions:
            self._reconcile(each, change.key, version.order, now_ms)

    def _settle(self, region: str, delivery: Delivery, now_ms: int) -> None:
        at = self._at[region]
        del at.in_flight[delivery.key]
        at.held[delivery.key] = delivery.version
        self.applied += 1
        self._reconcile(region, delivery.key, self._winners[delivery.key].order, now_ms)

    def _reconcile(self, region: str, key: Key, since: int, now_ms: int) -> None:
        """Makes the winner due in a Region that does not hold it. The same bytes need no second delivery."""
        at = self._at[region]
        if at.holds(key).image == self._winners[key].image:
            at.waiting.pop(key, None)
        elif key not in at.waiting:
            at.expect(key, since, self._due_ms(now_ms))

    def _due_ms(self, now_ms: int) -> int:
        return now_ms + self._rng.randint(*self._lag_ms)


@dataclass(frozen=True, slots=True)
class _Awaited:
    since: int  # the order of the oldest write waited for
    due_ms: int


class _Replica:
    """What one Region holds and waits for. `waiting` is the truth; the timetable and `due` may name a key in vain."""

    def __init__(self) -> None:
        self.held: dict[Key, Version] = {}
        self.waiting: dict[Key, _Awaited] = {}
        self.timetable: list[tuple[int, Key]] = []  # heap of (due_ms, key)
        self.due: list[Key] = []
        self.in_flight: dict[Key, Delivery] = {}
        self.held_back: list[Change] = []

    def holds(self, key: Key) -> Version:
        return self.held.get(key, NEVER_WRITTEN)

    def expect(self, key: Key, since: int, due_ms: int) -> None:
        self.waiting[key] = _Awaited(since, due_ms)
        heapq.heappush(self.timetable, (due_ms, key))
