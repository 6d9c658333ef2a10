"""A bound on what one read takes of the table: `bound` sets it for a reader, `Spending` counts,
`bounded` ends a read.

Rule 1: units follow from the sizes of what comes, as AWS counts them (ledger/core/cost.py), so the
bound is the same on each table.
Rule 2: a read ends after the request that passes the bound, so it may take more by a page of each
lane.
"""

from collections.abc import Generator
from typing import Any, Protocol, TypeVar

from ledger.core.cost import item_bytes
from ledger.core.errors import InvalidInput, LedgerError, ReadTooLarge, shown
from ledger.core.requests import At, Get, GetMany, Page, Program, Query, Result, Together
from ledger.core.running import through

UNITS_MAX = 10**9
_UNIT_BYTES = 4_096


class Reads(Protocol):
    """A Reader or an AsyncReader."""

    _rules: Any


Of = TypeVar("Of", bound=Reads)


def bound(reader: Of, units: int) -> Of:
    """The reader. From now on its series, value at an instant or page of a history that would take
    more read units raises ReadTooLarge, and its page of names ends, perhaps without a name and with
    a `next`. For a service whose callers choose what it reads. Raises InvalidInput.
    """
    if not (type(units) is int and 1 <= units <= UNITS_MAX):
        raise InvalidInput(f"units is an int from 1 to {UNITS_MAX:,}, not {shown(units)}.")
    reader._rules.units = units
    return reader


def units_of(request: Any, answer: Any) -> float:
    """The read units of a request; 0 for one that failed, or reads nothing."""
    match request:
        case Together(requests):
            return sum(map(units_of, requests, answer))
        case At():
            return units_of(request.request, answer)
        case Query() if isinstance(answer, Page):
            return _units(sum(map(item_bytes, answer.items)), request.consistent)
        case Get() if not isinstance(answer, LedgerError):
            return _units(item_bytes(answer or {}), request.consistent)
        case GetMany() if not isinstance(answer, LedgerError):
            return sum(_units(item_bytes(item or {}), request.consistent) for item in answer)
    return 0


def _units(size_bytes: int, consistent: bool) -> float:
    return max(1, -(-size_bytes // _UNIT_BYTES)) / (1 if consistent else 2)


class Spending:
    """What a program has taken so far. most: how many read units it may take, or None."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.units = 0.0

    @property
    def is_over(self) -> bool:
        return self.most is not None and self.units >= self.most

    def step(self, request: Any) -> Generator[Any, Any, Any]:
        """For `through`: the request itself."""
        answer = yield request
        if self.most is not None:
            self.units += units_of(request, answer)
        return answer


def bounded(program: Program[Result], units: int | None, instead: str) -> Program[Result]:
    """The program, which ends by ReadTooLarge when it has taken more.

    instead: what its caller may ask for.
    """
    if units is None:
        return program
    spending = Spending(units)

    def step(request: Any) -> Generator[Any, Any, Any]:
        answer = yield from spending.step(request)
        if spending.units > units:
            raise ReadTooLarge(
                f"This read takes more than {units:,} read units, so it was ended. {instead}"
            )
        return answer

    return through(program, step)
