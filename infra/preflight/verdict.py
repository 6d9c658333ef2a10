"""All checks of `make preflight`, a line each: ok; mend, and how; unknown, and which right is
missing to find out.

Rule 1: The checks only read AWS: describe, get, list, simulate, validate; but for change sets, on
demand.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from infra.preflight import account, simulated, standing
from infra.preflight.flight import MEND, OK, UNKNOWN, Findings, Flight, found

CHECKS: dict[str, Callable[..., Findings]] = {
    "session": account.session,
    "Region {}": account.enabled,
    "concurrency {}": account.concurrency,
    "quotas": account.quotas,
    "table": standing.table,
    "shape": standing.shape,
    "service {}": standing.service,
    "deployer {}": simulated.deployer,
    "roles": simulated.roles,
    "templates {}": standing.templates,
}
"""In their order; one with braces is for each Region."""
CHANGE_SETS = {"change set {}": standing.change_sets}
STYLES = {OK: "green", MEND: "bold red", UNKNOWN: "yellow"}


def lines(
    flight: Flight, checks: Mapping[str, Callable[..., Findings]]
) -> Iterator[tuple[str, str, str]]:
    for check, ask in checks.items():
        for where in [(region,) for region in flight.target.regions] if "{}" in check else [()]:
            yield from (
                (check.format(*where), *line) for line in found(partial(ask, flight, *where))
            )


def is_ready(flight: Flight, *, change_sets: bool) -> bool:
    """Print all lines. Whether there is nothing to mend."""
    table, count = Table(box=None, show_header=False, pad_edge=False), Counter[str]()
    for check, state, says in lines(flight, CHECKS | (CHANGE_SETS if change_sets else {})):
        count[state] += 1
        table.add_row(check, f"[{STYLES[state]}]{state}[/]", escape(says))
    console = Console(highlight=False)
    console.print(table)
    console.print(", ".join(f"{count[state]} {state}" for state in STYLES))
    return not count[MEND]
