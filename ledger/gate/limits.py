"""What an outcome and a gate are.

Rule 1: a token is decided once; its outcome is the change that counts, or one of three that count nothing.
Rule 2: a right is what a gate may take without asking: `down`, to lower the value; `up`, to raise it. It has one only
for a side that is limited. The rights of all gates, what is on its way between them and what holds keep, sum to
`value - floor` and to `ceiling - value`, so a gate that keeps its rights at or above 0 keeps the limit.
Rule 3: what a gate gave to another and what it took over from another are cumulative: neither ever falls.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ledger import tokens
from ledger.checks import CHANGE_MAX
from ledger.limit import DOWN, SIDES
from ledger.values import COUNT_MAX, VERSION_MAX, Lane

REFUSED, RELEASED, EXPIRED = -(2**63), -(2**63) + 1, -(2**63) + 2
"""Outcomes that are no changes: a limit was in the way; a hold was let go; a hold's time was over."""

LOWEST = "0" * 26
"""The token below which nothing need be looked up in a gate that never filed anything."""

LATE_MS_MAX = 10_000
"""What is later than that tells nothing about the others."""

SLICE_MS = 128
"""The time of a fingerprint is counted in slices of so many milliseconds, modulo 2^16: 2.3 hours."""

_SLICES = 2**16
HOLD = "hold:"
"""What is hashed with the key of a hold, so that no change has its token."""

HOLD_MS_MAX = 400 * 86_400_000
"""No hold is longer."""


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


@dataclass(frozen=True, slots=True)
class Filing:
    """When, and how much, is filed. It decides nothing but cost, so processes may differ.

    enough: decided tokens that are worth a roll; holds are counted with them from `beside` more. draw: one in so many
    of those who see enough begins one; at twice as much everyone does. holds_kept: so many stay in the gate; above that
    all but the newest `holds_left` are filed. slack_ms: how far `low` stays behind what is filed, where lateness has
    not told more. moved_max: fingerprints of a gate.
    """

    enough: int = 16
    beside: int = 8
    draw: int = 4
    holds_kept: int = 8
    holds_left: int = 4
    slack_ms: int = 250
    moved_max: int = 1_500


USUAL = Filing()

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
    as it stands, by side, in the gate that had the first rights; epoch: how often it was set.
    """

    lane: Lane
    rights: Mapping[str, int]
    recent: Mapping[str, int]
    held: Mapping[str, int]
    total: int
    count: int
    version: int
    low: str
    top: str
    moved: frozenset[bytes]
    slack_ms: int | None
    given: Mapping[Cell, int]
    got: Mapping[Cell, int]
    epoch: int = 0
    bounds: Mapping[str, int | None] = field(default_factory=lambda: dict.fromkeys(SIDES))

    def __post_init__(self) -> None:
        if not all(map(tokens.is_token, (self.low, self.top, *self.recent, *self.held))):
            raise ValueError("low, top and what is decided or held are named by ULIDs")
        if self.recent.keys() & self.held.keys():
            raise ValueError("a token is held and decided")
        if not (0 <= self.version <= VERSION_MAX and 0 <= self.count <= COUNT_MAX and (self.slack_ms or 0) >= 0):
            raise ValueError(f"version must be from 0 to {VERSION_MAX} and count from 0 to {COUNT_MAX}")
        if not all(len(each) == FINGERPRINT_BYTES for each in self.moved):
            raise ValueError(f"a fingerprint has {FINGERPRINT_BYTES} bytes")
        if any(amount < 0 for amount in (*self.given.values(), *self.got.values())):
            raise ValueError("what was given or taken over is at least 0")
        for outcome in self.recent.values():
            check_outcome(outcome)
        if any(not 0 < abs(amount) <= CHANGE_MAX for amount in self.held.values()):
            raise ValueError("a hold is of 1 to 10**18, either way")

    @property
    def value(self) -> int:
        return self.total + sum(map(change_of, self.recent.values()))

    @property
    def number(self) -> int:
        """How many changes count."""
        return self.count + sum(map(counts, self.recent.values()))

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

    def is_fresh(self, token: str) -> bool:
        """Whether it is certain, from the gate alone, that the token was never filed."""
        return token > self.low and fingerprint(token) not in self.moved

    def fullness(self, filing: Filing, size: int) -> float:
        """1 and more when there is enough to file. size: of the group that was decided."""
        enough = max(filing.enough, len(self.moved) / 16, 4 * (size - 1))
        return max(len(self.recent) / enough, (len(self.recent) + len(self.held)) / (enough + filing.beside))

    def slack_after(self, token: str, filing: Filing) -> int | None:
        """What `slack` becomes when a token comes that is at or below `low`, so that the next ones need no look-up."""
        if token > self.low:
            return None
        slack_ms = filing.slack_ms if self.slack_ms is None else self.slack_ms
        late_ms = tokens.time_ms(self.top) - tokens.time_ms(token)
        return max(0, slack_ms + (late_ms - slack_ms) // 4) if late_ms <= LATE_MS_MAX else None

    def over(self, now_ms: int) -> dict[str, int]:
        """The holds whose time is over."""
        return {token: amount for token, amount in self.held.items() if until_ms(token) <= now_ms}


FINGERPRINT_BYTES = 4


def fingerprint(token: str) -> bytes:
    """Two bytes of the token's time, two of its random bits."""
    return _slice(tokens.time_ms(token)).to_bytes(2, "big") + tokens.to_bytes(token)[6:8]


