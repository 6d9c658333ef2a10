"""The judge of cost: what a change asks of the table once the faults of a history have ended, and
no more.

Rule 1: whatever came late, ahead of now, or was held and is over: what is changed now is paid for
by itself alone.
Rule 2: a gate remembers nothing of what need not be remembered.
Rule 3: a change asks at least for what it must, so a run that did nothing is not right.
Rule 4: nothing is asked of a Region that does not answer but once.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lab.histories.judges.gates import AtGates, GateJudge
from lab.histories.stage.stage import finish, one_of
from lab.measure.metered_table import Charge, charge_of, writes_of
from ledger.core import tokens
from ledger.core.errors import OutOfReach, Unavailable
from ledger.core.limit import DOWN, SIDES, UP
from ledger.core.requests import At, Program, Request, Result, Together
from ledger.core.running import through
from ledger.core.tokens import hold_token
from ledger.core.values import Delta, Lane
from ledger.gate import filing
from ledger.gate.decide import decide_change
from ledger.gate.gate import REFUSED, SLICE_MS, Gate, fingerprint
from ledger.gate.gates import Gates
from ledger.gate.move import free
from ledger.gate.sold_out import SoldOut

CHANGES, HOLDS = 40, 24
OLDEST_MS, AHEAD_MS = 8_100_000, 240_000


@dataclass(slots=True)
class Spent:
    """requests: by Region."""

    requests: Counter[str] = field(default_factory=Counter)
    units: Charge = field(default_factory=Charge)


class Cost(AtGates):
    takes = False
    """Whether callers ask for parts of changes, too."""

    def at_end(self) -> None:
        """Everything has arrived. Raises what must not fail any more."""
        limit, till = self.gates.limit, Till(self.gates, one_of(self.choices, self.gates.lanes))
        till.add(0)
        # so that few are near: need no look-up
        till.gap_ms = max(100, max(filing.SLACK_MS, till.gate.slack_ms or 0) // 4)
        till.of_now()
        till.late()
        for side in filter(limit.has, SIDES):
            till.cut_off(side)
        if None in (limit.floor, limit.ceiling):
            side = DOWN if limit.has(DOWN) else UP
            till.held(side)
            if self.takes:
                till.all_is_here(side)


@dataclass
class Till:
    judge: GateJudge
    lane: Lane
    spent: Spent = field(default_factory=Spent)
    sold_out: SoldOut = field(default_factory=SoldOut)
    number: int = 0
    gap_ms: int = 100

    def of_now(self) -> None:
        """Before them as many, among a backlog of hours and some ahead of now, for which nobody
        is to pay later.
        """
        for is_counted in (False, True):
            self.spent = Spent()
            for n in range(CHANGES):
                self._wait(self.gap_ms)
                self.add(0)
                if not is_counted and n < CHANGES // 2:
                    self.add(
                        0, old_ms=-AHEAD_MS if n % 4 == 3 else OLDEST_MS * (CHANGES - n) // CHANGES
                    )
        self._most(
            "changes of now", requests=3 * CHANGES, read_units=CHANGES // 8, write_units=8 * CHANGES
        )
        if min(self.spent.units.requests, self.spent.units.write_units) < CHANGES:
            self._wrong(
                f"{CHANGES} changes of now cost {self.spent.units}: they were not asked for"
            )
        known = [
            token for lane, token in (*self.judge.decided, *self.judge.open) if lane == self.lane
        ]
        low_ms = tokens.time_ms(self.gate.low)
        if not self.gate.moved <= {
            fingerprint(each) for each in known if tokens.time_ms(each) > low_ms - SLICE_MS
        }:
            self._wrong("its gate keeps fingerprints of what is not above low")

    def late(self) -> None:
        """One that is looked up, if anything was filed since."""
        self.spent = Spent()
        self.add(0, old_ms=60 * self.gap_ms)
        # Each unit may be a request of its own: a history may end a page after each segment.
        self._most("a late change", requests=28, read_units=24, write_units=24)

    def cut_off(self, side: str) -> None:
        """Each other Region is, in turn: who is short asks it once, and not again within a
        second.
        """
        for region in {lane.region for lane in self.judge.lanes} - {self.lane.region}:
            self.judge.world.cut = {region}
            self.spent, self.sold_out = Spent(), SoldOut()
            for _ in range(2):
                self._wait(1)
                try:
                    self.add(-1_000 if side == DOWN else 1_000)
                    self._wrong(f"decided although {region} could not be asked")
                except OutOfReach:
                    pass
            self.judge.world.cut = set()
            if (times := self.spent.requests[region]) != 1:
                self._wrong(f"{region} did not answer, and was asked {times} times")

    def held(self, side: str) -> None:
        """Many holds are over: who is short of one right pays for a few, and who needs all gets
        all.
        """
        one = -1 if side == DOWN else 1
        self._ask(free(self._gates, self.gate))
        self.add(-one * HOLDS)
        for _ in range(HOLDS):
            self._wait(1)
            self._ask(decide_change(self._gates, self._delta(one, hold_ms=1_000), hold=True))
        self._wait(2_000)
        self.spent = Spent()
        self.add(one * (self.gate.rights[side] + 1))
        self._most(
            "a change that is short of one right", requests=30, read_units=30, write_units=90
        )
        self._ask(free(self._gates, self.gate, side, self.gate.rights[side] + 1))
        self.spent = Spent()
        self.add(one * (HOLDS - 1))
        self._most(
            "a change that needs all",
            requests=20 * HOLDS,
            read_units=16 * HOLDS,
            write_units=10 * HOLDS,
        )

    def all_is_here(self, side: str) -> None:
        """Nobody else is asked for the rights of a change of which a part would do."""
        one = -1 if side == DOWN else 1
        self.add(-one * CHANGES)
        self.spent = Spent()
        for _ in range(CHANGES):
            self._wait(self.gap_ms)
            self._ask(decide_change(self._gates, self._delta(one), up_to=True))
        self._most(
            "parts of which all is here",
            requests=3 * CHANGES,
            read_units=CHANGES // 8,
            write_units=8 * CHANGES,
        )

    @property
    def _gates(self) -> Gates:
        return self.judge.gates_in(self.lane.region, self.sold_out)

    @property
    def gate(self) -> Gate:
        return self.judge.gates[self.lane]

    def _wait(self, ms: int) -> None:
        self.judge.world.now_ms += ms

    def _delta(self, change: int, *, old_ms: int = 0, hold_ms: int = 0) -> Delta:
        self.number += 1
        of = self.lane.counter, f"cost {self.number}", max(0, self.judge.world.now_ms - old_ms)
        delta = Delta(self.lane, hold_token(*of, hold_ms) if hold_ms else tokens.keyed(*of), change)
        self.judge.amounts[self.lane, delta.token] = change
        return delta

    def add(self, change: int, old_ms: int = 0) -> None:
        decision = self._ask(decide_change(self._gates, self._delta(change, old_ms=old_ms)))
        if decision.outcome == REFUSED:
            self._wrong(f"{change} is refused, and there is enough")

    def _ask(self, program: Program[Result]) -> Result:
        def step(request: Request) -> Program[Any]:
            region = request.region if isinstance(request, At) else self.lane.region
            asked = request.request if isinstance(request, At) else request
            parts = asked.requests if isinstance(asked, Together) else (asked,)
            there = self.judge.world.replicas[region].item
            writes = [[(write, there(write.key)) for write in writes_of(part)] for part in parts]
            try:
                answer = yield request
            except Unavailable:
                self.spent.requests[region] += isinstance(request, At)
                raise
            answers = answer if isinstance(asked, Together) else (answer,)
            for charge in map(charge_of, parts, answers, writes):
                self.spent.requests[region] += charge.requests
                self.spent.units += charge
            return answer

        return finish(self.judge.world, self.lane.region, through(program, step))

    def _most(self, what: str, *, requests: int, read_units: float, write_units: int) -> None:
        units = self.spent.units
        if (
            units.requests > requests
            or units.read_units > read_units
            or units.write_units > write_units
        ):
            self._wrong(f"{what} cost {units}")

    def _wrong(self, what: str) -> None:
        self.judge.wrong.append(f"{self.lane}: {what}")
