"""What a limited counter's gates have left, as a Region has them, and the open holds.

Rule 1: what is left, what is held and what counts sum to the limit, so what is held follows from the others.
Rule 2: the copies of other Regions' gates are each of their own moment; `here` is certain in a strong read.
Rule 3: for holds it reads each lane strongly at its home: the gate, then the notes of filed holds. A note is no hold:
it looks up the token, because the note of a decided hold may stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ledger.checks import to_datetime
from ledger.gate import items
from ledger.gate.gate import Gate
from ledger.gate.gates import Gates
from ledger.gate.past import look_up
from ledger.gate.recount import Standing as Copies
from ledger.lane.tail import every_item
from ledger.limit import DOWN, SIDES, UP
from ledger.requests import Get, Instant, Item, Program
from ledger.values import Delta, Lane


@dataclass(frozen=True, slots=True)
class Room:
    """How far a value can go down and up; None where that side has no limit."""

    down: int | None
    up: int | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a limited counter stands.

    value: the sum of the changes that count; count: how many they are. floor, ceiling: the limit as it is set now.
    available: how much is left in all Regions together; here: the part of that which this Region gives without a
    request to another; moving: the part of it on its way between lanes. held: what open holds set aside. as_of, closed:
    as for a Balance.
    """

    value: int
    count: int
    floor: int | None
    ceiling: int | None
    here: Room
    available: Room
    moving: Room
    held: Room
    as_of: datetime
    closed: bool


def standing_of(gates: Gates, copies: Copies, began: Instant) -> Standing:
    there = {gate.lane: gate for gate in copies.gates}
    seen = [there.get(lane) or Gate.new(lane, gates.limit) for lane in gates.lanes]
    ours = [gate for gate in seen if gate.lane.region == gates.here]
    floor, ceiling = (gates.bound(side, copies.gates) for side in (DOWN, UP))

    def now_in(several: Sequence[Gate]) -> dict[str, int]:
        return {side: sum(gate.rights.get(side, 0) for gate in several) for side in SIDES}

    available = {side: sum(gate.own(side) for gate in seen) for side in SIDES}
    now = now_in(seen)
    left = {DOWN: copies.value - (floor or 0), UP: (ceiling or 0) - copies.value}

    def room(amounts: dict[str, int]) -> Room:
        down, up = (max(0, amounts[side]) if gates.limit.has(side) else None for side in SIDES)
        return Room(down, up)

    return Standing(
        value=copies.value,
        count=copies.count,
        floor=floor,
        ceiling=ceiling,
        here=room(now_in(ours)),
        available=room(available),
        moving=room({side: available[side] - now[side] for side in SIDES}),
        held=room({side: left[side] - available[side] for side in SIDES}),
        as_of=to_datetime(began.wall_ms),
        closed=copies.is_closed,
    )


def open_holds(gates: Gates) -> Program[list[Delta]]:
    """The deltas of open holds, those that end first, first. Raises LimitMismatch, DamagedItem and the TableErrors."""
    found: list[Delta] = []
    for lane in gates.lanes:
        found += yield from _of_lane(gates, lane)
    return sorted(found, key=lambda held: (items.hold_key(held.lane, held.token).sk, held.lane))


def _of_lane(gates: Gates, lane: Lane) -> Program[list[Delta]]:
    item: Item | None = yield gates.at(lane, Get(items.gate_key(lane)))
    if item is None:
        return []
    gate = gates.gate(lane, item)
    found = dict(gate.held)
    notes = yield from gates.home(lane, every_item(items.hold_pk(lane), None, None, consistent=True))
    for token, amount in (items.hold_of(lane, note) for note in notes):
        if token not in gate.recent and token not in found:
            known = yield from look_up(gates, lane, token)
            if known is not None and known.outcome is None:
                found[token] = amount
    return [Delta(lane, token, amount) for token, amount in found.items()]
