"""The list of counters, page by page: each name once, whatever its lanes, the pages and what is
written meanwhile.
"""

import random
from itertools import pairwise, product
from typing import Any

import pytest

from ledger import Change, Ledger, Limit
from ledger.core.conditions import Absent
from ledger.core.errors import InvalidInput, LedgerError, Throttled
from ledger.core.requests import At, Get, Key, Put, Query, Scan, Together, keyed
from ledger.core.values import Lane
from ledger.lane import directory
from ledger.tables.memory import MemoryTable
from reader import CountersPage, Place, Reader
from reader.bounded import bound
from tests.world import A, B, Region, reader, settings


def filled(lanes: list[Lane], page_size: int = 1_000) -> Region:
    table = Region(page_size=page_size)
    table.store(map(directory.item_of, lanes))
    return table


def all_pages(of: Reader, prefix: str, limit: int) -> list[CountersPage]:
    found = [of.counters(prefix, limit=limit)]
    while (after := found[-1].next) is not None:
        found.append(of.counters(prefix, after=after, limit=limit))
    return found


def by_bucket(names: set[str]) -> list[str]:
    return sorted(names, key=lambda name: (directory.bucket_of(name), name))


def lanes_of(seed: int) -> list[Lane]:
    """Few buckets are much used: names are drawn until they fall there."""
    drawn = random.Random(seed)
    names = [f"{drawn.choice(('stock:', 'stock;', 'seats#', ''))}{n}" for n in range(3_000)]
    names = [name for name in names if directory.bucket_of(name) in (0, 1, 7, 255)]
    lanes = []
    for name in names:
        shards = drawn.choice((1, 1, 1, 2, 12))
        every = [Lane(region, shard, name) for region in (A, B) for shard in range(shards)]
        lanes += drawn.sample(every, drawn.randint(1, len(every)))
    return lanes


def test_every_name_is_there_once_in_order_whatever_the_pages() -> None:
    for (seed, limit), prefix in product(
        enumerate((1, 3, 17, 1_000)), ("", "stock:", "seats#", "stock:1", "none")
    ):
        lanes = lanes_of(seed)
        found = all_pages(reader(filled(lanes, page_size=1 + 7 * seed)), prefix, limit)
        assert [name for page in found for name in page.counters] == by_bucket(
            names_of(lanes, prefix)
        )
        assert all(len(page.counters) <= limit and not page.damaged for page in found)
        assert all(page.counters for page in found[:-1])
        places = [page.next for page in found if page.next]
        assert all(earlier < later for earlier, later in pairwise(places))


def test_a_page_without_names_is_the_last() -> None:
    name = next(f"n{n}" for n in range(1_000) if 64 <= directory.bucket_of(f"n{n}") < 128)
    table = filled([Lane(A, 0, name)])

    def page(after: Place | None, prefix: str = "") -> tuple[CountersPage, int]:
        table.asked.clear()
        found = reader(table).counters(prefix, after=after)
        queries = [
            each for asked in table.asked if isinstance(asked, Together) for each in asked.requests
        ]
        assert all(isinstance(each, Query) and not each.consistent for each in queries)
        return found, len(queries)

    first, asked = page(None)
    # two quarters, in two Regions
    assert (first, asked) == (CountersPage((name,), Place(128), ()), 256)
    assert page(first.next) == (CountersPage((), None, ()), 256)
    assert page(None, "none") == (CountersPage((), None, ()), 512)


def names_of(lanes: list[Lane], prefix: str) -> set[str]:
    return {lane.counter for lane in lanes if lane.counter.startswith(prefix)}


def queries(table: Region) -> list[Query]:
    return [each for each in table.asked if isinstance(each, Query)]


def test_a_counter_named_as_the_prefix_comes_first_and_once() -> None:
    others = [f"stock:{n}" for n in range(100, 130)]
    for lanes, looks in (
        ([Lane(A, 0, "stock:1")], 1),
        ([Lane(B, 3, "stock:1"), Lane(B, 1, "stock:1")], 4),
    ):
        table = filled([*lanes, *(Lane(A, 0, name) for name in others)])
        of = reader(table, shards={"stock:1": 4})
        table.asked.clear()
        assert of.counters("stock:1").counters == ("stock:1",)
        # the table's shape, and the likeliest lanes first
        assert table.kinds == [Get, *[Query] * looks]
        assert [name for page in all_pages(of, "stock:1", 7) for name in page.counters] == [
            "stock:1",
            *by_bucket({*others}),
        ]
        assert len(of.top("stock:1").rows) == 10
    unread = filled([Lane(A, 9, "stock:1")])  # in a lane that no reader of these settings reads
    assert [name for page in all_pages(reader(unread), "stock:1", 7) for name in page.counters] == [
        "stock:1"
    ]
    none = filled([Lane(A, 0, "stock:2")])
    assert [name for page in all_pages(reader(none), "stock:1", 7) for name in page.counters] == []


