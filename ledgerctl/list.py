"""`list` and `top`: the counters there are, by name or by size.

Rule 1: Both take the counters of the directory, or of a scan, and say what that cost.
Rule 2: `top` then reads every counter it compares.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from ledger.cost import carried
from ledger.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, command
from ledgerctl.get import fields_of
from ledgerctl.lanes import Scan, found

WORKERS = 8
Name = TypeVar("Name")
Done = TypeVar("Done")
Prefix = Annotated[str, typer.Option(help="Only counters whose names begin so.")]


class By(StrEnum):
    value = "value"
    changes = "changes"
    pending = "pending"


def each(call: Call, what: str, names: Sequence[Name], work: Callable[[Name], Done]) -> list[Done]:
    """The outcomes in order, some at a time; the first alone, because it asks for the table's shape, once for all."""
    with show.bar(call.err, what, len(names)) as bar, ThreadPoolExecutor(WORKERS) as workers:

        def one(name: Name) -> Done:
            try:
                return work(name)
            finally:
                bar.advance()

        return [*map(one, names[:1]), *workers.map(carried(one), names[1:])]


@command("list", COUNTERS)
def list_(
    call: Call,
    prefix: Prefix = "",
    limit: Annotated[int, typer.Option(min=1, help="Show at most that many.")] = 100,
    scan: Scan = False,
) -> None:
    """List counters by name.

    By the directory: half a read unit for each of its 256 buckets and Region, and for each 4 KB of names. --scan costs
    as much for each 4 KB of the table, and says what the lanes hold.
    """
    seen = found(call, prefix, scan=scan)
    lanes_of: dict[str, list[Lane]] = {}
    for lane in seen.lanes:
        lanes_of.setdefault(lane.counter, []).append(lane)
    rows = []
    for name in sorted(lanes_of)[:limit]:
        own = lanes_of[name]
        fields: dict[str, object] = {"regions": sorted({lane.region for lane in own}), "lanes": len(own)}
        if seen.holdings is not None:
            fields["deltas"] = sum(seen.holdings[lane].deltas for lane in own)
            fields["unlisted"] = [str(lane) for lane in own if not seen.holdings[lane].listed]
        rows.append({"counter": name} | fields)
    if call.json:
        for row in rows:
            call.document(row)
        return
    if not rows:
        none = f"no counter begins with {prefix!r}" if prefix else "no counter yet; `ledgerctl add` makes the first"
        call.say(none + seen.limits)
        return
    columns = ["counter", "Regions", "lanes", *(["deltas held"] if scan else [])]
    shown = [[_cell(row[name]) for name in ("counter", "regions", "lanes", "deltas") if name in row] for row in rows]
    call.out.print(show.table(columns, shown, left=2))
    call.say(_shown(len(rows), len(lanes_of)) + seen.limits, style="dim")


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
    if call.json:
        for name, balance in balances[:limit]:
            call.document(fields_of(name, balance))
        return
    rows = [(name, f"{b.value:,}", f"{b.count:,}", f"{b.pending:,}") for name, b in balances[:limit]]
    if rows:
        call.out.print(show.table(("counter", "value", "changes", "pending"), rows))
    call.say(_shown(len(rows), len(names)) + seen.limits, style="dim")
    call.note(f"read them: {show.cost(call.meter.take())}")


def _cell(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else f"{value:,}" if isinstance(value, int) else str(value)


def _shown(shown: int, all_: int) -> str:
    more = "; --limit shows more" if shown < all_ else ""
    return f"{shown:,} of {all_:,} counters{more}"
