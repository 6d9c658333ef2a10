"""The program `every_lane`: the lanes of a table, found by a scan of its keys.

Rules: a scan reads the whole table, and is charged for all of it, whatever is taken of it; it is eventually consistent;
what is no item of ours is passed by.
"""

from __future__ import annotations

from collections.abc import Callable

from ledger import items
from ledger.errors import Unavailable
from ledger.paging import PAGES_MAX
from ledger.requests import Key, KeyPage, Program, Scan
from ledger.values import Lane
from ledgerctl import show
from ledgerctl.call import Call


def every_lane(prefix: str = "", page_seen: Callable[[], None] = lambda: None) -> Program[dict[Lane, int]]:
    """Each lane of the counters that begin with `prefix`, and how many deltas it holds as items, in order."""
    found: dict[Lane, int] = {}
    after: Key | None = None
    for _ in range(PAGES_MAX):
        page: KeyPage = yield Scan(after)
        page_seen()
        for key in page.keys:
            match items.lane_of(key.pk):
                case (kind, lane) if lane.counter.startswith(prefix):
                    found[lane] = found.get(lane, 0) + (kind == "delta")
        if page.last is None:
            return dict(sorted(found.items()))
        after = page.last
    raise Unavailable(f"The table has more than {PAGES_MAX} pages. Nothing was written.")


def lanes(call: Call, prefix: str = "") -> dict[Lane, int]:
    """`every_lane`, with a progress bar; says on standard error what the scan cost."""
    with show.bar(call.err, "scanning", None, count=False) as bar:
        found = call.run(every_lane(prefix, bar.advance))
    call.note(f"scanned the table for names: {show.cost(call.consumed.take())}")
    return found


def counters_of(found: dict[Lane, int]) -> list[str]:
    return sorted({lane.counter for lane in found})
