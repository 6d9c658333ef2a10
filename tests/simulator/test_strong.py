"""A table with multi-Region strong consistency, as AWS describes it."""

import pytest

from ledger import Ledger, Limit, Settings
from ledger.conditions import Absent
from ledger.errors import LimitReached, OutOfReach, TableMismatch, TransactionConflict, Unavailable
from ledger.items import version_is
from ledger.requests import At, Get, GetMany, Key, Put, PutMany, Query, Transact
from reader import Reader
from simulator import Faults, Simulation
from simulator.choices import Replayed
from simulator.strong import StrongReplica
from simulator.world import World
from tests.simulator.test_double import START
from tests.simulator.test_world import AP, EU, US, item

KEY = Key("a", "1")


def world(*picks: int, regions: tuple[str, ...] = (EU, US, AP)) -> World:
    return World(regions, Replayed(picks), lag_steps=5, clock_skew_ms=(100,), replica=StrongReplica)


def test_a_strong_read_anywhere_is_the_newest_and_an_eventual_one_is_what_has_arrived() -> None:
    table = world()
    for version, region in enumerate((EU, US, AP), 1):  # the clock of the first is ahead
        table.answer(region, Put(item(*KEY, version)))
        table.step += 1
        for reader in table.regions:
            assert table.answer(reader, Get(KEY)) == table.answer(reader, GetMany((KEY,)))[0] == item(*KEY, version)
            assert table.answer(reader, Query("a")).items == (item(*KEY, version),)
    assert table.answer(EU, Put(item(*KEY), Absent())) == item(*KEY, 3)  # so is what a condition is held against
    assert table.answer(EU, Put(item(*KEY, 4), version_is(3))) is None
    assert [table.answer(region, Get(KEY, consistent=False)) for region in (US, AP)] == [item(*KEY, 2), item(*KEY, 3)]
    table.quiesce()
    assert [table.answer(region, Get(KEY, consistent=False)) for region in table.regions] == [item(*KEY, 4)] * 3


def test_a_write_in_flight_fails_those_of_other_regions_to_its_item_alone() -> None:
    table = world(2)
    assert table.answer(EU, Put(item(*KEY), Absent())) is None
    for request in (Put(item(*KEY, 2)), At(US, Put(item(*KEY, 2)))):
        with pytest.raises(TransactionConflict, match="Nothing was written"):
            table.answer(AP if isinstance(request, At) else US, request)
    (conflict,) = table.answer(US, PutMany((item(*KEY, 2),)))
    assert type(conflict) is TransactionConflict
    assert table.answer(US, Put(item("a", "2"))) is None
    assert table.answer(EU, Put(item(*KEY, 2))) is None
    table.step += 2
    assert table.answer(US, Put(item(*KEY, 3), version_is(2))) is None


def test_who_reaches_no_second_region_has_eventual_reads_alone_and_a_witness_is_one() -> None:
    for regions, cut, alone in (
        ((EU, US, AP), {EU}, {EU}),
        ((EU, US, AP), {EU, US}, {EU, US, AP}),
        ((EU, US), {EU}, {EU}),  # the other one has the witness
    ):
        table = world(regions=regions)
        table.cut = cut
        for region in regions:
            assert table.answer(region, Get(KEY, consistent=False)) is None
            for request in (Get(KEY), Query("a"), Put(item(*KEY), Absent())):
                if region in alone:
                    with pytest.raises(Unavailable, match="Nothing was written"):
                        table.answer(region, request)
                else:
                    table.answer(region, request)


def test_it_has_no_transactions_so_a_counter_needs_a_limit() -> None:
    with pytest.raises(TableMismatch):
        world().answer(EU, Transact((Put(item("a", "1")), Put(item("a", "2")))))
    simulation = Simulation((EU, US), seed=3, strong=True, start=START, faults=Faults(conflicting=100))
    limits = {"seats:": Limit(ceiling=5, region=EU)}
    tables = {region: simulation.table(region) for region in (EU, US)}
    here, there = (Settings(table="counters", region=region, regions=(EU, US), limits=limits) for region in (EU, US))
    ledger = Ledger(there, tables=tables, clock=simulation.clock)
    met = 0
    for number in range(5):
        for _ in range(50):
            try:
                ledger.add("seats:gig", 1, idempotency_key=str(number), at=START)
                break
            except (TransactionConflict, OutOfReach):
                met += 1
    assert met > 0
    for settings in (here, there):  # nothing has to arrive
        reader = Reader(settings, table=tables[settings.region], clock=simulation.clock)
        assert reader.read("seats:gig").value == 5
    with pytest.raises(LimitReached):
        Ledger(here, tables=tables, clock=simulation.clock).add("seats:gig", 1)
