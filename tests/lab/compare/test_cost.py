"""Units and dollars of known designs, worked out by hand, from changes made on the embedded engine."""

from dataclasses import replace

import pytest

from lab.compare.cost import KEY_LENGTH, ONE, SHOP, Spent, on_one_counter, shop_events, spend, spent
from lab.designs import Design
from lab.designs.trial import DESIGNS
from lab.engines.ministack import Engine
from lab.meters.charge import Charge
from ledgerctl.bill import PRICES, million_changes, million_reads

BY_NAME = {design.name: design for design in DESIGNS}


def on_one(engine: Engine, name: str, changes: int) -> Spent:
    return spend(engine, on_one_counter(shop_events(count=changes)), BY_NAME[name])


def test_the_events_are_the_same_first_ones_for_all_and_of_one_counter_nothing_else_is_changed() -> None:
    assert shop_events(count=5) == (events := shop_events())[:5]
    assert len(events) == ONE > SHOP
    assert on_one_counter(events) == [replace(event, counter="stock:all") for event in events]


def test_a_plain_add_is_a_unit_in_every_region(engine: Engine) -> None:
    add = on_one(engine, "atomic ADD", 8)
    assert (add.changes, add.change) == (4, Charge(requests=4, write_units=4, replicated_units=4))
    assert [million_changes(add.usage, regions) for regions in (1, 2, 3)] == [0.625, 1.25, 1.875]
    assert million_reads(add.usage) == PRICES.read
    assert (add.housekeeping, add.left_bytes, add.left_items) == (Charge(), 0, 0)


def test_a_marker_is_left_by_every_change_or_is_paid_for_in_the_other_regions_when_it_expires(engine: Engine) -> None:
    stays, expires = on_one(engine, "transaction, marker", 8), on_one(engine, "transaction, marker with TTL", 8)
    size = len("marker#stock:all#") + KEY_LENGTH + len("stock:all") + len("pk" + "sk" + "change") + 2
    assert (stays.left_items, expires.left_items) == (1, 0)
    assert stays.left_bytes == pytest.approx(size, abs=1)
    assert expires.change == Charge(requests=4, write_units=16, replicated_units=16)
    assert expires.housekeeping == Charge(replicated_units=4)
    assert [million_changes(expires.usage, regions) for regions in (1, 2, 3)] == [2.5, 5.625, 8.75]


def test_the_naive_merge_deletes_and_adds_twice_over(engine: Engine) -> None:
    merged = on_one(engine, "item collection, naive merge", 8)
    assert (merged.change.write_units, merged.housekeeping.write_units, merged.left_items) == (4, 2 * 4 + 2, 0)


def test_the_hybrids_consumer_looks_at_two_records_of_a_thing(engine: Engine) -> None:
    hybrid = on_one(engine, "hybrid, best effort and stream", 8)
    assert (hybrid.change.write_units, hybrid.housekeeping.write_units) == (2 * 4, 4 * 4)
    assert hybrid.housekeeping.read_units == 2 * 4


def test_ours_puts_and_deletes_and_shares_a_commit_and_a_note(engine: Engine) -> None:
    ours = on_one(engine, "this library", 70)
    assert ours.change == Charge(requests=35, write_units=35, replicated_units=35)
    assert ours.housekeeping.write_units == 2 + 2 + 35 + 1
    assert ours.left_items == pytest.approx(1 / 35)
    assert ours.left_bytes == pytest.approx(24 + 82 / 35, abs=0.2)
    assert (ours.read.requests, ours.read.read_units) == (2, 2)


def test_packs_put_and_delete_many_in_a_unit_and_share_a_commit_and_a_note(engine: Engine) -> None:
    packs = on_one(engine, "this library, packs", 76)
    assert packs.change == Charge(requests=1, write_units=1, replicated_units=1)  # 38 in a KB
    assert packs.housekeeping.write_units == 2 + 2 + 1 + 1


def test_a_set_of_ids_costs_as_much_as_it_has_grown(engine: Engine) -> None:
    ids = on_one(engine, "set of ids", 100)  # of 36 bytes: 1,800 to 3,600 bytes and the key
    assert 50 * 2 <= ids.change.write_units <= 50 * 4
    assert ids.grows


def test_every_design_has_its_sums_right(engine: Engine) -> None:
    assert [each.design for each in spent(engine, shop_events(count=6))] == [*DESIGNS]


def test_a_wrong_sum_is_no_result(engine: Engine) -> None:
    class Forgetful(type(BY_NAME["atomic ADD"])):  # type: ignore[misc]
        def add(self, counter: str, change: int, key: str, at_ms: int, shard: int = 0) -> object:
            return super().add(counter, change // 2, key, at_ms, shard)

    forgetful: Design = Forgetful(name="forgetful")
    with pytest.raises(AssertionError, match="forgetful: stock:all reads"):
        spend(engine, on_one_counter(shop_events(count=4)), forgetful)
