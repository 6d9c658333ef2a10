"""The events that the demo counts: a user's file, or a generated day of a shop; and the truth about them.

Rules: the truth is summed here from the rows alone, with no code of the counter; a row that cannot be an event stops
the demo with its line number; witness counters take the changes 4^0, 4^1, …, so that a read names the changes it holds.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

WITNESSES, WITNESS_CHANGES = 24, 28
OPENING = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Event:
    counter: str
    change: int
    key: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Columns:
    """How a row becomes an event: templates over the header's names. A minus before a number turns its sign."""

    counter: str = "stock:{stock_code}"
    change: str = "-{quantity}"
    key: str = "{invoice}/{line}"
    at: str = "{invoiced_at}"


class BadEvents(Exception):
    """The file cannot be used; the message names the line and what to do. Nothing was counted."""


def read_events(path: Path, columns: Columns, limit: int | None = None) -> list[Event]:
    """The events of a CSV file with a header, in its order; at most `limit`. Raises BadEvents."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            events = [_event(row, columns, rows.line_num) for _, row in zip(_upto(limit), rows, strict=False)]
    except (OSError, UnicodeDecodeError) as error:
        raise BadEvents(f"{path} cannot be read: {error}") from None
    if not events:
        raise BadEvents(f"{path} has no rows below its header.")
    return events


def _upto(limit: int | None) -> Iterable[int]:
    return range(10**12 if limit is None else limit)


def _event(row: Mapping[str, str], columns: Columns, line: int) -> Event:
    try:
        change = columns.change.format_map(row)
        sign = -1 if change.startswith("-") else 1
        at = datetime.fromisoformat(columns.at.format_map(row))
        if at.utcoffset() is None:
            raise ValueError(f"the time {at.isoformat()} has no zone")
        return Event(
            columns.counter.format_map(row), sign * int(change.removeprefix("-")), columns.key.format_map(row), at
        )
    except KeyError as error:
        raise BadEvents(
            f"line {line}: there is no column {error}; the header has {', '.join(map(str, row))}."
        ) from None
    except (ValueError, IndexError) as error:
        raise BadEvents(f"line {line}: {error}.") from None


def shop_day(seed: int, count: int = 3_000) -> list[Event]:
    """A day of a shop: `count` sales and returns of 60 articles, a few of them in great demand."""
    rng = random.Random(seed)
    articles = [f"stock:{rng.randrange(20_000, 90_000)}{rng.choice(['', 'A', 'B', 'C'])}" for _ in range(60)]
    demand = [1 / (rank + 1) for rank in range(len(articles))]
    seconds = sorted(rng.uniform(0, 10 * 3600) for _ in range(count))
    return [
        Event(
            rng.choices(articles, demand)[0],
            rng.randint(1, 6) if rng.random() < 0.06 else -rng.choice([1, 1, 1, 2, 2, 3, 6, 12, 24]),
            f"{536_000 + i // 3}/{i}",
            OPENING + timedelta(seconds=round(second, 3)),
        )
        for i, second in enumerate(seconds)
    ]


def witness_events(events: list[Event], seed: int) -> list[Event]:
    """Changes of powers of four, spread over the times of `events`."""
    rng = random.Random(seed)
    return [
        Event(f"witness:{w:02}", 4**k, f"{w}/{k}", rng.choice(events).at + timedelta(milliseconds=rng.randrange(1000)))
        for w in range(WITNESSES)
        for k in range(WITNESS_CHANGES)
    ]


def truth_of(events: Iterable[Event]) -> dict[str, int]:
    """Every counter's true value: each (counter, key, time) once. Raises BadEvents where one key means two changes."""
    changes: dict[tuple[str, str, datetime], int] = {}
    for event in events:
        if changes.setdefault((event.counter, event.key, event.at), event.change) != event.change:
            raise BadEvents(f"the key {event.key!r} of {event.counter} stands for two different changes at {event.at}.")
    truth: Counter[str] = Counter()
    for (counter, _, _), change in changes.items():
        truth[counter] += change
    return dict(truth)
