"""This library with a limit: a gate decides each change, in the Region where it was asked for.

Promises: no change takes the value past its floor or ceiling, whatever Regions write; a change that
is sent again is told what it was told the first time, for ever, also that it was refused. Limits: a
Region that has too little must ask the others, and decides nothing while it cannot.
By group commit: changes of many threads, which a Ledger decides by one Update while another is
under way.
Source: docs/limits.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from lab.designs.design import FOR_EVER, Claims, Design, Outcome
from ledger.core import tokens
from ledger.core.errors import LimitReached
from ledger.core.limit import Limit
from ledger.core.ranges import CHANGE_MAX
from ledger.core.requests import Program
from ledger.core.settings import Settings
from ledger.core.values import Delta
from ledger.gate import decide
from ledger.gate.copies import read_copies
from ledger.gate.gate import counts
from ledger.gate.gates import Gates
from ledger.gate.history import outcomes

ANYWHERE = "anywhere"
"""Gates are asked at their homes by name: a delivery may be handled in another Region than its
change was made in.
"""


@dataclass(frozen=True, kw_only=True)
class Limited(Design):
    """`settings`: ours, whose first Region has the first rights. `gathers`: threads that add at
    once are decided together."""

    name: str = "this library, a limit"
    settings: Settings
    gathers: bool = False
    ceiling: int | None = None
    claims: ClassVar = Claims(
        memory=FOR_EVER, mismatch=True, limit="everywhere", regions=True, history=True
    )

    def of(self, region: str, regions: tuple[str, ...]) -> Limited:
        return replace(self, settings=replace(self.settings, region=region, regions=regions))

    def add(self, counter: str, change: int, key: str, at_ms: int) -> Program[Outcome]:
        try:
            token = tokens.keyed(counter, key, at_ms)
            lane = self.settings.lane_for(counter, token, self.settings.region)
            receipt = yield from decide.add(self._gates(counter), Delta(lane, token, change))
        except LimitReached:
            return "refused"
        return receipt.outcome

    def value(self, counter: str, *, consistent: bool = True) -> Program[int]:
        return (yield from read_copies([self._gates(counter)], consistent=consistent))[0].value

    def history(self, counter: str) -> Program[list[int]]:
        changes: list[int] = []
        for lane in self._gates(counter).lanes:
            changes += filter(counts, (yield from outcomes(lane, consistent=True)).values())
        return changes

    def _gates(self, counter: str) -> Gates:
        floor = -CHANGE_MAX if self.ceiling is None else None
        limit = Limit(floor, self.ceiling, self.settings.regions[0])
        here = self.settings.region
        lanes = sorted(self.settings.lanes_of(counter), key=lambda lane: lane.region != here)
        return Gates(tuple(lanes), limit, ANYWHERE)