@pytest.mark.parametrize("limit", [10, 1_000])
def test_under_a_prefix_few_of_the_other_names_are_read(limit: int) -> None:
    """Of 80 names in each bucket, all behind the prefix: a small Query, and a look for further
    shards.
    """
    names = [f"stock:{n:05}" for n in range(20_000)]
    table = filled([Lane(A, 0, name) for name in ["a:1", *names]])
    of = reader(table, regions=(A,))
    found = all_pages(of, "a:", limit)
    assert [name for page in found for name in page.counters] == ["a:1"]
    table.asked.clear()
    of.counters("none", limit=limit)
    of.counters("b:", limit=limit)
    asked = queries(table)
    assert len(asked) <= 2 * 2 * directory.BUCKETS + 2
    assert max(query.limit or 0 for query in asked) <= 64
    # eight buckets at a time
    assert sum(isinstance(request, Together) for request in table.asked) <= 2 * 2 * 44


def test_a_page_ends_after_so_many_units_and_the_next_goes_on() -> None:
    lanes = lanes_of(3)
    for prefix in ("", "stock:", "none"):
        of, expected = bound(reader(filled(lanes)), 20), by_bucket(names_of(lanes, prefix))
        names: list[str] = []
        after, pages = None, 0
        while pages == 0 or after is not None:
            page = of.counters(prefix, after=after, limit=1_000)
            names, after, pages = [*names, *page.counters], page.next, pages + 1
        assert names == expected
        assert pages > 8
    for wrong in (0, -1, True, 1.0, "1", 10**10):
        with pytest.raises(InvalidInput, match="units is an int"):
            bound(reader(Region()), wrong)  # type: ignore[arg-type]


def test_what_names_no_lane_is_skipped_and_named() -> None:
    lanes = [Lane(A, shard, "stock:85123A") for shard in (0, 2)]
    table = filled(lanes, page_size=1)
    pk = directory.key_of(lanes[0]).pk
    damaged = [Key(pk, sk) for sk in ("0#other", "00#x", "1#stock:85123B", "x", "2#")]
    table.store(keyed(key) for key in damaged)
    found = all_pages(reader(table), "", 100)
    assert [name for page in found for name in page.counters] == ["stock:85123A"]
    assert {key for page in found for key in page.damaged} == set(damaged)
    assert all(page.counters for page in found[:-1])


def test_a_bucket_that_cannot_be_read_is_an_error_and_no_gap() -> None:
    def after(request: Together, answer: Any) -> Any:
        fails = not any(isinstance(each, Put | At) for each in request.requests)
        return tuple(Throttled("slower") for _ in answer) if fails else answer

    with pytest.raises(LedgerError, match="slower"):
        reader(Region().after(Together, after)).counters()
    with pytest.raises(LedgerError, match="slower"):
        Region().after(Together, after).run(directory.listing(A, settings()))


def test_what_is_no_page_or_no_place_is_refused() -> None:
    no_pages: tuple[dict[str, Any], ...] = (
        {"prefix": " "},
        {"prefix": "ä"},
        {"limit": 0},
        {"limit": 1_001},
    )
    for wrong in (*no_pages, {"after": "x"}):
        with pytest.raises(InvalidInput):
            reader(Region()).counters(**wrong)
    no_places: tuple[tuple[Any, Any], ...] = ((-1, ""), (256, ""), (True, ""), (0, None))
    for bucket, counter in no_places:
        with pytest.raises(InvalidInput, match="A place is a bucket"):
            Place(bucket, counter)


def test_a_table_in_memory_lists_its_lanes_unless_told_not_to() -> None:
    limits = {"seats:": Limit(ceiling=10, region=A)}
    for lists, names in ((True, {"c", "packed", "seats:gig"}), (False, set())):
        table = MemoryTable(lists=lists)
        ledger = Ledger(settings(regions=(A,), limits=limits), table=table)
        ledger.add("c", 1)
        ledger.add_many([Change("packed", 1)] * 3, pack=True)
        ledger.add("seats:gig", 1)
        found = all_pages(Reader(settings(regions=(A,), limits=limits), table=table), "", 100)
        assert {name for page in found for name in page.counters} == names
        scanned = table.answer(Scan()).keys
        assert {lane.counter for key in scanned if (lane := directory.lane_of(key))} == names
        for lane in filter(None, map(directory.lane_of, scanned)):
            assert table.answer(Put(directory.item_of(lane), Absent())) == directory.item_of(lane)
        assert not any(map(directory.lane_of, table.items)), "items holds what was put"
