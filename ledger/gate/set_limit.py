"""The program `set_limit` gives a counter another limit.

Rule 1: a tighter limit takes rights away, so the program first obtains those from the other lanes.
With a wider limit the gate gains the rights that the old limit did not allow.
Rule 2: both are computed from the limit in the gate that had the first rights. That gate is written
IF nobody has set the limit since it was read, so of two calls at once one reads again.
Rule 3: whether a side is limited is for the counter's life.
"""

from collections.abc import Mapping

from ledger.core.errors import DamagedItem, InvalidInput, LimitReached, shown
from ledger.core.limit import DOWN, SIDES, UP
from ledger.core.ranges import CHANGE_MAX
from ledger.core.requests import Program, Written
from ledger.core.running import Doubt
from ledger.gate import items, updates
from ledger.gate.filing import write
from ledger.gate.gate import Gate
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.left import Left
from ledger.gate.move import obtain


def set_limit(gates: Gates, floor: int | None, ceiling: int | None) -> Program[Gate]:
    """Set another limit; the gate with it. A bound that is None stays as it is. Raises LimitReached
    when the value with all holds is beyond it (nothing was written), InvalidInput for wrong bounds,
    and what `add` raises.
    """
    given = _checked(gates, {DOWN: floor, UP: ceiling})
    with Doubt() as doubt:
        return (yield from _limit_set(gates, given, doubt))


def _limit_set(gates: Gates, given: Mapping[str, int | None], doubt: Doubt) -> Program[Gate]:
    lane = gates.first
    for _ in range(TRIES_MAX):
        gate = yield from gates.read(lane)
        for side, name in items.BOUNDS.items():
            if gates.limit.has(side) and gate.bounds[side] is None:
                raise _lacks(gate, name)
        wanted = {side: gate.bounds[side] if given[side] is None else given[side] for side in SIDES}
        low, high = wanted[DOWN], wanted[UP]
        if low is not None and high is not None and low > high:
            raise InvalidInput(f"The floor {low} is above the ceiling {high}.")
        if gate.bounds == wanted and not gate.passed_on:
            # perhaps an earlier try set it and got no answer
            gates.sold_out.forget(lane.counter, *SIDES)
            return gate
        short = [
            (side, need) for side, need in gate.taken_by(wanted).items() if need > gate.rights[side]
        ]
        for side, need in short:
            if (left := (yield from obtain(gates, lane, side, need))) is not None:
                beyond = LimitReached(
                    f"{lane.counter}: the value and its holds are beyond floor={low}, "
                    f"ceiling={high}{_reached(side, left)}. Nothing was written. Set a wider "
                    "limit, or wait until holds end, if there are any.",
                    counter=lane.counter,
                    **left._asdict(),
                )
                # an earlier attempt may have set it before others set another
                beyond.is_decision = False
                raise beyond
        if short:
            continue
        answer = doubt.note(
            (yield from write(gates, lane, updates.set_limit(gate, gates.limit, wanted)))
        )
        if isinstance(answer, Written):
            gates.sold_out.forget(lane.counter, *SIDES)
            return gates.gate(lane, answer.item)
        if answer and "epoch" not in answer:
            raise _lacks(gate, "epoch")
    raise gave_up(lane)


def _reached(side: str, left: Left) -> str:
    """How far the value reaches towards a bound, if all its holds are captured."""
    if left.limit is None or left.available is None:
        return ""
    reached = left.limit + (left.available if side == DOWN else -left.available)
    return f": the value is {reached} once all its holds are captured"


def _lacks(gate: Gate, name: str) -> DamagedItem:
    """The error of the gate that had the first rights where it lacks an attribute of the limit,
    which it must have.
    """
    key = items.gate_key(gate.lane)
    return DamagedItem(
        key.pk, key.sk, f"{name} is missing, though the counter's first rights were here"
    )


def _checked(gates: Gates, wanted: Mapping[str, int | None]) -> Mapping[str, int | None]:
    limit = gates.limit
    if limit.region is None:
        raise InvalidInput(
            f"{limit} names no region, so set_limit does not know where to write. Nothing was "
            "written. Only a Limit that names a region from the beginning can be changed, such as "
            "Limit(floor=0, region='eu-west-1')."
        )
    for side, name in items.BOUNDS.items():
        amount = wanted[side]
        if amount is not None and not limit.has(side):
            raise InvalidInput(
                f"{limit} has no such side: set_limit cannot give a counter a {name} that it began "
                "without."
            )
        if amount is not None and (type(amount) is not int or abs(amount) > CHANGE_MAX):
            raise InvalidInput(
                f"A limit is an int of magnitude at most 10**18, not {shown(amount)}."
            )
    if all(amount is None for amount in wanted.values()):
        raise InvalidInput("set_limit takes a floor, a ceiling or both.")
    return wanted
