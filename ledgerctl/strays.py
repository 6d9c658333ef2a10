"""The program `strays`: the deltas of a lane that no segment lists, though they are at or below the watermark.

Rules: `history` has them only after the next settle, so what must lose nothing asks for them first and reads the
history then: whoever is settled in between is in both, and is taken once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from compactor.listing import look_up
from ledger import items
from ledger.errors import Unavailable
from ledger.paging import PAGES_MAX
from ledger.requests import Get, Item, Page, Program, Query
from ledger.values import Delta, Lane
from reader import Entry


def strays(lane: Lane) -> Program[list[Delta]]:
    """In the order of their tokens. Raises DamagedItem and the TableErrors."""
    item: Item | None = yield Get(items.checkpoint_key(lane))
    if item is None:
        return []
    watermark = items.checkpoint_of(lane, item).watermark
    found: list[Delta] = []
    after: str | None = None
    for _ in range(PAGES_MAX):
        page: Page = yield Query(items.delta_pk(lane), after, watermark)
        looked = yield from look_up(lane, [items.delta_of(lane, each) for each in page.items], consistent=True)
        found += [each.delta for each in looked if not each.listed]
        if page.last is None:
            return found
        after = page.last
    raise Unavailable(f"{lane}: more than {PAGES_MAX} pages of deltas below the watermark. Nothing was written.")


def entry_of(delta: Delta) -> Entry:
    return Entry(delta.token, delta.at, delta.change, delta.lane.region)


def with_strays(history: Iterable[Entry], found: Iterable[Delta]) -> Iterator[Entry]:
    """The entries of a counter in the order of their tokens, each change once."""

    def place(entry: Entry) -> tuple[str, str]:
        return entry.token, entry.region

    of_strays = sorted((entry_of(delta) for delta in found), key=place)
    settled: set[tuple[str, str]] = set()
    names = {place(entry) for entry in of_strays}
    for entry in heapq.merge(history, of_strays, key=lambda entry: entry.token):
        if place(entry) not in names:
            yield entry
        elif place(entry) not in settled:
            settled.add(place(entry))
            yield entry
