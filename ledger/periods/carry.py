"""The program `carry`: what a period has left goes to the next one, where somebody is short of it.

Rule 1: It is two Updates of one gate each, in the limit's Region: rights leave the old gate, and what ever left it is
taken over in the new one. Both amounts are cumulative, so a crash between the two, a repetition and two who carry at
once lose and double nothing; whoever is short next goes on.
Rule 2: Bounds move with the rights, so all else about a gate follows as ever; both Updates ask that nobody has set the
limit since the gate was seen. A ceiling is at most 10**18: what would pass it is not taken over.
Rule 3: Nothing is carried before the old period is over in every zone. What its holds give back later is carried then.
Rule 4: Where the gate with the old period's first rights was never made there is nothing to carry, and it is not made.
"""

from ledger.errors import OutOfReach, TableError
from ledger.gate import items, updates
from ledger.gate.filing import write
from ledger.gate.gate import Gate
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.move import obtain
from ledger.limit import UP
from ledger.ranges import CHANGE_MAX
from ledger.requests import Get, Instant, Item, Now, Program, Written


def carry(gates: Gates) -> Program[bool]:
    """Whether anything came. Raises OutOfReach where the old gate does not answer, and what reading gates raises."""
    earlier = gates.earlier
    now: Instant = yield Now()
    if earlier is None or not earlier.since_ms <= now.wall_ms < earlier.until_ms:
        return False
    try:
        carried = yield from _carried_out(earlier.gates, earlier.most)
        return (yield from _taken_in(gates, carried)) if carried else False
    except TableError as error:
        raise OutOfReach(
            f"{gates.first}: what the period before has left may be enough, and was not carried: {error} Nothing was "
            "decided. The same call again."
        ) from error


def _carried_out(before: Gates, most: int) -> Program[int]:
    """What was ever carried out of the old gate, as much as may be by now."""
    lane, available = before.first, most
    for _ in range(TRIES_MAX):
        item: Item | None = yield before.at(lane, Get(items.gate_key(lane)))
        if item is None:
            return 0
        gate = before.gate(lane, item)
        amount = min(most - gate.carried, available)
        if amount > gate.rights[UP]:  # the other lanes may have it, or holds that are over, or it is on its way
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
        carried = min(carried, gate.took + CHANGE_MAX - (gate.bounds[UP] or 0))
        if gate.took >= carried:
            return False
        answer = yield from write(gates, lane, updates.carry_in(gate, carried))
        if isinstance(answer, Written):
            return True
    raise gave_up(lane)
