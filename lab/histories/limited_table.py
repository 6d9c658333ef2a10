"""Who is at the gates in a history of a limited counter: sellers, buyers of holds, groups, operators and readers.

Rule 1: the calls of a process share what it remembers of counters that are sold out, until it crashes: recall.py.
"""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lab.histories.limited_judge import COUNTER, Asked, Judge
from lab.histories.recall import Memory
from lab.histories.theatre import LONG, PACE, SHORT, Theatre, one_of, rest
from ledger import tokens
from ledger.errors import LedgerError, LimitReached
from ledger.gate.answers import Decision
from ledger.gate.bounds import set_limit
from ledger.gate.decide import add_group, decide_change, decide_hold, end
from ledger.gate.gate import EXPIRED, REFUSED, RELEASED
from ledger.gate.gates import Gates
from ledger.gate.recount import outcomes, standing
from ledger.limit import DOWN, SIDES, UP
from ledger.requests import Now, Program
from ledger.tokens import hold_token
from simulator.choices import Choices
from simulator.process import Move, Script

TRIES = 12
HOURS_MS, AHEAD_MS = 9_000_000, 300_000
"""How late the changes of a backlog are at most, and how far ahead of now one may say that it is."""
OUTCOMES = {REFUSED: "refused", RELEASED: "released", EXPIRED: "expired"}


