"""`list` and `top`: the counters there are, by name, and the largest of them.

Rule 1: The directory names them, or a scan, and the command says what that cost.
Rule 2: `top` ranks them as `Reader.top` does, by the same program and by the value where nobody
says by what, and says how far behind a value may be.
"""

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from ledger.core.errors import shown
from ledger.core.period_name import MARK, span_of
from ledger.core.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import Prefix, Scan, command
from ledgerctl.failures import Wrong
from ledgerctl.lanes import Found, found
from reader.rules import Rules
from reader.top import BEHIND_S, largest

Begins = Annotated[str | None, typer.Argument(metavar="[PREFIX]", help="The same as --prefix.")]


class By(StrEnum):
    value = "value"
    changes = "changes"
    pending = "pending"


def _described(
    name: str, lanes: Sequence[Lane], seen: Found
) -> tuple[dict[str, object], tuple[str, ...]]:
    """A counter for JSON, and its row for people."""
    regions = sorted({lane.region for lane in lanes})
    fields: dict[str, object] = {"counter": name, "regions": regions, "lanes": len(lanes)}
    row = (name, " ".join(regions), f"{len(lanes):,}")
    if seen.holdings is None:
        return fields, row
    deltas = sum(seen.holdings[lane].deltas for lane in lanes)
    unlisted = [str(lane) for lane in lanes if not seen.holdings[lane].listed]
    return fields | {"deltas": deltas, "unlisted": unlisted}, (*row, f"{deltas:,}")


@command("list")
def list_(
    call: Call,
    begins: Begins = None,
    prefix: Prefix = "",
    period: Annotated[
        str, typer.Option(help="Only counters of this period, such as 2026-11.")
    ] = "",
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 100,
    scan: Scan = False,
) -> None:
    """List counters by name.

    The directory costs half a read unit for each of its 256 buckets in each Region, and for each 4
    KB of names. --scan costs as much for each 4 KB of the table, and says what the lanes hold.
    """
    if period and span_of(period) is None:
        raise typer.BadParameter(
            f"{shown(period)} is no period such as 2026, 2026-11, 2026-W47, 2026-11-20T14 "
            "or 2026-11-20T14+5h."
        )
    prefix = _prefix_of(begins, prefix)
    seen = found(call, prefix, scan=scan)
    lanes_of: defaultdict[str, list[Lane]] = defaultdict(list)
    for lane in seen.lanes:
        if not period or lane.counter.endswith(f"{MARK}{period}"):
            lanes_of[lane.counter].append(lane)
    rows: list[tuple[str, ...]] = []
    for name in sorted(lanes_of)[:limit]:
        fields, row = _described(name, lanes_of[name], seen)
        call.document(fields)
        rows.append(row)
    if not rows:
        none = (
            f"no counter begins with {prefix!r}"
            if prefix
            else "no counter yet; `ledgerctl add` makes the first"
        )
        none = f"no counter of {period} begins with {prefix!r}" if period else none
        call.say(none + seen.limits)
        return
    call.table_of(
        ("counter", "Regions", "lanes", *(["deltas held"] if seen.holdings is not None else [])),
        rows,
        left=2,
    )
    _say_some(call, len(rows), len(lanes_of), seen.limits)


@command("top")
def top(
    call: Call,
    begins: Begins = None,
    prefix: Prefix = "",
    by: Annotated[By, typer.Option(help="What to order by, the largest first.")] = By.value,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 10,
    exact: Annotated[
        bool, typer.Option("--exact", help="Read every tail, so that values are up to date.")
    ] = False,
    scan: Scan = False,
) -> None:
    """Show the largest counters: list them, and read them a hundred at a time.

    For a lane that was folded in the last five minutes it reads the checkpoint, 100 of them in one
    request. Each other lane without a limit costs a request of its own, and with --exact or --by
    pending so does each lane.
    """
    seen = found(call, _prefix_of(begins, prefix), scan=scan)
    behind = 0 if exact or by is By.pending else BEHIND_S
    rules = Rules(call.settings, 0, consistent=True, clock=call.surroundings.clock)
    best = call.on_table(largest(rules, seen.counters, limit, by=by.value, behind=behind))
    for name, balance in best:
        call.document(show.balance(name, balance))
    rows = [(name, f"{b.value:,}", f"{b.count:,}", f"{b.pending:,}") for name, b in best]
    call.table_of(("counter", "value", "changes", "pending"), rows)
    _say_some(call, len(rows), len(seen.counters), seen.limits)
    late = f", up to {show.age(int(behind * 1_000))} behind; --exact is not" if behind else ""
    call.note(f"read them{late}: {show.cost(call.meter.take())}")


def _prefix_of(begins: str | None, prefix: str) -> str:
    """The prefix, whichever way it was typed."""
    if begins and prefix:
        raise Wrong(
            "Contradiction",
            f"{begins} and --prefix {prefix} both say how names begin.",
            "Give one of them.",
        )
    return begins or prefix


def _say_some(call: Call, shown: int, there: int, limits: str) -> None:
    more = "; --limit shows more" if shown < there else ""
    call.say(f"{shown:,} of {there:,} counters{more}{limits}", style="dim")
