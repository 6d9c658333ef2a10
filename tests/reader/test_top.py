"""`top`: the largest counters are the same as by reading each, and how many requests that takes."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from ledger import Cost, Limit
from ledger.core import items
from ledger.core.errors import DamagedItem, InvalidInput
from ledger.core.requests import GetMany, Key, Now, Query, Request, Together, keyed
from ledger.core.values import Checkpoint, Lane
from ledger.lane import directory
from reader import Balance, Reader
from reader import top as tops
from tests.world import LATER_MS, A, B, Region, World, delta, reader, token

LIMITS = {"seats:": Limit(ceiling=10**9, region=A)}
NAMES = [f"{kind}{n}" for kind in ("plain:", "sharded:", "seats:") for n in range(50)]
FOLDED_MS = LATER_MS - 200_000
MANY = 8_000


def world_of() -> World:
    """150 counters of all kinds, some folded, some with a tail as well, some with a tail alone."""
    world, drawn = (
        World(shards={"sharded:": 3}, limits=LIMITS, unshared_limits=True),
        random.Random(7),
    )
    for name in NAMES:
        for _ in range(drawn.randrange(1, 4)):
            world.add(name, drawn.randrange(1, 50), drawn.choice((A, B)))
    world.replicate()
    world.now_ms += 20_000
    for name in drawn.sample(NAMES, 60):
        for region in (A, B):
            world.compactor(region).compact(name)
    for name in drawn.sample(NAMES, 40):
        world.add(name, drawn.randrange(1, 50))
    world.replicate()
    world.home.store(directory.item_of(Lane(A, 0, name)) for name in NAMES)
    return world


def by_reading_each(of: Reader, prefix: str, n: int, attribute: str) -> list[tuple[str, Balance]]:
    read = [(name, of.read(name)) for name in NAMES if name.startswith(prefix)]
    return sorted(read, key=lambda row: (-getattr(row[1], attribute), row[0]))[:n]


def test_without_behind_rows_are_those_of_single_reads() -> None:
    of = world_of().reader()
    assert len({balance.value for _, balance in by_reading_each(of, "", 150, "value")}) > 50
    for prefix, n, there in (
        ("", 7, 150),
        ("sharded:", 3, 50),
        ("plain:1", 1_000, 11),
        ("none", 5, 0),
    ):
        for by, attribute in (("value", "value"), ("changes", "count"), ("pending", "pending")):
            found = of.top(prefix, n, by=by, behind=0)
            assert (list(found.rows), found.counters) == (
                by_reading_each(of, prefix, n, attribute),
                there,
            )


@pytest.mark.parametrize("names", [1, 7, 40])
def test_pages_of_few_names_have_each_counter_once(
    names: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = world_of().reader()
    monkeypatch.setattr(tops, "NAMES", names)
    monkeypatch.setattr(tops, "BATCH", 10)
    for prefix, there in (("", 150), ("sharded:", 50)):
        found = of.top(prefix, 1_000, behind=0)
        rows = by_reading_each(of, prefix, 1_000, "value")
        assert (list(found.rows), found.counters) == (rows, there)


def counted(asked: Iterable[Request]) -> int:
    """Requests of DynamoDB, as a Cost counts them: those that are asked for together are each
    one of their own.
    """
    return sum(
        -(-len(each.keys) // 100) if isinstance(each, GetMany) else 1
        for each in asked
        if each_is_sent(each)
    )


def each_is_sent(request: Request) -> bool:
    # what is together comes to the same table by itself
    return not isinstance(request, Now | Together)


def many(watermark_ms: int | None) -> Region:
    """Many counters of one lane, counter n with a value of n, folded up to that time; None:
    never folded.
    """
    table = Region()
    table.now_ms = LATER_MS
    lanes = [Lane(A, 0, f"stock:{n}") for n in range(MANY)]
    table.store(map(directory.item_of, lanes))
    if watermark_ms is not None:
        at = token(1, watermark_ms)
        table.store(
            items.checkpoint_item(Checkpoint(lane, n, 1, at, 1, at, LATER_MS))
            for n, lane in enumerate(lanes)
        )
    return table


@pytest.mark.parametrize(
    ("watermark_ms", "given", "behind", "values"),
    [
        (None, {"limits": {"stock:": Limit(floor=0)}}, 0, 80),
        (FOLDED_MS, {}, 300, 80),
        (FOLDED_MS, {}, 100, 8_080),
        (FOLDED_MS, {}, 0, 8_080),
        (None, {}, 300, 8_080),
    ],
)
def test_8000_counters_are_80_requests_and_one_an_unfolded_lane(
    watermark_ms: int | None, given: dict[str, Any], behind: int, values: int
) -> None:
    table = many(watermark_ms)
    found = reader(table, regions=(A,), **given).top("", 3, behind=behind)
    assert found.counters == MANY
    if watermark_ms is not None:
        assert [balance.value for _, balance in found.rows] == [7_999, 7_998, 7_997]
    names = [
        each for each in table.asked if isinstance(each, Query) and each.pk.startswith("lane#")
    ]
    assert counted(table.asked) - len(names) - 1 == values  # one is the shape's
    assert len(names) == 256


def test_a_row_that_may_be_behind_says_so() -> None:
    table = Region()
    table.now_ms = LATER_MS
    lane, at = Lane(A, 0, "stock:1"), token(1, FOLDED_MS)
    table.store(
        [
            directory.item_of(lane),
            items.checkpoint_item(Checkpoint(lane, 5, 1, at, 1, at, LATER_MS)),
        ]
    )
    table.put(delta(1, lane, at_ms=LATER_MS - 1_000))
    of = reader(table, regions=(A,))
    ((_, behind),), ((_, exact),) = of.top().rows, of.top(behind=0).rows
    assert (behind.value, behind.as_of.timestamp() * 1_000) == (5, FOLDED_MS)
    assert (exact.value, exact.pending, exact.as_of.timestamp() * 1_000) == (9, 1, LATER_MS)
    assert of.top(by="pending").rows == of.top(behind=0).rows
    assert of.top().cost == Cost()  # a table in memory consumes nothing


def test_a_counter_that_cannot_be_read_ends_it() -> None:
    table = many(FOLDED_MS)
    lost = Key(directory.key_of(Lane(A, 0, "stock:1")).pk, "0#elsewhere")
    table.store([keyed(lost)])
    of = reader(table, regions=(A,))
    assert (of.top(n=1).counters, of.top(n=1).damaged) == (MANY, (lost,))
    table.alter(items.checkpoint_key(Lane(A, 0, "stock:5")), total={"S": "x"})
    with pytest.raises(DamagedItem, match="stock:5"):
        of.top()


def test_a_wrong_number_order_or_time_is_refused() -> None:
    table = Region()
    wrong: list[dict[str, Any]] = [
        {"prefix": " "},
        {"n": 0},
        {"n": 1_001},
        {"n": "3"},
        {"by": "name"},
        {"by": []},
    ]
    for given in (*wrong, {"behind": -1}, {"behind": None}):
        with pytest.raises(InvalidInput):
            reader(table).top(**given)
    assert table.asked == []
