"""Design 7: full, duplicate, and the wall."""

import pytest

from lab.designs.string_set import IDS, StringSet
from ledger.errors import InvalidChange, ItemTooLarge
from ledger.requests import ITEM_BYTES_MAX, Program, Put, keyed
from ledger.units import item_bytes
from tests.lab.designs.conftest import C, Place, add, value

SET = StringSet(ceiling=3)


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
