"""Entries: segments and packs hold them, each a token and a change in 24 bytes.

Rule 1: Entries are in the order of their tokens, each token once, and no change is larger than
10**18. `Entries.read` checks that, so no later code checks again.
Rule 2: Functions of C (struct, array, set) look at them, not Python, because a hot lane has tens of
thousands a second.
"""

import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import lt

from ledger.core import tokens
from ledger.core.ranges import CHANGE_MAX

ENTRY = struct.Struct(">16sq")
"""One entry: the token's 16 bytes, then the change as a signed 64-bit big-endian integer."""

ENTRIES_MAX = 16_000
"""Entries of one item: 24 bytes each, so that it stays below DynamoDB's 400 KB with room for its
keys.
"""

TOKEN_BYTES, TIME_BYTES = tokens.BYTES, 6
_TOKEN, _WHOLE = "16s8x", "24s"
_SMALL = bytes((*range(0x0D), *range(0xF3, 0x100)))
"""First bytes of changes whose magnitude is surely 10**18 at most."""


def packed(token: str, change: int) -> bytes:
    """The entry of a token and its change."""
    return ENTRY.pack(tokens.to_bytes(token), change)


@dataclass(frozen=True, slots=True)
class Entries:
    """Several entries: their bytes, and the 16 bytes of each token."""

    data: bytes
    tokens: tuple[bytes, ...]

    @classmethod
    def read(cls, data: bytes) -> "Entries":
        """The entries in these bytes; raises ValueError if the bytes are no entries."""
        number, rest = divmod(len(data), ENTRY.size)
        if rest or number > ENTRIES_MAX:
            raise ValueError(
                f"entries hold {len(data)} bytes, not {ENTRY.size} each for at most {ENTRIES_MAX}"
            )
        found = cls(data, struct.unpack(_TOKEN * number, data))
        if not all(map(lt, found.tokens, found.tokens[1:])):
            raise ValueError("entries are not in ULID order, each token once")
        if (
            data[TOKEN_BYTES :: ENTRY.size].translate(None, _SMALL)
            and max(map(abs, found.changes)) > CHANGE_MAX
        ):
            raise ValueError("an entry's change is larger than 10**18")
        return found

    @classmethod
    def of(cls, entries: Iterable[bytes]) -> "Entries":
        """Joins single entries, which come in order. Raises ValueError as `read` does."""
        return cls.read(b"".join(entries))

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """Each entry: the 16 bytes of the token, and the change."""
        return ENTRY.iter_unpack(self.data)

    @property
    def apart(self) -> tuple[bytes, ...]:
        """The entries one by one, 24 bytes each."""
        return struct.unpack(_WHOLE * len(self), self.data)

    @property
    def changes(self) -> "array[int]":
        words = array("q", self.data)
        if sys.byteorder == "little":
            words.byteswap()
        return words[2::3]

    @property
    def total(self) -> int:
        return sum(self.changes)

    @property
    def span_ms(self) -> int:
        """The time between the first and the last token; 0 for no entries."""
        return time_ms(self.tokens[-1]) - time_ms(self.tokens[0]) if self.tokens else 0

    def between(self, above: bytes, upto: bytes) -> "Entries":
        """The entries with tokens above `above`, at or below `upto`."""
        if self.tokens and above < self.tokens[0] and self.tokens[-1] <= upto:
            return self
        first, end = (bisect_right(self.tokens, bound) for bound in (above, upto))
        return Entries(self.data[first * ENTRY.size : end * ENTRY.size], self.tokens[first:end])


def time_ms(token: bytes) -> int:
    """The time in the 16 bytes of a token."""
    return int.from_bytes(token[:TIME_BYTES], "big")


class Unique:
    """Passes each token of items once, where it comes first. The items come in the order of their
    sort keys.

    Rule 1: The same items give the same choice. A delta `T` sorts before every pack with `T`, so a
    single delta wins.
    Rule 2: An item sorts by its highest token, and its times lie within `span_ms`: after an item of
    the time t none comes with a token older than t - span_ms, so it forgets older tokens. Memory:
    the tokens of two spans.
    Rule 3: A token above all that came is new, without a look-up: most are, where one process
    writes a lane.

    again: the entries that came again, with whatever change.
    """

    def __init__(self, span_ms: int) -> None:
        self.again: list[bytes] = []
        self._span_ms = span_ms
        self._young, self._old = _Came(), _Came()
        self._old_until_ms = -1
        self._highest = b""

    def new(self, entries: Entries) -> Entries:
        """The entries of the next item whose tokens come for the first time."""
        found = entries.tokens
        if not found:
            return entries
        last_ms = time_ms(found[-1])
        if last_ms - self._span_ms > self._old_until_ms:
            self._old, self._young, self._old_until_ms = self._young, _Came(), last_ms
        known = found[: bisect_right(found, self._highest)]
        self._highest = max(self._highest, found[-1])
        came = self._young.having(known) | self._old.having(known) if known else set()
        self._young.add(found)
        if not came:
            return entries
        fresh: list[bytes] = []
        for token, entry in zip(found, entries.apart, strict=True):
            (self.again if token in came else fresh).append(entry)
        return Entries(b"".join(fresh), tuple(entry[:TOKEN_BYTES] for entry in fresh))


class _Came:
    """Tokens that came.

    It makes a set of them only when `having` needs one, because mostly nobody calls that.
    """

    def __init__(self) -> None:
        self._set: set[bytes] = set()
        self._more: list[tuple[bytes, ...]] = []

    def add(self, tokens: tuple[bytes, ...]) -> None:
        self._more.append(tokens)

    def having(self, tokens: Iterable[bytes]) -> set[bytes]:
        """The `tokens` that came before."""
        self._set.update(*self._more)
        self._more.clear()
        return self._set.intersection(tokens)
