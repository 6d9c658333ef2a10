"""`list`: the counters there are, by name.

Rule 1: They are those of the directory, or of a scan, and it says what that cost.
"""

from typing import Annotated

import typer

from ledger.values import Lane
from ledgerctl import show
from ledgerctl.arguments import Prefix, Scan
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, command
from ledgerctl.lanes import found


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
        call.document(rows[-1])
    if not rows:
        none = f"no counter begins with {prefix!r}" if prefix else "no counter yet; `ledgerctl add` makes the first"
        call.say(none + seen.limits)
        return
    columns = ["counter", "Regions", "lanes", *(["deltas held"] if scan else [])]
    shown = [[_cell(row[name]) for name in ("counter", "regions", "lanes", "deltas") if name in row] for row in rows]
    call.table_of(columns, shown, left=2)
    call.say(show.some(len(rows), len(lanes_of)) + seen.limits, style="dim")


def _cell(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else f"{value:,}" if isinstance(value, int) else str(value)
