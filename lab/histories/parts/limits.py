"""Histories of limited counters: what happens at their gates, judged at every write, at every
answer and at the end.

Those on a table with multi-Region strong consistency are a kind of their own. Each conflict there
is a fault that is
drawn: the shipped code writes no item of a lane in two Regions.
"""

from dataclasses import replace

from lab.histories.judges.cost import Cost
from lab.histories.judges.gates import COUNTER, GateJudge
from lab.histories.judges.gates_end import AllSold, AllTaken, AskedAgain
from lab.histories.judges.last_words import LastWords
from lab.histories.judges.restores import Restores
from lab.histories.parts.callers import TAKERS, Callers
from lab.histories.stage.filing import Filing, file_as, filed_as
from lab.histories.stage.stage import REGIONS, Played, Stage, one_of, watched
from lab.histories.stage.world import WatchedWorld
from ledger.core.limit import Limit
from ledger.core.values import Lane
from simulator.choices import Choices
from simulator.faults import Faults, mix
from simulator.process import Log
from simulator.strong import StrongReplica
from simulator.world import Replica

STEPS_MS = (1, 10, 40, 400)
LIMITS = (
    Limit(floor=0),
    Limit(ceiling=9, region=REGIONS[0]),
    Limit(floor=0, ceiling=9, region=REGIONS[1]),
    Limit(floor=-6, region=REGIONS[0]),
)


def play_strong(choices: Choices, faults: Faults | None = None, log: Log | None = None) -> Played:
    """A history on a table with multi-Region strong consistency."""
    faults = mix(choices) if faults is None else faults
    return play(choices, replace(faults, conflicting=20 * choices.pick(6)), log, StrongReplica)


@filed_as()
def play(
    choices: Choices,
    faults: Faults | None = None,
    log: Log | None = None,
    replica: type[Replica] = Replica,
    *,
    takes: bool = False,
) -> Played:
    """takes: many ask for as much of a change as there is. Such histories are a kind of their own,
    so that a seed of the others stays the same history.
    """
    world, faults = watched(choices, faults, STEPS_MS, replica=replica)
    limit = one_of(choices, LIMITS)
    shards = 1 + (choices.pick(3) == 2)
    lanes = tuple(
        Lane(region, shard, COUNTER) for region in world.regions for shard in range(shards)
    )
    file_as(_filing(world))
    stage, gates = Stage(world, faults, log), GateJudge(world, lanes, limit)
    restores = Restores(gates, choices, stage.counts)
    cost, sold = Cost(gates, choices), AllTaken if takes else AllSold
    cost.takes = takes
    ends = (AskedAgain(gates, choices), cost, sold(gates, choices))
    stage.judged_by(gates, LastWords(gates.gates, gates.wrong), *ends, restores)
    callers = Callers(stage, gates)
    if takes:
        callers.kinds = TAKERS
    callers.enter_all()
    stage.play()
    restores.over_ms = world.now_ms
    world.now_ms += 2 * faults.skew_ms
    played = stage.ended()
    stage.counts["decided"] = len(gates.decided)
    return played


def _filing(world: WatchedWorld) -> Filing:
    choices = world.choices
    draw = 1 + choices.pick(3)
    enough = one_of(choices, (1, 2, 4, 16)) + draw - 1  # who looks leaves room for those who do not
    filing = Filing(
        unit_bytes=1,
        enough=enough,
        beside=choices.pick(3),
        draw=draw,
        holds_beside=max(0, enough - choices.pick(4)),
        holds_left=choices.pick(2),
        marks_of_holds=one_of(choices, (0, 3, 16)),
        slack_ms=one_of(choices, (0, 10, 100, 3_000)) * world.step_ms,
        moved_max=one_of(choices, (3, 1_000)),
    )
    if choices.pick(4) == 3:  # nobody files before a gate is full
        filing = replace(filing, enough=1_000, moved_max=3)
        world.gate_bytes_max = 2_000
    return filing
