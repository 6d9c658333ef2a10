"""The events that the demo counts: a user's file, or a generated day of a shop; and the truth about
them.

Rule 1: The truth is summed here from the rows alone, with no code of the counter.
Rule 2: A row that a ledger would refuse stops the demo before it begins, with its line number.
Rule 3: Witness counters take the changes 4^0, 4^1, …, so that a read names the changes it holds.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from ledger import Ledger, Settings
from ledger.core.errors import InvalidInput
from ledger.tables.memory import MemoryTable
from ledgerctl.failures import Wrong
from ledgerctl.forms import opened
from ledgerctl.rows import BadRow, Columns, Row, change_of, check_template, rows_of

WITNESSES, WITNESS_CHANGES = 24, 28
_CHECKING = Ledger(Settings(table="checking", region="eu-west-1"), table=MemoryTable())
"""Refuses what a ledger refuses; nothing is ever put."""

RETURNS = 0.06
OPENING = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Event:
    counter: str
    change: int
    key: str
    at: datetime


SHOP = Columns("sales:{stock_code}", "{quantity}", "{invoice}/{line}", "{invoiced_at}")
"""How a row of a shop's file becomes an event: an article's counter holds how many were sold."""


class BadEvents(Exception):
    """The file cannot be used; the message names the line and what to do. Nothing was counted."""


def read_events(path: Path, columns: Columns, limit: int | None = None) -> list[Event]:
    """The events of a CSV file with a header, in its order; at most `limit`. Raises BadEvents."""
    try:
        with opened(path, "csv", None) as (form, lines):
            names, rows = rows_of(lines, form)
            for option, template in asdict(columns).items():
                check_template(option, template, names, form)
            events = [_event(row, columns) for row in islice(rows, limit)]
    except Wrong as error:
        raise BadEvents(str(error)) from None
    except OSError as error:
        raise BadEvents(f"{path} cannot be read: {error.strerror}.") from None
    if not events:
        raise BadEvents(f"{path} has no rows below a header.")
    return events


def _event(row: Row, columns: Columns) -> Event:
    """One row's event, which a ledger would accept.

    Raises BadEvents with the line and the option.
    """
    try:
        if row.why is not None:
            raise BadRow(row.why)
        change = change_of(columns, row.fields)
        _CHECKING.prepare(
            change.counter, change.change, idempotency_key=change.idempotency_key, at=change.at
        )
    except BadRow as error:
        raise BadEvents(f"line {row.line}: {error}") from None
    except InvalidInput as error:
        raise BadEvents(f"line {row.line}: {error.why}") from None
    assert change.idempotency_key is not None
    assert change.at is not None
    return Event(change.counter, change.change, change.idempotency_key, change.at)


def shop_day(seed: int, count: int = 3_000) -> list[Event]:
    """A day of a shop: `count` sales and returns of 60 articles, a few of them in great demand."""
    rng = random.Random(seed)
    articles = [
        f"sales:{rng.randrange(20_000, 90_000)}{rng.choice(['', 'A', 'B', 'C'])}" for _ in range(60)
    ]
    demand = [1 / (rank + 1) for rank in range(len(articles))]
    seconds = sorted(rng.uniform(0, 10 * 3600) for _ in range(count))
    return [
        Event(
            rng.choices(articles, demand)[0],
            -rng.randint(1, 6)
            if rng.random() < RETURNS
            else rng.choice([1, 1, 1, 2, 2, 3, 6, 12, 24]),
            f"{536_000 + i // 3}/{i}",
            OPENING + timedelta(seconds=round(second, 3)),
        )
        for i, second in enumerate(seconds)
    ]


def with_witnesses(events: list[Event], seed: int, count: int = WITNESSES) -> list[Event]:
    """These events and, spread over their times, changes of powers of four; in the order of
    time.
    """
    rng = random.Random(seed)
    witnesses = [
        Event(
            f"witness:{w:02}",
            4**k,
            f"{w}/{k}",
            rng.choice(events).at + timedelta(milliseconds=rng.randrange(1000)),
        )
        for w in range(count)
        for k in range(WITNESS_CHANGES)
    ]
    return sorted([*events, *witnesses], key=lambda event: event.at)


def is_witness(counter: str) -> bool:
    return counter.startswith("witness:")


def truth_of(events: Iterable[Event]) -> dict[str, int]:
    """Every counter's true value: each (counter, key, time) once.

    Raises BadEvents where one key means two changes.
    """
    changes: dict[tuple[str, str, datetime], int] = {}
    for event in events:
        if changes.setdefault((event.counter, event.key, event.at), event.change) != event.change:
            raise BadEvents(
                f"the key {event.key!r} of {event.counter} stands for two different changes at "
                f"{event.at}."
            )
    truth: Counter[str] = Counter()
    for (counter, _, _), change in changes.items():
        truth[counter] += change
    return dict(truth)
