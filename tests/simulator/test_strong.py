"""A table with multi-Region strong consistency, as AWS describes it."""

import pytest

from ledger import Ledger, Limit, Settings
from ledger.core.conditions import Absent
from ledger.core.errors import LimitReached, TableMismatch, TransactionConflict, Unavailable
from ledger.core.items import version_is
from ledger.core.requests import At, Get, GetMany, Key, Put, PutMany, Query, Transact
from reader import Reader
from simulator import Faults, Simulation
from simulator.choices import Replayed
from simulator.faults import NONE
from simulator.strong import StrongReplica
from simulator.world import World
from tests.simulator.test_world import AP, EU, US, item

KEY = Key("a", "1")


def world(*picks: int, regions: tuple[str, ...] = (EU, US, AP)) -> World:
    return World(regions, Replayed(picks), lag_steps=5, clock_skew_ms=(100,), replica=StrongReplica)


def test_a_strong_read_is_the_newest_anywhere() -> None:
    table = world()
    for version, region in enumerate((EU, US, AP), 1):  # the clock of the first is ahead
        table.answer(region, Put(item(*KEY, version)))
        for reader in table.regions:
            assert (
                table.answer(reader, Get(KEY))
                == table.answer(reader, GetMany((KEY,)))[0]
                == item(*KEY, version)
            )
            assert table.answer(reader, Query("a")).items == (item(*KEY, version),)
    # so is what a condition is held against
    assert table.answer(EU, Put(item(*KEY), Absent())) == item(*KEY, 3)
    assert table.answer(EU, Put(item(*KEY, 4), version_is(3))) is None
    assert [table.answer(region, Get(KEY, consistent=False)) for region in (US, AP)] == [
        item(*KEY, 2),
        item(*KEY, 3),
    ]
    table.quiesce()
    assert [table.answer(region, Get(KEY, consistent=False)) for region in table.regions] == [
        item(*KEY, 4)
    ] * 3


def test_a_write_in_flight_fails_others_to_its_item() -> None:
    table, again = world(2), Put(item(*KEY, 2))
    assert table.answer(EU, Put(item(*KEY), Absent())) is None
    for region, request in ((US, again), (EU, At(AP, again))):
        with pytest.raises(TransactionConflict, match="Nothing was written"):
            table.answer(region, request)
    conflict, other = table.answer(US, PutMany((item(*KEY, 2), item("a", "2"))))
    assert (type(conflict), other) == (TransactionConflict, None)
    assert table.answer(EU, again) is None
    table.step += 2
    assert table.answer(US, Put(item(*KEY, 3), version_is(2))) is None


def test_a_region_alone_has_eventual_reads() -> None:
    for regions, cut, alone in (
        ((EU, US, AP), {EU}, {EU}),
        ((EU, US, AP), {EU, US}, {EU, US, AP}),
        ((EU, US), {EU}, {EU}),  # the other one has the witness
    ):
        for region in regions:
            table = world(regions=regions)
            table.cut = cut
            assert table.answer(region, Get(KEY, consistent=False)) is None
            refused = table.answer(region, PutMany((item(*KEY),)))[0]
            assert isinstance(refused, Unavailable) == (region in alone)
            for request in (Get(KEY), Query("a")) if region in alone else ():
                with pytest.raises(Unavailable, match="Nothing was written"):
                    table.answer(region, request)


def test_it_has_no_transactions_and_a_limit_needs_none() -> None:
    with pytest.raises(TableMismatch):
        Simulation((EU,), strong=True).table(EU).answer(
            Transact((Put(item("a", "1")), Put(item("a", "2"))))
        )
    limits, regions = {"seats:": Limit(ceiling=1, region=EU)}, (EU, US)
    here, there = (
        Settings(table="counters", region=each, regions=regions, limits=limits) for each in regions
    )
    for sold, faults, error in (
        (1, NONE, LimitReached),
        (0, Faults(conflicting=1_000), TransactionConflict),
    ):
        simulation = Simulation(regions, strong=True, faults=faults)
        tables = {region: simulation.table(region) for region in regions}
        ledger = Ledger(there, tables=tables, clock=simulation.clock)
        for _ in range(sold):
            ledger.add("seats:gig", 1)
        with pytest.raises(error):
            ledger.add("seats:gig", 1)
        reader = Reader(here, table=tables[EU], clock=simulation.clock)
        assert reader.read("seats:gig").value == sold  # nothing had to arrive
