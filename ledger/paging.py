"""The pages of a Query or a Scan, one after the other: the one way to read what may not fit into one answer.

Rule 1: a loop is `while pages.more: page = yield from pages.read()`, so no loop forgets to go on after a page.
Rule 2: after PAGES_MAX pages there is an error, because a loop that stops in silence answers with a part.
"""

from typing import Any, Generic, TypeVar

from ledger.errors import Unavailable
from ledger.requests import Item, KeyPage, Page, Program, Query, Scan

PAGES_MAX = 1_000_000
"""Stops a loop that would never end; a page holds 1 MB, so a real range has far fewer."""

Asked = TypeVar("Asked", Query, Scan)


class Pages(Generic[Asked]):
    """`next` asks for the next page; `more` says whether there is one."""

    def __init__(self, first: Asked) -> None:
        self.next: Asked = first
        self.more = True
        self._read = 0

    def read(self) -> Program[Any]:
        """The next page. Raises Unavailable when more than PAGES_MAX follow each other, and the TableErrors."""
        page = yield self.next
        self.turn(page)
        return page

    def turn(self, page: Page | KeyPage) -> None:
        """Go on after `page`, which was the answer to `next`. Raises Unavailable as `read` does."""
        self._read += 1
        last: Any = page.last
        self.more = last is not None
        if self.more and self._read == PAGES_MAX:
            what = getattr(self.next, "pk", "The table")
            raise Unavailable(f"{what} has more than {PAGES_MAX:,} pages, and no more are read: a part is no answer.")
        self.next = self.next._replace(after=last)


def every_item(
    pk: str, after: str | None, upto: str | None, *, most: int | None = None, consistent: bool
) -> Program[list[Item]]:
    """All items (or the first `most`) with sort keys above `after`, at or below `upto`, in order."""
    pages = Pages(Query(pk, after, upto, most, consistent))
    found: list[Item] = []
    while pages.more and len(found) != most:
        page: Page = yield from pages.read()
        found += page.items
        if most is not None:
            pages.next = pages.next._replace(limit=most - len(found))
    return found
