"""Which lanes of a Region need the compactor, and which lanes nobody reads, by a scan of the whole table's keys.

Rules: a lane needs it when its tail may be long enough to fold, or when it was ever folded and holds deltas (strays, or
listed ones to be cleaned), or lacks its checkpoint (the visit tells); the scan is eventually consistent, so what it
misses is found by the next one.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ledger import items
from ledger.paging import PAGES_MAX
from ledger.requests import Key, KeyPage, Program, Scan
from ledger.settings import Settings
from ledger.values import Lane


class Lanes(NamedTuple):
    """needy: lanes of the settings' Region that need the compactor. unread: lanes of any Region that nobody reads."""

    needy: list[Lane]
    unread: list[Lane]


def find_lanes(settings: Settings) -> Program[Lanes]:
    """Both in order. Raises the TableErrors."""
    deltas: Counter[Lane] = Counter()
    folded: set[Lane] = set()
    unread: set[Lane] = set()
    whole: set[Lane] = set()
    after: Key | None = None
    for _ in range(PAGES_MAX):
        page: KeyPage = yield Scan(after)
        for key in page.keys:
            found = items.lane_of(key.pk)
            if found is not None and not settings.reads(found[1]):
                unread.add(found[1])
            match found:
                case ("delta", lane) if lane.region == settings.region:
                    deltas[lane] += 1
                case ("fold", lane) if lane.region == settings.region:
                    folded.add(lane)
                    if key == items.checkpoint_key(lane):
                        whole.add(lane)
        if page.last is None:
            break
        after = page.last
    needy = {lane for lane, count in deltas.items() if count >= settings.fold_min or lane in folded}
    return Lanes(sorted(needy | (folded - whole)), sorted(unread))
