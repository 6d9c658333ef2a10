"""What every Region is known to hold, which write of an item won, and what is due where.

The pure half of the replicator: no I/O, no clock, no thread; time and randomness are given.

Rule 1: Last writer wins, item by item, by the order of the writes; items never wait for one
another.
Rule 2: Only a Region's own stream says what the Region holds. So a write that a delivery overwrote
before it was seen shows up as a Region that does not hold the winner, and the winner is sent there
again.
Rule 3: The stream record of a delivery is not a write. It is known by its image: the first record
of that item with the image just sent. A put that changes nothing makes no record, so what is still
unrecorded when the stream was read to its end was such a put.
Rule 4: A Region with a delivery in flight is sent nothing more until that is settled, else two
echoes could be mistaken for each other.

Known limit: a write with the very same image as a delivery that is in flight to its item is taken
for the delivery. The bytes are the same and all Regions still converge, but a third write between
the two by order can win where the last one should (A, B, A in milliseconds). Memory grows with the
number of distinct items: this is for runs and tests.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ledger.core.requests import Key

# an item as the low-level client shows it; None: the item is absent
Image: TypeAlias = dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Change:
    """One record of a stream: at `order`, the item `key` became `image`.

    Writes and deliveries look the same.
    """

    key: Key
    image: Image
    order: int


@dataclass(slots=True)
class _Replica:
    """What one Region holds; when what is due; what was sent and not yet seen; records of a
    Region that is cut off.
    """

    held: dict[Key, Image] = field(default_factory=dict)
    waiting: dict[Key, int] = field(default_factory=dict)
    in_flight: dict[Key, Image] = field(default_factory=dict)
    held_back: list[Change] = field(default_factory=list)


class Replicas:
    """The registry of all items in all Regions. Lags are milliseconds, both ends included."""

    def __init__(
        self, regions: Sequence[str], rng: random.Random, min_lag_ms: int, max_lag_ms: int
    ) -> None:
        self._rng, self._lag_ms = rng, (min_lag_ms, max_lag_ms)
        self._winners: dict[Key, Change] = {}
        self._at = {region: _Replica() for region in regions}
        self._cut: frozenset[str] = frozenset()

    @property
    def pending(self) -> int:
        """Deliveries due, waiting or in flight, and records that a cut-off Region holds back."""
        return sum(
            len(at.waiting) + len(at.in_flight) + len(at.held_back) for at in self._at.values()
        )

    def saw(self, region: str, change: Change, now_ms: int) -> None:
        """Takes the next record of a Region's stream: a write of its own, or the echo of a
        delivery.
        """
        at = self._at[region]
        if region in self._cut:
            at.held_back.append(change)
        elif change.key in at.in_flight and at.in_flight[change.key] == change.image:
            self._settle(region, change.key, now_ms)
        else:
            at.held[change.key] = change.image
            winner = self._winners.get(change.key)
            if winner is None or change.order > winner.order:
                self._winners[change.key] = change
            for each in self._at:
                self._reconcile(each, change.key, now_ms)

    def caught_up(self, region: str, now_ms: int) -> None:
        """Says that the stream was read to its end after the last deliveries.

        One that is still in flight changed nothing, so it left no record.
        """
        if region not in self._cut:
            for key in list(self._at[region].in_flight):
                self._settle(region, key, now_ms)

    def take(self, region: str, now_ms: int, limit: int) -> dict[Key, Image]:
        """At most `limit` due deliveries, picked at random and now in flight; none while others
        are unsettled.
        """
        at = self._at[region]
        if region in self._cut or at.in_flight:
            return {}
        due = [key for key, due_ms in at.waiting.items() if due_ms <= now_ms]
        for key in self._rng.sample(due, min(limit, len(due))):
            del at.waiting[key]
            at.in_flight[key] = self._winners[key].image
        return dict(at.in_flight)

    def cut(self, regions: Iterable[str]) -> None:
        """Cuts each of these Regions off from every other: nothing reaches it, and its own
        writes are held back.
        """
        self._cut = frozenset(regions)

    def join(self, now_ms: int) -> None:
        """Ends the cut: what was held back counts as seen now, in its order."""
        self._cut = frozenset()
        for region, at in self._at.items():
            held_back, at.held_back = at.held_back, []
            for change in held_back:
                self.saw(region, change, now_ms)

    def _settle(self, region: str, key: Key, now_ms: int) -> None:
        at = self._at[region]
        at.held[key] = at.in_flight.pop(key)
        self._reconcile(region, key, now_ms)

    def _reconcile(self, region: str, key: Key, now_ms: int) -> None:
        """Makes the winner due in a Region that does not hold it.

        The same bytes need no second delivery.
        """
        at = self._at[region]
        if at.held.get(key) == self._winners[key].image:
            at.waiting.pop(key, None)
        elif key not in at.waiting:
            at.waiting[key] = now_ms + self._rng.randint(*self._lag_ms)
