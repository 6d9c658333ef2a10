"""`python -m lab.demo` (`make demo`): two Regions count real events, two designs that go wrong beside them."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from lab.demo.run import Run
from lab.demo.sale import flash_sale
from lab.demo.sale_screen import OPENING, told
from lab.demo.screen import Screen, closing, opening
from lab.engines.ministack import EngineMissing, end_on_signals
from lab.events import SHOP, BadEvents, read_events, shop_day, truth_of, with_witnesses
from ledgerctl.templates import Columns


def main(
    events: Annotated[
        Path | None, typer.Option(help="A CSV file with a header. Without it, a shop's day is generated.")
    ] = None,
    counter: Annotated[str, typer.Option(help="Template of a counter's name over the file's columns.")] = SHOP.counter,
    change: Annotated[str, typer.Option(help="Template of a change: a whole number.")] = SHOP.change,
    key: Annotated[str, typer.Option(help="Template of the idempotency key.")] = SHOP.key,
    at: Annotated[str, typer.Option(help="Template of the time, ISO 8601 with a zone.")] = SHOP.at,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first events.")] = None,
    seed: Annotated[int, typer.Option(help="Decides the generated day and all faults.")] = 1,
) -> None:
    """Sell seats and count events in two Regions at once, exactly, while everything goes wrong.

    Exit code: 0 when every number of ours is right, 1 when one is wrong or the run shows too little (nothing folded,
    settled or cleaned, a sale in which the other designs are right too), 2 when the events cannot be used.
    """
    end_on_signals()
    console = Console(highlight=False, soft_wrap=True)
    console.print(OPENING, markup=False)
    is_sold = told(console, flash_sale(seed))
    console.print()
    try:
        shop = read_events(events, Columns(counter, change, key, at), limit) if events else shop_day(seed)[:limit]
        played = with_witnesses(shop, seed)
        truth_of(played)
        console.print(
            opening(events.name if events else "a shop's day", len(shop), len(played) - len(shop)), markup=False
        )
        began = time.monotonic()
        with Screen(console, len(played)) as screen:
            outcome = Run(played, seed, screen).run()
    except (BadEvents, EngineMissing) as error:
        console.print(f"[bold red]The demo cannot run:[/] {escape(str(error))}")
        raise typer.Exit(2) from None
    if not closing(console, outcome, time.monotonic() - began) or not is_sold:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
