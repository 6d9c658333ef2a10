"""`Sender`: sends what a Ledger asks for, a delta to its lane and a change of a limited counter to its gate.

Rule 1: the table's shape is asked for before the first request.
Rule 2: a counter with a limit has gates and no deltas; no other way leads to it.
Rule 3: a change that fails before anything was sent has its own error, with its delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ledger import add as deltas_of
from ledger.errors import InvalidInput, LedgerError, shown
from ledger.forks import PerProcess
from ledger.gate import answers
from ledger.gate.gates import Gates
from ledger.gate.sold_out import SoldOut
from ledger.gather import Gatherer
from ledger.packing import Outcome, add_packed, failed
from ledger.requests import Instant, Program, Result, Table, run
from ledger.settings import Settings
from ledger.shape import ShapeCheck
from ledger.values import Delta, Lane, Receipt

LANES_AT_ONCE = 8
"""Limited lanes of one batch that are asked at once."""


class Sender:
    """Thread-safe. gather: see Ledger."""

    def __init__(self, settings: Settings, table: Table, now: Callable[[], Instant], *, gather: bool) -> None:
        if type(gather) is not bool:
            raise InvalidInput(f"gather={shown(gather)} is not True or False.")
        self.settings = settings
        self._table = table
        self._now = now
        self._shape = ShapeCheck(settings)
        self._sold_out = SoldOut()
        self._gatherer = PerProcess(lambda: Gatherer(self._send)) if gather else None

    def close(self) -> None:
        if self._gatherer is not None:
            self._gatherer.value.close()

    def gates(self, counter: str) -> Gates | None:
        """The gates of a counter; None when it has no limit."""
        return Gates.of(self.settings, counter, self._sold_out)

    def limited(self, counter: str, caller: str) -> Gates:
        """As `gates`; raises InvalidInput when the counter has no limit."""
        return Gates.limited(self.settings, counter, caller, self._sold_out)

    def run(self, program: Program[Result]) -> Result:
        """Run a program once the shape is known to fit. Raises what both do."""
        self._shape.ask(self._table, self._now)
        return self._run(program)

    def _run(self, program: Program[Result]) -> Result:
        return run(program, self._table, self._now)

    def add(self, delta: Delta) -> Receipt:
        try:
            self._shape.ask(self._table, self._now)
        except LedgerError as error:
            error.delta = delta
            raise
        if self._gatherer is not None:
            return self._gatherer.value.add(delta)
        gates = self.gates(delta.lane.counter)
        return self._run(deltas_of.add(delta) if gates is None else answers.add(gates, delta))

    def add_many(self, deltas: Sequence[Delta], *, pack: bool) -> list[Outcome]:
        """An outcome for each, in order."""
        try:
            if deltas:
                self._shape.ask(self._table, self._now)
        except LedgerError as failure:
            return [failed(failure, delta) for delta in deltas]
        parts: dict[Lane | None, list[int]] = {}
        for i, delta in enumerate(deltas):
            is_limited = self.settings.limit_of(delta.lane.counter) is not None
            parts.setdefault(delta.lane if is_limited else None, []).append(i)

        def send(part: tuple[Lane | None, list[int]]) -> Iterable[tuple[int, Outcome]]:
            lane, places = part
            some = [deltas[i] for i in places]
            return zip(places, self._send_all(some, pack=pack) if lane is None else self._send(some), strict=True)

        at_once = 1 if getattr(self._table, "one_at_a_time", False) else min(len(parts), LANES_AT_ONCE)
        if at_once < 2:
            found = [each for part in parts.items() for each in send(part)]
        else:
            with ThreadPoolExecutor(at_once, thread_name_prefix="ledger-lanes") as workers:
                found = [each for some in workers.map(send, parts.items()) for each in some]
        return [outcome for _, outcome in sorted(found, key=lambda each: each[0])]

    def _send_all(self, deltas: Sequence[Delta], *, pack: bool) -> list[Outcome]:
        return self._run(add_packed(deltas) if pack else deltas_of.add_many(deltas))

    def _send(self, deltas: Sequence[Delta]) -> Sequence[Outcome]:
        """Changes of one lane: to its gate, or one change as `add` does and several in packs."""
        gates = self.gates(deltas[0].lane.counter)
        if gates is not None:
            return self._run(answers.add_many(gates, deltas))
        if len(deltas) > 1:
            return self._run(add_packed(deltas))
        try:
            return [self._run(deltas_of.add(deltas[0]))]
        except LedgerError as error:
            return [error]
