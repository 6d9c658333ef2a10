"""What the demo prints: what is about to happen, how far it is, and what was shown; on any terminal, or on none.

Rules: no line of ours is wider than 80 columns or needs more than ASCII; what moves is drawn on a terminal that can
move its cursor, elsewhere there is a line now and then; colours are the console's business (NO_COLOR, a pipe).
"""

from __future__ import annotations

import itertools
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from demo.events import WITNESS_CHANGES
from demo.play import Outcome
from demo.table import busiest, summary

NAME_MAX = 20
LINES = 10
"""How often a console that cannot draw is told how far it is."""


def opening(name: str, events: int, witnesses: int) -> str:
    """The first three lines. `witnesses`: how many of all events are theirs."""
    name = name if len(name) <= NAME_MAX else f"...{name[3 - NAME_MAX :]}"
    return (
        f"Two Regions count {events:,} events of {name} and {witnesses:,} to check by,\n"
        "while answers get lost, events come twice, and the link between them is cut.\n"
        "Then three designs are held against the truth: this library and two naive ones."
    )


class Screen:
    """How far the demo is; `with` it, call `advance` and `say` as Play does."""

    def __init__(self, console: Console, events: int) -> None:
        self._console, self._events = console, events
        self._drawn = console.is_terminal and not console.is_dumb_terminal
        self._delivered = itertools.count(1)
        columns = (
            TextColumn("{task.fields[delivered]:,} of {task.total:,} events"),
            BarColumn(20),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self._progress = Progress(*columns, console=console, disable=not self._drawn)
        self._task = self._progress.add_task("playing", total=events, delivered=0)

    def __enter__(self) -> Screen:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, where: TracebackType | None) -> None:
        self._progress.stop()

    def advance(self, count: int) -> None:
        """`count` more events are delivered: 1, or 0 for one that came again."""
        if count:
            number = next(self._delivered)
            # The last one stays open: what is done after it keeps the clock running.
            self._progress.update(self._task, completed=min(number, self._events - 1), delivered=number)
            if not self._drawn and number % max(1, self._events // LINES) == 0:
                self._console.print(f"{number:,} of {self._events:,} events")

    def say(self, text: str) -> None:
        """What is going on."""
        self._progress.update(self._task, description=text)
        if not self._drawn:
            self._console.print(text)


def closing(console: Console, outcome: Outcome, seconds: float) -> bool:
    """What happened, the tables, and in the last line what was proved; whether it was."""
    console.print(
        f"{outcome.deliveries:,} deliveries in {seconds:.0f} s, of them again: {outcome.redeliveries:,}\n"
        f"answers lost: {outcome.answers_lost:,}, fail-overs: {outcome.fail_overs:,}, "
        f"partitions: {outcome.partitions:,}\n"
        f"A witness takes 4^0 to 4^{WITNESS_CHANGES - 1}: a 2 in base 4 is a change counted twice."
    )
    console.print(summary(outcome))
    console.print(busiest(outcome))
    for design in outcome.designs:
        if outcome.reads[design.name].example:
            console.print(f"{design.name}, for example: {outcome.reads[design.name].example}", markup=False)
    if outcome.ours_is_exact:
        console.print("[bold green]Every number of ours is right, in both Regions, and every read was a true sum.[/]")
    else:
        console.print("[bold red]A number of ours is wrong.[/] Please report it, with the events and the seed.")
    return outcome.ours_is_exact
