"""Who opens a counter's gates, with which rights; nobody, beside changes that no gate decided and that have arrived."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ledger import Change, Ledger, Limit, Receipt, Settings, items, tokens
from ledger.clocks import instants, wall_clock
from ledger.errors import LimitMismatch, LimitReached, SettingsMismatch, Throttled, Unavailable
from ledger.gate.gate import Gate
from ledger.gate.gates import Gates
from ledger.gate.items import gate_key
from ledger.gate.recount import Standing
from ledger.lane import directory
from ledger.lane.shape import write
from ledger.limit import DOWN, UP, Shape
from ledger.memory import MemoryTable
from ledger.requests import At, Put, Query, Together, run
from ledger.values import Checkpoint, Delta, Lane
from tests.ledger import test_gate

A, B = "eu-west-1", "us-east-1"
SEATS = "seats:gig"
LIMITS = {"seats:": Limit(ceiling=10, region=A)}
NOW = instants(wall_clock)


class Table(test_gate.Table):
    @property
    def lanes_asked_for_deltas(self) -> set[str]:
        rounds = [each.requests for each in self.asked if isinstance(each, Together)]
        keys = {each.pk for requests in rounds for each in requests if isinstance(each, Query)}
        return {pk.removeprefix("delta#") for pk in keys if pk.startswith("delta#")}


def settings(region: str = A, **changed: Any) -> Settings:
    return Settings(**{"table": "counters", "region": region, "regions": (A, B), "limits": LIMITS, **changed})


@pytest.fixture
def tables() -> dict[str, Table]:
    """Of two Regions that do not replicate; they have a shape, so a first use asks for nothing more."""
    made = {A: Table(), B: Table()}
    for table in made.values():
        table.peers = made
        MemoryTable.answer(table, Put(items.shape_item(Shape((A, B), {}, limits=LIMITS))))
    return made


def change_in(table: Table, lane: Lane, *, folded: bool = False) -> None:
    """A change that no gate decided stands in that replica."""
    token = tokens.keyed(lane.counter, "before", 1_700_000_000_000)
    checkpoint = Checkpoint(lane, 7, 1, token, 1, token, 1_700_000_000_000)
    item = items.checkpoint_item(checkpoint) if folded else items.delta_item(Delta(lane, token, 7))
    MemoryTable.answer(table, Put(item))


def gates_in(table: Table) -> list[str]:
    return [key.pk for key in table.items if key.pk.startswith("gate#")]


@pytest.mark.parametrize("folded", [False, True], ids=["a delta", "a checkpoint"])
@pytest.mark.parametrize("opens", [A, B], ids=["the first rights", "the first gate of all"])
def test_changes_of_any_lane_that_have_arrived_let_nobody_open(
    tables: dict[str, Table], opens: str, folded: bool
) -> None:
    for lane in (Lane("ap-south-1", 0, SEATS), Lane(B if opens == A else A, 0, SEATS)):
        regions = (A, B, "ap-south-1")
        change_in(tables[opens], lane, folded=folded)
        gates = Gates.limited(settings(opens, regions=regions), SEATS, "a test")
        with pytest.raises(LimitMismatch, match=f"{SEATS}: it has changes that no gate decided.* Nothing was written"):
            run(gates.create(Lane(opens, 0, SEATS)), tables[opens], NOW)
        assert gates_in(tables[opens]) == []


def test_the_first_rights_do_not_open_beside_changes_although_another_lane_has_a_gate(tables: dict[str, Table]) -> None:
    run(Gates.limited(settings(B), SEATS, "a test").create(Lane(B, 0, SEATS)), tables[B], NOW)
    MemoryTable.answer(tables[A], Put(tables[B].items[gate_key(Lane(B, 0, SEATS))]))
    change_in(tables[A], Lane(B, 0, SEATS))
    with pytest.raises(LimitMismatch, match=f"{B}#0#{SEATS}"):
        Ledger(settings(), tables=tables).add(SEATS, 4)


def test_all_lanes_are_asked_for_changes_in_one_round_and_no_other_region_is(tables: dict[str, Table]) -> None:
    tables[B].is_down = True
    ledger = Ledger(settings(), tables=tables)
    ledger.add(SEATS, 1)
    assert tables[A].lanes_asked_for_deltas == {f"{A}#0#{SEATS}", f"{B}#0#{SEATS}"}
    assert sum(isinstance(each, Together) for each in tables[A].asked) == 2  # what was filed, and changes
    assert not any(isinstance(each, At) for each in tables[A].asked)


def test_a_gate_that_is_neither_first_nor_with_the_first_rights_asks_its_own_lane_alone(
    tables: dict[str, Table],
) -> None:
    Ledger(settings(), tables=tables).add(SEATS, 1)
    MemoryTable.answer(tables[B], Put(tables[A].items[gate_key(Lane(A, 0, SEATS))]))
    Ledger(settings(B), tables=tables).add(SEATS, 1)
    assert tables[B].lanes_asked_for_deltas == {f"{B}#0#{SEATS}"}


def test_a_lane_with_changes_gets_no_gate_although_another_lane_has_one(tables: dict[str, Table]) -> None:
    Ledger(settings(), tables=tables).add(SEATS, 1)
    MemoryTable.answer(tables[B], Put(tables[A].items[gate_key(Lane(A, 0, SEATS))]))
    change_in(tables[B], Lane(B, 0, SEATS))
    with pytest.raises(LimitMismatch, match=f"{B}#0#{SEATS}"):
        Ledger(settings(B), tables=tables).add(SEATS, 1)


# -- who adds a limit to the shape -------------------------------------------------------------------------------------


def listed(tables: dict[str, Table], lane: Lane) -> None:
    MemoryTable.answer(tables[lane.region], Put(directory.item_of(lane)))


def shape_without_limits(tables: dict[str, Table]) -> None:
    for table in tables.values():
        table.items.clear()
        table._sort_keys.clear()
        run(write(settings(limits={})), table, NOW)


@pytest.mark.parametrize("folded", [False, True], ids=["a delta", "a checkpoint"])
@pytest.mark.parametrize("has_shape", [True, False], ids=["a shape that grows", "the first shape"])
def test_a_limit_for_counters_that_have_changes_in_any_region_is_refused_by_their_names(
    tables: dict[str, Table], has_shape: bool, folded: bool
) -> None:
    shape_without_limits(tables)
    if not has_shape:
        for table in tables.values():
            table.items.clear()
            table._sort_keys.clear()
    for counter in ("seats:a", "seats:b", "other"):
        change_in(tables[B], Lane(B, 0, counter), folded=folded)
        listed(tables, Lane(B, 0, counter))
    before = dict(tables[A].items)
    with pytest.raises(
        SettingsMismatch, match=r"'seats:'\].*counters seats:a seats:b have changes.*another name.*as it is"
    ):
        run(write(settings()), tables[A], NOW)
    assert tables[A].items == before


def test_a_limit_is_taken_where_listed_counters_have_gates_alone_or_a_limit_of_the_shape(
    tables: dict[str, Table],
) -> None:
    Ledger(settings(), tables=tables).add(SEATS, 1)
    for counter in (SEATS, "stock:a"):
        listed(tables, Lane(A, 0, counter))
    listed(tables, Lane(A, 0, "seats:past"))
    change_in(tables[A], Lane(A, 0, "seats:past"))
    more = settings(limits={**LIMITS, "sea": Limit(floor=0), "stock:": Limit(floor=0)})
    assert run(write(more), tables[A], NOW) == "grown"


def test_a_limit_is_not_added_while_a_region_cannot_be_asked(tables: dict[str, Table]) -> None:
    shape_without_limits(tables)
    tables[B].is_down = True
    before = dict(tables[A].items)
    with pytest.raises(Throttled, match=f"{B} was not asked .*a limit is added when every .*Nothing was written"):
        run(write(settings()), tables[A], NOW)
    tables[A].peers = {}
    with pytest.raises(Unavailable, match=f"{B} was not asked .*a limit is added when every .*Nothing was written"):
        run(write(settings()), tables[A], NOW)
    assert tables[A].items == before
    assert run(write(settings(limits={})), tables[A], NOW) == "kept"


# -- a limit and shards ------------------------------------------------------------------------------------------------


def test_the_first_rights_are_in_one_shard_of_the_home_region_alone() -> None:
    limit = Limit(floor=-4, ceiling=10, region=A)
    lanes = settings(shards={"seats:": 3}).lanes_of(SEATS)
    opened = {lane: Gate.new(lane, limit) for lane in lanes}
    assert opened[Lane(A, 0, SEATS)].rights == {DOWN: 4, UP: 10}
    assert [gate.rights for lane, gate in opened.items() if lane != Lane(A, 0, SEATS)] == [{DOWN: 0, UP: 0}] * 5


@pytest.mark.parametrize("region", [A, B])
def test_of_a_counter_with_a_limit_and_shards_no_more_is_sold_than_the_limit(region: str) -> None:
    table = MemoryTable()
    ledger = Ledger(settings(region, shards={"seats:": 3}), tables={A: table, B: table})
    at = datetime(2026, 1, 1, tzinfo=UTC)
    outcomes = [ledger.add_many([Change(SEATS, 1, idempotency_key=str(n), at=at)])[0] for n in range(40)]
    sold = [each.delta.lane for each in outcomes if isinstance(each, Receipt)]
    assert len(sold) == 10
    assert len({*sold}) > 1
    assert all(isinstance(each, Receipt | LimitReached) for each in outcomes)


def test_a_read_is_closed_when_nothing_that_was_taken_over_is_still_to_be_seen_as_given() -> None:
    here, there = (Gate.new(Lane(region, 0, SEATS), LIMITS["seats:"]) for region in (A, B))
    taker = replace(there, rights={UP: 3}, got={(f"{A}#0", UP): 3})
    for given, closed in ((2, False), (3, True), (4, True)):
        giver = replace(here, given={(f"{B}#0", UP): given})
        assert Standing((giver, taker)).is_closed is closed
    assert not Standing((taker,)).is_closed
    assert not Standing((replace(here, given={(f"{B}#1", UP): 9, (f"{B}#0", DOWN): 9}), taker)).is_closed
