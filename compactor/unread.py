"""Lanes that hold something and that no reader of these settings looks at: changes that are in no value.

Rule 1: Nothing lists the lanes of a counter, so a scan of the table sees every one of them, and what is asked about a
single counter sees a few shards beyond its own: with more shards than ours, every change lands in one of these by
chance, so a handful of changes is enough to be seen there. Lanes of unknown Regions are seen by a scan alone.
Rule 2: A counter with a limit has gates, and no reader looks at its deltas, in whatever lane they are.
"""

from ledger import items
from ledger.errors import LaneUnread, LedgerError
from ledger.requests import GetMany, Item, Page, Program, Query, Together
from ledger.settings import Settings
from ledger.values import Lane

BEYOND = 4
"""Shards beyond those of the settings that are looked at."""


def error_of(lane: Lane) -> LaneUnread:
    """What is told of such a lane."""
    return LaneUnread(
        f"{lane}: there are changes in this lane, and no reader of these settings looks at it: they are in no value. "
        "Nothing is lost. Somebody adds with other regions or shards, or without its limit: see `lanes-unread` in "
        "docs/operations.md."
    )


def unread_beyond(counter: str, region: str, settings: Settings) -> Program[list[Lane]]:
    """The lanes of a counter in a Region that hold something and are not read, up to the next shards.

    Raises the TableErrors.
    """
    first = settings.shards_of(counter) if settings.limit_of(counter) is None else 0
    lanes = [Lane(region, shard, counter) for shard in range(first, settings.shards_of(counter) + BEYOND)]
    folded: tuple[Item | None, ...] = yield GetMany(tuple(map(items.checkpoint_key, lanes)), consistent=False)
    queries = (Query(items.delta_pk(lane), limit=1, consistent=False) for lane in lanes)
    pages: tuple[Page | LedgerError, ...] = yield Together(tuple(queries))
    found = []
    for lane, checkpoint, page in zip(lanes, folded, pages, strict=True):
        if isinstance(page, LedgerError):
            raise page
        if checkpoint is not None or page.items:
            found.append(lane)
    return found
