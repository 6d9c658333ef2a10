"""What every way of counting looks like from outside, and what those have in common that keep a
counter in one item.

Rule 1: A design is programs and nothing else, so that one text runs on the simulator and on an
engine.
Rule 2: What it claims is data, and tests/lab/designs/test_claims.py holds each claim, also each
that it does not make.
Sources: https://aws.amazon.com/blogs/database/implement-resource-counters-with-amazon-dynamodb/
(the seven designs) and the page that each module names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ledger.core.conditions import Absent, AtMost, Condition, Either, Value
from ledger.core.decoding import number
from ledger.core.errors import InvalidChange, TableError
from ledger.core.requests import Delete, Get, Instant, Item, Key, KeyPage, Now, Pause, Program, Scan

VALUE = "value"
TRIES_MAX = 12  # how often an optimistic writer looks and tries again
PAUSE_MS, DOUBLINGS_MAX = 50, 5

Outcome = Literal["recorded", "replayed", "accepted", "refused"]
"""The change counts by this call; by an earlier one; not at all, because of a ceiling."""


class Contended(TableError):
    """The item had changed at every try. Nothing was written. Call again, later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How long a change that is sent again, with the same key and time, still counts once.

    ms: after its first request. writes: changes of others since then. merges: also when its
    housekeeping was done.
    """

    ms: float = math.inf
    writes: float = math.inf
    merges: bool = True


NONE = Memory(ms=0, writes=0, merges=False)
FOR_EVER = Memory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a design can do.

    survives_death: also where its first process died at any step; what a lost answer does is like
    it.
    mismatch: another change under a used key is refused (TokenConflict). limit: no change takes the
    value past its ceiling, in one Region; "soft": only changes made one after another;
    "everywhere": in all Regions together.
    regions: nothing is lost or doubled when several Regions write at once. history: every change
    can be listed.
    units: it counts things, so a change is 1.
    """

    memory: Memory = NONE
    survives_death: bool = True
    mismatch: bool = False
    limit: Literal["none", "soft", "hard", "everywhere"] = "none"
    regions: bool = False
    history: bool = False
    units: bool = False


@dataclass(frozen=True, kw_only=True)
class Design:
    """One way of counting.

    `sdk_attempts`: how often its authors let the SDK send a request that gets no answer.
    """

    name: str
    sdk_attempts: int = 4

    @property
    def claims(self) -> Claims:
        raise NotImplementedError

    def of(self, region: str, regions: tuple[str, ...]) -> Design:
        """As it is set up in one of the Regions of its table; wherever a change is sent, by that
        where it was made.
        """
        return self

    def add(self, counter: str, change: int, key: str, at_ms: int) -> Program[Outcome]:
        """Count a change. `key` names it, and is used for nothing else; `at_ms` is when it was
        first asked for.

        Raises the TableErrors (after OutcomeUnknown a caller sends the same again), TokenConflict
        and InvalidChange.
        """
        raise NotImplementedError

    def value(self, counter: str, *, consistent: bool = True) -> Program[int]:
        raise NotImplementedError

    def housekeep(self, counter: str, region: str) -> Program[None]:
        """What its scheduled job does in a Region, or the table by itself."""
        yield from ()

    def history(self, counter: str) -> Program[list[int]]:
        """The changes."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class SingleItem(Design):
    """A counter is the attribute `value` of one item, or of one item a shard."""

    ceiling: int | None = None

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        raise NotImplementedError

    def value(self, counter: str, *, consistent: bool = True) -> Program[int]:
        item: Item | None = yield Get(self.item_key(counter), consistent)
        return self.amount(item)

    @staticmethod
    def item_key(counter: str, shard: int = 0) -> Key:
        return Key(f"count#{shard}#{counter}", "count")

    @staticmethod
    def amount(item: Item | None) -> int:
        return integer(item, VALUE)

    def fits(self, value: int, change: int) -> bool:
        """Whether the change may be made at this value.

        What leads away from the ceiling always may.
        """
        return change <= 0 or self.ceiling is None or value + change <= self.ceiling

    def fitting(self, change: int) -> Condition | None:
        """The same as a condition on the item."""
        if change <= 0 or self.ceiling is None:
            return None
        room = AtMost(VALUE, number(self.ceiling - change))
        return Either((Absent(VALUE), room)) if self.fits(0, change) else room


def pause(attempt: int) -> Pause:
    """What a writer asks for after the failed try `attempt` (from 0 on): up to twice as long
    each time.
    """
    return Pause(PAUSE_MS * 2 ** min(attempt, DOUBLINGS_MAX))


def expired(attribute: str) -> Program[None]:
    """Delete every item whose time to live is over, as the table does by itself; the time is in
    seconds.
    """
    now: Instant = yield Now()
    is_over = AtMost(attribute, number(now.wall_ms // 1_000))
    after = None
    while True:
        page: KeyPage = yield Scan(after)
        for key in page.keys:
            yield Delete(key, condition=is_over)
        after = page.last
        if after is None:
            return


def check_unit(change: int) -> None:
    """Raises InvalidChange where a design counts things, and the change is not one of them."""
    if change != 1:
        raise InvalidChange(f"This way of counting takes changes of 1, not {change}.")


def text(value: str) -> Value:
    return {"S": value}


def integer(item: Item | None, name: str) -> int:
    """The number that an item has under this name; 0 where it has none."""
    return int((item or {}).get(name, number(0))["N"])
