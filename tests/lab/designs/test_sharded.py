"""Design 8: a limit that is dealt out, and what it costs to deal it out."""

import zlib

import pytest

from lab.designs.atomic import Atomic
from lab.designs.design import SingleItem
from lab.designs.optimistic import EntityTag
from lab.designs.sharded import Sharded
from lab.designs.string_set import StringSet
from lab.designs.transaction_marker import TransactionMarker
from lab.designs.transaction_token import TransactionToken
from tests.lab.designs.conftest import START_MS, C, OnWorld, Place, add, adds, value

INNER = [Atomic(), EntityTag(), TransactionToken(), TransactionMarker(), StringSet()]
by_name = pytest.mark.parametrize("inner", INNER, ids=lambda inner: inner.name)


@by_name
def test_a_value_is_the_sum_of_its_shards(anywhere: Place, inner: SingleItem) -> None:
    design = Sharded(name="sharded", inner=inner, shards=4)
    assert [anywhere.run(make()) for make in adds(design, 16)] == ["recorded"] * 16
    assert value(anywhere, design) == 16


@by_name
def test_a_ceiling_is_reached_by_changes_of_1_and_never_passed(inner: SingleItem) -> None:
    for seed in range(4):
        on_world = OnWorld(seed)
        design = Sharded(name="sharded", inner=inner, shards=4, ceiling=10)
        outcomes = on_world.at_once(*adds(design, 16))
        assert value(on_world, design) == outcomes.count("recorded") <= 10
        for number in range(10):
            add(on_world, design, f"more-{number}")
        assert value(on_world, design) == 10


def test_a_floor_is_dealt_out_as_well_and_no_change_larger_than_a_shards_part_fits(anywhere: Place) -> None:
    design = Sharded(name="sharded", inner=Atomic(), shards=3, floor=-7)
    assert add(anywhere, design, "k", -4) == "refused"  # though all together have room
    outcomes = [anywhere.run(make()) for make in adds(design, 9, change=-1)]
    assert outcomes == ["recorded"] * 7 + ["refused"] * 2
    assert value(anywhere, design) == -7


@pytest.mark.parametrize(("inner", "counted"), [(EntityTag(), 2), (TransactionMarker(), 1)])
def test_of_the_memories_only_a_marker_is_found_from_another_shard(
    anywhere: Place, inner: SingleItem, counted: int
) -> None:
    design = Sharded(name="sharded", inner=inner, shards=2, ceiling=2)
    one, moved = [key for key in map(str, range(20)) if zlib.crc32(key.encode()) % 2 == 0][:2]
    assert [add(anywhere, design, key) for key in (one, moved)] == ["recorded"] * 2
    assert anywhere.run(inner.add(C, -1, "room", START_MS, shard=0)) == "recorded"
    add(anywhere, design, moved)
    assert value(anywhere, design) == counted
