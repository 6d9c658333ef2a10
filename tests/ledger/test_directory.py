"""The directory of lanes: its items, and what is no item of it."""

import pytest

from ledger.lane import directory
from ledger.requests import Key, Put
from ledger.values import Lane
from tests.world import A as HOME
from tests.world import Region

LANES = [Lane(HOME, 0, "stock:85123A"), Lane(HOME, 3, "stock:85123A"), Lane(HOME, 0, "a#b"), Lane("us-east-1", 0, "x")]


def test_an_item_is_its_key() -> None:
    assert directory.item_of(LANES[0]) == {"pk": {"S": "lane#eu-west-1#95"}, "sk": {"S": "0#stock:85123A"}}


@pytest.mark.parametrize("lane", LANES, ids=str)
def test_a_key_names_its_lane(lane: Lane) -> None:
    assert directory.lane_of(directory.key_of(lane)) == lane


def test_all_lanes_of_a_counter_in_a_region_stand_in_one_bucket() -> None:
    assert directory.key_of(LANES[0]).pk == directory.key_of(LANES[1]).pk


@pytest.mark.parametrize(
    "key",
    [
        Key("lane#eu-west-1#7", "0#stock:85123A"),
        Key("lane#eu-west-1#95", "00#stock:85123A"),
        Key("lane#eu-west-1#95", "stock:85123A"),
        Key("lane#eu-west-1#95", "0#"),
        Key("lane#95", "0#stock:85123A"),
        Key("delta#eu-west-1#95", "0#stock:85123A"),
    ],
    ids=str,
)
def test_what_is_no_item_of_it_names_no_lane(key: Key) -> None:
    assert directory.lane_of(key) is None


def test_the_lanes_of_a_region_are_listed_in_order_and_a_damaged_item_is_passed_by() -> None:
    table = Region()
    damaged = {"pk": {"S": "lane#eu-west-1#95"}, "sk": {"S": "x"}}
    for item in (*map(directory.item_of, LANES), damaged):
        table.answer(Put(item))
    assert table.run(directory.listed(HOME)) == sorted(LANES[:3])
