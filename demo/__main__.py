"""`python -m demo` (`make demo`): two Regions count real events, and two designs that go wrong count beside them."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from demo.engine import EngineMissing, end_on_signals
from demo.events import (
    SHOP,
    WITNESS_CHANGES,
    WITNESSES,
    BadEvents,
    Event,
    read_events,
    shop_day,
    truth_of,
    witness_events,
)
from demo.play import Outcome, Play
from demo.table import busiest, summary
from infra.ledgerctl.templates import Columns


def main(
    events: Annotated[
        Path | None, typer.Option(help="A CSV file with a header. Without it, a shop's day is generated.")
    ] = None,
    counter: Annotated[str, typer.Option(help="Template of a counter's name over the file's columns.")] = SHOP.counter,
    change: Annotated[str, typer.Option(help="Template of a change: a whole number.")] = SHOP.change,
    key: Annotated[str, typer.Option(help="Template of the idempotency key.")] = SHOP.key,
    at: Annotated[str, typer.Option(help="Template of the time, ISO 8601 with a zone.")] = SHOP.at,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first rows of the file.")] = None,
    seed: Annotated[int, typer.Option(help="Decides the generated day and all faults.")] = 1,
) -> None:
    """Count events in two Regions at once, exactly, while everything goes wrong.

    Exit code: 0 when every number of ours is right, 1 when one is wrong, 2 when the events cannot be used.
    """
    end_on_signals()
    console = Console(highlight=False, soft_wrap=True)
    try:
        shop = read_events(events, Columns(counter, change, key, at), limit) if events else shop_day(seed)
        played = sorted([*shop, *witness_events(shop, seed)], key=lambda event: event.at)
        truth_of(played)
        console.print(
            f"{len(shop):,} events of {events or 'a generated shop day'}, counted in two Regions with\n"
            "redeliveries, lost answers, fail-overs, partitions, compactors and readers at work.\n"
            f"{WITNESSES} witness counters take 4^0 … 4^{WITNESS_CHANGES - 1}: a 2 in base 4 is a change counted twice"
        )
        began = time.monotonic()
        outcome = _play(console, played, seed)
    except (BadEvents, EngineMissing) as error:
        console.print(f"[bold red]The demo cannot run:[/] {error}")
        raise typer.Exit(2) from None
    console.print(
        f"{outcome.deliveries:,} deliveries ({outcome.redeliveries:,} of them again), {outcome.answers_lost:,} answers "
        f"lost, fail-overs: {outcome.fail_overs:,}, partitions: {outcome.partitions}; {time.monotonic() - began:.0f} s"
    )
    console.print(summary(outcome))
    console.print(busiest(outcome))
    for design in outcome.designs:
        if outcome.reads[design.name].example:
            console.print(f"{design.name}, for example: {outcome.reads[design.name].example}")
    if not outcome.ours_is_exact:
        console.print("[bold red]A number of ours is wrong.[/] Please report it, with the events and the seed.")
        raise typer.Exit(1)
    console.print("[bold green]Every number of ours is right, in both Regions, and every read was a true sum.[/]")


def _play(console: Console, played: list[Event], seed: int) -> Outcome:
    columns = (
        TextColumn("{task.fields[delivered]:,} of {task.fields[events]:,} events"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    delivered = itertools.count(1)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        # One more than the events: what is done after the last one keeps the clock running.
        task = progress.add_task("playing", total=len(played) + 1, delivered=0, events=len(played))

        def advance(count: int) -> None:
            if count:
                number = next(delivered)
                progress.update(task, advance=1, delivered=number)
                if not console.is_terminal and number % max(1, len(played) // 10) == 0:
                    console.print(f"{number:,} of {len(played):,} events")

        def say(text: str) -> None:
            progress.update(task, description=text)
            if not console.is_terminal:
                console.print(text)

        outcome = Play(played, seed, advance, say).run()
        progress.update(task, advance=1, description="done")
        return outcome


if __name__ == "__main__":
    typer.run(main)
