"""`python -m infra.preflight` (`make preflight`): a line a check, before anything is made.

Rule 1: AWS is only read: describe, get, list, simulate, validate. --change-sets makes change sets, describes and
deletes them, and executes none.
Rule 2: It ends with 1 where something is to be mended, and at once where AWS knows nobody.
Rule 3: It builds and renders first, so what is checked is what `make deploy` would send with these parameters.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from infra import aws
from infra.aws import DeploymentRefused
from infra.build import build, sizes
from infra.deploy import Name, Params, Regions, Stage, render
from infra.deployment import deployment
from infra.preflight import account, standing
from infra.preflight.flight import MEND, OK, UNKNOWN, Findings, Flight, found
from infra.preflight.simulated import Document, deployer, document, roles

STYLES = {OK: "green", MEND: "bold red", UNKNOWN: "yellow"}


def package(flight: Flight) -> Findings:
    built = sizes(build("lambda"))
    flight.files.update(render(flight.target))
    yield OK, built


CHECKS: dict[str, Callable[..., Findings]] = {
    "session": account.session,
    "Region {}": account.enabled,
    "package": package,
    "concurrency {}": account.concurrency,
    "quotas": account.quotas,
    "table": standing.table,
    "shape": standing.shape,
    "service {}": standing.service,
    "deployer {}": deployer,
    "roles": roles,
    "templates {}": standing.templates,
}
"""In their order; one with braces is for each Region."""
CHANGE_SETS = {"change set {}": standing.change_sets}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def lines(flight: Flight, checks: Mapping[str, Callable[..., Findings]]) -> Iterator[tuple[str, str, str]]:
    for check, ask in checks.items():
        for where in [(region,) for region in flight.target.regions] if "{}" in check else [()]:
            yield from ((check.format(*where), *line) for line in found(partial(ask, flight, *where)))


@app.command()
def preflight(
    stage: Stage = "dev",
    regions: Regions = "eu-west-1 us-east-1",
    name: Name = "ledger",
    params: Params = "",
    change_sets: Annotated[bool, typer.Option(help="Also make, describe and delete change sets.")] = False,
    policy: Annotated[Document | None, typer.Option(help="Only print a policy document of the deployer.")] = None,
) -> None:
    """Ask an account whether a deployment would work."""
    target = deployment(name, stage, regions, params)
    who = target.identity(target.regions[0])
    flight = Flight(target, who["Account"], who["Arn"])
    if policy:
        aws.say(json.dumps(document(flight, policy), indent=1))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    count: Counter[str] = Counter()
    for check, state, says in lines(flight, CHECKS | (CHANGE_SETS if change_sets else {})):
        count[state] += 1
        table.add_row(check, f"[{STYLES[state]}]{state}[/]", escape(says))
    Console(highlight=False).print(table)
    aws.say(", ".join(f"{count[state]} {state}" for state in STYLES))
    if count[MEND]:
        raise typer.Exit(1)


def main() -> None:
    """What is refused ends it with one line and exit code 1."""
    try:
        app()
    except DeploymentRefused as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
