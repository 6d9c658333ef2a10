"""The program `counters_page` reads the names of counters, page by page, from the directory of lanes.

Rule 1: A name is on a page once, however many lanes its counter has: those of a Region stand in one bucket, by shard
and then by name, so a page merges the shards and Regions of a bucket by name, as far as all of them were read.
Rule 2: The order is by bucket, then by name, so a write meanwhile moves no place, and a place never expires.
Rule 3: A page with names reads BUCKETS_MAX buckets at most behind those without one, and may be short: there is more as
long as it has a `next`. It is empty only where there is no more.
Rule 4: A page skips an item that names no lane, and reports it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ledger.errors import DamagedItem
from ledger.lane.directory import BUCKETS, bucket_pk, lane_of
from ledger.requests import Key, Page, Program, Query, Together, answered, key_of
from ledger.settings import SHARDS_MAX
from reader.balance import CountersPage, Place

BUCKETS_MAX = 64
AT_ONCE_MAX = 8
"""Buckets that are read together; one at first, so that a full one costs nobody the others."""

Wanted = Callable[[str], bool]
"""Whether a name is to be listed: one without the prefix never is."""

_HIGH = "\x7f"
"""Above every character of a name."""


class Stream(NamedTuple):
    """Names of one shard in one Region and bucket, in order. upto: no name up to it is missing; None: none at all."""

    names: list[str]
    upto: str | None


def counters_page(
    regions: Sequence[str], prefix: str, wanted: Wanted, after: Place | None, most: int
) -> Program[CountersPage]:
    """The next `most` wanted names with `prefix`; none only at the end. Raises DamagedItem and the TableErrors."""
    damaged: dict[Key, None] = {}
    while True:
        page = yield from _page(regions, prefix, wanted, after, most)
        damaged |= dict.fromkeys(page.damaged)
        after = page.next
        if page.counters or after is None:
            return CountersPage(page.counters, after, tuple(damaged))


def _page(regions: Sequence[str], prefix: str, wanted: Wanted, after: Place | None, most: int) -> Program[CountersPage]:
    first, above = (after.bucket, after.counter) if after else (0, "")
    last = min(first + BUCKETS_MAX, BUCKETS)
    names: list[str] = []
    damaged: dict[Key, None] = {}
    begin, at_once = first, 1
    while begin < last:
        read = range(begin, min(begin + at_once, last))
        lows = {bucket: max(above if bucket == first else "", _just_below(prefix)) for bucket in read}
        firsts = (_query(region, bucket, "0", lows[bucket], most) for bucket in read for region in regions)
        pages: tuple[Page, ...] = answered((yield Together(tuple(firsts))))
        for n, bucket in enumerate(read):
            if len(names) == most:
                return CountersPage(tuple(names), Place(bucket), tuple(damaged))
            streams: list[Stream] = []
            for region, page in zip(regions, pages[n * len(regions) :], strict=False):
                pk, low = bucket_pk(region, bucket), lows[bucket]
                streams += yield from _streams(pk, page, low, prefix, wanted, most, damaged)
            upto = min((stream.upto for stream in streams if stream.upto is not None), default=None)
            names += sorted({name for stream in streams for name in stream.names if upto is None or name <= upto})
            if len(names) > most:
                return CountersPage(tuple(names[:most]), Place(bucket, names[most - 1]), tuple(damaged))
            if upto is not None:
                return CountersPage(tuple(names), Place(bucket, upto), tuple(damaged))
        begin, at_once = read.stop, min(2 * at_once, AT_ONCE_MAX)
    return CountersPage(tuple(names), Place(begin) if begin < BUCKETS else None, tuple(damaged))


def _streams(
    pk: str, page: Page, low: str, prefix: str, wanted: Wanted, most: int, damaged: dict[Key, None]
) -> Program[list[Stream]]:
    """The streams of a bucket, one for each shard in it; `page` is the first of shard 0, and of those behind it."""
    found: list[Stream] = []
    shard = "0"
    for _ in range(SHARDS_MAX):
        keys = [key_of(item) for item in page.items]
        damaged |= dict.fromkeys(key for key in keys if lane_of(key) is None)
        own = [key for key in keys if key.sk.startswith(f"{shard}#")]
        beyond = [key for key in keys if not key.sk.startswith(f"{shard}#")]
        lanes = [lane for key in own if (lane := lane_of(key)) is not None and wanted(lane.counter)]
        last = own[-1].sk.partition("#")[2] if own else ""
        is_whole = bool(beyond) or page.last is None or last > prefix + _HIGH
        found.append(Stream([lane.counter for lane in lanes], None if is_whole else last))
        if not beyond:
            if page.last is None:
                return found
            hop: Page = yield Query(pk, f"{shard}$", None, 1, False)
            beyond = [key_of(item) for item in hop.items]
            if not beyond:
                return found
        shard = beyond[0].sk.partition("#")[0]
        page = yield Query(pk, f"{shard}#{low}", None, most, False)
    raise DamagedItem(*beyond[0], f"the bucket names more than {SHARDS_MAX:,} shards")


def _query(region: str, bucket: int, shard: str, low: str, most: int) -> Query:
    return Query(bucket_pk(region, bucket), f"{shard}#{low}", None, most, False)


def _just_below(prefix: str) -> str:
    """A text below every name with the prefix, and above all other names below these."""
    return prefix[:-1] + chr(ord(prefix[-1]) - 1) + _HIGH if prefix else ""
