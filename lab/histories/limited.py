"""Histories of limited counters: sellers, buyers of holds, groups, operators and readers at gates.

Rule 1: what they do is judged at every write, at every answer and at the end: limited_judge.py, limited_end.py.
Rule 2: the calls of a process share what it remembers of counters that are sold out, until it crashes: recall.py.
Rule 3: everything follows from the choices, so a seed or a list of picks is the whole history.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lab.histories.cast import LATE, LONG, SHORT, rest
from lab.histories.filing import Filing, file_as, filed_as
from lab.histories.history import REGIONS, STEPS_MAX, entrance, step
from lab.histories.limited_cost import judge_cost
from lab.histories.limited_end import judge_end
from lab.histories.limited_judge import Asked, Judge, WatchedWorld
from lab.histories.recall import Memory
from ledger import tokens
from ledger.errors import LedgerError, LimitReached
from ledger.gate.answers import Decision
from ledger.gate.bounds import set_limit
from ledger.gate.decide import add_group, decide_change, decide_hold, end
from ledger.gate.gate import EXPIRED, REFUSED, RELEASED
from ledger.gate.recount import outcomes, standing
from ledger.limit import DOWN, SIDES, UP, Limit
from ledger.requests import Now
from ledger.tokens import hold_token
from ledger.values import Lane
from simulator.choices import Choices
from simulator.faults import Faults, mix
from simulator.process import Log, Move, Process, Script
from simulator.world import World

COUNTER = "g"
TRIES = 12
STEPS_MS = (1, 10, 40, 400)
HOURS_MS, AHEAD_MS = 9_000_000, 300_000
"""How late the changes of a backlog are at most, and how far ahead of now one may say that it is."""
LIMITS = (
    Limit(floor=0),
    Limit(ceiling=9, region=REGIONS[0]),
    Limit(floor=0, ceiling=9, region=REGIONS[1]),
    Limit(floor=-6, region=REGIONS[0]),
)


@dataclass(slots=True)
class Played:
    violations: list[str]
    steps: int
    decided: int
    faults: Faults
    counts: dict[str, int]


@filed_as()
def play(
    choices: Choices,
    faults: Faults | None = None,
    log: Log | None = None,
    then: Callable[["Table", int, int], list[str]] | None = None,
) -> Played:
    """Play one history of a limited counter and judge it. then: what follows when all is right, told the step and the
    time at which everybody was done.
    """
    faults = mix(choices) if faults is None else faults
    regions = REGIONS[: 2 + (choices.pick(3) == 2)]
    step_ms = STEPS_MS[choices.pick(len(STEPS_MS))]
    faults = replace(faults, skew_ms=faults.skew_ms * step_ms)
    world = WatchedWorld(regions, choices, page_size=1 + choices.pick(3), lag_steps=faults.lag_steps)
    world.step_ms = step_ms
    world.now_ms = 10_000_000
    limit = LIMITS[choices.pick(len(LIMITS))]
    shards = 1 + (choices.pick(3) == 2)
    lanes = tuple(Lane(region, shard, COUNTER) for region in regions for shard in range(shards))
    filing = Filing(
        enough=(1, 2, 4, 16)[choices.pick(4)],
        beside=choices.pick(3),
        draw=1 + choices.pick(3),
        holds_kept=choices.pick(4),
        holds_left=choices.pick(2),
        slack_ms=(0, 10, 100, 3_000)[choices.pick(4)] * step_ms,
        moved_max=(3, 1_000)[choices.pick(2)],
    )
    if choices.pick(4) == 3:  # nobody files before a gate is full
        filing = replace(filing, enough=1_000, moved_max=3)
        world.gate_bytes_max = 2_000
    judge = Judge(world, lanes, limit)
    file_as(filing)
    world.watch = judge.see
    processes: list[Process] = []
    enter = entrance(processes, world, faults, log)
    table = Table(choices, judge, faults)
    for number in range(4 + choices.pick(9)):
        region = regions[choices.pick(len(regions))]
        pace = (LONG, LONG, SHORT, LATE)[choices.pick(4)]
        kind = choices.pick(5)
        if kind < 3:
            enter(f"seller {number}", region, table.seller(number, region, pace))
        elif kind == 3:
            enter(f"buyer {number}", region, table.buyer(number, region, pace))
        else:
            enter(f"group {number}", region, table.group(number, region, pace))
    for region in regions:
        enter(f"reader {region}", region, table.reader(region))
    if limit.region is not None and choices.pick(3) == 2:
        for twin in range(1 + choices.pick(2)):
            table.is_steady = False
            region = regions[choices.pick(len(regions))]
            enter(f"operator {twin}", region, table.operator(region))
    for _ in range(STEPS_MAX):
        if not step(world, processes, faults, log):
            break
    ended = world.step, world.now_ms
    world.now_ms += 2 * faults.skew_ms
    wrong = judge_end(judge, choices, judge_cost)
    if then is not None and not wrong:
        wrong = then(table, *ended)
    return Played(wrong, world.step, len(judge.decided), faults, table.counts)


@dataclass
class Table:
    """What the processes of a history share."""

    choices: Choices
    judge: Judge
    faults: Faults
    counts: dict[str, int] = field(default_factory=dict)
    is_steady: bool = True
    """Whether nobody sets another limit."""

    @property
    def asked(self) -> list[Asked]:
        return self.judge.asked

    @property
    def world(self) -> World:
        return self.judge.world

    def tell(self, what: str, times: int = 1) -> None:
        """It happened."""
        self.counts[what] = self.counts.get(what, 0) + times

    def _ask(self, number: str, region: str, wall_ms: int, length_ms: int | None = None) -> Asked:
        late = (0, 0, 0, 300, 1_000, 20_000, HOURS_MS // self.world.step_ms)[self.choices.pick(7)] * self.world.step_ms
        time_ms = max(0, wall_ms - (self.choices.pick(late) if late else 0))
        if self.choices.pick(12) == 11:
            time_ms = wall_ms + self.choices.pick(AHEAD_MS)
        if length_ms is None:
            token = tokens.keyed(COUNTER, number, time_ms)
        else:
            token = hold_token(COUNTER, number, time_ms, length_ms)
        amount = (-1, -2, -3, 1, 2, 4)[self.choices.pick(6)]
        return self.judge.ask(self.judge.delta(token, region, amount), is_hold=length_ms is not None)

    def _remembers(self) -> Memory:
        return Memory(world=self.world, skew_ms=self.faults.skew_ms)

    def _told(self, one: Asked, decision: Decision, began: int, memory: Memory) -> None:
        """An answer came."""
        known = decision.known
        name = (
            "held"
            if known.held is not None
            else {REFUSED: "refused", RELEASED: "released", EXPIRED: "expired"}.get(known.outcome or 0, "counted")
        )
        self.tell(name)
        since = memory.since(one.delta.change, began)
        if known.outcome == REFUSED and not decision.before and since < began:
            self.tell("refused from memory")
        if not self.judge.told(one, decision, since):
            self.tell("refused while rights grew")

    def seller(self, number: int, region: str, pace: Sequence[int]) -> Callable[[], Script]:
        mine: list[Asked] = []

        def script() -> Script:
            memory = self._remembers()
            yield rest(self.choices, pace)
            for n in range(1 + self.choices.pick(8)):
                if n >= len(mine):
                    if self.asked and self.choices.pick(6) == 5:  # a twin of somebody's message
                        mine.append(self.asked[self.choices.pick(len(self.asked))])
                    else:
                        mine.append(self._ask(f"{number}/{n}", region, (yield Now()).wall_ms))
                yield from self._send(mine[n], region, memory)
                yield rest(self.choices, SHORT)

        return script

    def _send(self, one: Asked, region: str, memory: Memory) -> Generator[Any, Any, bool]:
        """Until it has an answer, from wherever the message comes by."""
        here = region
        for _ in range(TRIES):
            began = memory.call()
            try:
                program = (decide_hold if one.is_hold else decide_change)(self.judge.gates_in(here, memory), one.delta)
                decision = yield from program
            except LedgerError:
                if self.choices.pick(3) == 2:
                    here = self.world.regions[self.choices.pick(len(self.world.regions))]
                    yield Move(here)
                yield rest(self.choices, SHORT)
                continue
            self._told(one, decision, began, memory)
            if not decision.before and decision.known.outcome != REFUSED:
                memory.came_back(UP if one.delta.change < 0 else DOWN)
            yield Move(region)
            return True
        yield Move(region)
        return False

    def buyer(self, number: int, region: str, pace: Sequence[int]) -> Callable[[], Script]:
        mine: list[Asked] = []
        ends: list[int | None] = []

        def script() -> Script:
            memory = self._remembers()
            yield rest(self.choices, pace)
            for n in range(1 + self.choices.pick(12)):
                if n >= len(mine):
                    length_ms = (50, 300, 2_000, 10**6)[self.choices.pick(4)] * self.world.step_ms
                    mine.append(self._ask(f"h{number}/{n}", region, (yield Now()).wall_ms, length_ms))
                    amount = mine[n].delta.change
                    part = int(amount * self.choices.pick(3) / 2)
                    ends.append((amount, amount, part, RELEASED, None)[self.choices.pick(5)])
                one = mine[n]
                if not (yield from self._send(one, region, memory)) or one.outcome is not None:
                    continue
                yield rest(self.choices, (*SHORT, 300) if self.choices.pick(3) else (0,))
                how = ends[n]
                if how is None:
                    continue
                for _ in range(TRIES):
                    try:
                        began = memory.call()
                        decision = yield from end(self.judge.gates_in(region, memory), one.delta, how)
                    except LedgerError:
                        yield rest(self.choices, SHORT)
                        continue
                    self._told(one, decision, began, memory)
                    if not decision.before:
                        memory.came_back(*SIDES)
                    if not decision.before and decision.known.outcome != how:
                        self.judge.wrong.append(f"{one.delta.token} ended with {decision.known.outcome}, not {how}")
                    break

        return script

    def group(self, number: int, region: str, pace: Sequence[int]) -> Callable[[], Script]:
        mine: dict[str, Asked] = {}

        def script() -> Script:
            memory = self._remembers()
            yield rest(self.choices, pace)
            size = 2 + self.choices.pick(5)
            while len(mine) < size:
                if self.asked and self.choices.pick(6) == 5:
                    one = self.asked[self.choices.pick(len(self.asked))]
                    if one.is_hold:
                        continue
                else:
                    one = self._ask(f"g{number}/{len(mine)}", region, (yield Now()).wall_ms)
                mine[one.delta.token] = one
            for _ in range(TRIES):
                began = memory.call()
                failed = False
                for lane in dict.fromkeys(one.delta.lane for one in mine.values()):
                    some = {t: one.delta.change for t, one in mine.items() if one.delta.lane == lane}
                    told = yield from add_group(self.judge.gates_in(region, memory), lane, some)
                    for token, decision in told.items():
                        if isinstance(decision, LedgerError):
                            failed = True
                        else:
                            self._told(mine[token], decision, began, memory)
                if not failed and self.choices.pick(3):
                    return
                yield rest(self.choices, SHORT)

        return script

    def operator(self, region: str) -> Callable[[], Script]:
        """Sets other limits now and then."""

        def script() -> Script:
            for _ in range(1 + self.choices.pick(3)):
                yield rest(self.choices, LONG)
                gates = self.judge.gates_in(region)
                tighter = self.choices.pick(7) - 2
                floor = None if gates.limit.floor is None else -6 + tighter
                ceiling = None if gates.limit.ceiling is None else max(9 - tighter, floor or 0)
                for _ in range(TRIES):
                    try:
                        yield from set_limit(gates, floor, ceiling)
                        break
                    except LimitReached:
                        break
                    except LedgerError:
                        yield rest(self.choices, SHORT)

        return script

    def reader(self, region: str) -> Callable[[], Script]:
        def script() -> Script:
            for _ in range(4 + self.choices.pick(6)):
                yield rest(self.choices, LONG)
                gates = self.judge.gates_in(region)
                try:
                    seen = yield from standing(gates, consistent=bool(self.choices.pick(2)))
                except LedgerError:
                    continue
                low, high = gates.limit.floor, gates.limit.ceiling
                outside = (low is not None and seen.value < low) or (high is not None and seen.value > high)
                if outside and seen.is_closed and self.is_steady:
                    self.judge.wrong.append(f"a closed read in {region} is {seen.value}, outside {gates.limit}")
                if outside:
                    self.tell("open reads outside")
                lane = gates.lanes[self.choices.pick(len(gates.lanes))]
                strongly = self.choices.pick(2) == 1
                try:
                    listed = yield from outcomes(lane, consistent=strongly)
                except LedgerError:
                    continue
                self.judge.history(lane, listed, whole=strongly and region == lane.region)

        return script
