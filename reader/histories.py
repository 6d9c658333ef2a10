"""The history of a counter, whole or by pages: those of its lanes (`history.py`, `decided.py`), in
the order of time.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter

from ledger.core import tokens
from ledger.core.checks import check_counter
from ledger.core.requests import Program
from ledger.core.values import Lane
from reader.balance import Change, Entry, HistoryPage, Position, entries_of
from reader.bounded import bounded
from reader.checks import above as above_of
from reader.checks import bound_ms, check_page
from reader.decided import decided, decided_page
from reader.history import changes, page
from reader.history import history as of_lane
from reader.rules import Rules

INSTEAD = "Ask for fewer entries, for a shorter time, or without a bound."
AFTER_ALL = b"\xff" * 17  # follows the bytes of every token


def history(
    rules: Rules, counter: str, *, since: datetime | None = None, until: datetime | None = None
) -> Program[Iterator[Entry]]:
    counter = check_counter(counter)
    since_ms, until_ms = bound_ms("since", since), bound_ms("until", until)
    settings, consistent = rules.settings, rules.consistent
    lanes = settings.lanes_of(counter)
    yield from rules.first(counter)
    found: list[Iterable[Change]] = []
    for lane in lanes:
        if settings.limit_of(counter) is not None:
            found.append((yield from decided(lane, consistent=consistent)))
        else:
            limit_ms = settings.read_time_max_ms
            whole = yield from of_lane(lane, consistent=consistent, read_time_max_ms=limit_ms)
            found.append(changes(lane, *whole))
    every = heapq.merge(*found, key=itemgetter(0)) if len(found) > 1 else found[0]
    if (since_ms, until_ms) != (None, None):
        first = tokens.first_of(since_ms or 0)
        end = AFTER_ALL if until_ms is None else tokens.first_of(until_ms)
        every = (change for change in every if first <= change[0] < end)
    return entries_of(every)


def history_page(
    rules: Rules,
    counter: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    after: Position | None = None,
    limit: int = 100,
) -> Program[HistoryPage]:
    counter = check_counter(counter)
    check_page(limit, after, Position)
    since_ms, until_ms = bound_ms("since", since), bound_ms("until", until)
    lanes = rules.settings.lanes_of(counter)
    if until_ms is not None and until_ms <= 0:
        return HistoryPage((), None)
    upto = None if until_ms is None else tokens.last_of(until_ms - 1)
    yield from rules.first(counter)
    entries = _entries(rules, lanes, since_ms, after, upto, limit + 1)
    found = yield from bounded(entries, rules.units, INSTEAD)
    found.sort(key=lambda entry: (entry.token, entry.region))
    last = found[limit - 1] if len(found) > limit else None
    after = None if last is None else Position(last.token, last.region)
    return HistoryPage(tuple(found[:limit]), after)


def _entries(
    rules: Rules,
    lanes: Sequence[Lane],
    since_ms: int | None,
    after: Position | None,
    upto: str | None,
    most: int,
) -> Program[list[Entry]]:
    """The first entries of each lane that a page may have."""
    found: list[Entry] = []
    for lane in lanes:
        above = above_of(lane, since_ms, after)
        if above is None or upto is None or above < upto:
            found += yield from _page(rules, lane, above, upto, most)
    return found


def _page(
    rules: Rules, lane: Lane, above: str | None, upto: str | None, most: int
) -> Program[list[Entry]]:
    settings, consistent = rules.settings, rules.consistent
    if settings.limit_of(lane.counter) is not None:
        return decided_page(lane, above, upto, most, consistent=consistent)
    limit_ms = settings.read_time_max_ms
    return page(
        lane,
        above,
        upto,
        most,
        consistent=consistent,
        read_time_max_ms=limit_ms,
        at_home=lane.region == settings.region,
    )
