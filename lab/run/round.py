"""One run of a profile: an engine, a proxy, replication and processes; judged after a calm, and at
its end.

Rule 1: The proxy stands between the engine and everyone who writes, reads or compacts; the
replicator, and whoever looks at the end, asks the engine itself.
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

from lab.engines import proxy
from lab.engines.children import Children
from lab.engines.ministack import Engine
from lab.engines.proxy_faults import mix
from lab.engines.replicator import Replicator
from lab.run import ending, judge, record
from lab.run.disturb import Disturber
from lab.run.ending import Values
from lab.run.plan import REGIONS, TABLE, Plan, Profile
from lab.run.processes import Processes
from lab.run.record import Histories, Line, histories_of

LAG_MS = (20, 900)
TURN_S = 0.05
CALM_TURNS, CALM_TURN_S = 240, 0.25
RUN_TIMEOUT_S = 3_600
VISITS_TIMEOUT_S = 180  # on a busy machine the compactors come to little while changes are sent
# all writers begin at once; the pace of what they send after that says how long a run takes
WARM_S, MEASURED_S = 2, 4
NEARLY = 0.9  # of the changes: then the last writers alone make the pace
# what comes after the last change: waits, and as much work as so many changes
REST_S, REST_CHANGES = 25, 1_000
VIOLATIONS_MAX = 20
VISITED = ("folded", "settled", "cleaned")  # what compactors lived to record
RECORDED = ("packed", *VISITED, "gave_up")  # and writers

Say = Callable[[str], None]
"""Takes what a run is doing, over and over; or once how long it takes."""


@dataclass(slots=True)
class Outcome:
    """What happened in a run, and what is wrong.

    values: what each Region reads at the end, if the run got there.
    """

    operations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    values: Values = field(default_factory=dict)

    def lacks(self, profile: Profile, asked: int) -> list[str]:
        """What a run of so many changes or operations did too little of: then no violation
        proves nothing.
        """
        done = self.operations + self.events
        done["operations"] = sum(self.operations.values())
        done["faults"] = sum(count for name, count in self.faults.items() if name != "requests")
        return [
            f"{name}: {done[name]:,}, and a run of {asked:,} has at least {least:,}"
            for name, least in profile.floors_of(asked).items()
            if done[name] < least
        ]


def play(plan: Plan, say: Say, estimate: Say = lambda _: None) -> Outcome:
    outcome = Outcome()
    with ExitStack() as stack:
        engine = stack.enter_context(Engine())
        for region in REGIONS:
            engine.create_table(TABLE, region)
        children = stack.enter_context(Children("lab.run.processes"))
        faults = plan.profile.faults or mix(plan.seed)
        control, endpoint = proxy.start(children, engine, plan.seed, faults)
        plan = replace(plan, proxy=endpoint)
        rng = random.Random(f"{plan.seed}{TABLE}")
        replicator = stack.enter_context(Replicator(engine, TABLE, REGIONS, rng, *LAG_MS))
        processes = Processes(plan, children)
        disturber = Disturber(plan, children, processes, replicator, control)
        _write(plan, processes, disturber, say, estimate)
        say("waiting for what is under way")
        outcome.faults = _calm(control)
        replicator.drain(ending.DRAIN_TIMEOUT_MS)
        lines = record.merged(Path(plan.folder).glob("*.jsonl"))
        histories = histories_of(lines, plan)
        outcome.operations, outcome.events = (
            _operations(lines),
            disturber.counts + _events(lines, histories),
        )
        outcome.violations += itertools.islice(judge.check(lines, histories), VIOLATIONS_MAX)
        if not outcome.violations:
            say("sending some changes again, compacting, and reading every counter in both Regions")
            outcome.values, wrong = ending.end(plan, engine, replicator, histories)
            outcome.violations += wrong[:VIOLATIONS_MAX]
    return outcome


def seconds_left(changes: int, looks: Sequence[tuple[float, int]]) -> int | None:
    """How long a run of so many changes goes on, by its first and its last look (second, changes
    sent); None too early or too late to say."""
    (first_s, first), (last_s, last) = looks[0], looks[-1]
    if last_s - first_s < MEASURED_S or not first < last < NEARLY * changes:
        return None
    return round(REST_S + (changes + REST_CHANGES - last) * (last_s - first_s) / (last - first))


def _write(plan: Plan, processes: Processes, disturber: Disturber, say: Say, estimate: Say) -> None:
    """Lets the disturber act until the writers have done their share, and the compactors so much
    that it can show.
    """
    began = time.monotonic()
    deadline = began + RUN_TIMEOUT_S
    asked_for: float | None = None
    looks: list[tuple[float, int]] = []
    is_estimated = False
    while time.monotonic() < deadline and (processes.writing() or _lacks_visits(plan)):
        if processes.mostly_asked():  # a while is left for what is sent again
            asked_for = asked_for or time.monotonic()
            deadline = min(deadline, asked_for + VISITS_TIMEOUT_S)
            is_over = time.monotonic() > asked_for + plan.profile.resending_s
            if is_over and not _lacks_visits(plan):
                break
        disturber.turn()
        processes.check()
        met = ", ".join(f"{count:,} {name}" for name, count in sorted(disturber.counts.items()))
        sent = processes.sent
        if time.monotonic() > began + WARM_S:
            looks = [*looks[:1], (time.monotonic(), sent)]
        left_s = seconds_left(plan.changes, looks) if looks else None
        about = "" if left_s is None else f", about {left_s} s left"
        say(f"{sent:,} of {plan.changes:,} changes{about}; {met}")
        if left_s is not None and not is_estimated:
            is_estimated = True
            estimate(
                f"{sent:,} of {plan.changes:,} changes are sent. "
                f"The rest takes about {round(left_s, -1)} s."
            )
        time.sleep(TURN_S)
    disturber.clear()
    processes.dismiss()


def _lacks_visits(plan: Plan) -> bool:
    """Whether the compactors have still to settle or to clean what a run must have at least."""
    done = _recorded(record.merged(Path(plan.folder).glob("compactor-*.jsonl")))
    floors = plan.profile.floors_of(plan.changes)
    return any(done[figure] < floors.get(figure, 0) for figure in VISITED)


def _calm(control: Connection) -> Counter[str]:
    """Waits until every request that is still under way has arrived; the faults by kind."""
    control.send(("calm",))
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
        if line["type"] in ("ok", "info", "fail") and line["f"] in ("add", "read"):
            for value in line["value"]:
                counts[f"{line['f']} {value[1] if line['f'] == 'add' else line['type']}"] += 1
    return counts


def _events(lines: Sequence[Line], histories: Histories) -> Counter[str]:
    changes = [change for history in histories.values() for change in history.changes.values()]
    return Counter(
        {
            "changes acknowledged": sum(change.acknowledged for change in changes),
            "of them owed to strong reads": sum(
                change.owed_from_ns is not None for change in changes
            ),
        }
        | _recorded(lines)
    )


def _recorded(lines: Sequence[Line]) -> dict[str, int]:
    return {figure: sum(line.get(figure, 0) for line in lines) for figure in RECORDED}
