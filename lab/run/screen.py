"""What the demo prints: what is about to happen, how far it is, and what was shown; on any terminal, or on none.

Rule 1: No line of ours is wider than 80 columns or needs more than ASCII.
Rule 2: What moves is drawn on a terminal that can move its cursor, elsewhere there is a line now and then.
Rule 3: The summary and the verdict come last and fit 24 lines with the prompt.
Rule 4: Colours are the console's business (NO_COLOR, a pipe), and nothing is said by colour alone.
"""

import itertools
import time
from collections.abc import Iterable
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lab.demo.delivery import PLAY_MIN_S
from lab.demo.outcome import REGIONS, Outcome
from lab.events import is_witness

BUSIEST = 5
NAME_MAX = 20
LABEL = 18
LINES = 10  # how often a console that cannot draw is told how far it is
EVENTS_PER_S = 70  # what two free cores deliver, to all four designs
REST_S = 25  # what comes after the last event: the late ones, then rest


def opening(name: str, events: int, witnesses: int) -> str:
    """The first four lines. `witnesses`: how many of all events are theirs."""
    name = name if len(name) <= NAME_MAX else f"...{name[3 - NAME_MAX :]}"
    seconds = max(PLAY_MIN_S, (events + witnesses) / EVENTS_PER_S) + REST_S
    return (
        f"Two Regions count {events:,} events of {name} and {witnesses:,} to check by,\n"
        "while answers get lost, events come twice or late, and the link between is cut.\n"
        "Then four ways to count are held against the truth: two of ours, two naive ones.\n"
        f"On two free cores that takes {about(seconds)}."
    )


