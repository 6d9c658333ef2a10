"""Designs 7 and 9, which count things: a set that is full, and numbers of which none is left out."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from lab.designs.gap_free import GapFree
from lab.designs.string_set import IDS, StringSet
from ledger.cost import item_bytes
from ledger.errors import InvalidChange, ItemTooLarge
from ledger.requests import ITEM_BYTES_MAX, Program, Put, keyed
from simulator.faults import Faults
from tests.lab.designs.conftest import C, OnEngine, OnWorld, Place, add, until_answered, value

SET = StringSet(ceiling=3)
GAP_FREE = GapFree()
FAULTS = Faults(lost=150, dropped=50, late=50, throttled=50, crash=50)


def test_full_and_duplicate_are_told_apart_who_leaves_makes_room_and_counts_again_later(anywhere: Place) -> None:
    assert [add(anywhere, SET, key) for key in "abac"] == ["recorded", "recorded", "replayed", "recorded"]
    assert [add(anywhere, SET, key) for key in "da"] == ["refused", "replayed"]
    assert [add(anywhere, SET, "a", change) for change in (-1, -1, 1)] == ["recorded", "replayed", "recorded"]
    assert value(anywhere, SET) == 3
    with pytest.raises(InvalidChange):
        add(anywhere, SET, "a", 2)


def filled(ids: int) -> Program[None]:
    yield Put(keyed(SET.item_key(C), **{IDS: {"SS": [f"{number:036}" for number in range(ids)]}}))


def test_at_400_kb_it_ends(anywhere: Place) -> None:
    ids = (ITEM_BYTES_MAX - item_bytes(keyed(SET.item_key(C), **{IDS: {"SS": []}}))) // 36
    anywhere.run(filled(ids))
    with pytest.raises(ItemTooLarge):
        add(anywhere, StringSet(), "x" * 36)
    assert value(anywhere, StringSet()) == ids == 11_376


def test_numbers_follow_each_other_and_a_failing_insert_uses_none_up(anywhere: Place) -> None:
    told = [add(anywhere, GAP_FREE, key) for key in ("kirk", "spock", "kirk", "uhura")]
    assert told == ["recorded", "recorded", "replayed", "recorded"]
    assert anywhere.run(GAP_FREE.numbers(C)) == {"kirk": 1, "spock": 2, "uhura": 3}
    assert value(anywhere, GAP_FREE) == 3


def test_many_threads_that_insert_some_of_it_twice_leave_no_gap(on_engine: OnEngine) -> None:
    with ThreadPoolExecutor(4) as threads:
        told = list(threads.map(lambda n: on_engine.run(until_answered(GAP_FREE, 1, f"item-{n % 12}")), range(18)))
    assert told.count("recorded") == 12
    assert sorted(on_engine.run(GAP_FREE.numbers(C)).values()) == list(range(1, 13))


def test_no_order_of_steps_and_no_fault_leaves_a_gap() -> None:
    for seed in range(15):
        on_world = OnWorld(seed)
        on_world.at_once(*(partial(until_answered, GAP_FREE, 1, f"item-{n % 5}") for n in range(7)), faults=FAULTS)
        on_world.world.quiesce()
        assert sorted(on_world.run(GAP_FREE.numbers(C)).values()) == [1, 2, 3, 4, 5], seed
        assert value(on_world, GAP_FREE) == 5


def test_at_the_ceiling_an_insert_that_is_sent_again_is_still_told_from_a_new_one(anywhere: Place) -> None:
    design = GapFree(ceiling=1)
    assert [add(anywhere, design, key) for key in "aba"] == ["recorded", "refused", "replayed"]
