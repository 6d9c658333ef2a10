"""The simulated table does what DynamoDB may do, and nothing that it may not."""

import pytest

from ledger.core.actions import Add
from ledger.core.conditions import Absent
from ledger.core.errors import TokenConflict, TransactionConflict, Unavailable
from ledger.core.items import version_is
from ledger.core.requests import At, DeleteMany, Get, Item, Key, Put, Transact, Update, keyed
from ledger.tables.memory import TOKEN_MS
from simulator.choices import Replayed
from simulator.world import Landing, World

EU, US, AP = "eu-west-1", "us-east-1", "ap-south-1"


def item(pk: str, sk: str, version: int = 1) -> Item:
    return {"pk": {"S": pk}, "sk": {"S": sk}, "version": {"N": str(version)}}


def world(*picks: int) -> World:
    return World((EU, US), Replayed(picks), lag_steps=5)


def land_all(table: World, landing: object) -> None:
    assert isinstance(landing, Landing)
    while landing.left:
        table.land(landing, 0)


def test_a_write_is_seen_at_home_at_once_and_elsewhere_late() -> None:
    table = world()
    table.answer(EU, Put(item("a", "1")))
    table.answer(EU, Put(item("a", "2")))
    assert set(table.deliverable()) == {(US, Key("a", "1")), (US, Key("a", "2"))}
    assert table.answer(EU, Get(Key("a", "1"))) == item("a", "1")
    assert table.answer(US, Get(Key("a", "1"))) is None
    table.deliver(US, Key("a", "1"))
    assert table.answer(US, Get(Key("a", "1"))) == item("a", "1")
    table.cut.add(US)
    assert table.deliverable() == []
    with pytest.raises(Unavailable):
        table.answer(EU, At(US, Get(Key("a", "1"))))


def test_the_last_writer_wins_everywhere() -> None:
    table = world()
    table.answer(US, Put(item("a", "1", 1)))
    table.now_ms += 1
    table.answer(EU, Put(item("a", "1", 2)))
    table.quiesce()
    assert (
        table.answer(EU, Get(Key("a", "1")))
        == table.answer(US, Get(Key("a", "1")))
        == item("a", "1", 2)
    )
    table = World((EU, US, AP), Replayed(()), clock_skew_ms=(100,))
    # by EU's clock, which is ahead, its write is the last one
    for region, version in ((EU, 1), (AP, 2)):
        table.answer(region, Put(item("a", "1", version)))
    table.quiesce()
    assert [table.answer(region, Get(Key("a", "1"))) for region in table.regions] == [
        item("a", "1", 1)
    ] * 3


def test_a_replica_made_again_holds_what_the_others_hold() -> None:
    table = World((EU, US, AP), Replayed(()))
    for sk in "123":
        table.answer(EU, Put(item("a", sk)))
    table.deliver(US, Key("a", "1"))
    table.deliver(AP, Key("a", "2"))
    table.answer(AP, Put(item("a", "4")))
    table.late.append((EU, Put(item("a", "5"))))
    table.answer(EU, Transact((Put(item("a", "6")), Put(item("a", "7")))))
    table.remake(EU)
    assert [sk for sk in "1234567" if table.answer(EU, Get(Key("a", sk)))] == ["1", "2", "4"]
    table.quiesce()
    held = [
        [sk for sk in "1234567" if table.answer(region, Get(Key("a", sk)))]
        for region in table.regions
    ]
    assert held == [["1", "2", "4"]] * 3
    table.answer(EU, Put(item("a", "6")))  # the transaction is gone, and holds no item any more


def test_a_write_in_flight_can_be_made_to_arrive_in_one_region() -> None:
    table = world()
    table.late += [
        (EU, Put(item("a", "1"))),
        (US, Put(item("a", "2"))),
        (EU, Transact((Put(item("a", "3")),))),
    ]
    table.settle_late(EU)
    assert [table.answer(EU, Get(Key("a", sk))) is not None for sk in "123"] == [True, False, True]
    assert table.late == [(US, Put(item("a", "2")))]


def test_a_transaction_arrives_item_by_item() -> None:
    table = world()
    landing = table.answer(
        EU, Transact((Put(item("a", "1"), Absent()), Put(item("b", "1"), Absent())))
    )
    with pytest.raises(TransactionConflict):
        table.answer(EU, Put(item("b", "1")))
    table.land(landing, 1)
    assert table.answer(EU, Get(Key("a", "1"))) is None
    assert table.answer(EU, Get(Key("b", "1"))) is not None
    land_all(table, landing)
    assert table.answer(EU, Get(Key("a", "1"))) is not None
    refused = Transact((Put(item("a", "1", 3), version_is(2)), Put(item("c", "1"), Absent())))
    assert table.answer(EU, refused) == (item("a", "1"), None)
    assert table.answer(EU, Get(Key("c", "1"))) is None


def test_an_eventual_read_may_see_an_older_state() -> None:
    table = world(1)
    table.answer(EU, Put(item("a", "1", 1)))
    table.step = 1
    table.answer(EU, Put(item("a", "1", 2)))
    assert table.answer(EU, Get(Key("a", "1"), consistent=False)) == item("a", "1", 1)
    assert table.answer(EU, Get(Key("a", "1"))) == item("a", "1", 2)


def test_a_token_is_remembered_for_ten_minutes_in_its_region() -> None:
    table, key = world(), Key("a", "1")
    once, other = (Transact((Update(key, (Add("n", n),)),), "k") for n in (1, 2))
    land_all(table, table.answer(EU, once))
    assert table.answer(EU, once) is None
    with pytest.raises(TokenConflict):
        table.answer(EU, other)
    table.now_ms += TOKEN_MS + 1
    land_all(table, table.answer(EU, other))
    assert table.answer(EU, Get(key)) == keyed(key, n={"N": "3"})


def test_a_deleted_item_is_forgotten_once_it_is_gone_everywhere() -> None:
    table = world()
    table.answer(EU, Put(item("a", "1")))
    table.answer(EU, Put(item("a", "2")))
    table.quiesce()
    table.answer(EU, DeleteMany((keyed(Key("a", "1")),)))
    table.step += 10
    table.forget()
    assert table.replicas[EU].cell(Key("a", "1")) is not None  # its delete is still on its way
    table.deliver(US, Key("a", "1"))
    table.forget()
    assert table.replicas[EU].cell(Key("a", "1")) is None
    # an eventually consistent read there may still see it
    assert table.replicas[US].cell(Key("a", "1")) is not None
    table.step += 10
    table.forget()
    assert [list(replica.cells["a"]) for replica in table.replicas.values()] == [["2"], ["2"]]
