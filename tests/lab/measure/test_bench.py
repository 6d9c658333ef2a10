"""The figures of docs/costs.md on small numbers: by hand, by a second account; and that a missed goal is red."""

from contextlib import nullcontext
from typing import Any

import pytest

from lab.engines.ministack import Engine
from lab.measure import bench, charges, cpu, fold_memory, lanes, limits, lives
from lab.measure.figure import Figure
from lab.measure.lanes import Lanes
from lab.measure.lives import Life, in_packs, queued
from lab.measure.metered_table import MeteredTable
from ledger.cost import item_bytes, read_units, write_units
from ledger.requests import DeleteMany, Get, GetMany, Put, PutMany, Query, Transact
from tests.infra import template


def test_a_life_costs_what_its_items_cost(engine: Engine) -> None:
    life = Life(engine, "bench-hot")
    for changes in (40, 960):
        life.write(changes)
        life.compact()
    segments = 2 * (2 + 23)  # 40 and 960 entries of 24 bytes and the keys: 2 KB and 23 KB, twice for the transaction
    ends = 2 * 2 + 2 + 1  # checkpoints, notes, the lane in the directory
    assert life.a_change().write_units == 1_000 + 1_000 + segments + ends
    assert (life.read().requests, life.read().read_units) == (2, 2)
    packs = 40 * (1 + 1)  # of 38: a KB, put and deleted
    assert in_packs(engine, 38, 1_520) * 1_520 == packs + 2 * 2 * 18 + ends


def test_what_comes_through_the_queue_is_packed_by_the_batch(engine: Engine) -> None:
    """Ten batches of a hundred messages, or three packs of a message or more: then they are folded, noted, cleaned."""
    given = template.framework()["params"]["default"]
    assert given["changesPack"] == "true"
    ends = 2 + 2 * 24 + 1 + 1  # the checkpoint, a segment of 1,000 entries, twice each for a transaction; note, lane
    assert queued(engine, 1, seconds=1) * 1_000 == pytest.approx(10 * 2 * 3 + ends)
    assert queued(engine, 250, seconds=1) * 1_000 == pytest.approx(2 * (10 + 10 + 5) + ends)


def second_account(asked: list[tuple[Any, Any]]) -> tuple[float, float]:
    """Read and write units of requests of which no condition failed and no item overwrote a larger one."""
    reads, writes = 0.0, 0
    for request, answer in asked:
        match request:
            case Put(item):
                writes += write_units(item_bytes(item))
            case DeleteMany(items) | PutMany(items):
                writes += sum(write_units(item_bytes(item)) for item in items)
            case Transact(puts):
                writes += sum(2 * write_units(item_bytes(put.item)) for put in puts if isinstance(put, Put))
            case Get(_, strong):
                reads += read_units(item_bytes(answer) if answer else 0, consistent=strong)
            case GetMany(_, strong):
                reads += sum(read_units(item_bytes(item) if item else 0, consistent=strong) for item in answer)
            case Query():
                reads += read_units(sum(map(item_bytes, answer.items)), consistent=request.consistent)
    return reads, writes


@pytest.mark.parametrize("forgotten", [None, "PutItem", "GetItem", "TransactWriteItems", "BatchExecuteStatement"])
def test_the_accounts_of_lanes_are_those_of_a_second_account(forgotten: str | None, monkeypatch: Any) -> None:
    asked: list[tuple[Any, Any]] = []
    answer = MeteredTable.answer

    def recorded(table: MeteredTable, request: Any) -> Any:
        found = answer(table, request)
        if not hasattr(request, "requests"):  # what goes together comes one by one, too
            asked.append((request, found))
        return found

    monkeypatch.setattr(MeteredTable, "answer", recorded)
    if forgotten:
        monkeypatch.delitem(charges.RULES, forgotten)
    played = Lanes(8, 0.02).play(warm_s=0, measured_s=12_000)
    reads, writes = second_account(asked)
    is_right = (played.charge.read_units, played.charge.write_units) == (reads, writes)
    assert is_right == (forgotten is None)
    assert played.visits > 20 < played.looks


def test_the_figures_of_limited_counters_keep_their_goals() -> None:
    figures = list(limits.figures(small=True))
    assert [str(figure) for figure in figures if not figure.is_met] == []
    assert len(figures) > 10


def test_a_figure_that_misses_its_goal_or_shows_hardly_anything_ends_with_1(monkeypatch: Any) -> None:
    monkeypatch.setattr(bench, "Engine", nullcontext)
    for value, judged, code in ((1.0, True, 0), (1.1, True, 1), (0.4, True, 1), (1.1, False, 0)):
        figure = Figure("one", value, 1.0, 0.5, judged)
        for room in (lives, limits, lanes, fold_memory, cpu):
            monkeypatch.setattr(room, "figures", lambda *_, figure=figure, **__: [figure])
        with pytest.raises(SystemExit) as ended:
            bench.main(small=True)
        assert ended.value.code == code
        assert str(figure).endswith("MISSED") == (value != 1.0)
