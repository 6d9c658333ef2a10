"""`python -m lab.e2e` (`make e2e`): deploys the service to an engine here, in two Regions, and compares every counter.

Rule 1: The exit code is 0 only when every counter in both Regions is right, the limited one stands exactly at its
ceiling, each crossing of a threshold was told, the dead letters are exactly the poison, and nothing is left waiting.
Rule 2: Nothing is left running.
"""

import os
import random
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from lab.e2e import deployed, traffic
from lab.e2e.crossings import Crossings
from lab.e2e.deployed import PARAMS, REGIONS, TABLE, NotDeployed
from lab.e2e.logs import wrong_logs, wrong_packs
from lab.e2e.queues import Queues
from lab.e2e.seats import Seats
from lab.e2e.user import User, described
from lab.engines import proxy
from lab.engines.children import Children
from lab.engines.ministack import Engine, EngineMissing, end_on_signals
from lab.engines.proxy import OUTSIDE
from lab.events import SHOP, BadEvents, Event, read_events, shop_day, with_witnesses

HISTORIES = 5
WRONG_SHOWN = 20


def main(
    events: Annotated[Path | None, typer.Option(help="A CSV file with the columns of a shop's sales.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Only the first rows.")] = 800,
    seed: Annotated[int, typer.Option(help="Decides ways, Regions and what is sent again.")] = 1,
) -> None:
    """Deploy to an engine on this computer, use it from outside, compare with the truth.

    Exit code: 0 when everything is right, 1 when something is wrong, 2 when it cannot run.
    """
    end_on_signals()
    console = Console(highlight=False, soft_wrap=True)
    try:
        shop = read_events(events, SHOP, limit) if events else shop_day(seed, limit)
        wrong = _play(console, traffic.hurried(with_witnesses(shop, seed)), seed)
    except (BadEvents, EngineMissing, NotDeployed) as error:
        console.print(f"[bold red]It cannot run:[/] {escape(str(error))}")
        raise typer.Exit(2) from None
    for each in wrong[:WRONG_SHOWN]:
        console.print(escape(each))
    if wrong:
        console.print(f"[bold red]{len(wrong):,} things are wrong.[/]")
        raise typer.Exit(1)
    console.print("[bold green]Every counter is right in both Regions, no seat was sold twice or not at all;[/]")
    console.print("[bold green]each crossing was told under one id; the dead letters are exactly the poison.[/]")


def _play(console: Console, events: list[Event], seed: int) -> list[str]:
    began = time.monotonic()

    def say(text: str) -> None:
        console.print(f"{time.monotonic() - began:5.0f} s  {text}", markup=False)

    with Engine() as engine, Children() as children:
        os.environ.update(deployed.environment(engine.endpoint_url))
        # The functions find the table behind a proxy without faults. It sends PartiQL item by item, because this
        # engine's streams and replicas see none (docs/testing.md, Engines).
        _, endpoint = proxy.start(children, engine, seed, {}, item_by_item=True)
        table_endpoint = f"{endpoint}/{OUTSIDE}"
        say("deploying to two Regions")
        deployed.run("deploy", engine.endpoint_url, table_endpoint)
        services = {region: deployed.service(region, engine.endpoint_url) for region in REGIONS}

        def clients(name: str) -> dict[str, Any]:
            return {region: deployed.client(name, region, engine.endpoint_url) for region in REGIONS}

        queues = Queues(services, clients("sqs"))
        user = User(services, queues, say)
        say(f"sending {len(events):,} changes, some of them again, and poison")
        sent = user.send(list(traffic.sendings(events, random.Random(seed))))
        say(f"sent {described(sent)}")
        truth = traffic.truth(events)
        wrong = [*sent.wrong, *user.wait_until_recorded()]
        say("recorded; selling seats up to a ceiling in both Regions")
        seats = Seats(services, queues, say)
        crossings = Crossings(services, clients("events"), clients("sqs"), say)
        seats.sell()
        say("sold; crossing thresholds in both Regions")
        crossings.cross()
        say("crossed; the rings fold")
        wrong += user.wait_until_folded(sorted(truth), int(PARAMS["foldMin"]))
        say("folded; the sweep cleans")
        wrong += user.wait_until_cleaned(clients("dynamodb"), TABLE, partial(_sweep, clients("lambda")))
        say("cleaned; reading every counter in both Regions")
        wrong += user.wrong_balances(truth | {traffic.POISONED: (0, 0)})
        busiest = sorted(truth, key=lambda counter: -truth[counter][1])[:HISTORIES]
        changes = {name: Counter(event.change for event in events if event.counter == name) for name in busiest}
        wrong += user.wrong_histories(changes)
        seats.judge(clients("dynamodb"), engine.endpoint_url)
        crossings.judge()
        wrong += [*seats.wrong, *crossings.wrong]
        wrong += user.wrong_dead_letters(sent.poison)
        wrong += [*wrong_logs(clients("logs"), say), *wrong_packs(clients("logs"), say)]
        say(f"read {len(REGIONS) * len(truth):,} balances, {len(REGIONS) * len(changes)} histories, dead letters, logs")
        deployed.run("remove", engine.endpoint_url, table_endpoint)
    return wrong


def _sweep(functions: dict[str, Any]) -> None:
    for function in functions.values():
        function.invoke(FunctionName=f"{TABLE}-sweep", InvocationType="Event", Payload=b"{}")


if __name__ == "__main__":
    typer.run(main)
