"""Who is at the gates in a history of a limited counter: sellers, buyers of holds, groups,
operators and readers.

Rule 1: the calls of a process share what it remembers of counters that are sold out, until it
crashes: recall.py.
Rule 2: what it asked for outlives a crash, as messages do that come again.
"""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lab.histories.judges.answers import Asked, Conflicted, Decided, Listed, Stood
from lab.histories.judges.gates import COUNTER, GateJudge
from lab.histories.judges.last_words import Failed, Heard
from lab.histories.parts.recall import Memory
from lab.histories.stage.stage import LONG, PACE, SHORT, Stage, one_of, rest
from ledger.core import tokens
from ledger.core.errors import LedgerError, LimitReached, TokenConflict, TransactionConflict
from ledger.core.limit import DOWN, SIDES, UP
from ledger.core.requests import Now, Program
from ledger.core.tokens import hold_token
from ledger.gate.answer import Decision
from ledger.gate.copies import read_copies
from ledger.gate.decide import add_group, add_up_to, decide_change
from ledger.gate.gate import EXPIRED, REFUSED, RELEASED
from ledger.gate.gates import Gates
from ledger.gate.history import outcomes
from ledger.gate.holds import end
from ledger.gate.set_limit import set_limit
from simulator.choices import Choices
from simulator.process import Move, Script

TRIES = 12
HOURS_MS, AHEAD_MS = 9_000_000, 300_000
"""How late the changes of a backlog are at most, and how far ahead of now one may say that it
is.
"""
KINDS = ("seller", "seller", "seller", "buyer", "group")
TAKERS = ("taker", "taker", "taker", "seller", "buyer", "group")
OUTCOMES = {REFUSED: "refused", RELEASED: "released", EXPIRED: "expired"}


@dataclass
class Caller:
    """A process that asks for changes or holds.

    ends: how each of its holds is to end; None: with its time.
    """

    name: str
    region: str
    mine: list[Asked] = field(default_factory=list)
    ends: list[int | None] = field(default_factory=list)
    memory: Memory = field(init=False)
    named: tuple[str, str, int] | None = None
    """The counter, the key and the time of a change of which a part may count, until it asks for
    another one under that key."""


