"""The values of the ledger: what a counter, a lane, a delta, a checkpoint and a segment are.

Rule 1: Every value is frozen and checks itself when it is made, so a value that exists is valid.
Rule 2: Nothing here does I/O or knows how DynamoDB spells it (that is `items.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal

from ledger.core import tokens
from ledger.core.checks import check_change, check_counter, check_region, plain_text, to_datetime
from ledger.core.cost import NOTHING, Cost
from ledger.core.days import Days
from ledger.core.entries import Entries, packed
from ledger.core.errors import InvalidInput, shown
from ledger.core.ranges import CHANGE_MAX, COUNT_MAX, SHARD_MAX, VERSION_MAX

PACK_SPAN_MS = 10_000
"""The times of a pack's changes lie within so many milliseconds. It is part of the format for ever,
because a reader of packs in order forgets a token so long after it. It is the default lateness, so
a batch that is on time fits one."""

PACK_NAME_CHARS = 32
"""How many hexadecimal digits of SHA-256 over a pack's entries its sort key has."""

_set = object.__setattr__
"""Sets a field of a frozen value that is being made."""

_SHARD = re.compile(r"0|[1-9][0-9]{0,5}")


@dataclass(frozen=True, slots=True)
class Then:
    """What follows a change that counts: the change of another counter."""

    counter: str
    change: int


@dataclass(frozen=True, slots=True)
class Change:
    """One change to one counter, for `Ledger.add_many`; the arguments are those of `add`.

    then: makes it a transfer, for a queue alone: this change is below 0, and the same above 0
    follows if it counts. partial: as much of it counts as is left, as with `add_up_to`; this, too,
    is for a queue alone.
    """

    counter: str
    change: int
    idempotency_key: str | None = None
    at: datetime | None = None
    region: str | None = None
    then: Then | None = None
    partial: bool = False


_fields = attrgetter(*Change.__match_args__)


class CheckedChange(Change):
    """A change whose every field a reader of messages has checked, so that `prepare` does not
    check it again: it has a key, and `at` is at_ms, from 1970 on.

    Only `checked_change` makes one. It equals the Change of the same fields. To copy it, to replace
    a field or to call its class gives that plain Change, which is checked.
    """

    __slots__ = ("at_ms",)
    idempotency_key: str
    at: datetime
    at_ms: int

    def __new__(cls, *fields: Any, **named: Any) -> Change:  # type: ignore[misc]
        return Change(*fields, **named)

    def __reduce__(self) -> tuple[Any, ...]:
        return Change, _fields(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Change) and _fields(self) == _fields(other)

    __hash__ = Change.__hash__

    def __repr__(self) -> str:
        return repr(replace(self))


def checked_change(
    at_ms: int,
    counter: str,
    change: int,
    idempotency_key: str,
    at: datetime,
    region: str | None,
    then: Then | None,
    partial: bool = False,
) -> CheckedChange:
    """The change of fields that the caller has checked. Only a reader of messages may call it."""
    made = object.__new__(CheckedChange)
    _set(made, "counter", counter)
    _set(made, "change", change)
    _set(made, "idempotency_key", idempotency_key)
    _set(made, "at_ms", at_ms)
    _set(made, "at", at)
    _set(made, "region", region)
    _set(made, "then", then)
    _set(made, "partial", partial)
    return made


def check_changes(caller: str, changes: object) -> list[Change]:
    """`changes` as a list; raises InvalidInput unless they are several Changes, whatever is in
    them.
    """
    # else each letter would be refused
    if not isinstance(changes, Iterable) or isinstance(changes, str | bytes):
        raise InvalidInput(
            f"{caller} takes several Change(counter, change, ...), not {shown(changes)}."
        )
    several = list(changes)
    for i, change in enumerate(several):
        if not isinstance(change, Change):
            raise InvalidInput(
                f"{caller} takes Change(counter, change, ...); changes[{i}] is {shown(change)}."
            )
    return several


@dataclass(frozen=True, slots=True, order=True)
class Lane:
    """A part of a counter. Only the compactor of its own `region` writes anything but deltas for
    it.

    shards: how many the counter has, where that is known (else 0). retires_s: for a period, the
    second since 1970 from which on the table may delete the lane's items; else 0. Neither is a part
    of the lane's name.
    """

    region: str
    shard: int
    counter: str
    shards: int = field(default=0, compare=False, repr=False)
    retires_s: int = field(default=0, compare=False, repr=False)
    name: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counter", check_counter(self.counter))
        check_region(self.region)
        if type(self.shard) is not int or not 0 <= self.shard <= SHARD_MAX:
            raise InvalidInput(f"A shard is an int from 0 to {SHARD_MAX}, not {shown(self.shard)}.")
        if type(self.shards) is not int or not 0 <= self.shards <= SHARD_MAX:
            raise InvalidInput(
                f"The shards of a counter are an int from 0 to {SHARD_MAX}, not "
                f"{shown(self.shards)}."
            )
        # made here, once: each request of a lane has it in its key
        object.__setattr__(self, "name", f"{self.region}#{self.shard}#{self.counter}")

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, text: object) -> Lane:
        """The lane that such a text names. Raises InvalidInput."""
        parts = (plain_text(text) or "").split("#", 2)
        if len(parts) != 3 or not _SHARD.fullmatch(parts[1]):
            raise InvalidInput(
                "A lane is <Region>#<shard>#<counter>, such as eu-west-1#0#stock, not "
                f"{shown(text)}."
            )
        return cls(parts[0], int(parts[1]), parts[2])


