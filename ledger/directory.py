"""The directory of lanes: one item for each lane that was ever written to, so that whoever wants the lanes reads lanes.

Rule 1: An item says that there is a lane, and nothing else: written twice it is the same, and it is never removed.
Rule 2: It is written in its lane's own Region alone; the others read what is replicated.
Rule 3: The bucket follows from the counter's name, so all lanes of a counter in a Region stand in one bucket.
Formats: docs/data-model.md. Who writes it, and when: docs/compaction.md.
"""

import hashlib

from ledger.errors import InvalidInput
from ledger.paging import Pages
from ledger.requests import Item, Key, Page, Program, Query
from ledger.values import Lane

BUCKETS = 256


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


def listed(region: str) -> Program[list[Lane]]:
    """Every lane of a Region that the directory has, in order; damaged items are passed by. Raises the TableErrors."""
    found: list[Lane] = []
    for bucket in range(BUCKETS):
        pages = Pages(page_of(region, bucket))
        while pages.more:
            page: Page = yield from pages.read()
            keys = (Key(item["pk"]["S"], item["sk"]["S"]) for item in page.items)
            found += [lane for key in keys if (lane := lane_of(key)) is not None]
    return sorted(found)
