"""`python -m lab.run demo` and `python -m lab.run torture`: a gentle run, and a rough one.

Rule 1: The exit code is 0 only when the run ended, was judged without a violation, and did enough.
Rule 2: A rough run with a violation keeps its history, and prints its seed.
"""

import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from lab.engines.ministack import ENVIRONMENT, EngineMissing, end_on_signals
from lab.events import SHOP, WITNESSES, BadEvents, read_events, shop_day, truth_of, with_witnesses
from lab.histories import mistakes
from lab.run.plan import GENTLE, ROUGH, Plan, numbered
from lab.run.round import Outcome, play
from lab.run.sale import BUYERS, SEATS, flash_sale
from lab.run.screen import closing, print_sale
from ledgerctl.rows import Columns

PLANTED = "LAB_RUN_PLANTED"  # is set in a copy of the code
OPERATIONS_OF_CHANGE = 1.1  # at least: sends again and reads come on top of the changes
# so that few events are not outnumbered by what checks them
WITNESSES_LEAST, EVENTS_A_WITNESS = 8, 75
app = typer.Typer(
    help=(__doc__ or "").partition("\n")[0], add_completion=False, rich_markup_mode=None
)
MISTAKES = {each.name: each for each in (*mistakes.RUN, *mistakes.LANES)}
Planted = Annotated[
    str | None,
    typer.Option(
        help=(
            "Plant this mistake in a copy of the code, and play that; the run must find it: "
            f"{', '.join(m.name for m in mistakes.RUN)}."
        )
    ),
]


@app.command()
def demo(
    events: Annotated[
        Path | None,
        typer.Option(help="A CSV file with a header. Without it, a shop's day is generated."),
    ] = None,
    counter: Annotated[
        str, typer.Option(help="Template of a counter's name over the file's columns.")
    ] = SHOP.counter,
    change: Annotated[
        str, typer.Option(help="Template of a change: a whole number.")
    ] = SHOP.change,
    key: Annotated[str, typer.Option(help="Template of the idempotency key.")] = SHOP.key,
    at: Annotated[str, typer.Option(help="Template of the time, ISO 8601 with a zone.")] = SHOP.at,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first events.")] = None,
    seed: Annotated[int, typer.Option(help="Decides the generated day and all faults.")] = 1,
    mistake: Planted = None,
) -> None:
    """Sell seats and count events in two Regions at once, exactly, while everything goes wrong.

    Exit code: 0 when every number of ours is right, 1 when one is wrong or the run shows too little
    (it folded, settled or cleaned nothing, or another design sold the seats right, too), 2 when it
    cannot use the events.
    """
    console = _begin(mistake)
    console.print(
        f"1. A sale of {SEATS:,} seats to {BUYERS:,} buyers in two Regions, on a simulated table.\n"
        "Answers get lost, buyers ask again, and the link is cut in the middle."
    )
    sale = flash_sale(seed)
    print_sale(console, sale)
    folder = tempfile.mkdtemp(prefix="demo-")
    try:
        shop = (
            read_events(events, Columns(counter, change, key, at), limit)
            if events
            else shop_day(seed)[:limit]
        )
        witnesses = min(WITNESSES, WITNESSES_LEAST + len(shop) // EVENTS_A_WITNESS)
        played = with_witnesses(shop, seed, witnesses)
        truth = truth_of(played)
        once = tuple({(event.counter, event.key, event.at): event for event in played}.values())
        _say_what_is_counted(console, len(shop), len(played), is_file=events is not None)
        outcome = _played(console, Plan(GENTLE, seed, once, folder))
    except BadEvents as error:
        _cannot_run(console, error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    lacks = outcome.lacks(GENTLE, len(once))
    if not closing(console, sale, outcome, truth, once, lacks):
        raise typer.Exit(1)


def _say_what_is_counted(console: Console, shop: int, played: int, *, is_file: bool) -> None:
    what = "rows of a file" if is_file else "sales and returns"
    console.print(
        f"\n2. Two Regions of a DynamoDB on this computer count {shop:,} {what}, and\n"
        f"{played - shop:,} further changes that check every read. Answers get lost, changes "
        "come twice\nor late, processes freeze, and the link is cut."
    )
    if not is_file:
        console.print("The counter of an article holds how many of it were sold.")


@app.command()
def torture(
    operations: Annotated[
        int, typer.Option(min=100, help="About how many adds and reads.")
    ] = 12_000,
    seed: Annotated[
        int | None, typer.Option(help="Decides what writers and faults draw; random if not given.")
    ] = None,
    mistake: Planted = None,
) -> None:
    """Run writers, readers and compactors on a real engine while everything fails, then judge every
    sum that was read.

    Exit code: 0 when nothing is wrong, 1 when something is or too little was done, 2 when the
    engine cannot run.
    """
    console = _begin(mistake)
    seed = random.randrange(10**6) if seed is None else seed
    began_s, changes = time.monotonic(), round(operations / OPERATIONS_OF_CHANGE)
    folder = tempfile.mkdtemp(prefix=f"torture-{seed}-")
    console.print(f"seed {seed}: {changes:,} changes")
    outcome = _played(console, Plan(ROUGH, seed, numbered(changes), folder))
    for violation in outcome.violations:
        console.print(escape(violation))
    console.print(
        f"{time.monotonic() - began_s:,.0f} s\n"
        f"operations  {sum(outcome.operations.values()):,}: {_listed(outcome.operations)}\n"
        f"requests    {_listed(outcome.faults)}\n"
        f"events      {_listed(outcome.events)}\n"
        f"violations  {len(outcome.violations)}"
    )
    if outcome.violations:
        console.print(
            f"[bold red]This run found something wrong.[/] Its seed is {seed}; the record of all "
            f"its requests is in {folder}"
        )
        raise typer.Exit(1)
    shutil.rmtree(folder, ignore_errors=True)
    lacks = outcome.lacks(ROUGH, operations)
    for lack in lacks:
        console.print(f"[bold red]Too little was done, so the run proves nothing:[/] {lack}")
    raise typer.Exit(1 if lacks else 0)


def _played(console: Console, plan: Plan) -> Outcome:
    try:
        with console.status("the engine starts") as status:
            return play(
                plan, status.update, console.print if plan.profile is GENTLE else lambda _: None
            )
    except EngineMissing as error:
        _cannot_run(console, error)


def _begin(mistake: str | None) -> Console:
    end_on_signals()
    if mistake is not None and PLANTED not in os.environ:
        _run_again(mistake)
    logging.disable(logging.WARNING)  # of tables that have no shape
    os.environ.update(ENVIRONMENT)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_PROFILE"):
        os.environ.pop(name, None)
    return Console(highlight=False, soft_wrap=True)


def _run_again(mistake: str) -> NoReturn:
    """Runs the same command in a copy of the code that has the mistake."""
    if mistake not in MISTAKES:
        raise typer.BadParameter(f"no such mistake; there are {', '.join(MISTAKES)}")
    with tempfile.TemporaryDirectory(prefix="mistake-") as folder:
        mistakes.plant(MISTAKES[mistake], folder)
        environ = os.environ | {"PYTHONPATH": folder, "PYTHONSAFEPATH": "1", PLANTED: "1"}
        command = [sys.executable, "-m", "lab.run", *sys.argv[1:]]
        raise SystemExit(subprocess.run(command, env=environ, check=False).returncode)


def _cannot_run(console: Console, error: Exception) -> NoReturn:
    console.print(f"[bold red]It cannot run:[/] {escape(str(error))}")
    raise typer.Exit(2) from None


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    app()
