"""`history` and `export`: every change of a counter, for people or for another program.

Rule 1: An entry is written as `import` can take it back: counter, change, at, token, Region.
Rule 2: With the token the same change counts once, wherever it is imported.
Rule 3: `history` has a stray only after the next settle. `export` must lose nothing, so it asks for the strays first
and reads the history then: whoever is settled in between is in both, and is taken once.
"""

import csv
import heapq
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from compactor.listing import strays
from ledger.message import time_text
from ledger.values import Delta
from ledgerctl import completion, show
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, command
from ledgerctl.failures import Wrong
from ledgerctl.get import Counter
from ledgerctl.lanes import Scan, added_to, found
from reader import Entry
from reader.calls import PAGE_ENTRIES_MAX

FIELDS = ("counter", "change", "at", "token", "region")


class Format(StrEnum):
    table = "table"
    jsonl = "jsonl"
    csv = "csv"


class FileFormat(StrEnum):
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
        write(sys.stdout, "jsonl" if call.json else format_.value, ((counter, entry) for entry in entries))
        return
    total = count = 0
    rows = []
    for entry in entries:
        total, count = total + entry.change, count + 1
        rows.append((show.moment(entry.at), entry.region, entry.token, show.signed(entry.change), f"{total:,}"))
    if rows:
        call.out.print(show.table(("at", "Region", "token", "change", "sum so far"), rows, left=3))
    call.say(f"{show.counted(count, 'change')} of {counter}, together {total:,}")
    call.note(show.cost(call.meter.take()))


@command("export", COUNTERS)
def export(
    call: Call,
    counters: Annotated[
        list[str] | None,
        typer.Argument(help="Some counters; without them, all of the prefix.", autocompletion=completion.counters),
    ] = None,
    prefix: Annotated[str, typer.Option(help="All counters whose names begin so.")] = "",
    out: Annotated[Path | None, typer.Option(help="A new file; without it, standard output.")] = None,
    format_: Annotated[FileFormat, typer.Option("--format", help="jsonl or csv.")] = FileFormat.jsonl,
    scan: Scan = False,
) -> None:
    """Write all changes as a file that `import` takes back.

    Each has its token, so none counts twice. Strays are among them. Lanes outside --regions are not seen.
    """
    seen = None if counters else found(call, prefix, scan=scan)
    names = seen.counters if seen else added_to(call, counters or ())
    late = 0
    with _opened(out) as file, show.bar(call.err, "exporting", len(names)) as bar:

        def every() -> Iterator[tuple[str, Entry]]:
            nonlocal late
            for name in names:
                of_deltas = call.settings.lanes_of(name) if call.settings.limit_of(name) is None else ()
                waiting = [delta for lane in of_deltas for delta in call.run(strays(lane))]
                late += len(waiting)
                for entry in with_strays(call.reader.history(name), waiting):
                    yield name, entry
                bar.advance()

        count = write(file, format_.value, every())
    what = f"{show.counted(count, 'change')} of {show.counted(len(names), 'counter')}"
    if late:
        call.note(f"strays among them, which no read counts yet: {late:,}", None)
    limits = seen.limits if seen else ""
    call.note(f"{what} to {out or 'standard output'}{limits}; {show.cost(call.meter.take())}", None)


def write(file: TextIO, format_: str, entries: Iterator[tuple[str, Entry]]) -> int:
    """Entries, one a line; how many they were."""
    rows: Any = csv.DictWriter(file, FIELDS, lineterminator="\n") if format_ == "csv" else None
    if rows:
        rows.writeheader()
    count = 0
    for counter, entry in entries:
        fields = dict(zip(FIELDS, (counter, entry.change, time_text(entry.at), entry.token, entry.region), strict=True))
        if rows:
            rows.writerow(fields)
        else:
            file.write(json.dumps(fields) + "\n")
        count += 1
    return count


def entry_of(delta: Delta) -> Entry:
    return Entry(delta.token, delta.at, delta.change, delta.lane.region)


def with_strays(history: Iterable[Entry], waiting: Iterable[Delta]) -> Iterator[Entry]:
    """The entries of a counter in the order of their tokens, each change once."""

    def place(entry: Entry) -> tuple[str, str]:
        return entry.token, entry.region

    of_strays = sorted((entry_of(delta) for delta in waiting), key=place)
    settled: set[tuple[str, str]] = set()
    names = {place(entry) for entry in of_strays}
    for entry in heapq.merge(history, of_strays, key=lambda entry: entry.token):
        if place(entry) not in names:
            yield entry
        elif place(entry) not in settled:
            settled.add(place(entry))
            yield entry


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


@contextmanager
def _opened(out: Path | None) -> Iterator[TextIO]:
    if out is None:
        yield sys.stdout
        return
    try:
        file = out.open("x", encoding="utf-8", newline="")
    except FileExistsError:
        raise Wrong("FileExists", f"{out} is there already.", "Name a new file.") from None
    try:
        with file:
            yield file
    except BaseException:  # half an export looks like a whole one
        out.unlink()
        raise
