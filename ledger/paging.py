"""Reading a whole range of an item collection, page by page."""

from __future__ import annotations

from ledger.errors import Unavailable
from ledger.requests import Item, Page, Program, Query

PAGES_MAX = 1_000_000
"""A bound, not a promise: a page holds 1 MB."""


def every_item(
    pk: str, after: str | None, upto: str | None, *, most: int | None = None, consistent: bool
) -> Program[list[Item]]:
    """All items (or the first `most`) with sort keys above `after`, at or below `upto`, in order."""
    found: list[Item] = []
    for _ in range(PAGES_MAX):
        page: Page = yield Query(pk, after, upto, None if most is None else most - len(found), consistent)
        found += page.items
        if page.last is None or len(found) == most:
            return found
        after = page.last
    raise Unavailable(f"{pk} has more than {PAGES_MAX} pages. Nothing was written.")
