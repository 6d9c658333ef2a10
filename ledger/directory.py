"""The directory of lanes: one item for each lane that was ever written to, so that whoever wants the lanes reads lanes.

Rule 1: An item says that there is a lane, and nothing else: written twice it is the same, and it is never removed.
Rule 2: It is written in its lane's own Region alone; the others read what is replicated.
Rule 3: The bucket follows from the counter's name, so all lanes of a counter in a Region stand in one bucket.
Formats: docs/data-model.md. Who writes it, and when: docs/compaction.md.
"""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from ledger.errors import InvalidInput, LedgerError
from ledger.paging import Pages
from ledger.requests import Item, Key, Page, Program, Query, Together
from ledger.requests import key_of as key_of_item
from ledger.values import Lane

BUCKETS = 256

AT_ONCE = 8
"""Buckets that are asked for together."""


def bucket_of(counter: str) -> int:
    return hashlib.sha256(counter.encode()).digest()[0]


def bucket_pk(region: str, bucket: int) -> str:
    return f"lane#{region}#{bucket}"


def key_of(lane: Lane) -> Key:
    return Key(bucket_pk(lane.region, bucket_of(lane.counter)), f"{lane.shard}#{lane.counter}")


def item_of(lane: Lane) -> Item:
    key = key_of(lane)
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def lane_of(key: Key) -> Lane | None:
    """The lane that an item of the directory is of; None: it is damaged, or an item of something else."""
    region = key.pk.removeprefix("lane#").rpartition("#")[0]
    try:
        lane = Lane.parse(f"{region}#{key.sk}")
    except InvalidInput:
        return None
    return lane if key_of(lane) == key else None


def page_of(region: str, bucket: int, after: str | None = None, limit: int | None = None) -> Query:
    """What asks for a page of a bucket, from behind the sort key `after`; eventually consistent."""
    return Query(bucket_pk(region, bucket), after, None, limit, False)


class Listing(NamedTuple):
    """lanes: in order. damaged: keys in the directory that name no lane, which are passed by."""

    lanes: list[Lane]
    damaged: list[Key]


def listing(region: str, page_seen: Callable[[], None] = lambda: None) -> Program[Listing]:
    """All that the directory of a Region says: a Query a bucket, AT_ONCE at a time. Raises the TableErrors."""
    found = Listing([], [])
    for first in range(0, BUCKETS, AT_ONCE):
        buckets = [Pages(page_of(region, bucket)) for bucket in range(first, first + AT_ONCE)]
        while left := [pages for pages in buckets if pages.more]:
            answers: tuple[Page | LedgerError, ...] = yield Together(tuple(pages.next for pages in left))
            for pages, page in zip(left, answers, strict=True):
                if isinstance(page, LedgerError):
                    raise page
                pages.turn(page)
                page_seen()
                for key in map(key_of_item, page.items):
                    lane = lane_of(key)
                    found.damaged.append(key) if lane is None else found.lanes.append(lane)
    found.lanes.sort()
    return found


def listed(region: str) -> Program[list[Lane]]:
    """Every lane of a Region that the directory has, in order; damaged items are passed by. Raises the TableErrors."""
    found: Listing = yield from listing(region)
    return found.lanes
