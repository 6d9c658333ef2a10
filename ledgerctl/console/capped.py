"""A table that lets a view take at most so many read units, and writes nothing.

Rule 1: A request is sent only if the most that AWS could charge for it is left. So no view takes
more than the page says before it begins.
Rule 2: Where several requests could take too much, half of them are sent before the others: as a
rule they take far less than they could.
"""

from collections.abc import Callable
from typing import Any

from ledger.core.errors import ReadTooLarge
from ledger.core.requests import At, Get, GetMany, Pause, Query, Request, Table, Together
from reader.bounded import units_of

PAGE_UNITS, ITEM_UNITS = 256, 100
"""Of a strong read: a page of a Query has at most 1 MB, an item at most 400 KB."""


class Purse:
    """The most that a view may take, and what is left of it. Only one view reads at a time."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.left: float = most


class Capped:
    """A table behind a purse."""

    def __init__(self, table: Table, purse: Purse) -> None:
        self._table, self._purse = table, purse

    def answer(self, request: Request, /) -> Any:
        """What the table answers. Raises ReadTooLarge, and TypeError for what is no read."""
        if isinstance(request, At):
            region = request.region
            return self._read(request.request, lambda inner: self._table.answer(At(region, inner)))
        return self._read(request, self._table.answer)

    def _read(self, request: Any, send: Callable[[Request], Any]) -> Any:
        most = most_of(request)
        if most <= self._purse.left:
            answer = send(request)
            self._purse.left -= units_of(request, answer)
            return answer
        if isinstance(request, Together | GetMany) and len(request[0]) > 1:
            kind: Any = type(request)
            half, (several, *others) = len(request[0]) // 2, request
            first = self._read(kind(several[:half], *others), send)
            return (*first, *self._read(kind(several[half:], *others), send))
        raise ReadTooLarge(
            f"This view could take more than {self._purse.most:,} read units, so it was ended. "
            "Start the console with more --units, or ask for a chart of a shorter time."
        )


def most_of(request: Any) -> float:
    """The most read units that AWS could charge for it. Raises TypeError for what is no read."""
    match request:
        case Together(requests):
            return sum(map(most_of, requests))
        case Get(_, consistent):
            units = ITEM_UNITS
        case GetMany(keys, consistent):
            units = ITEM_UNITS * len(keys)
        case Query(consistent=consistent):
            units = PAGE_UNITS
        case Pause():
            return 0
        case _:
            raise TypeError(f"The console only reads, and this is a {type(request).__name__}.")
    return units if consistent else units / 2
