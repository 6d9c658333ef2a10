"""The program `counters_page` reads the names of counters, page by page, from the directory of
lanes.

Rule 1: A name is on a page once, however many lanes its counter has: those of a Region stand in one
bucket, by shard and then by name, so a page merges the shards and Regions of a bucket by name, as
far as all of them were read.
Rule 2: The order is by bucket, then by name, so a write meanwhile moves no place, and a place never
expires. A counter whose whole name is the prefix comes first, alone: its lanes say at once whether
it is there.
Rule 3: A page with names reads BUCKETS_MAX buckets at most behind those without one, and may be
short: there is more as long as it has a `next`. It is empty only where there is no more, or where
its caller bounds what it takes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ledger.core.errors import DamagedItem
from ledger.core.requests import Key, Page, Program, Query, Together
from ledger.core.requests import key_of as key_of_item
from ledger.core.running import answered, through
from ledger.core.settings import SHARDS_MAX
from ledger.core.values import Lane
from ledger.lane.directory import BUCKETS, bucket_pk, key_of, lane_of
from reader.balance import CountersPage, Place
from reader.bounded import Spending
from reader.checks import check_page, prefix_of
from reader.rules import Rules

BUCKETS_MAX = 64
AT_ONCE_MAX = 8
"""Buckets that are read together; one at first, so that a full one costs nobody the others."""

LOOK = 64
"""Names that the first Query of a bucket takes under a prefix: of those behind it a page reads few.
A larger Query follows only where that one ended among names with the prefix."""

WHOLE_MAX = 16
"""Lanes of a counter by which a page looks whether it is there."""

Wanted = Callable[[str], bool]
"""Whether a name is to be listed: one without the prefix never is."""

_HIGH = "\x7f"
"""Above every character of a name."""


class Stream(NamedTuple):
    """Names of one shard in one Region and bucket, in order. upto: no name up to it is missing;
    None: none at all.
    had: whether an earlier page had the first of them."""

    names: list[str]
    upto: str | None
    had: bool


class Sought(NamedTuple):
    """What a page is to have: names with the prefix that are wanted, `most` of them; where it may
    have more, all of the buckets that it read. had: keys of the directory; an earlier page had the
    counter of these, whose name is the prefix."""

    prefix: str
    wanted: Wanted
    most: int
    had: frozenset[Key]
    may_have_more: bool


def counters(
    rules: Rules, prefix: str = "", *, after: Place | None = None, limit: int = 100
) -> Program[CountersPage]:
    check_page(limit, after, Place)
    settings, prefix = rules.settings, prefix_of(prefix)
    lanes = settings.lanes_of(prefix) if prefix else ()
    whole = sorted(lanes, key=lambda lane: (lane.shard, lane.region != settings.region))
    yield from rules.shape.program()
    of = settings.regions, prefix, rules.kept(prefix), after, limit
    return (yield from counters_page(*of, whole=whole, units=rules.units))


def counters_page(
    regions: Sequence[str],
    prefix: str,
    wanted: Wanted,
    after: Place | None,
    most: int,
    *,
    whole: Sequence[Lane] = (),
    units: int | None = None,
    may_have_more: bool = False,
) -> Program[CountersPage]:
    """The next `most` wanted names with `prefix`. Raises DamagedItem and the TableErrors.

    whole: the lanes of the counter with that very name, which comes first. units: after so many
    read units the page ends, perhaps without a name; None: only the last page has none.
    may_have_more: than `most`, up to AT_ONCE_MAX times as many, so that no bucket is read twice.
    """
    spending, keys = Spending(units), tuple(map(key_of, whole))
    looks = after is None and 0 < len(keys) <= WHOLE_MAX and wanted(prefix)
    if looks and (yield from through(_is_there(keys), spending.step)):
        return CountersPage((prefix,), Place(0), ())
    had = keys if after is not None and len(keys) <= WHOLE_MAX else ()
    sought = Sought(prefix, wanted, most, frozenset(had), may_have_more)
    damaged: dict[Key, None] = {}
    while True:
        page = yield from through(_page(regions, sought, after, spending), spending.step)
        damaged |= dict.fromkeys(page.damaged)
        after = page.next
        if page.counters or after is None or spending.is_over:
            return CountersPage(page.counters, after, tuple(damaged))


def _is_there(keys: Sequence[Key]) -> Program[bool]:
    """Whether the directory has a key; the first is the likeliest.

    It asks by Query, which a role for lists may.
    """
    for key in keys:
        page: Page = yield Query(key.pk, _just_below(key.sk), key.sk, 1, False)
        if key in map(key_of_item, page.items):
            return True
    return False


def _page(
    regions: Sequence[str], sought: Sought, after: Place | None, spending: Spending
) -> Program[CountersPage]:
    first, above = (after.bucket, after.counter) if after else (0, "")
    last, most = min(first + BUCKETS_MAX, BUCKETS), sought.most
    names: list[str] = []
    damaged: dict[Key, None] = {}
    begin, at_once = first, 1
    while begin < last and len(names) < most and not spending.is_over:
        read = range(begin, min(begin + at_once, last))
        lows = {
            bucket: max(above if bucket == first else "", _just_below(sought.prefix))
            for bucket in read
        }
        found = yield from _abreast(
            [
                _streams(bucket_pk(region, bucket), lows[bucket], sought)
                for bucket in read
                for region in regions
            ]
        )
        for n, bucket in enumerate(read):
            if len(names) == most and not sought.may_have_more:
                return CountersPage(tuple(names), Place(bucket), tuple(damaged))
            own = found[n * len(regions) : (n + 1) * len(regions)]
            streams = [stream for of_region, _ in own for stream in of_region]
            damaged |= {key: None for _, keys in own for key in keys}
            upto = min((stream.upto for stream in streams if stream.upto is not None), default=None)
            had = {sought.prefix} if any(stream.had for stream in streams) else set[str]()
            there = {
                name for stream in streams for name in stream.names if upto is None or name <= upto
            }
            names += sorted(there - had)
            if len(names) > most and not sought.may_have_more:
                return CountersPage(
                    tuple(names[:most]), Place(bucket, names[most - 1]), tuple(damaged)
                )
            if upto is not None:
                return CountersPage(tuple(names), Place(bucket, upto), tuple(damaged))
        begin, at_once = read.stop, min(2 * at_once, AT_ONCE_MAX)
    return CountersPage(tuple(names), Place(begin) if begin < BUCKETS else None, tuple(damaged))


Streams = tuple[list[Stream], list[Key]]
"""The streams of a bucket, one for each shard in it; and the items there that name no lane."""


def _abreast(programs: Sequence[Program[Streams]]) -> Program[list[Streams]]:
    """What programs that only query return.

    Their next Queries are sent together, round by round.
    """
    found: list[Streams] = [([], [])] * len(programs)
    answers: dict[int, Page | None] = dict.fromkeys(range(len(programs)))
    while answers:
        queries: dict[int, Query] = {}
        for n, page in answers.items():
            try:
                # they yield nothing else
                queries[n] = programs[n].send(page)  # type: ignore[assignment]
            except StopIteration as end:
                found[n] = end.value
        pages: Sequence[Page] = (
            answered((yield Together(tuple(queries.values())))) if queries else ()
        )
        answers = dict(zip(queries, pages, strict=True))
    return found


def _streams(pk: str, low: str, sought: Sought) -> Program[Streams]:
    found: list[Stream] = []
    damaged: list[Key] = []
    shard, first = "0", Key(pk, "")
    for _ in range(SHARDS_MAX):
        stream, beyond = yield from _stream(pk, shard, low, sought, damaged)
        found.append(stream)
        if beyond is None:
            hop: Page = yield Query(pk, f"{shard}$", None, 1, False)
            beyond = [*map(key_of_item, hop.items)]
        if not beyond:
            return found, damaged
        first = beyond[0]
        shard = first.sk.partition("#")[0]
    raise DamagedItem(first.pk, first.sk, f"the bucket names more than {SHARDS_MAX:,} shards")


def _stream(
    pk: str, shard: str, low: str, sought: Sought, damaged: list[Key]
) -> Program[tuple[Stream, list[Key] | None]]:
    """The names of a shard above `low`, as far as a page needs them; and keys of further shards,
    None where nobody has looked for them. It adds the keys that name no lane to `damaged`."""
    prefix, wanted, most = sought.prefix, sought.wanted, sought.most
    names: list[str] = []
    had = False
    after, size = f"{shard}#{low}", min(LOOK, most) if prefix else most
    while True:
        page: Page = yield Query(pk, after, None, size, False)
        keys = [*map(key_of_item, page.items)]
        own = [key for key in keys if key.sk.startswith(f"{shard}#")]
        beyond = [key for key in keys if not key.sk.startswith(f"{shard}#")]
        damaged += [key for key in keys if lane_of(key) is None]
        had |= any(key in sought.had for key in own)
        names += [
            lane.counter for lane in map(lane_of, own) if lane is not None and wanted(lane.counter)
        ]
        if beyond or page.last is None:
            return Stream(names, None, had), beyond
        last = own[-1].sk.partition("#")[2]
        if prefix and last > prefix + _HIGH:
            return Stream(names, None, had), None
        if size == most:
            return Stream(names, last, had), None
        after, size = page.last, most


def _just_below(prefix: str) -> str:
    """A text below every name with the prefix, and above all other names below these; of sort
    keys alike.
    """
    return prefix[:-1] + chr(ord(prefix[-1]) - 1) + _HIGH if prefix else ""
