"""One run of a profile: an engine, a proxy, replicators and processes; judged on the way and, after a calm, at its end.

Rule 1: The proxy stands between the engine and everyone who writes, reads or compacts; the replicators, and whoever
looks at the end, ask the engine itself.
Rule 2: Nothing is left running, whatever ends the run.
"""

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

from lab.engines import proxy
from lab.engines.children import Children
from lab.engines.ministack import Engine
from lab.engines.proxy_faults import mix
from lab.engines.replicator import Replicator
from lab.run import ending, judge, record
from lab.run.disturb import Disturber
from lab.run.ending import Values
from lab.run.judge import Violation
from lab.run.plan import REGIONS, TABLE, Plan, Profile
from lab.run.processes import Processes
from lab.run.record import OURS, Histories, Line, histories_of
from lab.run.usual_ways import table_name

LAG_MS = (20, 900)
TURN_S, JUDGE_EVERY_S = 0.05, 15.0
CALM_TURNS, CALM_TURN_S = 240, 0.25
RUN_TIMEOUT_S = 3_600
VIOLATIONS_MAX = 20
RECORDED = ("packed", "folded", "settled", "cleaned", "gave_up")  # what writers and compactors lived to record

Say = Callable[[str], None]
"""Called with what a run is doing."""


@dataclass(slots=True)
class Outcome:
    """What a run was and what is wrong with ours. values: what each design reads at the end; reads: how many each made
    before, and how many of them were wrong."""

    operations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    values: dict[str, Values] = field(default_factory=dict)
    reads: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __iadd__(self, other: Self) -> Self:
        self.operations += other.operations
        self.faults += other.faults
        self.events += other.events
        self.violations += other.violations
        return self

    def lacks(self, profile: Profile, asked: int) -> list[str]:
        """What a run of which so much was asked did too little of, so that no violation says nothing."""
        done = self.operations + self.events
        done["operations"] = sum(self.operations.values())
        done["faults"] = sum(count for name, count in self.faults.items() if name != "requests")
        floors = {name: max(least, int(asked * share)) for name, (least, share) in profile.floors.items()}
        return [
            f"{name}: {done[name]:,}, and a run of {asked:,} has at least {least:,}"
            for name, least in floors.items()
            if done[name] < least
        ]


def play(plan: Plan, say: Say) -> Outcome:
    outcome = Outcome()
    with ExitStack() as stack:
        engine = stack.enter_context(Engine())
        tables = [TABLE, *map(table_name, plan.profile.naive)]
        for table, region in itertools.product(tables, REGIONS):
            engine.create_table(table, region)
        children = stack.enter_context(Children("lab.run.processes"))
        faults = plan.profile.faults or mix(plan.seed)
        control, endpoint = proxy.start(children, engine, plan.seed, faults)
        plan = replace(plan, proxy=endpoint)
        replicators = [
            stack.enter_context(Replicator(engine, table, REGIONS, random.Random(f"{plan.seed}{table}"), *LAG_MS))
            for table in tables
        ]
        processes = Processes(plan, children)
        disturber = Disturber(plan, children, processes, replicators, control)
        _write(plan, processes, disturber, say)
        say("what is under way arrives")
        outcome.faults = _calm(control)
        for replicator in replicators:
            replicator.drain(ending.DRAIN_TIMEOUT_MS)
        lines, histories = _history(plan)
        outcome.operations, outcome.events = _operations(lines), disturber.counts + _events(lines, histories)
        outcome.reads = {name: _reads(lines, plan, name) for name in (OURS, *plan.profile.naive)}
        outcome.violations += itertools.islice(judge.check(lines, histories), VIOLATIONS_MAX)
        if outcome.violations and not plan.profile.naive:
            return outcome
        say("a replay, the compactors come to rest, both Regions are counted")
        outcome.values, wrong = ending.end(plan, engine, replicators, histories)
        outcome.violations += wrong[:VIOLATIONS_MAX]
    return outcome


def _write(plan: Plan, processes: Processes, disturber: Disturber, say: Say) -> None:
    """Lets the disturber act until the writers have done their share, or a violation is seen."""
    deadline = time.monotonic() + RUN_TIMEOUT_S
    asked_for: float | None = None
    judge_at = time.monotonic() + JUDGE_EVERY_S
    while processes.writing() and time.monotonic() < deadline:
        if processes.mostly_asked():  # a while is left for what is sent again
            asked_for = asked_for or time.monotonic()
            deadline = min(deadline, asked_for + plan.profile.resending_s)
        if judge_at <= time.monotonic():
            if any(judge.check(*_history(plan))):
                break
            judge_at = time.monotonic() + JUDGE_EVERY_S
        disturber.turn()
        processes.check()
        met = ", ".join(f"{count:,} {name}" for name, count in sorted(disturber.counts.items()))
        say(f"{processes.reached + 1:,} of {plan.changes:,} changes; {met}")
        time.sleep(TURN_S)
    disturber.clear()
    processes.dismiss()


def _history(plan: Plan) -> tuple[list[Line], Histories]:
    # In this order: what a reader has seen, its writer's file already has.
    lines = record.merged(sorted(Path(plan.folder).glob("*.jsonl")))
    return lines, histories_of(lines, plan)


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


def _operations(lines: Sequence[Line]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        if line["type"] in ("ok", "info", "fail") and line["f"] in ("add", "read") and line["design"] == OURS:
            for value in line["value"]:
                counts[f"{line['f']} {value[1] if line['f'] == 'add' else line['type']}"] += 1
    return counts


def _events(lines: Sequence[Line], histories: Histories) -> Counter[str]:
    changes = [change for history in histories.values() for change in history.changes.values()]
    return Counter(
        {
            "changes acknowledged": sum(change.acknowledged for change in changes),
            "of them owed to strong reads": sum(change.owed_from_ns is not None for change in changes),
        }
        | {figure: sum(line.get(figure, 0) for line in lines) for figure in RECORDED}
    )


def _reads(lines: Sequence[Line], plan: Plan, design: str) -> tuple[int, int]:
    histories = histories_of(lines, plan, design).values()
    wrong = sum(len(list(judge.check_reads(history))) for history in histories)
    return sum(len(history.reads) for history in histories), wrong
