"""The answers of a reader: balances and entries."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from ledger.core import tokens
from ledger.core.checks import to_datetime
from ledger.core.cost import NOTHING, Cost
from ledger.core.entries import time_ms
from ledger.core.errors import InvalidInput, shown
from ledger.core.requests import Key
from ledger.lane.directory import BUCKETS

SORT_KEY_BYTES_MAX = 1_024


@dataclass(frozen=True, slots=True)
class Balance:
    """A counter at an instant: each change that the read saw counts exactly once.

    - value: the sum. count: how many changes it sums.
    - as_of: when the read began; for a read with `behind`, the instant before which no change that
      came in time is missing.
    - pending: how many of the changes are still in the tail. oldest_pending: when the oldest of
      these was requested; None without any.
    - by_region: the value's parts by the Region where the changes were requested.
    - closed: for a counter with a limit, whether the value is certainly within it: a Region may
      show a sale before it shows the rights that another lane gave for the sale.
    - cached: whether the answer is that of an earlier read. cost: what the read cost; nothing when
      its answer came from the cache.
    """

    value: int
    count: int
    as_of: datetime
    pending: int
    by_region: Mapping[str, int] = field(hash=False)
    cached: bool = False
    oldest_pending: datetime | None = None
    closed: bool = True
    cost: Cost = field(default=NOTHING, compare=False, repr=False)


class _Read:
    """The content of an entry that was read: the token's 16 bytes.

    It makes token and time when they are used.
    """

    __slots__ = ("_data",)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name not in ("token", "at"):
                raise AttributeError(f"an Entry has no {name}")
            found = (
                tokens.from_bytes(self._data)
                if name == "token"
                else to_datetime(time_ms(self._data))
            )
            object.__setattr__(self, name, found)
            return found


@dataclass(frozen=True, slots=True)
class Entry(_Read):
    """One change of a counter's history. `at`: when it was first requested; `region`: where."""

    token: str
    at: datetime
    change: int
    region: str


Change = tuple[bytes, int, str]
"""The 16 bytes of the token, the change, the Region."""


def entries_of(changes: Iterable[Change]) -> Iterator[Entry]:
    """Yield an Entry for each change.

    They are many, so an Entry makes nothing at which perhaps nobody looks.
    """
    new, put = object.__new__, object.__setattr__
    for data, change, region in changes:
        entry = new(Entry)
        put(entry, "_data", data)
        put(entry, "change", change)
        put(entry, "region", region)
        yield entry


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a history: just after the entry with this token in this Region."""

    token: str
    region: str

    def __post_init__(self) -> None:
        if (
            type(self.token) is not str
            or not tokens.is_token(self.token)
            or type(self.region) is not str
        ):
            raise InvalidInput(
                f"A place is a token and a Region, not {shown(self.token)} and "
                f"{shown(self.region)}."
            )


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A part of a history, in the order of time.

    `next`: where to go on, or None when this was the last page.
    """

    entries: tuple[Entry, ...]
    next: Position | None


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in the list of counters: in a bucket of the directory, just after this name ("":
    at its beginning).
    """

    bucket: int
    counter: str = ""

    def __post_init__(self) -> None:
        if (
            type(self.bucket) is not int
            or not 0 <= self.bucket < BUCKETS
            or not _is_key_text(self.counter)
        ):
            given = f"{shown(self.bucket)} and {shown(self.counter)}"
            raise InvalidInput(
                f"A place is a bucket from 0 to {BUCKETS - 1} and a name, not {given}."
            )


def _is_key_text(text: object) -> bool:
    """Whether the text can be a part of any item's key."""
    try:
        return type(text) is str and len(text.encode()) <= SORT_KEY_BYTES_MAX
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class CountersPage:
    """A part of the list of counters, by bucket and then by name; it may be empty. `next`: where to
    go on, or None when this was the last page. damaged: items of the directory that name no lane,
    and were skipped."""

    counters: tuple[str, ...]
    next: Place | None
    damaged: tuple[Key, ...] = ()
