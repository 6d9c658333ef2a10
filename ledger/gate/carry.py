"""The program `carry` moves what a period has left to the next one, when a call there is short.

Rule 1: it is two Updates of one gate each, in the limit's Region: rights leave the old gate, and
the new one takes over all that ever left it. Both amounts are cumulative, so a crash between the
two, a repetition and two calls at once lose and double nothing; the next call that is short goes
on.
Rule 2: bounds move with the rights, so all else about a gate follows as always; the condition of
both Updates is that nobody has set the limit since the gate was read.
Rule 3: it carries nothing before the old period is over in every zone. It carries later what its
holds give back later.
"""

from ledger.core.errors import OutOfReach, TableError
from ledger.core.limit import UP
from ledger.core.ranges import CHANGE_MAX
from ledger.core.requests import Get, Instant, Item, Now, Program, Written
from ledger.gate import items, updates
from ledger.gate.filing import write
from ledger.gate.gate import Gate
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.move import obtain


def carry(gates: Gates) -> Program[bool]:
    """Carry what is left; whether anything came.

    Raises OutOfReach (no answer) and what reading gates raises.
    """
    earlier = gates.earlier
    now: Instant = yield Now()
    if earlier is None or not earlier.since_ms <= now.wall_ms < earlier.until_ms:
        return False
    try:
        carried = yield from _carried_out(earlier.gates, earlier.most)
        return (yield from _taken_in(gates, carried)) if carried else False
    except TableError as error:
        raise OutOfReach(
            f"{gates.first}: the period before may have enough left, but that could not be "
            f"carried over: {error} Nothing was decided. Call again."
        ) from error


def _carried_out(before: Gates, most: int) -> Program[int]:
    """Carry as much out of the old gate as may leave it by now; the sum that ever left it."""
    lane, available = before.first, most
    for _ in range(TRIES_MAX):
        item: Item | None = yield before.at(lane, Get(items.gate_key(lane)))
        if item is None:  # nobody made it: there is nothing to carry, and it stays unmade
            return 0
        gate = before.gate(lane, item)
        amount = min(most - gate.carried, available)
        # the rest may be in other lanes, in holds that are over, or on its way
        if amount > gate.rights[UP]:
            left = yield from obtain(before, lane, UP, amount)
            available = amount if left is None else left.available or 0
            continue
        if amount <= 0:
            return gate.carried
        answer = yield from write(before, lane, updates.carry_out(gate, amount))
        if isinstance(answer, Written):
            return before.gate(lane, answer.item).carried
    raise gave_up(lane)


def _taken_in(gates: Gates, carried: int) -> Program[bool]:
    lane = gates.first
    for _ in range(TRIES_MAX):
        gate: Gate = yield from gates.read(lane)
        # a ceiling is at most 10**18: the gate takes no more
        carried = min(carried, gate.took + CHANGE_MAX - (gate.bounds[UP] or 0))
        if gate.took >= carried:
            return False
        answer = yield from write(gates, lane, updates.carry_in(gate, carried))
        if isinstance(answer, Written):
            return True
    raise gave_up(lane)
