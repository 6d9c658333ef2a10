"""What packs rest on, asked of every table."""

import pytest

from ledger import items, tokens
from ledger.cost import item_bytes
from ledger.entries import ENTRIES_MAX, ENTRY, Entries
from ledger.errors import ItemTooLarge
from ledger.lane.add import pack_of
from ledger.memory import MemoryTable
from ledger.requests import DeleteMany, Get, Item, Page, Put, Query, Table, Together, key_of, keyed
from ledger.values import Delta, Lane, Pack
from simulator.double import SimulatedTable

LANE = Lane("eu-west-1", 0, "stock:85123A")
AT_MS = 1_000_000
TOKENS = [tokens.make(n, n.to_bytes(tokens.RANDOM_BYTES, "big")) for n in range(4)]


def delta(n: int) -> Item:
    return items.delta_item(Delta(LANE, TOKENS[n], n))


def pack(*numbers: int) -> Item:
    return items.pack_item(pack_of([Delta(LANE, TOKENS[n], n) for n in numbers]))


def full_pack() -> Item:
    """As many entries as one may have, under one time."""
    first = tokens.to_bytes(TOKENS[1])[:8]
    entries = (ENTRY.pack(first + n.to_bytes(8, "big"), n) for n in range(ENTRIES_MAX))
    return items.pack_item(Pack(LANE, Entries.of(entries)))


def query(table: Table, after: str | None = None, upto: str | None = None) -> tuple[Item, ...]:
    """The items of the lane in such a range, page by page."""
    found: tuple[Item, ...] = ()
    page: Page = table.answer(Query(items.delta_pk(LANE), after, upto))
    while page.last is not None:
        found += page.items
        page = table.answer(Query(items.delta_pk(LANE), page.last, upto))
    return found + page.items


def test_a_pack_stands_after_the_delta_it_ends_with_and_below_the_bound_after_both(table: Table) -> None:
    ordered = delta(1), pack(0, 1), delta(2), pack(1, 2), delta(3)
    for item in reversed(ordered):
        assert table.answer(Put(item)) is None
    assert query(table) == ordered
    assert query(table, items.tail_after(TOKENS[1])) == ordered[2:]
    assert query(table, None, items.tail_after(TOKENS[2])) == ordered[:4]
    assert query(table, TOKENS[1], TOKENS[2]) == ordered[1:3]
    assert query(table, None, items.tail_upto(TOKENS[1])) == ordered


def test_packs_that_are_put_together_are_answered_each_on_its_own(table: Table) -> None:
    too_large: Item = keyed(key_of(pack(3)), entries={"B": bytes(410_000)})
    if isinstance(table, SimulatedTable | MemoryTable):
        pytest.skip("it takes an item of any size")
    asked = pack(0, 1), too_large, pack(1, 2), pack(0, 1)
    answers = table.answer(Together(tuple(map(Put, asked))))
    assert isinstance(answers[1], ItemTooLarge)
    assert [answers[0], *answers[2:]] == [None] * 3
    assert query(table) == (pack(0, 1), pack(1, 2))


def test_a_pack_put_again_is_no_other_item_and_it_is_deleted_by_its_key_alone(table: Table) -> None:
    for _ in range(2):
        assert table.answer(Together((Put(pack(0, 1)), Put(pack(0, 2, 3))))) == (None, None)
    keys = tuple(keyed(key_of(item)) for item in (pack(0, 1), pack(1, 2)))
    assert table.answer(DeleteMany(keys)) == (None, None)
    assert query(table) == (pack(0, 2, 3),)
    assert table.answer(Put(pack(0, 1))) is None
    assert query(table) == (pack(0, 1), pack(0, 2, 3))


def test_the_largest_pack_is_put_and_read_back(table: Table) -> None:
    whole = full_pack()
    assert 384_000 < item_bytes(whole) < 400 * 1_024
    assert table.answer(Together((Put(whole), Put(pack(0, 1))))) == (None, None)
    assert table.answer(Get(key_of(whole))) == whole
    assert query(table) == tuple(sorted((whole, pack(0, 1)), key=key_of))
    assert len(items.entries_of(LANE, query(table, items.tail_after(TOKENS[0]))[-1])) == ENTRIES_MAX
