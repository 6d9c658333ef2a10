"""The faults that happen to requests, and what the world does by itself, as the Faults of a history
say.

Rule 1: The world's choices pick whether something happens. A fault that is off picks nothing, so a
history without it is the same history.
Rule 2: An error says that nothing was written only when nothing was.
"""

from collections.abc import Callable
from typing import Any

from ledger.core.conditions import Absent
from ledger.core.errors import (
    LedgerError,
    OutcomeUnknown,
    Throttled,
    TransactionConflict,
    Unavailable,
)
from ledger.core.requests import (
    At,
    Delete,
    DeleteMany,
    Put,
    PutMany,
    Request,
    Together,
    Transact,
    Update,
)
from ledger.core.running import or_error, outcome
from simulator.faults import Faults
from simulator.world import World

WRITES = (Put, Update, Delete, Transact, DeleteMany)
LOST = "the answer is lost"

Log = Callable[[object, object], None]
"""Takes (the request or the happening, its result)."""


def send(world: World, region: str, request: Request, faults: Faults, log: Log) -> Any:
    """The answer to a request, or the error that its sender gets; to a transaction a Landing
    until that has landed.
    """
    if isinstance(request, DeleteMany) and happens(world, faults.throttled):
        return _some_throttled(world, region, request, log)
    if isinstance(request, At) and not world.is_cut(region, request.region):
        return send(world, request.region, request.request, faults, log)
    if isinstance(request, Together):
        return tuple(send(world, region, part, faults, log) for part in request.requests)
    if isinstance(request, PutMany):
        return tuple(
            outcome(send(world, region, Put(item, Absent()), faults, log)) for item in request.items
        )
    before = _fault_before(world, region, request, faults)
    if before is not None:
        log(request, before)
        return before
    answer = or_error(world.answer, region, request)
    log(request, answer)
    if isinstance(request, WRITES) and happens(world, faults.lost):
        log(LOST, "")
        return OutcomeUnknown("The answer was lost: the write may or may not have been applied.")
    return answer


def _some_throttled(world: World, region: str, request: DeleteMany, log: Log) -> Any:
    """The answer to deletes of which the last ones are throttled."""
    done = world.choices.pick(len(request.items))
    throttled = Throttled("Throttled. Nothing was written.")
    answer = (
        *world.answer(region, DeleteMany(request.items[:done])),
        *[throttled] * (len(request.items) - done),
    )
    log(request, answer)
    return answer


def _fault_before(
    world: World, region: str, request: Request, faults: Faults
) -> LedgerError | None:
    """The error in the place of an answer, if a fault happens before the request arrives."""
    if not isinstance(request, WRITES):
        return Unavailable("No answer.") if happens(world, faults.unreadable) else None
    if happens(world, faults.throttled):
        return Throttled("Throttled. Nothing was written.")
    if happens(world, faults.conflicting):
        return TransactionConflict("Another Region is writing the same item. Nothing was written.")
    if happens(world, faults.dropped):
        return OutcomeUnknown("Lost on the way.")
    if happens(world, faults.late):
        world.late.append((region, request))
        return OutcomeUnknown("Still on its way.")
    return None


def happens(world: World, per_mille: int) -> bool:
    return per_mille > 0 and world.choices.chance(per_mille)


def by_itself(world: World, faults: Faults, log: Log) -> None:
    """Do a step without a request: items land and arrive, late writes apply, Regions are cut off
    and joined.
    """
    choices = world.choices
    if world.landings and (not faults.slow_landing or choices.pick(40) == 0):
        landing = world.landings[choices.pick(len(world.landings))]
        which = choices.pick(len(landing.left))
        log("a transaction's item becomes visible", landing.left[which])
        world.land(landing, which)
    if not faults.slow_replication or choices.pick(12) == 0:
        deliverable = world.deliverable()
        if deliverable:
            region, key = deliverable[choices.pick(len(deliverable))]
            log(f"arrives in {region}", key)
            world.deliver(region, key)
    if world.retiring and choices.pick(4) == 0 and (expired := world.expired()):
        region, key = expired[choices.pick(len(expired))]
        log(f"expires in {region}", key)
        world.expire(region, key)
    if world.late and choices.chance(8):
        which = choices.pick(len(world.late))
        log("a late write arrives", world.late[which])
        world.apply_late(which)
    if happens(world, faults.cut):
        region = world.regions[choices.pick(len(world.regions))]
        world.cut ^= {region}
        log("cut off" if region in world.cut else "joined again", region)
