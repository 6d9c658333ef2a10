"""`list` and `top`: the counters there are, by name or by size.

Rule 1: Both scan the table, and say what that cost.
Rule 2: `top` then reads every counter it compares.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from compactor.lanes import Holding, every_lane
from ledger.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import command
from ledgerctl.get import fields_of

WORKERS = 8
Name = TypeVar("Name")
Done = TypeVar("Done")
Prefix = Annotated[str, typer.Option(help="Only counters whose names begin so.")]


class By(StrEnum):
    value = "value"
    changes = "changes"
    pending = "pending"


def lanes(call: Call, prefix: str = "") -> dict[Lane, Holding]:
    """Each lane of the counters that begin with `prefix`, and what it holds, in order: a scan.

    Says on standard error what the scan cost.
    """
    with show.bar(call.err, "scanning", None, count=False) as bar:
        found = call.run(every_lane(lambda lane: lane.counter.startswith(prefix), bar.advance))
    call.note(f"scanned the table for names: {show.cost(call.consumed.take())}")
    return found


def counters_of(found: Iterable[Lane]) -> list[str]:
    return sorted({lane.counter for lane in found})


def each(call: Call, what: str, names: Sequence[Name], work: Callable[[Name], Done]) -> list[Done]:
    """The outcomes in order, some at a time; the first alone, because it asks for the table's shape, once for all."""
    with show.bar(call.err, what, len(names)) as bar, ThreadPoolExecutor(WORKERS) as workers:

        def one(name: Name) -> Done:
            try:
                return work(name)
            finally:
                bar.advance()

        return [*map(one, names[:1]), *workers.map(one, names[1:])]


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
        own = {lane: holding for lane, holding in found.items() if lane.counter == name}
        rows.append(
            (name, sorted({lane.region for lane in own}), len(own), sum(holding.deltas for holding in own.values()))
        )
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
    attribute = "count" if by is By.changes else by.value
    balances = list(zip(names, each(call, "reading", names, call.reader.read), strict=True))
    balances.sort(key=lambda pair: (-getattr(pair[1], attribute), pair[0]))
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
