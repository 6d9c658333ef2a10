"""What a gate is, what a token becomes in it, what its caller is answered, and what is kept of one that was filed.

Rule 1: a right is what a gate may take without asking: `down`, to lower the value; `up`, to raise it. It has one only
for a side that is limited. The rights of all gates, what is on its way between them and what holds keep, sum to
`value - floor` and to `ceiling - value`, so a gate that keeps its rights at or above 0 keeps the limit.
Rule 2: what a gate gave to another and what it took over from another are cumulative: neither ever falls.
Rule 3: a token is decided once; its outcome is the change that counts, or one of three that count nothing.
Rule 4: a fingerprint has four bytes, of its token's time and random bits: two tokens may have the same, a token never
has two. The time comes round after 2.3 hours, so a fingerprint is kept only while its token lies above `low`, and no
further than an hour.
Rule 5: who asks for something else under a token that is taken gets a TokenConflict, or how the hold ended.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, NoReturn, Self

from ledger import tokens
from ledger.errors import HoldEnded, LimitReached, TokenConflict
from ledger.limit import DOWN, SIDES, UP, Limit
from ledger.periods.name import parted
from ledger.ranges import CHANGE_MAX, COUNT_MAX, VERSION_MAX
from ledger.tokens import until_ms
from ledger.values import Delta, Lane, Receipt

REFUSED, RELEASED, EXPIRED = -(2**63), -(2**63) + 1, -(2**63) + 2
"""Outcomes that are no changes: a limit was in the way; a hold was let go; a hold's time was over."""
STATES: Mapping[int | None, str] = {RELEASED: "released", EXPIRED: "expired"}


def change_of(outcome: int) -> int:
    """What an outcome changes the value by."""
    return outcome if abs(outcome) <= CHANGE_MAX else 0


def counts(outcome: int) -> bool:
    """Whether an outcome is one of the changes that a counter's `count` is of."""
    return abs(outcome) <= CHANGE_MAX


def check_outcome(outcome: int) -> int:
    """`outcome` itself; raises ValueError for a number that is none."""
    if not counts(outcome) and outcome not in (REFUSED, RELEASED, EXPIRED):
        raise ValueError(f"{outcome} is no outcome")
    return outcome


SLICE_MS = 128  # the time of a fingerprint is counted in such slices, modulo 2^16: 2.3 hours
_SLICES = 2**16
FINGERPRINT_BYTES = 4
EMPTY_BYTES, CELL_BYTES = 300, 40


def fingerprint(token: str) -> bytes:
    """Two bytes of the token's time, two of its random bits."""
    return _slice(tokens.time_ms(token)).to_bytes(2, "big") + tokens.to_bytes(token)[6:8]


def distance(mark: bytes, low: str) -> int:
    """How many slices the time of a fingerprint that is kept lies above that of the `low` it is kept with."""
    return (int.from_bytes(mark[:2], "big") - _slice(tokens.time_ms(low))) % _SLICES


