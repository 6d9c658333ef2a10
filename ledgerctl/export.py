"""`export`: every change of some counters as a file that `import` takes back.

Rule 1: It must lose nothing, so it asks for the strays first and reads the history then: whoever is settled in between
is in both, and is taken once.
"""

import heapq
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from compactor.listing import strays
from ledger.values import Delta
from ledgerctl import completion, show
from ledgerctl.arguments import FileFormat, Scan
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, command
from ledgerctl.failures import Wrong
from ledgerctl.lanes import added_to, found
from ledgerctl.rows import write_changes
from reader import Entry


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
    with _opened(out) as file, show.bar(call.err, "exporting", len(names)) as advance:

        def every() -> Iterator[tuple[str, Entry]]:
            nonlocal late
            for name in names:
                of_deltas = call.settings.lanes_of(name) if call.settings.limit_of(name) is None else ()
                waiting = [delta for lane in of_deltas for delta in call.run(strays(lane))]
                late += len(waiting)
                for entry in with_strays(call.reader.history(name), waiting):
                    yield name, entry
                advance(1)

        count = write_changes(file, format_.value, every())
    if late:
        call.note(f"strays among them, which no read counts yet: {late:,}", None)
    what = f"{show.counted(count, 'change')} of {show.counted(len(names), 'counter')} to {out or 'standard output'}"
    call.note(f"{what}{seen.limits if seen else ''}; {show.cost(call.meter.take())}", None)


def with_strays(history: Iterable[Entry], waiting: Iterable[Delta]) -> Iterator[Entry]:
    """The entries of a counter in the order of their tokens, each change once."""
    late = {(each.token, each.lane.region): each for each in waiting}
    entries = [Entry(each.token, each.at, each.change, each.lane.region) for each in late.values()]
    entries.sort(key=lambda entry: (entry.token, entry.region))
    left = set(late)
    for entry in heapq.merge(history, entries, key=lambda entry: entry.token):
        place = entry.token, entry.region
        if place in left or place not in late:
            left.discard(place)
            yield entry


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
