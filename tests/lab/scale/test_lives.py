"""Lives of the shipped programs: nothing is lost in what is measured, and its accounts are reckoned a second way."""

from collections.abc import Callable

import pytest

from lab.scale import lives, million
from lab.scale.arrivals import lanes_of
from lab.scale.lean import LOOK, LeanTable
from lab.scale.lived import Lived, so_far, tail_of
from lab.scale.region import Region
from ledger import items
from ledger.cost import item_bytes, write_units
from ledger.requests import Key
from service import observe

LANES, RATE = 8, 0.02
Lead = Callable[[], tuple[Region, Lived]]


def lead() -> tuple[Region, Lived]:
    """All of a life, from an empty table on: some lanes, half a day."""
    region, _ = lives.cold(LANES, RATE, days=0.5, measured=0.1)
    return region, so_far(region)


@pytest.fixture(scope="module")
def led() -> tuple[Region, Lived]:
    return lead()


def checkpoint_of(region: Region, number: int) -> int:
    lane = lanes_of(number + 1)[number]
    item = region.table.item(items.checkpoint_key(lane))
    return items.checkpoint_of(lane, item).total if item is not None else 0


def commits_of(region: Region) -> int:
    """Write units of the commits that left the segments that are there."""
    units = 0
    for lane in lanes_of(LANES):
        pk = items.fold_pk(lane)
        for sk in region.table.partition(pk).keys:
            item = region.table.item(Key(pk, sk))
            if sk.startswith("segment#") and item is not None:
                units += 2 * (write_units(item_bytes(item)) + 1)  # the checkpoint has less than a KB
    return units


def check(region: Region, lived: Lived) -> None:
    """The accounts of a life, reckoned from what stands in the table and what the functions told."""
    assert lived.cost("put").write_units == lived.changes
    assert lived.cost(operation="TransactWriteItems").write_units == commits_of(region)
    deleted = lived.cost("compact", kind="delta", operation="BatchExecuteStatement")
    assert deleted.write_units == lived.metrics[observe.DELTAS_CLEANED]
    looks = lived.cost("compact", kind=LOOK, operation="GetItem")
    assert looks.requests == lived.looks + lived.visits == region.sqs.received
    assert looks.read_units == looks.requests / 2
    assert lived.cost("compact", kind="lane").write_units == LANES  # before a lane's first commit
    assert lived.cost("ring", kind="lane").write_units == LANES


def test_every_change_is_in_a_sum_or_in_a_tail(led: tuple[Region, Lived]) -> None:
    region, lived = led
    tails = sum(tail_of(region, lane) for lane in lanes_of(LANES))
    assert sum(checkpoint_of(region, number) for number in range(LANES)) + tails == lived.changes
    assert lived.visits > 20 < lived.looks


def test_the_accounts_are_what_stands_in_the_table_and_what_the_functions_told(led: tuple[Region, Lived]) -> None:
    check(*led)


@pytest.mark.parametrize("forgotten", [(LOOK, "GetItem"), ("fold", "TransactWriteItems"), ("lane", "PutItem")])
def test_accounts_that_forget_something_are_seen(forgotten: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    charge = LeanTable._charge

    def forget(table: LeanTable, operation: str, pk: str, *units: float, **more: float) -> None:
        if (pk.partition("#")[0], operation) != forgotten:
            charge(table, operation, pk, *units, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(LeanTable, "_charge", forget)
    with pytest.raises(AssertionError):
        check(*lead())


def test_a_busy_lane_in_packs_is_visited_again_and_again_and_costs_little() -> None:
    lived = lives.hot(1_000, 100, minutes=5, measured=2)
    assert lived.cost("put").write_units == lived.changes // 100 * 3
    assert 8 <= lived.visits <= 16  # visits follow each other, 10 s apart
    assert lived.tails.longest < 30_000
    assert lived.write_units < 0.1


def test_a_life_without_clean_deletes_nothing() -> None:
    lived = lives.cold(2, 0.02, days=0.4, measured=0.3, settings=lives.KEPT)[1]
    assert lived.cost(operation="BatchExecuteStatement", kind="delta").write_units == 0
    assert lived.cost(operation="PutItem", kind="fold").write_units == 0


def test_many_lanes_go_on_from_the_histories_of_a_few() -> None:
    pattern, _ = lives.cold(5, 0.02, days=0.1, measured=0.01)
    values = [checkpoint_of(pattern, n) + tail_of(pattern, lane) for n, lane in enumerate(lanes_of(5))]
    found = million.played(pattern, 5, 300, 0.02, 90)
    assert (found.lanes, found.first.changes) == (300, 300)
    assert 400 < found.then.changes < 700
    assert found.first.cost("ring", kind="lane").write_units == found.first.metrics[observe.LANES_LISTED] == 300
    assert (found.then.metrics[observe.LANES_LISTED], found.known) == (0, 300)
    assert found.then.looks + found.then.visits > 5
    assert max(values) > 32
    both = found + found
    assert (both.lanes, both.then.changes, both.known) == (600, 2 * found.then.changes, found.known)
    assert both.then.write_units == found.then.write_units
