"""One round: an engine, a proxy, a replicator and processes; judged on the way and, after a calm, at its end.

Rule 1: The proxy stands between the engine and everyone who writes, reads or compacts; the replicator, and whoever
looks at the end, ask the engine itself.
Rule 2: Nothing is left running, whatever ends the round.
"""

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

from lab.engines import proxy
from lab.engines.children import Children
from lab.engines.dynamodb_local import DynamoDBLocal
from lab.engines.ministack import Engine
from lab.engines.proxy_faults import mix
from lab.engines.replicator import Replicator
from lab.torture import checker, ending, record
from lab.torture.checker import Violation
from lab.torture.disturb import Disturber
from lab.torture.plan import ON_TIME_MS, REGIONS, TABLE, Plan
from lab.torture.processes import Processes
from lab.torture.record import CounterHistory, Line, histories_of

LAG_MS = (20, 900)
TURN_S, JUDGE_EVERY_S = 0.05, 15.0
RESENDING_S = 12.0
CALM_TURNS, CALM_TURN_S = 240, 0.25
ROUND_TIMEOUT_S = 900
VIOLATIONS_MAX = 20
FLOORS = {
    "operations": 1,
    "changes acknowledged": 0.5,
    "of them owed to strong reads": 0.01,
    "cleaned, as told": 0.001,
    "read ok": 0.01,
    "faults": 0.05,
}
"""The least that a run has of each, as a share of the operations that it was asked for; a fast machine has ten times
as much."""


@dataclass(slots=True)
class Outcome:
    """What a round was and what is wrong with it."""

    operations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)

    def __iadd__(self, other: Self) -> Self:
        self.operations += other.operations
        self.faults += other.faults
        self.events += other.events
        self.violations += other.violations
        return self

    def lacks(self, operations: int) -> list[str]:
        """What a run of so many operations did too little of, so that no violation says nothing."""
        done = self.operations + self.events
        done["operations"] = sum(self.operations.values())
        done["faults"] = sum(count for name, count in self.faults.items() if name != "requests")
        floors = {name: int(operations * share) for name, share in FLOORS.items()}
        return [
            f"{name}: {done[name]:,}, and a run of {operations:,} has at least {least:,}"
            for name, least in floors.items()
            if done[name] < least
        ]


def play(plan: Plan, local: bool, deadline: float, say: Callable[[str], None]) -> Outcome:
    """Plays one round, on DynamoDB Local or on MiniStack; writing stops at `deadline` (monotonic seconds)."""
    outcome = Outcome()
    with ExitStack() as stack:
        engine = stack.enter_context(DynamoDBLocal() if local else Engine())
        for region in REGIONS:
            engine.create_table(TABLE, region)
        children = stack.enter_context(Children("lab.torture.preload"))
        control, endpoint = proxy.start(children, engine, plan.seed, mix(plan.seed), item_by_item=not local)
        plan = replace(plan, proxy=endpoint)
        replicator = stack.enter_context(Replicator(engine, TABLE, REGIONS, random.Random(plan.seed), *LAG_MS))
        processes = Processes(plan, children)
        disturber = Disturber(plan.seed, children, processes, replicator, control)
        _write(plan, processes, disturber, deadline, say)
        say("calm: what is under way arrives, the Regions replicate")
        outcome.faults = _calm(control)
        replicator.drain(ending.DRAIN_TIMEOUT_MS)
        lines, told = _history(plan)
        outcome.operations, outcome.events = _operations(lines), disturber.counts + _events(lines, told)
        outcome.violations += itertools.islice(checker.check(lines, told), VIOLATIONS_MAX)
        if outcome.violations:
            return outcome
        say("a replay, the compactors come to rest, both Regions are counted")
        outcome.violations += itertools.islice(ending.end(plan, engine, replicator, told), VIOLATIONS_MAX)
        outcome.events += ending.left(engine)
    return outcome


def _write(plan: Plan, processes: Processes, disturber: Disturber, deadline: float, say: Callable[[str], None]) -> None:
    """Lets the disturber act until the writers have done their share, or a violation is seen."""
    deadline = min(deadline, time.monotonic() + ROUND_TIMEOUT_S)
    asked_for: float | None = None
    judge_at = time.monotonic() + JUDGE_EVERY_S
    while processes.writing() and time.monotonic() < deadline:
        if processes.mostly_asked():  # a while is left for what is sent again
            asked_for = asked_for or time.monotonic()
            deadline = min(deadline, asked_for + RESENDING_S)
        if judge_at <= time.monotonic():
            if any(checker.check(*_history(plan))):
                break
            judge_at = time.monotonic() + JUDGE_EVERY_S
        disturber.turn()
        processes.check()
        say(f"change {processes.reached:,} of {plan.changes:,}; {disturber.counts.total():,} kills, pauses and so on")
        time.sleep(TURN_S)
    disturber.clear()
    processes.dismiss()


def _history(plan: Plan) -> tuple[list[Line], dict[int, CounterHistory]]:
    # In this order: what a reader has seen, its writer's file already has.
    lines = record.merged(sorted(Path(plan.folder).glob("*.jsonl")))
    return lines, histories_of(lines, on_time_ns=ON_TIME_MS * 1_000_000, wall_ns=plan.wall_ns)


def _calm(control: Connection) -> Counter[str]:
    """Lets every request that is still under way arrive; the faults by kind."""
    control.send(("storm", 0.0))
    for _ in range(CALM_TURNS):
        control.send(("counts",))
        counts: Counter[str] = Counter(control.recv())
        if not counts.pop(proxy.UNDER_WAY, 0):
            return counts
        time.sleep(CALM_TURN_S)
    raise RuntimeError(f"the proxy is not calm after {CALM_TURNS * CALM_TURN_S:.0f} s: {counts}")


def _operations(lines: list[Line]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        if line["type"] in ("ok", "info", "fail") and line["f"] in ("add", "read"):
            for each in line["value"]:
                how = each[2] if line["f"] == "add" else line["type"]
                counts[f"{line['f']} {how}"] += 1
    return counts


def _events(lines: list[Line], told: dict[int, CounterHistory]) -> Counter[str]:
    changes = [change for history in told.values() for change in history.changes.values()]
    return Counter(
        {
            "changes acknowledged": sum(change.acknowledged for change in changes),
            "of them owed to strong reads": sum(change.owed_from_ns is not None for change in changes),
        }
        # What writers and compactors lived to tell.
        | {
            f"{key}, as told": sum(line.get(key, 0) for line in lines)
            for key in ("packed", "settled", "cleaned", "gave_up")
        }
    )
