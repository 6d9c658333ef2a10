"""Every order of the steps of a few small casts: not some histories, all of them. `make explore`
prints them.

Rule 1: a cast is small enough to be gone through whole, or for as many steps as it says; the number
of its states is counted, not guessed.
Rule 2: a state is the world and the answers of each process, because a process that had the same
answers is in the same state; the search goes on from it once.
Rule 3: in every state everything stops for good, as in a crash. Then a strong read in each Region
is judged, and the end as that of the long histories: with fresh compactors, and with every delta
sent once more.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

from lab.histories.casts.gate_steps import GateSteps
from lab.histories.casts.lane_steps import LaneSteps, NaiveSteps
from lab.histories.casts.lanes import NAIVE_CASTS, SERVED_CASTS, SMALL_CASTS, THRESHOLD_CASTS
from lab.histories.casts.limits import LIMITED_CASTS
from lab.histories.casts.part import Casts, Part
from lab.histories.casts.periods import PERIOD_CASTS, PeriodSteps
from lab.histories.casts.service_steps import LateSteps, ThresholdSteps
from lab.histories.stage.filing import filed_as
from ledger.core.requests import Key
from simulator.cells import Stamp
from simulator.trace import Trace

PARTS: tuple[tuple[Casts, type[Part]], ...] = (
    (SMALL_CASTS, LaneSteps),
    (LIMITED_CASTS, GateSteps),
    (SERVED_CASTS, LateSteps),
    (THRESHOLD_CASTS, ThresholdSteps),
    (PERIOD_CASTS, PeriodSteps),
)
EXPLORED = {name: part for casts, part in PARTS for name in casts}
STEPS = {
    name: steps
    for casts in (*(casts for casts, _ in PARTS), NAIVE_CASTS)
    for name, steps in casts.items()
}


@dataclass(frozen=True, slots=True)
class Explored:
    """A cast gone through: how many states it reaches, in how many it is wrong, and the trace of
    the first of those.
    """

    name: str
    states: int
    wrong: int
    trace: tuple[str, ...]


@filed_as()
def explore(name: str) -> Explored:
    states: set[int] = set()
    judged: dict[int, list[str]] = {}
    wrong: list[tuple[tuple[int, ...], str]] = []
    # Rule 4: states are reached with the fewest steps first, so the first that is wrong has one of
    # the shortest traces.
    orders: deque[tuple[int, ...]] = deque([()])
    while orders:
        order = orders.popleft()
        part, moves = _played(name, order)
        state = _state(part)
        if state in states:
            continue
        states.add(state)
        orders += [(*order, pick) for pick in range(moves) if len(order) < part.steps_max]
        why = part.seen()
        if not why and (part.stops or not moves):
            why = _judged(part, judged)
        wrong += [(order, each) for each in why[:1]]
    trace = Trace()
    if wrong:
        order, why_first = wrong[0]
        _played(name, order, trace)
        trace.lines.append(f"WRONG: {why_first}")
    return Explored(name.replace("_", " "), len(states), len(wrong), tuple(trace.lines))


def _judged(part: Part, judged: dict[int, list[str]]) -> list[str]:
    """What is wrong if everything stops here; `judged` has the judgements so far."""
    decides = part.decides()
    if decides is None:
        return part.judged()
    # Judging takes longer than playing, and most states differ in the answers of processes alone,
    # which are gone when everything stops. So one judgement stands for all of them.
    key = hash(repr((*_world(part), decides)))
    if key not in judged:
        judged[key] = part.judged()
    return judged[key]


def _played(name: str, order: tuple[int, ...], log: Trace | None = None) -> tuple[Part, int]:
    """The part after the steps of one order, and how many there are to go on with."""
    part = EXPLORED.get(name, NaiveSteps)(order, log)
    for step in STEPS[name]:
        step(part)
    return part, _interleave(part)


def _interleave(part: Part) -> int:
    """The steps of one order, as far as it goes, and how many there are to go on with.

    Steps are those of the processes, of a transaction's items landing and of items arriving
    elsewhere.
    """
    world = part.world
    while True:
        ready = [process for process in part.processes if process.ready]
        # What nobody else can see or change is done at once: in which order makes no difference.
        local = next(
            (p for p in ready if p.is_local or (p.asks_the_time and not part.time_goes)), None
        )
        if local is not None:
            local.step()
            continue
        moves: list[tuple[str, object, Callable[[], object]]] = [
            ("", "", process.step) for process in ready
        ]
        for landing in world.landings:
            for i, cell in enumerate(landing.left):
                moves.append(
                    ("a transaction's item becomes visible", cell, partial(world.land, landing, i))
                )
        if moves and part.passes_ms:
            moves.append((f"{part.passes_ms} ms pass", "", part.time_passes))
        for region, key in part.expiries() if moves else ():
            moves.append((f"expires in {region}", key, partial(world.expire, region, key)))
        for region, key in part.arrivals() if moves else ():
            moves.append((f"arrives in {region}", key, partial(world.deliver, region, key)))
        if not moves or part.choices.used == len(part.order):
            return len(moves)
        world.step += 1
        what, came, go = moves[world.choices.pick(len(moves))]
        if what and part.stage.log is not None:
            part.stage.log("the world", what, came)
        go()


def _state(part: Part) -> int:
    done = [process.done for process in part.processes]
    return hash(repr((*_world(part), done, part.answers, part.known())))


def _world(part: Part) -> tuple[object, ...]:
    """The items in each Region, what is on its way there, and the time."""
    world = part.world
    held: list[tuple[Key, Stamp, str, str, str]] = []
    for region, replica in world.replicas.items():
        for pk, cells in replica.cells.items():
            for sk, cell in cells.items():
                held.append((Key(pk, sk), cell.stamp, region, "", repr(cell.item)))
        held += [
            (key, stamp, region, home, repr(item))
            for key, (item, stamp, home) in replica.inbox.items()
        ]
    # Of two writes of an item in one millisecond the order is what counts, not their running
    # numbers.
    ranked = [
        (key, stamp[0], region, home, item) for key, stamp, region, home, item in sorted(held)
    ]
    landing = [(each.region, repr(each.left)) for each in world.landings]
    return world.now_ms, part.passes_ms, ranked, landing


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Only these casts.")] = None,
) -> None:
    """Play every order of the steps of small casts of processes, and print how many states there
    were, and how many of them were wrong.

    Exit code: 1 when a state of this library is wrong.
    """
    if unknown := set(names or ()) - EXPLORED.keys():
        raise typer.BadParameter(f"no such cast: {', '.join(sorted(unknown))}")
    states = wrong = 0
    chosen = names or EXPLORED
    print(f"{'every order of the steps of':<78}{'states':>9}{'wrong':>8}")
    with ProcessPoolExecutor() as pool:
        for explored in pool.map(explore, chosen):
            print(f"{explored.name:<78}{explored.states:>9,}{explored.wrong:>8,}", flush=True)
            print(*explored.trace, sep="\n", end="\n" if explored.trace else "")
            states, wrong = states + explored.states, wrong + explored.wrong
    print(f"{len(chosen)} casts, {states:,} states, {wrong:,} wrong")
    if names:
        raise typer.Exit(wrong > 0)
    print(
        "\nThe obvious design, for comparison: one transaction deletes deltas and adds their sum.\n"
        "Below is, for each way in which that goes wrong, the shortest order of steps to it."
    )
    for explored in map(explore, NAIVE_CASTS):
        print(f"\n{explored.name}: {explored.wrong:,} of {explored.states:,} states are wrong")
        print(*explored.trace, sep="\n")
        wrong += explored.wrong == 0  # whoever finds nothing there would find nothing here
    raise typer.Exit(wrong > 0)


if __name__ == "__main__":
    typer.run(main)