@dataclass(frozen=True, slots=True)
class Delta:
    """One change in one lane, named by its token.

    Apply it any number of times, in any Region: it counts once.
    """

    lane: Lane
    token: str
    change: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "change", check_change(self.change))
        lane: object = self.lane
        if not isinstance(lane, Lane):
            raise InvalidInput(
                f"A delta's lane is a Lane(region, shard, counter), not {shown(lane)}."
            )
        if type(self.token) is not str or not tokens.is_token(self.token):
            raise InvalidInput(f"A token is a ULID of 26 characters, not {shown(self.token)}.")

    @property
    def at(self) -> datetime:
        """When the change was first requested."""
        return to_datetime(tokens.time_ms(self.token))


def delta_for(change: CheckedChange, lane: Lane, token: str) -> Delta:
    """The delta of a checked change, in the lane and under the token that a plan gave it: all of
    it is checked.
    """
    made = object.__new__(Delta)
    _set(made, "lane", lane)
    _set(made, "token", token)
    _set(made, "change", change.change)
    return made


@dataclass(frozen=True, slots=True)
class Receipt:
    """The acknowledgement of a change: from now on it counts exactly once.

    outcome: "recorded" when this call put the delta, "replayed" when the same change was already
    there. A retry that comes after the delta was compacted and cleaned is "recorded" again, and
    still counts once. "accepted": the change is in the table in a pack, and the answer does not say
    whether it was there before (with `insert_only` also where its token was taken and the role may
    not look). cost: of the call; each change of a call with many has an equal share.
    """

    outcome: Literal["recorded", "replayed", "accepted"]
    delta: Delta
    cost: Cost = field(default=NOTHING, compare=False, repr=False)

    @property
    def change(self) -> int:
        """What counts: after `add_up_to` it may be a part of the change that you requested."""
        return self.delta.change


@dataclass(frozen=True, slots=True)
class Transfer:
    """The result of a transfer. It is final: the same call always gets the same result.

    - outcome: "moved"; "refused" by the source's limit; "refunded", because the target's limit
      refused the amount and the source got it back. Only "moved" has moved anything.
    - debit, credit: the receipts of the two adds; None for one that did not count. A refunded
      debit did count, so it has one. cost: of the call.
    """

    outcome: Literal["moved", "refused", "refunded"]
    debit: Receipt | None = None
    credit: Receipt | None = None
    cost: Cost = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The sum of all segments of a lane, to which a reader adds the tail. days: the same by day;
    None where an earlier version of this library wrote the checkpoint, without days."""

    lane: Lane
    total: int
    count: int
    watermark: str
    version: int
    last: str
    committed_ms: int
    days: Days | None = None

    def __post_init__(self) -> None:
        if not (tokens.is_token(self.watermark) and tokens.is_token(self.last)):
            raise ValueError("watermark and last must be ULIDs")
        if not (1 <= self.version <= VERSION_MAX and 0 <= self.count <= COUNT_MAX):
            raise ValueError(
                f"version must be from 1 to {VERSION_MAX} and count from 0 to {COUNT_MAX}"
            )
        if abs(self.total) > self.count * CHANGE_MAX:
            raise ValueError(f"a total of {self.total} cannot come from {self.count} changes")
        if self.days is not None and self.days.sums != (self.count, self.total):
            raise ValueError(
                f"its days count and sum to {self.days.sums}, and it says {self.count, self.total}"
            )


@dataclass(frozen=True, slots=True)
class Pack:
    """Changes of one lane in one item.

    Its content gives its name, so no put changes what stands under that name.
    """

    lane: Lane
    entries: Entries

    def __post_init__(self) -> None:
        if not self.entries.tokens:
            raise ValueError("a pack has at least one entry")
        if self.entries.span_ms > PACK_SPAN_MS:
            raise ValueError(
                f"its times span {self.entries.span_ms} ms, not {PACK_SPAN_MS} at most"
            )
        shard, shards = self.lane.shard, self.lane.shards
        if shards > 1 and any(tokens.side(token, shards) != shard for token in self.entries.tokens):
            raise ValueError("an entry's token is of another shard")

    @property
    def name(self) -> str:
        """The highest token, and the head of SHA-256 over the entries: the sort key."""
        digest = hashlib.sha256(self.entries.data).hexdigest()
        return f"{tokens.from_bytes(self.entries.tokens[-1])}#{digest[:PACK_NAME_CHARS]}"


@dataclass(frozen=True, slots=True)
class Segment:
    """The deltas that one commit compacted, filed under `hi`."""

    lane: Lane
    hi: str
    version: int
    entries: Entries

    def __post_init__(self) -> None:
        if not tokens.is_token(self.hi) or not 1 <= self.version <= VERSION_MAX:
            raise ValueError(f"hi must be a ULID and version from 1 to {VERSION_MAX}")
        if self.entries.tokens and self.entries.tokens[-1] > tokens.to_bytes(self.hi):
            raise ValueError("an entry lies above hi")

    @classmethod
    def of(cls, lane: Lane, hi: str, version: int, deltas: Iterable[Delta]) -> Segment:
        """The segment that lists `deltas`, which must come in the order of their tokens."""
        return cls(
            lane, hi, version, Entries.of(packed(delta.token, delta.change) for delta in deltas)
        )

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """Yield each entry: the 16 bytes of the token, and the change."""
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, slots=True)
class CleanNote:
    """Every Region had answered with a checkpoint of at least `version` by `noted_ms`."""

    lane: Lane
    version: int
    noted_ms: int

    def __post_init__(self) -> None:
        if not 1 <= self.version <= VERSION_MAX:
            raise ValueError(f"version must be from 1 to {VERSION_MAX}")
