"""What a limited counter's gates have left, as a Region has them, and the open holds.

Rule 1: what is left, what is held and what counts sum to the limit, so what is held follows from
the others.
Rule 2: the copies of other Regions' gates are each of their own moment; `here` is certain in a
strong read.
Rule 3: what a hold had set aside is left when its time is over, because a call that is short of it
ends the hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ledger.client.holds import Hold
from ledger.core.checks import check_counter, to_datetime
from ledger.core.limit import DOWN, SIDES, UP
from ledger.core.requests import GetMany, Instant, Item, Now, Page, Program, Query, Together
from ledger.core.running import answered
from ledger.core.values import Delta, Lane
from ledger.gate import items
from ledger.gate.copies import Copies, read_copies
from ledger.gate.gate import Gate, rights_due, shares
from ledger.gate.gates import Gates
from ledger.gate.past import outcomes_of
from ledger.lane.tail import every_item
from reader.rules import Rules

NOTES_MAX = 100
"""Notes of filed holds that a standing reads of a lane."""

LOOKED_UP = 100
"""Filed holds that the same two Queries look up."""

Amounts = Mapping[str, int]
"""Rights by side."""


@dataclass(frozen=True, slots=True)
class Room:
    """How far a value can go down and up; None where that side has no limit."""

    down: int | None
    up: int | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a limited counter stands.

    - value: the sum of the changes that count. count: how many they are.
    - floor, ceiling: the limit as it is set now. A period's ceiling includes what it took from the
      period before, even what it passed on to the next one.
    - available: how much is left in all Regions together. It includes what expired holds had set
      aside; for filed holds it counts one page of each lane of this Region.
    - here: the part of `available` that this Region gives without a request to another. moving: the
      part of it that is on its way between lanes.
    - held: what open holds set aside.
    - carried: all that a period passed on to the next one, and no longer has. took: what it got
      from the period before.
    - as_of, closed: as for a Balance.
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
    carried: int = 0
    took: int = 0


def standing(rules: Rules, counter: str) -> Program[Standing]:
    counter = check_counter(counter)
    gates = Gates.limited(rules.settings, counter, "standing")
    rules.settings.plan(counter).check_window()  # a window that takes nothing has nothing left
    yield from rules.first(counter)
    (found,) = yield from read_standings([gates], consistent=rules.consistent)
    return found


def holds(rules: Rules, counter: str) -> Program[list[Hold]]:
    counter = check_counter(counter)
    gates = Gates.limited(rules.settings, counter, "holds")
    yield from rules.first(counter)
    return [Hold(held) for held in (yield from open_holds(gates))]


def read_standings(
    several: Sequence[Gates], *, consistent: bool, filed: bool = True
) -> Program[list[Standing]]:
    """The standings of counters that have one limit in the settings, and one base if they are
    periods. filed: whether it looks at filed holds, too. Raises DamagedItem, LimitMismatch and the
    TableErrors."""
    began: Instant = yield Now()
    seen = yield from read_copies(several, consistent=consistent)
    opening = None
    found: list[Standing] = []
    for gates, copies in zip(several, seen, strict=True):
        if not copies.has_opened(gates):
            opening = opening or (yield from gates.opening())
            gates = replace(gates, limit=opening)
        ours = [gate for gate in copies.gates if gate.lane.region == gates.here]
        over = (yield from _filed_over(ours, began, consistent)) if filed else {}
        found.append(standing_of(gates, copies, began, over))
    return found


def standing_of(
    gates: Gates, copies: Copies, began: Instant, filed: Mapping[Lane, Amounts]
) -> Standing:
    """filed: by lane, what filed holds set aside that are over."""
    there = {gate.lane: gate for gate in copies.gates}
    seen = [there.get(lane) or Gate.new(lane, gates.limit) for lane in gates.lanes]
    ours = [gate for gate in seen if gate.lane.region == gates.here]
    floor, ceiling = (gates.bound(side, copies.gates) for side in (DOWN, UP))
    over = {
        gate.lane: _sum(_by_side(gate.over(began.wall_ms)), filed.get(gate.lane, {}))
        for gate in seen
    }

    def now_in(several: Sequence[Gate]) -> dict[str, int]:
        return _sum(*(_sum(gate.rights, over[gate.lane]) for gate in several))

    available = {
        side: sum(gate.own(side) + over[gate.lane][side] for gate in seen) for side in SIDES
    }
    now = now_in(seen)
    left = {DOWN: copies.value - (floor or 0), UP: (ceiling or 0) - copies.value}

    def room(amounts: Amounts) -> Room:
        down, up = (max(0, amounts[side]) if gates.limit.has(side) else None for side in SIDES)
        return Room(down, up)

    return Standing(
        value=copies.value,
        count=copies.count,
        floor=floor,
        ceiling=None if ceiling is None else ceiling + sum(gate.passed_on for gate in copies.gates),
        here=room(now_in(ours)),
        available=room(available),
        moving=room({side: available[side] - now[side] for side in SIDES}),
        held=room({side: left[side] - available[side] for side in SIDES}),
        as_of=to_datetime(began.wall_ms),
        closed=copies.is_closed,
        carried=sum(gate.carried for gate in copies.gates),
        took=sum(gate.took for gate in copies.gates),
    )


def _by_side(holds: Mapping[str, int]) -> dict[str, int]:
    """What holds set aside of each side. holds: token -> amount."""
    return dict(zip((DOWN, UP), shares(holds.values()), strict=True))


def _sum(*several: Amounts) -> dict[str, int]:
    return {side: sum(amounts.get(side, 0) for amounts in several) for side in SIDES}


def _filed_over(
    gates: Sequence[Gate], now: Instant, consistent: bool
) -> Program[dict[Lane, Amounts]]:
    """By lane, what filed holds set aside whose time is over. gates: of this Region's lanes alone,
    because an API's role may read no others.
    """
    # A gate lists its holds. Where filed ones keep some of its rights, a page of their notes says
    # which are over, never more than they keep.
    kept = {gate.lane: _kept_by_filed(gate) for gate in gates}
    having = [gate for gate in gates if any(kept[gate.lane].values())]
    if not having:
        return {}
    upto = items.holds_until(now.wall_ms)
    queries = (
        Query(items.hold_pk(gate.lane), None, upto, NOTES_MAX, consistent) for gate in having
    )
    pages: tuple[Page, ...] = answered((yield Together(tuple(queries))))
    found: dict[Lane, Amounts] = {}
    for gate, page in zip(having, pages, strict=True):
        notes = dict(items.hold_of(gate.lane, item) for item in page.items)
        unknown = {
            token: notes[token]
            for token in notes
            if token not in gate.recent and token not in gate.held
        }
        decided = (yield from outcomes_of(gate.lane, sorted(unknown))) if unknown else {}
        over = _by_side({token: unknown[token] for token in unknown if token not in decided})
        found[gate.lane] = {
            side: min(amount, kept[gate.lane][side]) for side, amount in over.items()
        }
    return found


def _kept_by_filed(gate: Gate) -> dict[str, int]:
    """The rights that filed holds keep: those that are due without them, and are not there."""
    due = rights_due(gate, gate.held)
    return {
        side: max(0, due[side] - gate.rights[side]) if side in gate.rights else 0 for side in SIDES
    }


def open_holds(gates: Gates) -> Program[list[Delta]]:
    """The deltas of open holds, those that end first, first: of each lane strongly at its home, the
    gate, then the notes of filed holds.

    Raises LimitMismatch, DamagedItem and the TableErrors.
    """
    found: list[Delta] = []
    for region in dict.fromkeys(lane.region for lane in gates.lanes):
        lanes = [lane for lane in gates.lanes if lane.region == region]
        found += yield from gates.home(lanes[0], _in_region(gates, lanes))
    return sorted(found, key=lambda held: (items.hold_key(held.lane, held.token).sk, held.lane))


def _in_region(gates: Gates, lanes: Sequence[Lane]) -> Program[list[Delta]]:
    """The open holds of lanes of one Region; it runs there."""
    answers: tuple[Item | None, ...] = yield GetMany(tuple(map(items.gate_key, lanes)))
    found: list[Delta] = []
    for lane, item in zip(lanes, answers, strict=True):
        if item is not None:
            found += yield from _of_gate(gates.gate(lane, item))
    return found


def _of_gate(gate: Gate) -> Program[list[Delta]]:
    lane, found = gate.lane, dict(gate.held)
    # A note is no hold: that of a decided hold may stay, so the tokens are looked up.
    notes = yield from every_item(items.hold_pk(lane), None, None, consistent=True)
    amounts = dict(items.hold_of(lane, note) for note in notes)
    unknown = sorted(amounts.keys() - gate.recent.keys() - found.keys())
    for start in range(0, len(unknown), LOOKED_UP):
        names = unknown[start : start + LOOKED_UP]
        ended = yield from outcomes_of(lane, names)
        found |= {token: amounts[token] for token in names if token not in ended}
    return [Delta(lane, token, amount) for token, amount in found.items()]
