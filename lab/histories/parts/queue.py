"""The calls of a ledger as programs, so that the rounds of the queue are played request by
request.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from ledger.client import preparing, programs
from ledger.client.preparing import Rules
from ledger.client.saga_steps import transfer_of
from ledger.client.transfer import transfer
from ledger.core.requests import AtOnce, Program, Result
from ledger.core.running import through
from ledger.core.settings import Settings
from ledger.core.values import Change, Transfer
from ledger.lane.add import Outcome


@dataclass
class Programs:
    """A ledger whose calls are programs, for the rounds of the queue."""

    _rules: Rules

    @property
    def settings(self) -> Settings:
        return self._rules.settings

    def _run(self, program: Program[Result]) -> Program[Result]:
        return program

    def add_many(self, changes: list[Change], *, pack: bool) -> Program[list[Outcome]]:
        deltas = preparing.prepare_many(self._rules, changes, pack)
        return through(programs.add_many(self._rules, deltas, pack), one_by_one)

    def transfer(self, source: str, target: str, amount: int, **given: Any) -> Program[Transfer]:
        return transfer(self._rules, transfer_of(source, target, amount, **given))


def one_by_one(request: Any) -> Generator[Any, Any, Any]:
    """The answer to a request; to programs that a table would run at once, what each returns."""
    if not isinstance(request, AtOnce):
        return (yield request)
    returned = []
    for part in request.parts:
        returned.append((yield from part))
    return returned