def distance(mark: bytes, low: str) -> int:
    """How many slices a fingerprint's time lies above that of `low`, as far as can be seen."""
    return (int.from_bytes(mark[:2], "big") - _slice(tokens.time_ms(low))) % _SLICES


def is_above(mark: bytes, low: str) -> bool:
    """Whether a fingerprint may be of a token above `low`, of which none is further away than 1.1 hours."""
    return distance(mark, low) < _SLICES // 2


def end_ms(low: str, slices: int) -> int:
    """The last millisecond of the slice that lies so many above that of `low`."""
    return (tokens.time_ms(low) // SLICE_MS + slices + 1) * SLICE_MS - 1


def _slice(time_ms: int) -> int:
    return time_ms // SLICE_MS % _SLICES


# -- a hold's token says how long it holds -----------------------------------------------------------------------------


def hold_token(counter: str, idempotency_key: str, time_ms: int, length_ms: int) -> str:
    """The token of a hold that names itself: the same arguments always give the same, and no change has it."""
    return with_length(tokens.keyed(counter, idempotency_key, time_ms, HOLD), length_ms)


def with_length(token: str, length_ms: int) -> str:
    """A token whose last two bytes say how long its hold is, so 64 random bits are left.

    `length_ms` is rounded up to what two bytes can say, by a thousandth at most.
    """
    return tokens.from_bytes(tokens.to_bytes(token)[:14] + _packed(length_ms))


def until_ms(token: str) -> int:
    """When the time of a hold is over."""
    number = int.from_bytes(tokens.to_bytes(token)[14:], "big")
    return tokens.time_ms(token) + ((number & 0x7FF) << (number >> 11))


def _packed(length_ms: int) -> bytes:
    """11 bits and 5 bits of exponent, rounded up."""
    exponent = max(0, length_ms.bit_length() - 11)
    mantissa = -(-length_ms >> exponent)
    if mantissa > 0x7FF:
        exponent, mantissa = exponent + 1, -(-length_ms >> exponent + 1)
    return (exponent << 11 | mantissa).to_bytes(2, "big")


# -- what is filed -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filed:
    """A segment of a gate: outcomes that a roll saw, with the `low` of the gate that it saw them in.

    Its name tells its content, so that two rolls never write two things under one name.
    """

    lane: Lane
    hi: str
    version: int
    low: str
    outcomes: Mapping[str, int]

    def __post_init__(self) -> None:
        names = list(self.outcomes)
        if not names or names != sorted(names) or not all(map(tokens.is_token, (self.hi, self.low, *names))):
            raise ValueError("a segment lists at least one token, in their order")
        if names[-1] > self.hi or not 1 <= self.version <= VERSION_MAX:
            raise ValueError(f"no token lies above hi, and version is from 1 to {VERSION_MAX}")
        for outcome in self.outcomes.values():
            check_outcome(outcome)

    @property
    def digest(self) -> str:
        text = ",".join(f"{token}={outcome}" for token, outcome in self.outcomes.items())
        return hashlib.sha256(f"{self.low}:{text}".encode()).hexdigest()[:32]


def shares(changes: Iterable[int]) -> tuple[int, int]:
    """What changes that are set aside take: of `down`, and of `up`."""
    given = list(changes)
    return sum(-each for each in given if each < 0), sum(each for each in given if each > 0)
