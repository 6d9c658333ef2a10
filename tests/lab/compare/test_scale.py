"""Reads after many changes: measured on engines, and worked out by hand."""

import pytest

from lab.compare.scale import CHANGES, Read, reads, set_wall, worked_out
from lab.designs.trial import DESIGNS
from lab.engines.dynamodb_local import DynamoDBLocal
from lab.engines.ministack import Engine

BY_NAME = {design.name: design for design in DESIGNS}
MB = 1024 * 1024


def read(changes: int, items: int, size: int, units: float = 1, trips: int = 1) -> Read:
    return Read("x", changes, items, size, units, trips, measured=True)


def test_what_does_not_grow_is_read_alike_for_ever() -> None:
    assert worked_out([read(100, 2, 300, 2, 2), read(1_000, 2, 303, 2, 2)], 10**7) == Read(
        "x", 10**7, 2, 303, 2, 2, measured=False
    )


def test_items_of_100_bytes_take_a_page_for_each_megabyte() -> None:
    after = worked_out([read(100, 100, 10_000), read(1_000, 1_000, 100_000)], 10**6)
    assert (after.items, after.bytes) == (10**6, 10**8)
    assert after.round_trips == 96  # 95 whole megabytes and a rest
    assert after.read_units == 95 * 256 + -(-(10**8 - 95 * MB) // 4096)


def test_one_item_that_grows_is_full_at_400_kb() -> None:
    last = [read(100, 1, 4_000), read(1_000, 1, 40_000, 10)]
    assert worked_out(last, 10_000).read_units == 98
    assert worked_out(last, 10_240).possible
    assert not worked_out(last, 10_241).possible
    assert not worked_out([*last, worked_out(last, 20_000)], 30_000).possible


@pytest.mark.parametrize("name", ["item collection", "set of ids", "this library", "item collection, naive merge"])
def test_what_is_worked_out_is_what_is_measured(engine: Engine, name: str) -> None:
    one, two, three = reads(engine, BY_NAME[name], (40, 80, 400))
    worked = worked_out([one, two], 400)
    assert three.measured
    assert not worked.measured
    assert (worked.items, worked.read_units, worked.round_trips) == (three.items, three.read_units, three.round_trips)
    assert worked.bytes == pytest.approx(three.bytes, abs=4)


def test_a_single_item_is_measured_as_far_as_it_is_asked_for_but_not_by_one_large_change_of_things(
    engine: Engine,
) -> None:
    found = reads(engine, BY_NAME["atomic ADD"], CHANGES)
    assert [(each.items, each.read_units, each.measured) for each in found] == [(1, 1, True)] * len(CHANGES)
    found = reads(engine, BY_NAME["gap-free ids"], (3, 10**7))
    assert [(each.measured, each.read_units) for each in found] == [(True, 1), (False, 1)]


def test_a_set_ends_where_it_was_worked_out(dynamodb_local: DynamoDBLocal) -> None:
    key = "count#0#scale" + "count" + "pk" + "sk" + "ids"
    assert set_wall(dynamodb_local) == (400 * 1024 - len(key)) // 36