def end_ms(low: str, slices: int) -> int:
    """The last millisecond of the slice that lies so many above that of `low`."""
    return (tokens.time_ms(low) // SLICE_MS + slices + 1) * SLICE_MS - 1


def _slice(time_ms: int) -> int:
    return time_ms // SLICE_MS % _SLICES


LOWEST = "0" * 26
"""The token below which nothing need be looked up in a gate that never filed anything."""

Cell = tuple[str, str]
"""Another lane of the counter, as "<Region>#<shard>", and a side."""


def name_of(lane: Lane) -> str:
    """What tells a lane from the other lanes of its counter."""
    return f"{lane.region}#{lane.shard}"


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate of a lane, as it was read.

    recent: token -> outcome, decided and not filed. held: token -> what is set aside. total, count: of what is filed.
    version: how many rolls are finished. low: what is at or below it must be looked up. top: the highest token filed.
    moved: the fingerprints of what was filed above `low`. given, got: to and from other lanes, ever. bounds: the limit
    as it stands, by side, in the gate that had the first rights; epoch: how often it was set. carried: what left it for
    the next period, ever; took: what it has from the period before.
    """

    lane: Lane
    rights: Mapping[str, int]
    recent: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)
    total: int = 0
    count: int = 0
    version: int = 0
    low: str = LOWEST
    top: str = LOWEST
    moved: frozenset[bytes] = frozenset()
    slack_ms: int | None = None
    given: Mapping[Cell, int] = field(default_factory=dict)
    got: Mapping[Cell, int] = field(default_factory=dict)
    epoch: int = 0
    bounds: Mapping[str, int | None] = field(default_factory=lambda: dict.fromkeys(SIDES))
    carried: int = 0
    took: int = 0

    def __post_init__(self) -> None:
        if not all(map(tokens.is_token, (self.low, self.top, *self.recent, *self.held))):
            raise ValueError("low, top and what is decided or held are named by ULIDs")
        if self.recent.keys() & self.held.keys():
            raise ValueError("a token is held and decided")
        if not (0 <= self.version <= VERSION_MAX and 0 <= self.count <= COUNT_MAX):
            raise ValueError(f"version must be from 0 to {VERSION_MAX} and count from 0 to {COUNT_MAX}")
        if min(self.epoch, self.slack_ms or 0, self.carried, self.took) < 0:
            raise ValueError("slack, epoch and what was carried are at least 0")
        set_to = [amount for side in SIDES if (amount := self.bounds[side]) is not None]
        if any(abs(amount) > CHANGE_MAX for amount in set_to) or set_to != sorted(set_to):
            raise ValueError("floor and ceiling are at most 10**18, either way, and floor is not above ceiling")
        if not all(len(each) == FINGERPRINT_BYTES for each in self.moved):
            raise ValueError(f"a fingerprint has {FINGERPRINT_BYTES} bytes")
        if any(amount < 0 for amount in (*self.given.values(), *self.got.values())):
            raise ValueError("what was given or taken over is at least 0")
        for outcome in self.recent.values():
            check_outcome(outcome)
        if any(not 0 < abs(amount) <= CHANGE_MAX for amount in self.held.values()):
            raise ValueError("a hold is of 1 to 10**18, either way")

    @classmethod
    def new(cls, lane: Lane, limit: Limit) -> Self:
        """A gate that decided nothing yet."""
        opens = limit.opens(lane.region, lane.shard)
        rights = {side: limit.opening(side) if opens else 0 for side in SIDES if limit.has(side)}
        bounds = {DOWN: limit.floor, UP: limit.ceiling} if opens else dict.fromkeys(SIDES)
        return cls(lane, rights, bounds=bounds)

    @property
    def value(self) -> int:
        return self.total + sum(map(change_of, self.recent.values()))

    @property
    def number(self) -> int:
        """How many changes count."""
        return self.count + sum(map(counts, self.recent.values()))

    @property
    def others(self) -> set[str]:
        """The names of the lanes that it gave to or got from: they have gates, or had them."""
        return {name for name, _ in (*self.given, *self.got)}

    def own(self, side: str) -> int:
        """The rights that the lane would have if nothing had ever been moved: what others were given, and not what was
        taken over. The sum over all lanes is what can be taken, wherever it is."""
        return self.rights.get(side, 0) - self.received(side)

    def received(self, side: str) -> int:
        """What was got from other lanes, less what was given to them."""
        got, given = (sum(n for (_, of), n in cells.items() if of == side) for cells in (self.got, self.given))
        return got - given

    def taken_by(self, wanted: Mapping[str, int | None]) -> dict[str, int]:
        """The rights that another limit takes away; below 0: that it gives. wanted: the bound of each limited side."""
        change = {side: (wanted[side] or 0) - (self.bounds[side] or 0) for side in self.rights}
        return {side: each if side == DOWN else -each for side, each in change.items()}

    @property
    def base_bytes(self) -> int:
        """About how many bytes it has beside what is decided or held."""
        cells = len(self.given) + len(self.got)
        return EMPTY_BYTES + 2 * len(self.lane.counter) + FINGERPRINT_BYTES * len(self.moved) + CELL_BYTES * cells

    def is_fresh(self, token: str) -> bool:
        """Whether it is certain, from the gate alone, that the token was never filed."""
        return token > self.low and fingerprint(token) not in self.moved

    def over(self, now_ms: int) -> dict[str, int]:
        """The holds whose time is over."""
        return {token: amount for token, amount in self.held.items() if until_ms(token) <= now_ms}


def shares(changes: Iterable[int]) -> tuple[int, int]:
    """What changes that are set aside take: of `down`, and of `up`."""
    given = list(changes)
    return sum(max(0, -each) for each in given), sum(max(0, each) for each in given)


class Left(NamedTuple):
    """The floor or the ceiling, as it is set, and what all lanes together had left towards it; None: not seen.

    remembered: by an earlier call of this process.
    """

    limit: int | None = None
    available: int | None = None
    remembered: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What a token stands for: its outcome, or that it is a hold of this amount which goes on. before: it was decided
    before this call. left: what was seen, of a refusal."""

    outcome: int | None = None
    held: int | None = None
    before: bool = True
    left: Left = field(default=Left(), compare=False)


def receipt(delta: Delta, decision: Decision) -> Receipt:
    """Raises LimitReached and TokenConflict, where the token does not stand for this change."""
    if decision.outcome == REFUSED:
        raise refused(delta, decision)
    if decision.held is not None:
        _conflict(delta, f"a hold of {decision.held}")
    if decision.outcome in STATES:
        _conflict(delta, f"a hold that was {STATES[decision.outcome]}")
    if decision.outcome != delta.change:
        _conflict(delta, f"a change of {decision.outcome}")
    return Receipt("replayed" if decision.before else "recorded", delta)


def check_granted(delta: Delta, decision: Decision) -> None:
    """Raises HoldEnded, LimitReached and TokenConflict, where its token does not stand for this hold."""
    if decision.held not in (None, delta.change):
        _conflict(delta, f"a hold of {decision.held}")
    if decision.outcome == REFUSED:
        raise refused(delta, decision)
    if decision.outcome is not None:
        raise ended(delta, decision.outcome)


def ended(held: Delta, outcome: int | None) -> HoldEnded:
    state, actual = STATES.get(outcome, "captured"), change_of(outcome or 0)
    what = f"captured: {actual} of {held.change} counts" if state == "captured" else f"{state}: nothing of it counts"
    return HoldEnded(f"{held.lane.counter}: the hold {held.token} was {what}. Nothing was written.", state, actual)


def resets_at(lane: Lane) -> datetime | None:
    """When a lane's next period begins, by UTC; None of a counter without periods."""
    span = parted(lane.counter)[1] if lane.retires_s else None
    return None if span is None else span.end.replace(tzinfo=UTC)


def refused(delta: Delta, decision: Decision) -> LimitReached:
    limit, available, remembered = decision.left
    detail = f" of {limit}; all Regions together had {available} left" if limit is not None else ""
    detail += " up to a second ago" if remembered else ""
    return LimitReached(
        f"{delta.lane.counter}: {delta.change} would pass the limit{detail}. Nothing counts, and "
        "that is final for this token: a new attempt needs a new idempotency key.",
        counter=delta.lane.counter,
        **decision.left._asdict(),
        resets_at=resets_at(delta.lane),
    )


def _conflict(delta: Delta, what: str) -> NoReturn:
    raise TokenConflict(
        f"{delta.lane.counter}: the token {delta.token} already stands for {what}, not for {delta.change}. Nothing was "
        "written; what it stands for counts. A new change needs a new idempotency key."
    )