@dataclass
class Table:
    """What the processes of a history share. is_steady: whether nobody sets another limit."""

    theatre: Theatre
    judge: Judge
    counts: Counter[str] = field(default_factory=Counter)
    is_steady: bool = True

    @property
    def choices(self) -> Choices:
        return self.judge.world.choices

    def pick(self, options: int) -> int:
        return self.judge.world.choices.pick(options)

    def any_region(self) -> str:
        return one_of(self.choices, self.judge.world.regions)

    def enter_all(self) -> None:
        kinds = {"seller": self.seller, "buyer": self.buyer, "group": self.group}
        for number in range(4 + self.pick(9)):
            region = self.any_region()
            pace = one_of(self.choices, PACE)
            kind = one_of(self.choices, ("seller", "seller", "seller", "buyer", "group"))
            self.theatre.enter(f"{kind} {number}", region, kinds[kind](number, region, pace))
        for region in self.judge.world.regions:
            self.theatre.enter(f"reader {region}", region, self.reader(region))
        if self.judge.limit.region is not None and self.pick(3) == 2:
            self.is_steady = False
            for twin in range(1 + self.pick(2)):
                region = self.any_region()
                self.theatre.enter(f"operator {twin}", region, self.operator(region))

    def _ask(self, key: str, region: str, wall_ms: int, length_ms: int | None = None) -> Asked:
        step_ms = self.judge.world.step_ms
        late = one_of(self.choices, (0, 0, 0, 300, 1_000, 20_000, HOURS_MS // step_ms)) * step_ms
        time_ms = max(0, wall_ms - (self.pick(late) if late else 0))
        if self.pick(12) == 11:
            time_ms = wall_ms + self.pick(AHEAD_MS)
        token = (
            tokens.keyed(COUNTER, key, time_ms) if length_ms is None else hold_token(COUNTER, key, time_ms, length_ms)
        )
        amount = one_of(self.choices, (-1, -2, -3, 1, 2, 4))
        return self.judge.ask(self.judge.delta(token, region, amount), is_hold=length_ms is not None)

    def _remembers(self) -> Memory:
        return Memory(world=self.judge.world, skew_ms=self.theatre.faults.skew_ms)

    def _answered(self, one: Asked, decision: Decision, began: int, memory: Memory) -> None:
        known = decision.known
        self.counts["held" if known.held is not None else OUTCOMES.get(known.outcome or 0, "counted")] += 1
        since = memory.since(one.delta.change, began)
        if known.outcome == REFUSED and not decision.before and since < began:
            self.counts["refused from memory"] += 1
        self.judge.answered(one, decision, since)

    def _again(self, make: Callable[[], Program[Any]]) -> Generator[Any, Any, Any]:
        """What came of it in the end; None, where nobody could say."""
        for _ in range(TRIES):
            try:
                return (yield from make())
            except LedgerError:
                yield rest(self.choices, SHORT)
        return None

    def seller(self, number: int, region: str, pace: Sequence[int]) -> Callable[[], Script]:
        mine: list[Asked] = []

        def script() -> Script:
            memory = self._remembers()
            yield rest(self.choices, pace)
            for n in range(1 + self.pick(8)):
                if n >= len(mine):
                    if self.judge.asked and self.pick(6) == 5:  # a twin of somebody's message
                        mine.append(one_of(self.choices, self.judge.asked))
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
                if self.pick(3) == 2:
                    here = self.any_region()
                    yield Move(here)
                yield rest(self.choices, SHORT)
                continue
            self._answered(one, decision, began, memory)
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
            for n in range(1 + self.pick(12)):
                if n >= len(mine):
                    length_ms = one_of(self.choices, (50, 300, 2_000, 10**6)) * self.judge.world.step_ms
                    mine.append(self._ask(f"h{number}/{n}", region, (yield Now()).wall_ms, length_ms))
                    amount = mine[n].delta.change
                    part = int(amount * self.pick(3) / 2)
                    ends.append(one_of(self.choices, (amount, amount, part, RELEASED, None)))
                if not (yield from self._send(mine[n], region, memory)) or mine[n].outcome is not None:
                    continue
                yield rest(self.choices, (*SHORT, 300) if self.pick(3) else (0,))
                if (how := ends[n]) is not None:
                    yield from self._again(lambda: self._end(mine[n], how, region, memory))  # noqa: B023

        return script

    def _end(self, one: Asked, how: int, region: str, memory: Memory) -> Program[None]:
        began = memory.call()
        decision = yield from end(self.judge.gates_in(region, memory), one.delta, how)
        self._answered(one, decision, began, memory)
        if not decision.before:
            memory.came_back(*SIDES)
            if decision.known.outcome != how:
                self.judge.wrong.append(f"{one.delta.token} ended with {decision.known.outcome}, not {how}")

    def group(self, number: int, region: str, pace: Sequence[int]) -> Callable[[], Script]:
        mine: dict[str, Asked] = {}

        def script() -> Script:
            memory = self._remembers()
            yield rest(self.choices, pace)
            size = 2 + self.pick(5)
            while len(mine) < size:
                if self.judge.asked and self.pick(6) == 5:
                    one = one_of(self.choices, self.judge.asked)
                    if one.is_hold:
                        continue
                else:
                    one = self._ask(f"g{number}/{len(mine)}", region, (yield Now()).wall_ms)
                mine[one.delta.token] = one
            for _ in range(TRIES):
                if (yield from self._add(mine, region, memory)) and self.pick(3):
                    return
                yield rest(self.choices, SHORT)

        return script

    def _add(self, group: dict[str, Asked], region: str, memory: Memory) -> Generator[Any, Any, bool]:
        """In each lane; whether all have an answer."""
        began = memory.call()
        decided = True
        for lane in dict.fromkeys(one.delta.lane for one in group.values()):
            changes = {token: one.delta.change for token, one in group.items() if one.delta.lane == lane}
            answers = yield from add_group(self.judge.gates_in(region, memory), lane, changes)
            for token, decision in answers.items():
                if isinstance(decision, LedgerError):
                    decided = False
                else:
                    self._answered(group[token], decision, began, memory)
        return decided

    def operator(self, region: str) -> Callable[[], Script]:
        """Sets other limits now and then."""

        def script() -> Script:
            for _ in range(1 + self.pick(3)):
                yield rest(self.choices, LONG)
                gates = self.judge.gates_in(region)
                tighter = self.pick(7) - 2
                floor = None if gates.limit.floor is None else -6 + tighter
                ceiling = None if gates.limit.ceiling is None else max(9 - tighter, floor or 0)
                yield from self._again(lambda: _set_limit(gates, floor, ceiling))  # noqa: B023

        return script

    def reader(self, region: str) -> Callable[[], Script]:
        def script() -> Script:
            for _ in range(4 + self.pick(6)):
                yield rest(self.choices, LONG)
                with suppress(LedgerError):
                    yield from self._read(region)

        return script

    def _read(self, region: str) -> Program[None]:
        gates = self.judge.gates_in(region)
        seen = yield from standing(gates, consistent=bool(self.pick(2)))
        low, high = gates.limit.floor, gates.limit.ceiling
        if (low is not None and seen.value < low) or (high is not None and seen.value > high):
            self.counts["open reads outside"] += 1
            if seen.is_closed and self.is_steady:
                self.judge.wrong.append(f"a closed read in {region} is {seen.value}, outside {gates.limit}")
        lane = one_of(self.choices, gates.lanes)
        strongly = self.pick(2) == 1
        listed = yield from outcomes(lane, consistent=strongly)
        self.judge.history(lane, listed, whole=strongly and region == lane.region)


def _set_limit(gates: Gates, floor: int | None, ceiling: int | None) -> Program[None]:
    with suppress(LimitReached):
        yield from set_limit(gates, floor, ceiling)