def about(seconds: float) -> str:
    """A time as one says it: to ten seconds, from two minutes on to a minute, from two hours on to an hour."""
    for unit, size in (("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {max(10, round(seconds, -1)):.0f} s"


class Screen:
    """How far the demo is; use it in a `with`, and tell it what a Run does."""

    def __init__(self, console: Console, events: int) -> None:
        self._console, self._events = console, events
        self._drawn = console.is_terminal and not console.is_dumb_terminal
        self._delivered = itertools.count(1)
        self._said = ""
        columns = (
            TextColumn("{task.fields[delivered]:,} of {task.total:,} events"),
            BarColumn(10),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self._progress = Progress(*columns, console=console, disable=not self._drawn)
        self._task = self._progress.add_task("", total=events, delivered=0)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance(self, count: int) -> None:
        """`count` more events are delivered: 1, or 0 for one that came again."""
        if not count:
            return
        number = next(self._delivered)
        left = (time.monotonic() - self._began) / number * (self._events - number) + REST_S
        step = number % max(1, self._events // LINES) == 0 and number < self._events
        # The last one stays open: what is done after it keeps the clock running.
        self._progress.update(self._task, completed=min(number, self._events - 1), delivered=number)
        if self._drawn and not self._said:
            self._progress.update(self._task, description=f"{about(left)} to go")
        if not self._drawn and step:
            self._console.print(f"{number:,} of {self._events:,} events, {about(left)} to go")

    def say(self, text: str) -> None:
        """A part of the run begins."""
        self._said = text
        self._progress.update(self._task, description=text)
        if not self._drawn:
            self._console.print(text)

    def link(self, whole: bool) -> None:
        """The link between the Regions was cut or healed: seen where it is drawn, and not worth a line elsewhere."""
        self._said = "" if whole else "the link is cut"
        self._progress.update(self._task, description=self._said)


def closing(console: Console, outcome: Outcome, seconds: float) -> bool:
    """What happened, the tables, and at the end what was proved, or what was not and why; whether it was."""
    report, packed = outcome.ours.report, outcome.packed
    parts = ", ".join(f"{part} {s:.0f} s" for part, s in outcome.seconds.items())
    console.print(
        f"{seconds:.0f} s: {parts}\n"
        f"deliveries: {outcome.deliveries:,}, again: {outcome.redeliveries:,}, late: {outcome.late:,}, "
        f"answers lost: {outcome.answers_lost:,}\n"
        f"partitions: {outcome.partitions:,}, fail-overs: {outcome.fail_overs:,}\n"
        f"this library: {report.folded:,} folded, {report.settled:,} settled, {report.cleaned:,} cleaned\n"
        f"in packs: {packed.report.folded:,} folded, {packed.report.settled:,} settled, "
        f"{packed.report.cleaned:,} cleaned, {packed.accepted:,} accepted together"
    )
    console.print(busiest(outcome))
    console.print(summary(outcome))
    for design in outcome.designs:
        if example := outcome.reads[design.name].example:
            console.print(f"{design.name} read {escape(example)}")
    wrong, not_shown = outcome.numbers_wrong, outcome.not_shown
    if wrong:
        console.print("[bold red]A number of ours is wrong.[/] Please report it, with the events and the seed:")
    elif not_shown:
        console.print("[bold red]This run shows too little.[/] No number of ours is wrong, but:")
    else:
        console.print("[bold green]Every number of ours is right, in both Regions, and every read was a true sum.[/]")
    for sentence in [*wrong, *not_shown]:
        console.print(f"- {sentence}")
    return not (wrong or not_shown)


def summary(outcome: Outcome) -> Table:
    """What each design says of the file's counters and of the witnesses, and what it took. Fits 80 columns."""
    counters = [counter for counter in outcome.truth if not is_witness(counter)]
    witnesses = [counter for counter in outcome.truth if is_witness(counter)]
    table = _table(outcome, f"{len(counters):,} counters and {len(witnesses)} witnesses")

    def row(label: str, cells: Iterable[str], truth: str = "", end: bool = False) -> None:
        table.add_row(label, truth, *cells, end_section=end)

    def mistakes(label: str, found: Iterable[int], end: bool = False) -> None:
        row(label, (f"[{'bold red' if count else 'green'}]{count:,}[/]" for count in found), end=end)

    designs, changes = outcome.designs, outcome.changes
    reads = [outcome.reads[design.name] for design in designs]
    writes = [design.writes.total() for design in designs]
    true_sum = sum(outcome.truth[counter] for counter in counters)
    for region in REGIONS:
        values = [outcome.values[design.name][region] for design in designs]
        sums = (sum(v.get(c, 0) for c in counters) for v in values)
        row(f"sum in {region}", (_held(each, true_sum) for each in sums), f"{true_sum:,}")
        mistakes("  counters wrong", (outcome.wrong(d, region, counters) for d in designs))
        mistakes("  witnesses wrong", (outcome.wrong(d, region, witnesses) for d in designs), end=True)
    row("counters read", (f"{each.made:,}" for each in reads))
    mistakes("  not a true sum", (each.untrue for each in reads))
    mistakes("  lacking a change", (each.short for each in reads), end=True)
    row("requests / change", (f"{each.requests / changes:.2f}" for each in writes))
    row("write units *", (f"{each.writes_in(len(REGIONS)) / changes:.2f}" for each in writes))
    row("read units / read", (f"{each.read_units / max(1, each.made):.2f}" for each in reads))
    table.caption, table.caption_justify = (
        "* a change, in both Regions together, with compaction and all faults",
        "left",
    )
    return table


def busiest(outcome: Outcome) -> Table:
    """The counters with the most changes, by name, as the first Region reads them."""
    table = _table(outcome, f"the busiest counters, read in {REGIONS[0]}")
    counters = sorted(outcome.sizes, key=lambda counter: -outcome.sizes[counter])
    for counter in [counter for counter in counters if not is_witness(counter)][:BUSIEST]:
        truth = outcome.truth[counter]
        values = (outcome.values[design.name][REGIONS[0]].get(counter, 0) for design in outcome.designs)
        cells = (_held(value, truth) for value in values)
        table.add_row(counter[:LABEL].replace("[", "\\["), f"{truth:,}", *cells)
    return table


def _held(value: int, truth: int) -> str:
    """A value, red where it is not the truth."""
    return f"{value:,}" if value == truth else f"[bold red]{value:,}[/]"


def _table(outcome: Outcome, title: str) -> Table:
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", min_width=LABEL)
    table.add_column("truth", justify="right")
    for design in outcome.designs:
        table.add_column(design.name, justify="right")
    return table