@dataclass
class Callers:
    """What the processes of a history share. is_steady: whether nobody sets another limit. kinds:
    of those who ask for changes and holds."""

    stage: Stage
    judge: GateJudge
    is_steady: bool = True
    kinds: Sequence[str] = KINDS

    @property
    def counts(self) -> Counter[str]:
        return self.stage.counts

    @property
    def choices(self) -> Choices:
        return self.judge.world.choices

    def pick(self, options: int) -> int:
        return self.choices.pick(options)

    def any_region(self) -> str:
        return one_of(self.choices, self.judge.world.regions)

    def enter_all(self) -> None:
        roles = {
            "seller": (self._sells, ""),
            "buyer": (self._buys, "h"),
            "group": (self._adds_at_once, "g"),
            "taker": (self._takes, "t"),
        }
        for number in range(4 + self.pick(9)):
            region = self.any_region()
            pace = one_of(self.choices, PACE)
            kind = one_of(self.choices, self.kinds)
            role, prefix = roles[kind]
            caller = Caller(f"{prefix}{number}", region)
            self.stage.enter(f"{kind} {number}", region, partial(self._calls, caller, role, pace))
        for region in self.judge.world.regions:
            self.stage.enter(f"reader {region}", region, partial(self._reads, region))
        if self.judge.limit.region is not None and self.pick(3) == 2:
            self.is_steady = False
            for twin in range(1 + self.pick(2)):
                region = self.any_region()
                self.stage.enter(f"operator {twin}", region, partial(self._sets_limits, region))

    def _calls(
        self, caller: Caller, role: Callable[[Caller], Script], pace: Sequence[int]
    ) -> Script:
        caller.memory = Memory(world=self.judge.world, skew_ms=self.stage.faults.skew_ms)
        yield rest(self.choices, pace)
        yield from role(caller)

    # -- who asks for changes

    def _sells(self, caller: Caller) -> Script:
        for n in range(1 + self.pick(8)):
            if n >= len(caller.mine):
                caller.mine.append((yield from self._one(caller)))
            yield from self._send(caller, caller.mine[n])
            yield rest(self.choices, SHORT)

    def _buys(self, caller: Caller) -> Script:
        for n in range(1 + self.pick(12)):
            if n >= len(caller.mine):
                length_ms = one_of(self.choices, (50, 300, 2_000, 10**6)) * self.judge.world.step_ms
                caller.mine.append(self._ask(caller, (yield Now()).wall_ms, length_ms))
                amount = caller.mine[n].delta.change
                part = int(amount * self.pick(3) / 2)
                caller.ends.append(one_of(self.choices, (amount, amount, part, RELEASED, None)))
            hold, how = caller.mine[n], caller.ends[n]
            if not (yield from self._send(caller, hold)) or hold.outcome is not None:
                continue
            yield rest(self.choices, (*SHORT, 300) if self.pick(3) else (0,))
            if how is not None:
                yield from self._again(partial(self._end, caller, hold, how))

    def _takes(self, caller: Caller) -> Script:
        for n in range(1 + self.pick(8)):
            if n >= len(caller.mine):
                caller.mine.append((yield from self._one_up_to(caller)))
            yield from self._send(caller, caller.mine[n])
            yield rest(self.choices, SHORT)

    def _one_up_to(self, caller: Caller) -> Generator[Any, Any, Asked]:
        """A change of which a part may count; a twin of somebody's, perhaps with another amount;
        or a change under the key of the one before.
        """
        amount = one_of(self.choices, (1, 2, 5, 12, 30))
        if self.pick(6) == 5 and (others := [one for one in self.judge.asked if one.up_to]):
            twin = one_of(self.choices, others)
            amount = amount if twin.delta.change > 0 else -amount
            return replace(twin, delta=replace(twin.delta, change=amount))
        if self.pick(6) == 5 and caller.named is not None:
            token, caller.named = tokens.keyed(*caller.named), None
            return self.judge.ask(self.judge.delta(token, caller.region, self._amount()))
        side = one_of(self.choices, [*filter(self.judge.limit.has, SIDES)])
        amount = amount if side == UP else -amount
        caller.named = self._named(caller, (yield Now()).wall_ms)
        token = tokens.keyed(*caller.named, tokens.UP_TO)
        return self.judge.ask(self.judge.delta(token, caller.region, amount), up_to=True)

    def _adds_at_once(self, caller: Caller) -> Script:
        size = 2 + self.pick(5)
        while len(caller.mine) < size:
            one = yield from self._one(caller)
            if not one.is_hold and not one.up_to and one not in caller.mine:
                caller.mine.append(one)
        for _ in range(TRIES):
            if (yield from self._add(caller)) and self.pick(3):
                return
            yield rest(self.choices, SHORT)

    def _one(self, caller: Caller) -> Generator[Any, Any, Asked]:
        """A change of its own, or a twin of somebody's message."""
        if self.judge.asked and self.pick(6) == 5:
            return one_of(self.choices, self.judge.asked)
        return self._ask(caller, (yield Now()).wall_ms)

    def _ask(self, caller: Caller, wall_ms: int, length_ms: int | None = None) -> Asked:
        of = self._named(caller, wall_ms)
        token = tokens.keyed(*of) if length_ms is None else hold_token(*of, length_ms)
        return self.judge.ask(
            self.judge.delta(token, caller.region, self._amount()), is_hold=length_ms is not None
        )

    def _named(self, caller: Caller, wall_ms: int) -> tuple[str, str, int]:
        step_ms = self.judge.world.step_ms
        late = one_of(self.choices, (0, 0, 0, 300, 1_000, 20_000, HOURS_MS // step_ms)) * step_ms
        time_ms = max(0, wall_ms - (self.pick(late) if late else 0))
        if self.pick(12) == 11:
            time_ms = wall_ms + self.pick(AHEAD_MS)
        return COUNTER, f"{caller.name}/{len(caller.mine)}", time_ms

    def _amount(self) -> int:
        return one_of(self.choices, (-1, -2, -3, 1, 2, 4))

    def _send(self, caller: Caller, one: Asked) -> Generator[Any, Any, bool]:
        """Until it has an answer, from wherever the message comes by."""
        region = caller.region
        for _ in range(TRIES):
            began, heard = caller.memory.call(), Heard()
            try:
                gates = self.judge.gates_in(region, caller.memory)
                program = decide_change(gates, one.delta, hold=one.is_hold)
                decision = yield from heard.of(_taken(gates, one) if one.up_to else program)
            except TokenConflict as conflict:
                self.stage.answered(Conflicted(one, conflict.counts))
                yield Move(caller.region)
                return True
            except LedgerError as error:
                self.stage.answered(Failed(heard, error))
                self.counts["conflicts"] += isinstance(error, TransactionConflict)
                if self.pick(3) == 2:
                    region = self.any_region()
                    yield Move(region)
                yield rest(self.choices, SHORT)
                continue
            self._answered(caller, one, decision, began)
            if not decision.before and decision.outcome != REFUSED:
                caller.memory.came_back(UP if one.delta.change < 0 else DOWN)
            yield Move(caller.region)
            return True
        yield Move(caller.region)
        return False

    def _end(self, caller: Caller, one: Asked, how: int) -> Program[None]:
        began, heard = caller.memory.call(), Heard()
        try:
            decision = yield from heard.of(
                end(self.judge.gates_in(caller.region, caller.memory), one.delta, how)
            )
        except LedgerError as error:
            self.stage.answered(Failed(heard, error))
            raise
        self._answered(caller, one, decision, began, how)
        if not decision.before:
            caller.memory.came_back(*SIDES)

    def _add(self, caller: Caller) -> Generator[Any, Any, bool]:
        """A group, lane by lane; whether all have an answer."""
        began = caller.memory.call()
        group = {one.delta.token: one for one in caller.mine}
        decided = True
        for lane in dict.fromkeys(one.delta.lane for one in caller.mine):
            changes = {
                token: one.delta.change for token, one in group.items() if one.delta.lane == lane
            }
            gates, heard = self.judge.gates_in(caller.region, caller.memory), Heard()
            answers = yield from heard.of(add_group(gates, lane, changes))
            for token, decision in answers.items():
                if isinstance(decision, LedgerError):
                    self.stage.answered(Failed(heard, decision, (token,)))
                    decided = False
                else:
                    self._answered(caller, group[token], decision, began)
        return decided

    def _answered(
        self,
        caller: Caller,
        one: Asked,
        decision: Decision,
        began: int,
        how: int | None = None,
    ) -> None:
        self.counts[
            "held" if decision.held is not None else OUTCOMES.get(decision.outcome or 0, "counted")
        ] += 1
        is_part = one.up_to and decision.outcome not in (REFUSED, one.delta.change)
        self.counts["parts"] += is_part
        since = began if is_part else caller.memory.since(one.least, began)
        self.stage.answered(Decided(one, decision, since, how))

    def _again(self, make: Callable[[], Program[None]]) -> Script:
        """Until it was done, or nobody could say."""
        for _ in range(TRIES):
            try:
                return (yield from make())
            except LedgerError:
                yield rest(self.choices, SHORT)

    # -- who looks on

    def _sets_limits(self, region: str) -> Script:
        for _ in range(1 + self.pick(3)):
            yield rest(self.choices, LONG)
            gates = self.judge.gates_in(region)
            tighter = self.pick(7) - 2
            floor = None if gates.limit.floor is None else -6 + tighter
            ceiling = None if gates.limit.ceiling is None else max(9 - tighter, floor or 0)
            yield from self._again(partial(_set_limit, gates, floor, ceiling))

    def _reads(self, region: str) -> Script:
        for _ in range(4 + self.pick(6)):
            yield rest(self.choices, LONG)
            with suppress(LedgerError):
                yield from self._read(region)

    def _read(self, region: str) -> Program[None]:
        gates = self.judge.gates_in(region)
        (seen,) = yield from read_copies([gates], consistent=bool(self.pick(2)))
        if self.is_steady:
            self.stage.answered(Stood(region, seen, gates.limit))
        lane = one_of(self.choices, gates.lanes)
        strongly = self.pick(2) == 1
        listed = yield from outcomes(lane, consistent=strongly)
        self.stage.answered(Listed(lane, listed, strongly and region == lane.region))


def _taken(gates: Gates, one: Asked) -> Program[Decision]:
    """How much of a change counts, as its caller is told."""
    try:
        receipt = yield from add_up_to(gates, one.delta)
    except LimitReached as refused:
        return Decision(REFUSED, before=refused.replayed)
    return Decision(receipt.change, before=receipt.outcome == "replayed")


def _set_limit(gates: Gates, floor: int | None, ceiling: int | None) -> Program[None]:
    with suppress(LimitReached):
        yield from set_limit(gates, floor, ceiling)
