"""The Updates of a crossing do on every table what they mean, and nothing when they come again."""

from dataclasses import replace

from ledger.lane import crossings as items
from ledger.lane.crossings import Crossing
from ledger.limit import IN, Threshold
from ledger.requests import Get, Table

REGION, COUNTER, LOW = "eu-west-1", "stock:85123A", Threshold(below=10)
FIRST = Crossing.after(None, REGION, COUNTER, LOW, 9, 1_000)
TOLD = replace(FIRST, told=1)
SECOND = Crossing.after(TOLD, REGION, COUNTER, LOW, 10**38 - 1, 2_000)


def kept(table: Table) -> Crossing:
    item = table.answer(Get(items.crossing_key(REGION, COUNTER, LOW.name)))
    return items.crossing_of(REGION, COUNTER, LOW.name, item)


def test_a_crossing_is_kept_if_the_last_one_is_as_it_was_seen(table: Table) -> None:
    assert table.answer(items.cross(None, FIRST)) is None
    assert kept(table) == FIRST
    assert FIRST.side == IN
    there = table.answer(items.cross(None, replace(FIRST, value=3)))
    assert items.crossing_of(REGION, COUNTER, LOW.name, there) == FIRST
    assert table.answer(items.note_told(FIRST)) is None
    assert kept(table) == TOLD
    assert table.answer(items.cross(TOLD, SECOND)) is None
    assert kept(table) == SECOND


def test_what_comes_again_or_late_changes_nothing(table: Table) -> None:
    writes = [items.cross(None, FIRST), items.note_told(FIRST), items.cross(TOLD, SECOND), items.note_told(SECOND)]
    for write in writes:
        assert table.answer(write) is None
    last = kept(table)
    for write in writes:
        table.answer(write)
        assert kept(table) == last
    assert table.answer(items.note_told(FIRST)) not in (None, {})


def test_what_was_never_kept_is_not_noted(table: Table) -> None:
    assert table.answer(items.note_told(FIRST)) == {}
    assert table.answer(Get(items.crossing_key(REGION, COUNTER, LOW.name))) is None
