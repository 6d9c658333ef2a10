"""The format of gates, of what they filed, and of holds: only this file knows their keys and
attributes.

Rule 1: the formats are public (docs/gates.md) and never change; it ignores further attributes.
Rule 2: all items of a lane are written at the endpoint of its Region alone.
Rule 3: a segment's content gives its name, so that two rolls never write two things under one name.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ledger.core import tokens
from ledger.core.conditions import Item
from ledger.core.decoding import binary, decoded, integer, number, text_of
from ledger.core.entries import ENTRY
from ledger.core.errors import InvalidInput
from ledger.core.items import retiring
from ledger.core.limit import DOWN, SIDES, UP, Limit
from ledger.core.ranges import VERSION_MAX
from ledger.core.requests import Key, key_of, keyed
from ledger.core.tokens import before, from_bytes, is_token, to_bytes, until_ms
from ledger.core.values import Lane
from ledger.gate.gate import Cell, Gate, check_outcome


@dataclass(frozen=True, slots=True)
class Filed:
    """A segment of a gate: outcomes that a roll copied, with the `low` that the gate had then."""

    lane: Lane
    hi: str
    version: int
    low: str
    outcomes: Mapping[str, int]

    def __post_init__(self) -> None:
        names = list(self.outcomes)
        if (
            not names
            or names != sorted(names)
            or not all(map(tokens.is_token, (self.hi, self.low, *names)))
        ):
            raise ValueError("a segment lists at least one token, in their order")
        if names[-1] > self.hi or not 1 <= self.version <= VERSION_MAX:
            raise ValueError(f"no token lies above hi, and version is from 1 to {VERSION_MAX}")
        for outcome in self.outcomes.values():
            check_outcome(outcome)

    @property
    def digest(self) -> str:
        text = ",".join(f"{token}={outcome}" for token, outcome in self.outcomes.items())
        return hashlib.sha256(f"{self.low}:{text}".encode()).hexdigest()[:32]


SEGMENTS_FROM, SEGMENTS_UPTO = "segment#", "segment$"
LATE_FROM, LATE_UPTO = "late#", "late$"
BOUNDS = {DOWN: "floor", UP: "ceiling"}
CARRIED = ("carried", "took", "carried_before")
_GATE = "gate"
_SEGMENT = re.compile(r"segment#([^#]+)#([0-9]{10})#[0-9a-f]{32}")
_CELL = re.compile(r"(given|got):([a-z0-9-]+#\d+):(down|up)")


def gate_key(lane: Lane) -> Key:
    return Key(f"gate#{lane}", _GATE)


def lane_of(key: Key) -> Lane | None:
    """The lane of a gate; None when the key is not that of one."""
    kind, _, lane = key.pk.partition("#")
    try:
        return Lane.parse(lane) if (kind, key.sk) == ("gate", _GATE) else None
    except InvalidInput:
        return None


def past_pk(lane: Lane) -> str:
    return f"past#{lane}"


def hold_pk(lane: Lane) -> str:
    return f"hold#{lane}"


def late_key(lane: Lane, token: str) -> Key:
    return Key(past_pk(lane), f"{LATE_FROM}{token}")


def late_from(token: str) -> str:
    """A sort key just below every late entry of `token` and of the tokens above it."""
    return f"{LATE_FROM}{before(token) or ''}"


def hold_key(lane: Lane, token: str) -> Key:
    return Key(hold_pk(lane), f"{until_ms(token):015d}#{token}")


def holds_until(now_ms: int) -> str:
    """A sort key just above every filed hold whose time is over."""
    return f"{now_ms:015d}$"


def segments_from(token: str) -> str:
    """A sort key just below every segment whose hi is at or above `token`."""
    return f"{SEGMENTS_FROM}{token}"


def cell_name(kind: str, cell: Cell) -> str:
    """The attribute for rights that were given to a lane, or got from it."""
    return f"{kind}:{cell[0]}:{cell[1]}"


def new_gate(lane: Lane, limit: Limit) -> Item:
    return gate_item(Gate.new(lane, limit))


def gate_item(gate: Gate) -> Item:
    bounds = {
        BOUNDS[side]: number(amount) for side, amount in gate.bounds.items() if amount is not None
    }
    cells = {cell_name("given", cell): number(amount) for cell, amount in gate.given.items()}
    cells |= {cell_name("got", cell): number(amount) for cell, amount in gate.got.items()}
    return keyed(
        gate_key(gate.lane),
        recent={"M": {token: number(outcome) for token, outcome in gate.recent.items()}},
        held={"M": {token: number(amount) for token, amount in gate.held.items()}},
        total=number(gate.total),
        count=number(gate.count),
        version=number(gate.version),
        low={"S": gate.low},
        top={"S": gate.top},
        **{side: number(amount) for side, amount in gate.rights.items()},
        **cells,
        **(bounds | {"epoch": number(gate.epoch)} if bounds else {}),
        **({"moved": {"BS": sorted(gate.moved)}} if gate.moved else {}),
        **({"slack": number(gate.slack_ms)} if gate.slack_ms is not None else {}),
        **{name: number(amount) for name in CARRIED if (amount := getattr(gate, name))},
        **retiring(gate.lane),
    )


def gate_of(lane: Lane, item: Item) -> Gate:
    """Raises DamagedItem."""

    def decode() -> Gate:
        cells: dict[str, dict[Cell, int]] = {"given": {}, "got": {}}
        for name in item:
            if match := _CELL.fullmatch(name):
                cells[match[1]][match[2], match[3]] = integer(item, name)
        moved = item.get("moved", {"BS": ()}).get("BS")
        if moved is None:
            raise ValueError("moved is no set of binaries")
        return Gate(
            lane,
            rights={side: integer(item, side) for side in SIDES if side in item},
            recent=_numbers(item, "recent"),
            held=_numbers(item, "held"),
            total=integer(item, "total"),
            count=integer(item, "count"),
            version=integer(item, "version"),
            low=text_of(item, "low"),
            top=text_of(item, "top"),
            moved=frozenset(map(bytes, moved)),
            slack_ms=integer(item, "slack") if "slack" in item else None,
            given=cells["given"],
            got=cells["got"],
            epoch=integer(item, "epoch") if "epoch" in item else 0,
            bounds={
                side: integer(item, name) if name in item else None for side, name in BOUNDS.items()
            },
            **{name: integer(item, name) for name in CARRIED if name in item},
        )

    return decoded(item, gate_key(lane).pk, decode, sk=_GATE)


def filed_item(filed: Filed) -> Item:
    data = b"".join(
        ENTRY.pack(to_bytes(token), outcome) for token, outcome in filed.outcomes.items()
    )
    sk = f"{SEGMENTS_FROM}{filed.hi}#{filed.version:010d}#{filed.digest}"
    return keyed(
        Key(past_pk(filed.lane), sk),
        low={"S": filed.low},
        entries={"B": data},
        **retiring(filed.lane),
    )


def filed_of(lane: Lane, item: Item) -> Filed:
    """Raises DamagedItem."""

    def decode() -> Filed:
        name = _SEGMENT.fullmatch(text_of(item, "sk"))
        data = binary(item, "entries")
        if name is None or len(data) % ENTRY.size:
            raise ValueError(
                f"the sort key is segment#<hi>#<version>#<hash>, and entries have {ENTRY.size} "
                "bytes each"
            )
        outcomes = {from_bytes(token): outcome for token, outcome in ENTRY.iter_unpack(data)}
        filed = Filed(lane, name[1], int(name[2]), text_of(item, "low"), outcomes)
        if filed_item(filed)["sk"] != item["sk"] or len(outcomes) * ENTRY.size != len(data):
            raise ValueError("the sort key is not that of its content")
        return filed

    return decoded(item, past_pk(lane), decode)


def late_item(lane: Lane, token: str, outcome: int, version: int) -> Item:
    return keyed(
        late_key(lane, token), outcome=number(outcome), version=number(version), **retiring(lane)
    )


def late_of(lane: Lane, item: Item) -> tuple[str, int, int]:
    """(token, outcome, version). Raises DamagedItem."""

    def decode() -> tuple[str, int, int]:
        token = text_of(item, "sk").removeprefix(LATE_FROM)
        if not is_token(token):
            raise ValueError("the sort key is not late#<token>")
        return token, integer(item, "outcome"), integer(item, "version")

    return decoded(item, past_pk(lane), decode)


def hold_item(lane: Lane, token: str, amount: int) -> Item:
    return keyed(hold_key(lane, token), n=number(amount), **retiring(lane))


def hold_of(lane: Lane, item: Item) -> tuple[str, int]:
    """(token, amount set aside). Raises DamagedItem."""

    def decode() -> tuple[str, int]:
        token = text_of(item, "sk").rpartition("#")[2]
        if not is_token(token) or hold_key(lane, token) != key_of(item):
            raise ValueError("the sort key is not <until>#<token>")
        return token, integer(item, "n")

    return decoded(item, hold_pk(lane), decode)


def _numbers(item: Item, name: str) -> dict[str, int]:
    there = item.get(name, {}).get("M")
    if there is None:
        raise ValueError(f"{name} is missing or no map")
    return {token: integer(there, token) for token in there}
