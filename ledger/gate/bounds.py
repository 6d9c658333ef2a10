"""The program `set_limit`: the floor and the ceiling of a counter become others, in the gate that had its first rights.

Rule 1: what a tighter limit takes away must be there as rights, so it is obtained first; what it gives comes with it.
Rule 2: it is written IF nobody has set the limit since the gate was seen, so of two at once one looks again.
Rule 3: whether a side is limited at all is for the counter's life.
Rule 4: what this process remembers to be sold out is forgotten then.
Rule 5: what a limit takes away or gives is reckoned from the one that stands in the gate, and from nothing else.
"""

from collections.abc import Mapping

from ledger.errors import DamagedItem, InvalidInput, LimitReached, shown
from ledger.gate import items, updates
from ledger.gate.gate import Gate
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.move import obtain
from ledger.gate.past import write
from ledger.limit import DOWN, SIDES, UP
from ledger.ranges import CHANGE_MAX
from ledger.requests import Program, Written

Bounds = Mapping[str, int | None]  # what `down` or `up` leads to at most: the floor, the ceiling


def set_limit(gates: Gates, floor: int | None, ceiling: int | None) -> Program[Gate]:
    """The gate with the new limit; a bound that is None stays as it is. Raises LimitReached when the value, or what is
    held, is beyond it: nothing is set; InvalidInput for bounds that are none, or of other sides; and what `add` raises.
    """
    given = _checked(gates, {DOWN: floor, UP: ceiling})
    (lane,) = (each for each in gates.lanes if gates.limit.opens(each.region, each.shard))
    for _ in range(TRIES_MAX):
        gate = yield from gates.read(lane)
        for side, name in items.BOUNDS.items():
            if gates.limit.has(side) and gate.bounds[side] is None:
                raise _lacks(gate, name)
        wanted = {side: gate.bounds[side] if given[side] is None else given[side] for side in SIDES}
        low, high = wanted[DOWN], wanted[UP]
        if low is not None and high is not None and low > high:
            raise InvalidInput(f"The floor {low} is above the ceiling {high}.")
        if gate.bounds == wanted:
            gates.sold_out.forget(lane.counter, *SIDES)  # it may be this call that set it, and had no answer
            return gate
        short = [(side, need) for side, need in gate.taken_by(wanted).items() if need > gate.rights[side]]
        for side, need in short:
            if (left := (yield from obtain(gates, lane, side, need))) is not None:
                raise LimitReached(
                    f"{lane.counter}: floor={low}, ceiling={high} is beyond what counts and what is "
                    "held. Nothing was written.",
                    **left._asdict(),
                )
        if short:
            continue
        answer = yield from write(gates, lane, updates.set_limit(gate, gates.limit, wanted))
        if isinstance(answer, Written):
            gates.sold_out.forget(lane.counter, *SIDES)
            return gates.gate(lane, answer.item)
        if answer and "epoch" not in answer:
            raise _lacks(gate, "epoch")
    raise gave_up(lane)


def _lacks(gate: Gate, name: str) -> DamagedItem:
    """The gate that had the first rights has the limit as it is set; another limit's gate is none of these settings."""
    key = items.gate_key(gate.lane)
    return DamagedItem(key.pk, key.sk, f"{name} is missing, where the counter's first rights were")


def _checked(gates: Gates, wanted: Bounds) -> Bounds:
    limit = gates.limit
    if limit.region is None:
        raise InvalidInput(f"{limit} names no region, so there is no gate that a limit could be set in.")
    for side in SIDES:
        amount = wanted[side]
        if amount is not None and not limit.has(side):
            raise InvalidInput(f"{limit} limits another side; which are limited is for the counter's life.")
        if amount is not None and (type(amount) is not int or abs(amount) > CHANGE_MAX):
            raise InvalidInput(f"A limit is an int of magnitude at most 10**18, not {shown(amount)}.")
    if all(amount is None for amount in wanted.values()):
        raise InvalidInput("set_limit takes a floor, a ceiling or both.")
    return wanted
