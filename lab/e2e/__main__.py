"""`python -m lab.e2e` (`make e2e`): deploys the service to an engine here, in two Regions, and
compares every counter. With `--breaks` it deploys to one Region, breaks the service in each way
that must not be silent, and mends it. With `--table-url` it deploys to the endpoint of the
environment (lab/smoke).

Rule 1: The exit code is 0 only if every counter in both Regions is right, the limited one stands
exactly at its ceiling, a month turned by the clock and nothing contradicts an answer about it, each
crossing of a threshold was delivered, the dead letters are exactly the poison, nothing is left, and
the service accepted changes in packs, without which a run shows too little.
Rule 2: With breaks it is 0 only if the alarms of each break crossed, none was in alarm before, all
were quiet again after, each alarm was judged or is known not to be measured here, and every counter
is right at the end.
Rule 3: It leaves nothing running, but in a place that somebody else made.
"""

import os
import random
import time
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from lab.e2e import course, deployed, traffic
from lab.e2e.breaks import BREAKS, Break
from lab.e2e.crossings import Crossings
from lab.e2e.deployed import PARAMS, REGIONS, NotDeployed, compact
from lab.e2e.metrics import accepted_in_packs
from lab.e2e.month import Month
from lab.e2e.seats import Seats
from lab.e2e.site import Say, Site
from lab.e2e.turn import kept, next_turn
from lab.e2e.user import User
from lab.engines import proxy
from lab.engines.children import Children
from lab.engines.ministack import ENVIRONMENT, Engine, EngineMissing, end_on_signals
from lab.engines.proxy import OUTSIDE
from lab.events import Event, shop_day, with_witnesses

BUSY = 4  # counters with so many changes that there is something to fold, whatever the shop sold
WRONG_SHOWN = 20
BROKEN_AND_MENDED = "Every break was seen, every alarm is quiet again, every counter is right."
PLAYED = """Every counter is right in both Regions, and every seat was sold once.
A month ended: each answer about it is right, and what it had left was carried over once.
Each crossing of a threshold was published under one id.
Of all messages, exactly those that are no valid change are dead letters."""
NAMES = {broken.name: broken for broken in BREAKS}


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"With --breaks: only these of {', '.join(NAMES)}.")
    ] = None,
    breaks: Annotated[
        bool, typer.Option("--breaks", help="Break the service instead, and check its alarms.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many of a shop's events to send.")] = 800,
    seed: Annotated[
        int, typer.Option(help="Decides how and where each event is sent, and which come again.")
    ] = 1,
    table_url: Annotated[
        str | None, typer.Option(help="Use the table at this URL, and keep it.")
    ] = None,
) -> None:
    """Deploy to an engine on this computer, use the service from outside, and compare with the
    truth.

    Exit code: 0 if everything is right, 1 if something is wrong, 2 if it cannot run.
    """
    if names and (not breaks or not NAMES.keys() >= set(names)):
        raise typer.BadParameter(f"with --breaks, name some of {', '.join(NAMES)}")
    end_on_signals()
    console, began = Console(highlight=False, soft_wrap=True), time.monotonic()

    def say(text: str) -> None:
        console.print(f"{time.monotonic() - began:5.0f} s  {text}", markup=False)

    try:
        shop = shop_day(seed, limit)
        if table_url is not None:
            wrong = _play(table_url, say, shop, seed)
        else:
            wrong = _on_an_engine(say, shop, seed, names or list(NAMES) if breaks else None)
    except (EngineMissing, NotDeployed) as error:
        console.print(f"[bold red]It cannot run:[/] {escape(str(error))}")
        raise typer.Exit(2) from None
    for text in wrong[:WRONG_SHOWN]:
        console.print(escape(text))
    if wrong:
        console.print(f"[bold red]Wrong: {len(wrong):,} findings.[/]")
        raise typer.Exit(1)
    console.print(f"[bold green]{BROKEN_AND_MENDED if breaks else PLAYED}[/]")


def _on_an_engine(say: Say, shop: list[Event], seed: int, breaks: list[str] | None) -> list[str]:
    """Play, or break the service in these ways."""
    with Engine() as engine, Children() as children:
        os.environ.update(ENVIRONMENT, AWS_ENDPOINT_URL=engine.endpoint_url)
        # The functions find the table behind a proxy without faults (docs/testing.md, Engines).
        control, table = proxy.start(children, engine, seed, {})
        if breaks is not None:
            return _break(control, table, say, [NAMES[name] for name in breaks], shop)
        wrong = _play(f"{table}/{OUTSIDE}", say, shop, seed)
        deployed.run("remove", f"{table}/{OUTSIDE}")
        return wrong


def _break(
    control: Connection, table: str, say: Say, breaks: list[Break], events: list[Event]
) -> list[str]:
    say(f"deploying to one Region; an alarm's minute is {60 / course.FASTER:g} s here")
    regions = [course.REGION]
    deployed.run("deploy", f"{table}/{OUTSIDE}", regions, course.PARAMS)
    site = Site(say, regions)
    course.Course(site, control, table).play(breaks, events)
    return site.wrong


def _play(table_url: str, say: Say, shop: list[Event], seed: int) -> list[str]:
    began, events = datetime.now(UTC), traffic.hurried(with_witnesses(shop, seed, BUSY))
    say("deploying to two Regions")
    deployed.run("deploy", table_url, params=PARAMS | {"periods": compact(kept(began))})
    site, turn = Site(say), next_turn(began, datetime.now(UTC))
    user, seats, crossings = User(site), Seats(site), Crossings(site)
    month = Month(site, turn)
    closes = f"{turn.closes:%H:%M:%S}"
    say(f"{turn.over} takes changes until {closes}, and leaves some of its quota to {turn.opened}")
    month.begin()
    month.turn()
    month.end()
    say(f"sending {len(events):,} changes, some of them again, and poison")
    poison = user.send(list(traffic.sendings(events, random.Random(seed))))
    truth, wrong = traffic.truth(events), site.wrong
    user.wait_until_recorded()
    say("recorded; selling seats up to a ceiling in both Regions")
    seats.sell()
    say("sold; crossing thresholds in both Regions")
    crossings.cross()
    say("crossed; the rings fold")
    user.wait_until_folded(truth, int(PARAMS["foldMin"]))
    say("folded; the sweep cleans")
    user.wait_until_cleaned()
    say("cleaned; reading every counter in both Regions")
    wrong += user.wrong_balances(truth | {traffic.POISONED: (0, 0)})
    seats.judge()
    crossings.judge()
    month.judge()
    user.judge_dead_letters(
        {region: letters | month.letters[region] for region, letters in poison.items()}
    )
    packed = {region: accepted_in_packs(client) for region, client in site.aws("logs").items()}
    wrong += [
        f"{region}: no change was accepted in a pack"
        for region, number in packed.items()
        if not number
    ]
    say(f"read {len(REGIONS) * len(truth):,} balances; accepted in packs: {packed}")
    return wrong


if __name__ == "__main__":
    typer.run(main)
