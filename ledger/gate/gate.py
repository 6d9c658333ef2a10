"""A gate, the outcome of a token in it, and the fingerprint of a filed token.

Rule 1: a right is an amount that a gate may take by itself: `down`, to lower the value; `up`, to
raise it. A gate has rights only for a side that is limited. The rights of all gates, with those on
their way between gates and those in holds, sum to `value - floor` and to `ceiling - value`, so
gates that keep their rights at or above 0 keep the limit.
Rule 2: the sums that a gate gave to another and took over from another are cumulative: neither ever
falls.
Rule 3: a token is decided once; its outcome is the change that counts, or one of three that count
nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from ledger.core import tokens
from ledger.core.limit import DOWN, SIDES, UP, Limit
from ledger.core.ranges import CHANGE_MAX, COUNT_MAX, VERSION_MAX
from ledger.core.tokens import until_ms
from ledger.core.values import Lane

REFUSED, RELEASED, EXPIRED = -(2**63), -(2**63) + 1, -(2**63) + 2
"""Outcomes that are no changes: the limit refused it; a hold was released; a hold's time was
over.
"""
GRANTED, CLOSED = RELEASED, EXPIRED
"""Outcomes of a hold's name: the hold was granted, and its own token says how it goes on; none was,
nor will be. They count nothing, as do those of holds that are over without a capture."""
STATES: Mapping[int | None, str] = {RELEASED: "released", EXPIRED: "expired"}


def change_of(outcome: int) -> int:
    """By how much an outcome changes the value."""
    return outcome if abs(outcome) <= CHANGE_MAX else 0


def counts(outcome: int) -> bool:
    """Whether an outcome is a change, which a counter's `count` counts."""
    return abs(outcome) <= CHANGE_MAX


def check_outcome(outcome: int) -> int:
    """`outcome` itself; raises ValueError for a number that is no outcome."""
    if not counts(outcome) and outcome not in (REFUSED, RELEASED, EXPIRED):
        raise ValueError(f"{outcome} is no outcome")
    return outcome


SLICE_MS = 128  # the time of a fingerprint is counted in such slices, modulo 2^16: 2.3 hours
_SLICES = 2**16
FINGERPRINT_BYTES = 4
EMPTY_BYTES, CELL_BYTES = 300, 40


def fingerprint(token: str) -> bytes:
    """Two bytes of the token's time, two of its random bits: two tokens may share one, a token
    never has two. The time comes round after 2.3 hours, so a gate keeps a fingerprint only while
    its token is above `low`, by an hour at most.
    """
    data = tokens.to_bytes(token)
    return _slice(int.from_bytes(data[:6], "big")).to_bytes(2, "big") + data[6:8]


def distance(mark: bytes, low: str) -> int:
    """How many slices a fingerprint's time is above that of its gate's `low`."""
    return (int.from_bytes(mark[:2], "big") - _slice(tokens.time_ms(low))) % _SLICES


