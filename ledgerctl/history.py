"""`history`: every change of a counter, in the order of time.

Rule 1: A stray is in it after the next settle.
"""

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer

from ledgerctl import show
from ledgerctl.arguments import Counter
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, command
from ledgerctl.rows import write_changes
from reader import Entry
from reader.calls import PAGE_ENTRIES_MAX


class Format(StrEnum):
    table = "table"
    jsonl = "jsonl"
    csv = "csv"


Since = Annotated[str | None, typer.Option(help="From this time on: 2010-12-01T08:26:00Z, or a date in UTC.")]
Until = Annotated[str | None, typer.Option(help="Before this time.")]


@command("history", COUNTERS)
def history(
    call: Call,
    counter: Counter,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first ones.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to print; --json means jsonl.")] = Format.table,
) -> None:
    """Show the changes of a counter, in the order of time."""
    entries = _entries(call, counter, since, until, limit)
    if call.json or format_ is not Format.table:
        write_changes(sys.stdout, "jsonl" if call.json else format_.value, ((counter, entry) for entry in entries))
        return
    total, rows = 0, []
    for entry in entries:
        total += entry.change
        rows.append((show.moment(entry.at), entry.region, entry.token, f"{entry.change:+,}", f"{total:,}"))
    call.table_of(("at", "Region", "token", "change", "sum so far"), rows, left=3)
    call.say(f"{show.counted(len(rows), 'change')} of {counter}, together {total:,}")
    call.note_cost()


def _entries(call: Call, counter: str, since: str | None, until: str | None, limit: int | None) -> Iterator[Entry]:
    """With a limit some pages; without one the whole history, which is one read and so whole in any Region."""
    bounds = {"since": show.time_typed(since), "until": show.time_typed(until)}
    if limit is None:
        return call.reader.history(counter, **bounds)

    def pages(left: int) -> Iterator[Entry]:
        after = None
        while left:
            page = call.reader.history_page(counter, **bounds, after=after, limit=min(left, PAGE_ENTRIES_MAX))
            yield from page.entries
            left, after = left - len(page.entries), page.next
            if after is None:
                return

    return pages(limit)
