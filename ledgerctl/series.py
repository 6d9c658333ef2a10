"""`series`: what changed of a counter in each step of time, as bars, as a table or as a file.

Rule 1: The steps are those of `Reader.series`; only `--last` is worked out here, by the zone's
clocks.
Rule 2: A bar begins at 0, so what goes down lies on the other side of it.
"""

import sys
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

import typer
from rich.bar import Bar

from ledger.client.message import time_text
from ledger.core.checks import to_datetime
from ledger.core.period import zone_of
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import Counter, command
from ledgerctl.failures import Wrong
from ledgerctl.history import Format, write_rows
from reader.steps import STEPS_MAX

COLUMNS = ("start", "end", "change", "count", "value")
BAR_WIDTH = 24
LAST = 30


class Every(StrEnum):
    hour = "hour"
    day = "day"
    week = "week"
    month = "month"


StepLength = Annotated[Every, typer.Option(help="How long a step is.")]
Last = Annotated[
    int | None,
    typer.Option(min=1, max=STEPS_MAX, help="How many steps; default: 30, or all from --since on."),
]
Since = Annotated[
    str | None, typer.Option(help="Begin with the step that has this time, or this date.")
]
Until = Annotated[
    str | None, typer.Option(help="End at this time, which may be in the future; default: now.")
]
Zone = Annotated[
    str | None, typer.Option(help="The time zone of the days, such as Europe/Paris; default: UTC.")
]
Printed = Annotated[Format, typer.Option("--format", help="How to print; --json means jsonl.")]


@command("series")
def series(
    call: Call,
    counter: Counter,
    every: StepLength = Every.day,
    last: Last = None,
    since: Since = None,
    until: Until = None,
    zone: Zone = None,
    format_: Printed = Format.table,
) -> None:
    """Show how a counter changed in each hour, day, week or month."""
    if last is not None and since is not None:
        raise Wrong(
            "Contradiction", "--last and --since both say where to begin.", "Give one of them."
        )
    first, end = (show.time_typed(text, zone_of(zone)) for text in (since, until))
    if first is None:
        now = end - timedelta(milliseconds=1) if end else to_datetime(call.surroundings.clock())
        first = back(now.astimezone(zone_of(zone)), every, (last or LAST) - 1)
    found = call.reader.series(counter, since=first, until=end, every=every.value, zone=zone)
    if call.json or format_ is not Format.table:
        files = (
            (time_text(s.start), time_text(s.end), s.change, s.count, s.value) for s in found.steps
        )
        write_rows(sys.stdout, "jsonl" if call.json else format_.value, COLUMNS, files)
        return
    spelled = "%Y-%m-%d %H:%M" if every is Every.hour else "%Y-%m-%d"
    changes = [step.change for step in found.steps]
    low, high = min(0, *changes), max(0, *changes)
    rows = [
        (
            f"{step.start:{spelled}}",
            Bar(
                max(1, high - low),
                min(0, step.change) - low,
                max(0, step.change) - low,
                width=BAR_WIDTH,
            ),
            *(f"{step.change:+,}", f"{step.count:,}", f"{step.value:,}"),
        )
        for step in found.steps
    ]
    call.table_of((f"{every} from", "", "change", "changes", "value"), rows, left=2)
    call.note_cost()


def back(now: datetime, every: Every, steps: int) -> datetime:
    """A time in the step so many before that of `now`, by the clocks of its zone."""
    if every is Every.month:
        months = now.year * 12 + now.month - 1 - steps
        return now.replace(year=max(1, months // 12), month=months % 12 + 1, day=1)
    if every is Every.hour:
        return to_datetime(int(now.timestamp() * 1_000) - steps * 3_600_000)
    return now - steps * timedelta(days=7 if every is Every.week else 1)
