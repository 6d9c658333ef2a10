"""Lanes that hold something and that no reader of these settings looks at: changes that are in no value.

Rule 1: Nothing lists the lanes of a counter, so a scan of the table sees every one of them, and what is asked about a
single counter sees a few shards beyond its own: with more shards than ours, every change lands in one of these by
chance, so a handful of changes is enough to be seen there. Lanes of unknown Regions are seen by a scan alone.
Rule 2: A counter with a limit has gates, and no reader looks at its deltas, in whatever lane they are.
"""

from ledger.errors import LaneUnread
from ledger.lane.directory import with_changes
from ledger.requests import Program
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
    return (yield from with_changes(lanes, consistent=False))
