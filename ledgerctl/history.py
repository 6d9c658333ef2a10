"""`history` and `export`: every change of a counter in the order of time, and those of many as a
file for `import`.

Rule 1: A stray is in a history after the next settle. An export must lose nothing, so it reads the
strays first and the
history then: it takes a stray that a settle moves in between once.
Rule 2: A row of an export has its token, by which it counts once, wherever you import it.
"""

import csv
import heapq
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from compactor.listing import strays
from ledger.client.message import time_text
from ledger.core.values import Delta
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import Counter, Counters, FileFormat, Prefix, Scan, command
from ledgerctl.failures import Wrong
from ledgerctl.lanes import chosen
from reader import Entry
from reader.checks import PAGE_ENTRIES_MAX

COLUMNS = ("counter", "change", "at", "token", "region")


class Format(StrEnum):
    table = "table"
    jsonl = "jsonl"
    csv = "csv"


@command("history")
def history(
    call: Call,
    counter: Counter,
    since: Annotated[
        str | None, typer.Option(help="From this time on: 2010-12-01T08:26:00Z, or a date in UTC.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Before this time.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Show at most this many, the first ones.")
    ] = None,
    format_: Annotated[
        Format, typer.Option("--format", help="How to print; --json means jsonl.")
    ] = Format.table,
) -> None:
    """Show the changes of a counter, in the order of time."""
    bounds = {"since": show.time_typed(since), "until": show.time_typed(until)}
    # without a limit the whole history, which is one read and so whole in any Region
    entries = (
        call.reader.history(counter, **bounds)
        if limit is None
        else _pages(call, counter, bounds, limit)
    )
    if call.json or format_ is not Format.table:
        write_changes(
            sys.stdout,
            "jsonl" if call.json else format_.value,
            ((counter, entry) for entry in entries),
        )
        return
    total, rows = 0, []
    for entry in entries:
        total += entry.change
        rows.append(
            (show.moment(entry.at), entry.region, entry.token, f"{entry.change:+,}", f"{total:,}")
        )
    call.table_of(("at", "Region", "token", "change", "sum so far"), rows, left=3)
    call.say(f"{show.counted(len(rows), 'change')} of {counter}, together {total:,}")
    call.note_cost()


def _pages(call: Call, counter: str, bounds: dict[str, Any], left: int) -> Iterator[Entry]:
    after = None
    while left:
        page = call.reader.history_page(
            counter, **bounds, after=after, limit=min(left, PAGE_ENTRIES_MAX)
        )
        yield from page.entries
        left, after = left - len(page.entries), page.next
        if after is None:
            return


@command("export")
def export(
    call: Call,
    counters: Counters = None,
    prefix: Prefix = "",
    out: Annotated[
        Path | None, typer.Option(help="A new file; without it, standard output.")
    ] = None,
    format_: Annotated[
        FileFormat, typer.Option("--format", help="jsonl or csv.")
    ] = FileFormat.jsonl,
    scan: Scan = False,
) -> None:
    """Write all changes to a file that `import` can read.

    Each row has its token, so none counts twice. The file has strays, too. It lacks lanes outside
    --regions.
    """
    names, seen = chosen(call, counters, prefix, scan=scan)
    late = 0
    shown = out is not None or not call.out.is_terminal
    with _opened(out) as file, call.progress("counters", len(names), shown=shown) as more:

        def every() -> Iterator[tuple[str, Entry]]:
            nonlocal late
            for name in names:
                of_deltas = (
                    call.settings.lanes_of(name) if call.settings.limit_of(name) is None else ()
                )
                waiting = [delta for lane in of_deltas for delta in call.run(strays(lane))]
                late += len(waiting)
                for entry in with_strays(call.reader.history(name), waiting):
                    yield name, entry
                more()

        count = write_changes(file, format_.value, every())
    if late:
        call.note(f"of these, strays that no read counts yet: {late:,}", None)
    what = (
        f"{show.counted(count, 'change')} of {show.counted(len(names), 'counter')} to "
        f"{out or 'standard output'}"
    )
    call.note(f"{what}{seen.limits}; {show.cost(call.meter.take())}", None)


def with_strays(history: Iterable[Entry], waiting: Iterable[Delta]) -> Iterator[Entry]:
    """The entries of a counter in the order of their tokens, each change once."""
    late = {(each.token, each.lane.region): each for each in waiting}
    if not late:
        yield from history
        return
    entries = [
        Entry(each.token, each.at, each.change, each.lane.region)
        for _, each in sorted(late.items())
    ]
    taken = set()
    for entry in heapq.merge(history, entries, key=lambda entry: entry.token):
        place = entry.token, entry.region
        if place not in taken:
            yield entry
        if place in late:
            taken.add(place)


def write_changes(file: TextIO, format_: str, entries: Iterator[tuple[str, Entry]]) -> int:
    """Write entries of counters, one a line. Returns their number."""
    return write_rows(
        file,
        format_,
        COLUMNS,
        (
            (counter, each.change, time_text(each.at), each.token, each.region)
            for counter, each in entries
        ),
    )


def write_rows(
    file: TextIO, format_: str, columns: Sequence[str], every: Iterable[Sequence[object]]
) -> int:
    """Write rows as CSV with a header or as JSONL. Returns their number."""
    rows, count = csv.writer(file, lineterminator="\n"), 0
    if format_ == "csv":
        rows.writerow(columns)
    for count, values in enumerate(every, 1):  # noqa: B007
        if format_ == "csv":
            rows.writerow(values)
        else:
            file.write(json.dumps(dict(zip(columns, values, strict=True))) + "\n")
    return count


@contextmanager
def _opened(out: Path | None) -> Iterator[TextIO]:
    if out is None:
        yield sys.stdout
        return
    try:
        file = out.open("x", encoding="utf-8", newline="")
    except FileExistsError:
        raise Wrong(
            "FileExists", f"{out} is there already. Nothing was written.", "Name a new file."
        ) from None
    try:
        with file:
            yield file
    except BaseException:  # half an export looks like a whole one
        out.unlink()
        raise
