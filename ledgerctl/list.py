"""`list` and `top`: the counters there are, by name or by size.

Rule 1: Both scan the table, and say what that cost.
Rule 2: `top` then reads every counter it compares.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import command
from ledgerctl.get import fields_of
from ledgerctl.scan import counters_of, lanes
from reader import Balance

WORKERS = 8
Name = TypeVar("Name")
Done = TypeVar("Done")
Prefix = Annotated[str, typer.Option(help="Only counters whose names begin so.")]


class By(StrEnum):
    value = "value"
    changes = "changes"
    pending = "pending"


ORDER: dict[By, Callable[[Balance], int]] = {
    By.value: lambda balance: balance.value,
    By.changes: lambda balance: balance.count,
    By.pending: lambda balance: balance.pending,
}


def each(work: Callable[[Name], Done], names: Sequence[Name]) -> list[Done]:
    """The outcomes in order, some at a time; the first alone, because it asks for the table's shape, once for all."""
    with ThreadPoolExecutor(WORKERS) as workers:
        return [*map(work, names[:1]), *workers.map(work, names[1:])]


@command("list")
def list_(
    call: Call, prefix: Prefix = "", limit: Annotated[int, typer.Option(min=1, help="Show at most that many.")] = 100
) -> None:
    """List counters by name: a scan.

    A scan costs half a read unit for each 4 KB of the table.
    """
    found = lanes(call, prefix)
    names = counters_of(found)
    rows = []
    for name in names[:limit]:
        own = {lane: deltas for lane, deltas in found.items() if lane.counter == name}
        rows.append((name, sorted({lane.region for lane in own}), len(own), sum(own.values())))
    if call.json:
        for name, regions, count, deltas in rows:
            call.document({"counter": name, "regions": regions, "lanes": count, "deltas": deltas})
        return
    if not rows:
        call.say(f"no counter begins with {prefix!r}" if prefix else "no counter yet; `ledgerctl add` makes the first")
        return
    shown = ((name, " ".join(regions), str(count), f"{deltas:,}") for name, regions, count, deltas in rows)
    call.out.print(show.table(("counter", "Regions", "lanes", "deltas held"), shown, left=2))
    call.say(_shown(len(rows), len(names)), style="dim")


@command("top")
def top(
    call: Call,
    prefix: Prefix = "",
    by: Annotated[By, typer.Option(help="What to order by, the largest first.")] = By.changes,
    limit: Annotated[int, typer.Option(min=1, help="Show that many.")] = 10,
) -> None:
    """Show the largest counters: a scan, and a read of each."""
    names = counters_of(lanes(call, prefix))
    with show.bar(call.err, "reading", len(names)) as bar:

        def read(name: str) -> tuple[str, Balance]:
            balance = call.reader.read(name)
            bar.advance()
            return name, balance

        balances = each(read, names)
    balances.sort(key=lambda pair: (-ORDER[by](pair[1]), pair[0]))
    if call.json:
        for name, balance in balances[:limit]:
            call.document(fields_of(name, balance))
        return
    rows = [(name, f"{b.value:,}", f"{b.count:,}", f"{b.pending:,}") for name, b in balances[:limit]]
    if rows:
        call.out.print(show.table(("counter", "value", "changes", "pending"), rows))
    call.say(_shown(len(rows), len(names)), style="dim")
    call.note(f"read them: {show.cost(call.consumed.take())}")


def _shown(shown: int, all_: int) -> str:
    return f"{shown:,} of {all_:,} counters" + ("; --limit shows more" if shown < all_ else "")
