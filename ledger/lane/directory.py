"""The directory of lanes: one item for each lane that was ever written to, so that nobody scans the
table for lanes.

Rule 1: an item says that there is a lane, and nothing else: a second write changes nothing, and
nobody removes it.
Rule 2: it is written in its lane's own Region alone; the others read the replicated item.
Rule 3: the bucket follows from the counter's name, so all lanes of a counter in a Region stand in
one bucket.
Formats: docs/data-model.md. Who writes it, and when: docs/compaction.md.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ledger.core import items
from ledger.core.errors import InvalidInput, NotAllowed, TableError, TableMissing
from ledger.core.plan import longest
from ledger.core.requests import (
    GetMany,
    Instant,
    Item,
    Key,
    KeyPage,
    Now,
    Page,
    Program,
    Query,
    Scan,
    Together,
    keyed,
)
from ledger.core.requests import key_of as key_of_item
from ledger.core.running import answered
from ledger.core.settings import Settings, plan_of
from ledger.core.values import Lane
from ledger.lane.tail import Pages, at

BUCKETS = 256
AT_ONCE = 8  # buckets that are read together


def bucket_of(counter: str) -> int:
    return hashlib.sha256(counter.encode()).digest()[0]


def bucket_pk(region: str, bucket: int) -> str:
    return f"lane#{region}#{bucket}"


def key_of(lane: Lane) -> Key:
    return Key(bucket_pk(lane.region, bucket_of(lane.counter)), f"{lane.shard}#{lane.counter}")


def item_of(lane: Lane) -> Item:
    return keyed(key_of(lane), **items.retiring(lane))


def lane_of(key: Key) -> Lane | None:
    """The lane of an item of the directory; None: the item is damaged, or of something else."""
    region = key.pk.removeprefix("lane#").rpartition("#")[0]
    try:
        lane = Lane.parse(f"{region}#{key.sk}")
    except InvalidInput:
        return None
    return lane if key_of(lane) == key else None


def page_of(region: str, bucket: int, after: str | None = None, limit: int | None = None) -> Query:
    """The Query for a page of a bucket, behind the sort key `after`; eventually consistent."""
    return Query(bucket_pk(region, bucket), after, None, limit, False)


class Listing(NamedTuple):
    """lanes: in order. damaged: keys in the directory that name no lane; they are skipped.

    retired: lanes of periods that are kept no longer.
    """

    lanes: list[Lane]
    damaged: list[Key]
    retired: list[Lane]


def listed(found: Iterable[Item], settings: Settings, now_ms: int | None) -> Listing:
    """The lanes that items of a directory name, in the order of the items.

    now_ms: None: no lane counts as retired.
    """
    listing = Listing([], [], [])
    for key in map(key_of_item, found):
        lane = lane_of(key)
        if lane is None:
            listing.damaged.append(key)
        elif now_ms is None or plan_of(settings, lane.counter).is_kept(now_ms):
            listing.lanes.append(lane)
        else:
            listing.retired.append(lane)
    return listing


def listing(
    region: str, settings: Settings, *, including_retired: bool = False
) -> Program[Listing]:
    """All lanes in the directory of a Region: a Query for each bucket, AT_ONCE at a time.

    including_retired: `lanes` has those of periods that are kept no longer, too. Raises the
    TableErrors.
    """
    now: Instant | None = None if including_retired else (yield Now())
    now_ms = None if now is None else now.wall_ms
    found = Listing([], [], [])
    for first in range(0, BUCKETS, AT_ONCE):
        buckets = [Pages(page_of(region, bucket)) for bucket in range(first, first + AT_ONCE)]
        while left := [pages for pages in buckets if pages.more]:
            answers: tuple[Page, ...] = answered(
                (yield Together(tuple(pages.next for pages in left)))
            )
            for pages, page in zip(left, answers, strict=True):
                pages.take(page)
                lanes, damaged, retired = listed(page.items, settings, now_ms)
                found.lanes.extend(lanes)
                found.damaged.extend(damaged)
                found.retired.extend(retired)
    found.lanes.sort()
    return found


NAMES_MAX = 10  # counters that a message names; there may be more
LANES_AT_ONCE = 50


def with_changes(lanes: Sequence[Lane], *, consistent: bool = True) -> Program[list[Lane]]:
    """The lanes that hold a delta or a checkpoint, by one round trip. Raises the TableErrors.

    A lane in a directory may have a gate and nothing else, so only its items show whether it has
    changes that no gate decided. A process that opens a gate reads its own replica alone, so a
    Region that is down stops no opening.
    """
    checkpoints = GetMany(tuple(map(items.checkpoint_key, lanes)), consistent)
    there, *pages = answered(
        (yield Together((checkpoints, *(first_delta(lane, consistent) for lane in lanes))))
    )
    found = zip(lanes, there, pages, strict=True)
    return [lane for lane, checkpoint, page in found if checkpoint is not None or page.items]


def first_delta(lane: Lane, consistent: bool = True) -> Query:
    return Query(items.delta_pk(lane), limit=1, consistent=consistent)


def keys_of_small_table() -> Program[tuple[Key, ...] | None]:
    """Every key of a table that one page of a Scan shows, as it has arrived here; eventually
    consistent, as a Query of the directory. None: the table has more, or the role may not scan it.
    Raises the TableErrors.
    """
    try:
        page: KeyPage = yield Scan()
    except NotAllowed as refused:
        if not refused.is_denied:
            raise
        return None
    return page.keys if page.last is None else None


def counters_below(
    prefixes: Collection[str],
    rules: Collection[str],
    settings: Settings,
    regions: Iterable[str],
    everywhere: bool,
    *,
    keys: Collection[Key] | None = None,
    anything: bool = False,
) -> Program[list[str]]:
    """Counters with changes for which one of the prefixes is the longest of all rules; the first
    few of each Region.

    everywhere: read each Region at its endpoint, so a Region that is down stops a process that adds
    a limit; else what has arrived here of each. keys: all that have arrived here, where they are
    known: then no directory is read. anything: also those without changes. Raises the TableErrors.
    """
    names = set[str]()
    for region in regions:
        program = _in_region(prefixes, rules, settings, region, keys, anything)
        try:
            names |= (
                yield from at(region, program)
                if everywhere and region != settings.region
                else program
            )
        except TableMissing:
            continue  # a Region whose replica is still to be made
        except TableError as error:
            raise type(error)(
                f"{region} did not say which counters it has, and a limit is added only when "
                f"every Region answers: {error} The shape was left as it is. Run it again when "
                f"{region} answers."
            ) from error
    return sorted(names)


def _in_region(
    prefixes: Collection[str],
    rules: Collection[str],
    settings: Settings,
    region: str,
    keys: Collection[Key] | None,
    anything: bool,
) -> Program[set[str]]:
    if keys is None:
        # by a rule that is yet to come, a lane that is there may look retired
        there = (yield from listing(region, settings, including_retired=True)).lanes
    else:
        listed = (lane for key in keys if (lane := lane_of(key)) is not None)
        there = sorted(lane for lane in listed if lane.region == region)
    lanes = [lane for lane in there if longest(rules, lane.counter) in prefixes]
    names = {lane.counter for lane in lanes} if anything else set[str]()
    if names:
        return names
    for start in range(0, len(lanes), LANES_AT_ONCE):
        names |= {
            lane.counter for lane in (yield from with_changes(lanes[start : start + LANES_AT_ONCE]))
        }
        if len(names) >= NAMES_MAX:
            break
    return names
