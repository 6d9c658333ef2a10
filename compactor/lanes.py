"""Which lanes of a Region need the compactor, found by a scan of the whole table's keys.

Rules: a lane needs it when its tail may be long enough to fold, or when it was ever folded and holds deltas (strays, or
listed ones to be cleaned), or lacks its checkpoint (the visit tells); the scan is eventually consistent, so what it
misses is found by the next one.
"""

from __future__ import annotations

from collections import Counter

from ledger import items
from ledger.paging import PAGES_MAX
from ledger.requests import Key, KeyPage, Program, Scan
from ledger.values import Lane


def lanes_in_need(region: str, *, fold_min: int) -> Program[list[Lane]]:
    """The lanes of `region` that need the compactor, in order. Raises the TableErrors."""
    deltas: Counter[Lane] = Counter()
    folded: set[Lane] = set()
    whole: set[Lane] = set()
    after: Key | None = None
    for _ in range(PAGES_MAX):
        page: KeyPage = yield Scan(after)
        for key in page.keys:
            match items.lane_of(key.pk):
                case ("delta", lane) if lane.region == region:
                    deltas[lane] += 1
                case ("fold", lane) if lane.region == region:
                    folded.add(lane)
                    if key == items.checkpoint_key(lane):
                        whole.add(lane)
        if page.last is None:
            break
        after = page.last
    needy = {lane for lane, count in deltas.items() if count >= fold_min or lane in folded}
    return sorted(needy | (folded - whole))
