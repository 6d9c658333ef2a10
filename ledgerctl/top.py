"""`top`: the largest counters.

Rule 1: They are those of the directory, or of a scan, and each of them is read.
"""

from enum import StrEnum
from typing import Annotated

import typer

from ledgerctl import show
from ledgerctl.arguments import Prefix, Scan
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, command
from ledgerctl.lanes import found
from ledgerctl.several import each


class By(StrEnum):
    value = "value"
    changes = "changes"
    pending = "pending"


@command("top", COUNTERS)
def top(
    call: Call,
    prefix: Prefix = "",
    by: Annotated[By, typer.Option(help="What to order by, the largest first.")] = By.changes,
    limit: Annotated[int, typer.Option(min=1, help="Show that many.")] = 10,
    scan: Scan = False,
) -> None:
    """Show the largest counters: lists them, and reads each."""
    seen = found(call, prefix, scan=scan)
    names = seen.counters
    attribute = "count" if by is By.changes else by.value
    balances = list(zip(names, each(call, "reading", names, call.reader.read), strict=True))
    balances.sort(key=lambda pair: (-getattr(pair[1], attribute), pair[0]))
    for name, balance in balances[:limit]:
        call.document(show.balance(name, balance))
    rows = [(name, f"{b.value:,}", f"{b.count:,}", f"{b.pending:,}") for name, b in balances[:limit]]
    call.table_of(("counter", "value", "changes", "pending"), rows)
    call.say(show.some(len(rows), len(names)) + seen.limits, style="dim")
    call.note(f"read them: {show.cost(call.meter.take())}")