def end_ms(low: str, slices: int) -> int:
    """The last millisecond of the slice so many slices above that of `low`."""
    return (tokens.time_ms(low) // SLICE_MS + slices + 1) * SLICE_MS - 1


def _slice(time_ms: int) -> int:
    return time_ms // SLICE_MS % _SLICES


LOWEST = "0" * 26
"""The `low` of a gate that never filed anything, and so needs no look-up."""

Cell = tuple[str, str]
"""Another lane of the counter, as "<Region>#<shard>", and a side."""


def name_of(lane: Lane) -> str:
    """The name of a lane among the lanes of its counter."""
    return f"{lane.region}#{lane.shard}"


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate of a lane, as it was read.

    recent: token -> outcome, decided and not filed. held: token -> amount set aside. total, count:
    of the filed changes. version: how many rolls are finished. low: a token at or below it needs a
    look-up. top: the highest token filed. moved: the fingerprints of tokens filed above `low`.
    given, got: rights to and from other lanes, ever.
    bounds: the limit as it is set, by side, in the gate that had the first rights; epoch: how often
    it was set.
    carried: the rights that left it for the next period, ever; took: those that it has from the
    period before.
    carried_before: how many of the first had left when the limit was last set, so that they are
    beside that limit.
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
    carried_before: int = 0

    def __post_init__(self) -> None:
        if not all(map(tokens.is_token, (self.low, self.top, *self.recent, *self.held))):
            raise ValueError("low, top and the tokens that are decided or held are no ULIDs")
        if self.recent.keys() & self.held.keys():
            raise ValueError("a token is held and decided")
        if not (0 <= self.version <= VERSION_MAX and 0 <= self.count <= COUNT_MAX):
            raise ValueError(
                f"version must be from 0 to {VERSION_MAX} and count from 0 to {COUNT_MAX}"
            )
        if min(self.epoch, self.slack_ms or 0, self.carried_before, self.took) < 0:
            raise ValueError("slack, epoch, carried_before or took is below 0")
        if self.carried < self.carried_before:
            raise ValueError("carried is below 0, or below carried_before")
        set_to = [amount for side in SIDES if (amount := self.bounds[side]) is not None]
        if any(abs(amount) > CHANGE_MAX for amount in set_to) or set_to != sorted(set_to):
            raise ValueError(
                "floor and ceiling are at most 10**18, either way, and floor is not above ceiling"
            )
        if not all(len(mark) == FINGERPRINT_BYTES for mark in self.moved):
            raise ValueError(f"a fingerprint has {FINGERPRINT_BYTES} bytes")
        if any(amount < 0 for amount in (*self.given.values(), *self.got.values())):
            raise ValueError("an amount that was given or taken over is below 0")
        for outcome in self.recent.values():
            check_outcome(outcome)
        if any(not 0 < abs(amount) <= CHANGE_MAX for amount in self.held.values()):
            raise ValueError("a hold is of 1 to 10**18, either way")

    @classmethod
    def new(cls, lane: Lane, limit: Limit) -> Self:
        """A gate that has decided nothing yet."""
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
        """The names of the lanes to which it gave rights, or from which it got some: they have
        gates, or had them.
        """
        return {name for name, _ in (*self.given, *self.got)}

    def own(self, side: str) -> int:
        """The rights that the lane would have if none had ever moved between lanes. The sum over
        all lanes is what a change can take, wherever the rights are."""
        return self.rights.get(side, 0) - self.received(side)

    def received(self, side: str) -> int:
        """The rights that it got from other lanes, less those that it gave to them."""
        got, given = (
            sum(n for (_, of), n in cells.items() if of == side) for cells in (self.got, self.given)
        )
        return got - given

    @property
    def passed_on(self) -> int:
        """How much of the ceiling that was set left for the next period: the ceiling here is so
        much lower.
        """
        return self.carried - self.carried_before

    @property
    def pace(self) -> float:
        """Tokens a second among those that are not filed, and one for those that are not seen."""
        times = list(map(tokens.time_ms, self.recent))
        return len(times) * 1_000 / (1_000 + max(times) - min(times)) + 1 if times else 1.0

    def taken_by(self, wanted: Mapping[str, int | None]) -> dict[str, int]:
        """The rights that another limit takes away; below 0: that it brings.

        wanted: the bound of each limited side.
        """
        change = {side: (wanted[side] or 0) - (self.bounds[side] or 0) for side in self.rights}
        return {side: amount if side == DOWN else -amount for side, amount in change.items()}

    @property
    def base_bytes(self) -> int:
        """About how many bytes it has beside the tokens that are decided or held."""
        cells = len(self.given) + len(self.got)
        return (
            EMPTY_BYTES
            + 2 * len(self.lane.counter)
            + FINGERPRINT_BYTES * len(self.moved)
            + CELL_BYTES * cells
        )

    def is_fresh(self, token: str) -> bool:
        """Whether it is certain, from the gate alone, that the token was never filed."""
        return token > self.low and fingerprint(token) not in self.moved

    def over(self, now_ms: int) -> dict[str, int]:
        """The holds whose time is over."""
        return {token: amount for token, amount in self.held.items() if until_ms(token) <= now_ms}


def shares(changes: Iterable[int]) -> tuple[int, int]:
    """The rights that changes take when they are set aside: of `down`, and of `up`."""
    given = list(changes)
    return sum(max(0, -change) for change in given), sum(max(0, change) for change in given)


def rights_due(gate: Gate, held: Mapping[str, int]) -> dict[str, int]:
    """The rights that a gate should have: its first ones, as its limit says, and what its changes
    and other lanes brought, less what its holds keep and what it gave.
    """
    down, up = shares(held.values())
    return {
        side: toward * (gate.value - (gate.bounds[side] or 0)) - kept + gate.received(side)
        for side, toward, kept in ((DOWN, 1, down), (UP, -1, up))
    }
