"""The judge of the end of periods: what is kept can be read, what is left is carried, and what is
over retires.

Rule 1: whatever is kept is right in each Region, and no change that was said to count is lacking.
Rule 2: whoever is short gets all that the period before has left, as far as it may be carried.
Rule 3: when all has retired nothing of it is left, and all else is.
"""

from contextlib import suppress
from typing import Any

from compactor.report import Tally
from compactor.verify import verify_gates
from compactor.visit import visit
from lab.histories.judges.periods import CARRY, LIMITED, PLAIN, PeriodJudge
from lab.histories.stage.judge import Judge
from lab.histories.stage.stage import REGIONS, finish
from ledger.client import programs
from ledger.core.checks import to_datetime
from ledger.core.errors import LimitReached
from ledger.core.limit import UP
from ledger.core.requests import Key
from ledger.core.values import Change, Lane
from ledger.gate import items as gates
from ledger.gate.gates import Gates
from reader.rules import Rules as Reads


class PeriodsAtEnd(Judge):
    def __init__(self, periods: PeriodJudge) -> None:
        self.periods, self.world, self.wrong = periods, periods.world, periods.wrong

    def at_end(self) -> None:
        world = self.world
        world.quiesce()
        now_ms = world.now_ms
        kept = [
            name for name in self.periods.names() if now_ms < self.periods.term(name).kept_until_ms
        ]
        for region in REGIONS[:2]:
            calls = self.periods.reads(region)
            for name in kept:
                self._is_right(region, name, calls)
        for name in kept:
            term, before = self.periods.term(name), self.periods.before(name)
            if term.base in LIMITED and before.end_ms <= now_ms < min(
                before.kept_until_ms, term.end_ms
            ):
                self.short(name)
        self._retires()

    def _is_right(self, region: str, name: str, calls: Reads) -> None:
        world = self.world
        if self.periods.term(name).base in PLAIN:
            for lane in self.periods.settings.lanes_of(name):
                finish(world, lane.region, visit(lane, Tally(), self.periods.own(lane.region)))
            world.quiesce()
            value = finish(world, region, calls.balances([name]))[name].value
            self.periods.check_value(name, value)
            counted = [one for one in self.periods.asked if one.name == name and one.counted]
            if missing := [one.key for one in counted if not value // 4**one.number % 4]:
                self.wrong.append(f"{name} in {region} lacks {missing}")
            return
        made = Gates.limited(self.periods.own(region), name, "the end")
        for check in finish(world, region, verify_gates(made)):
            self.wrong += check.differences

    def short(self, name: str) -> None:
        """Somebody is short of more than there is: all that the period before has left has come
        by then.
        """
        world, before = self.world, self.periods.before(name)
        rules = self.periods.rules(REGIONS[0])
        change = Change(name, 10**6, "short", to_datetime(world.now_ms))
        delta = self.periods.prepared(rules, change)
        with suppress(LimitReached):
            finish(world, REGIONS[0], programs.add(rules, delta))
        old, new = self._first(before.name), self._first(name)
        carried = old.carried if old is not None else 0
        is_over = world.now_ms >= before.end_ms
        left = self.periods.judge(before.name).left()[UP] if old is not None and is_over else 0
        if new.took != carried or carried > CARRY or (carried < CARRY and left > 0):
            self.wrong.append(
                f"{name} took {new.took}; {before.name} carried {carried}, and {left} are left "
                "there"
            )

    def _first(self, name: str) -> Any:
        lane = Lane(REGIONS[0], 0, name)
        item = self.world.replicas[REGIONS[0]].item(gates.gate_key(lane))
        return gates.gate_of(lane, item) if item is not None else None

    def _retires(self) -> None:
        """All of it goes, and nothing else."""
        world = self.world
        others = [key for key in self._keys() if not self._is_of_period(key)]
        world.now_ms = (
            max((self.periods.term(name).retires_s for name in self.periods.names()), default=0)
            * 1_000
            + 10**9
        )
        for _ in range(3):
            for region, key in world.expired():
                world.expire(region, key)
            world.quiesce()
        left = self._keys()
        if of_periods := [key for key in left if self._is_of_period(key)]:
            self.wrong.append(f"{len(of_periods)} items never retire, such as {of_periods[0]}")
        if gone := [key for key in others if key not in left]:
            self.wrong.append(f"{gone[0]} is gone, and is of no period")

    def _keys(self) -> list[Key]:
        cells = self.world.replicas[REGIONS[0]].cells
        return [
            Key(pk, sk)
            for pk, of in cells.items()
            for sk, cell in of.items()
            if cell.item is not None
        ]

    def _is_of_period(self, key: Key) -> bool:
        return "@" in key.pk or "@" in key.sk
