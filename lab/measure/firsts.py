"""What the first call of a limited counter asks for: requests, round trips and write units."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from lab.measure.figure import Figure
from lab.measure.goals import goal
from lab.measure.metered_table import START_MS, TABLE, MeteredTable
from ledger import Ledger, Settings
from ledger.core.keep import Keep
from ledger.core.limit import Limit
from ledger.core.requests import Instant, Pause, Request, Together
from ledger.core.running import run
from ledger.lane import shape
from ledger.tables.dynamo import ByRegion

COUNTER = "seats:gala"


@dataclass(slots=True)
class Waited:
    """A table that counts requests, and how often somebody waits for an answer: once for all that
    is asked Together.
    """

    table: MeteredTable
    requests: int = 0
    round_trips: int = 0

    def answer(self, request: Request, /) -> Any:
        if not isinstance(request, Pause):
            self.requests += len(request.requests) if isinstance(request, Together) else 1
            self.round_trips += 1
        return self.table.answer(request)


class First(NamedTuple):
    """Of the first call of a counter."""

    requests: int
    round_trips: int
    write_units: int


def first(
    call: Callable[[Ledger], object], regions: int = 1, *, at: int = 0, shaped: bool = True
) -> First:
    """What the first call of a counter asks for, in a table whose items arrive everywhere at once.

    at: in which Region; the first one has the first rights. shaped: whether the table has a shape,
    which the process knows.
    """
    names = tuple(f"eu-west-{number}" for number in range(1, regions + 1))
    table = Waited(MeteredTable())
    settings = Settings(
        table=TABLE,
        region=names[at],
        regions=names,
        limits={
            "seats:": Limit(ceiling=100, region=names[0]),
            "quota:": Limit(ceiling=100, region=names[0]),
        },
        periods={"quota:": Keep(late=timedelta(days=1), keep=timedelta(days=90))},
    )
    tables = dict.fromkeys(names, table)
    if shaped:
        now = partial(Instant, START_MS, START_MS)
        run(shape.write(settings), ByRegion(names[at], tables), now)
    ledger = Ledger(settings, tables=tables, clock=lambda: START_MS)
    if shaped:
        ledger.add("another", 1)
    requests, round_trips, units = table.requests, table.round_trips, table.table.cost.write_units
    call(ledger)
    return First(
        table.requests - requests,
        table.round_trips - round_trips,
        table.table.cost.write_units - units,
    )


def first_add(ledger: Ledger) -> object:
    return ledger.add(COUNTER, 1)


def firsts(small: bool) -> Iterator[Figure]:
    asked = first(first_add)
    yield goal("limited: requests of a counter's first add", asked.requests)
    yield goal("limited: round trips of a counter's first add", asked.round_trips)
    yield goal("limited: write units of a counter's first add", asked.write_units)
    of_all = first(first_add, shaped=False).requests
    yield goal("limited: requests of the first add in a table without a shape", of_all)


PARTS = (firsts,)
