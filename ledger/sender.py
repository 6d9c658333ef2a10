"""`Sender`: sends what a Ledger asks for (`calls.py`), from as many threads as there are.

Rule 1: with `gather` a change waits for the put of its lane that is in flight, and shares the next one (`gather.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ledger.calls import Calls
from ledger.clocks import PerProcess
from ledger.cost import carried
from ledger.dynamo.send import AtOnce
from ledger.errors import InvalidInput, LedgerError, shown
from ledger.gather import Gatherer
from ledger.lane.add import Outcome
from ledger.requests import Program, Request, Result, Table, drive, run
from ledger.values import Delta, Receipt

LANES_AT_ONCE = 8
"""Limited lanes of one batch that are asked at once."""


class Sender:
    """Thread-safe. gather: see Ledger."""

    def __init__(self, calls: Calls, table: Table, *, gather: bool) -> None:
        if type(gather) is not bool:
            raise InvalidInput(f"gather={shown(gather)} is not True or False.")
        self._calls = calls
        self._table = table
        self._gatherer = PerProcess(lambda: Gatherer(self._send)) if gather else None

    def close(self) -> None:
        if self._gatherer is not None:
            self._gatherer.value.close()

    def run(self, program: Program[Result]) -> Result:
        return run(program, self._table, self._calls.now)

    def add(self, delta: Delta) -> Receipt:
        if self._gatherer is None:
            return self.run(self._calls.add(delta))
        self.run(self._calls.check_shape(delta))
        return self._gatherer.value.add(delta)

    def add_many(self, deltas: Sequence[Delta | LedgerError], *, pack: bool) -> list[Outcome]:
        """An outcome for each, in order."""
        return drive(self._calls.add_many(deltas, pack=pack), self._answer)

    def _answer(self, request: Request | AtOnce) -> Any:
        if not isinstance(request, AtOnce):
            return self._table.answer(request)
        at_once = 1 if getattr(self._table, "one_at_a_time", False) else min(len(request.parts), LANES_AT_ONCE)
        if at_once < 2:
            return [*map(self.run, request.parts)]
        with ThreadPoolExecutor(at_once, thread_name_prefix="ledger-lanes") as workers:
            return [*workers.map(carried(self.run), request.parts)]

    def _send(self, deltas: Sequence[Delta]) -> Sequence[Outcome]:
        return self.run(self._calls.lane_outcomes(deltas))
