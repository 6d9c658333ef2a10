"""One contract for whatever answers requests."""

from itertools import product
from typing import Any

import pytest

from ledger.conditions import Absent
from ledger.items import version_is
from ledger.requests import (
    AlreadyThere,
    At,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Key,
    KeyPage,
    Now,
    Page,
    Pause,
    Put,
    PutMany,
    Query,
    Scan,
    Table,
    Together,
    Transact,
)
from simulator.double import SimulatedTable
from tests.contract.conftest import ABROAD, World

PAGES_MAX = 100


def item(sk: str, version: int = 1, *, pk: str = "p", padding: int = 0) -> Item:
    extra = {"padding": {"B": b"x" * padding}} if padding else {}
    return {"pk": {"S": pk}, "sk": {"S": sk}, "version": {"N": str(version)}, **extra}


def key(sk: str, pk: str = "p") -> Key:
    return Key(pk, sk)


def fill(table: Table, *sks: str, pk: str = "p", padding: int = 0) -> None:
    for sk in sks:
        assert table.answer(Put(item(sk, pk=pk, padding=padding))) is None


def walk(table: Table, after: str | None = None, upto: str | None = None, limit: int | None = None) -> list[str]:
    """The sort keys of a whole range, page by page."""
    found: list[str] = []
    for _ in range(PAGES_MAX):
        page: Page = table.answer(Query("p", after, upto, limit))
        assert limit is None or len(page.items) <= limit
        found += (each["sk"]["S"] for each in page.items)
        if page.last is None:
            return found
        after = page.last
    raise AssertionError("the pages do not end")


def scan(table: Table) -> tuple[list[Key], int]:
    """Every key of the table in the order of the pages, and how many pages there were."""
    found: list[Key] = []
    after: Key | None = None
    for pages in range(1, PAGES_MAX):
        page: KeyPage = table.answer(Scan(after))
        found += page.keys
        if page.last is None:
            return found, pages
        after = page.last
    raise AssertionError("the pages do not end")


# -- Put -----------------------------------------------------------------------------------------------------------


def test_a_put_if_absent_is_written_once_and_speaks_of_the_whole_key(table: Table) -> None:
    assert table.answer(Put(item("a"), Absent())) is None
    assert table.answer(Put(item("a", 2), Absent())) == item("a", 1)
    assert table.answer(Get(key("a"))) == item("a", 1)
    assert table.answer(Put(item("b"), Absent())) is None
    assert table.answer(Put(item("a", pk="q"), Absent())) is None


def test_a_put_over_a_version_replaces_the_item_of_that_version_alone(table: Table) -> None:
    fill(table, "a")
    bare = {"pk": {"S": "p"}, "sk": {"S": "bare"}}
    table.answer(Put(bare))
    assert table.answer(Put(item("a", 3), version_is(2))) == item("a", 1)
    assert table.answer(Put(item("absent", 2), version_is(1))) is not None
    assert table.answer(Put(item("bare", 2), version_is(1))) == bare
    assert table.answer(GetMany((key("a"), key("absent"), key("bare")))) == (item("a", 1), None, bare)
    assert table.answer(Put(item("a", 2), version_is(1))) is None
    assert table.answer(Get(key("a"))) == item("a", 2)


def test_a_put_without_condition_replaces_whatever_is_there_and_every_kind_of_attribute_comes_back(
    table: Table,
) -> None:
    fill(table, "a")
    assert table.answer(Put(item("a", 7))) is None
    assert table.answer(Query("p")) == Page((item("a", 7),), None)
    whole = {**item("a"), "total": {"N": "-" + "9" * 38}, "entries": {"B": bytes(range(256))}, "last": {"S": "#é/%"}}
    table.answer(Put(whole))
    assert table.answer(Get(key("a"))) == whole


# -- PutMany -------------------------------------------------------------------------------------------------------


def test_many_puts_leave_what_is_there_and_write_the_others(table: Table) -> None:
    assert table.answer(PutMany((item("b"), item("d"), item("a", pk="q")))) == (None, None, None)
    first, there, last = table.answer(PutMany((item("a", 2), item("b", 2), item("c", 2))))
    assert (first, last) == (None, None)
    assert there in (AlreadyThere(item("b", 1)), AlreadyThere(None))  # the store need not show it
    assert table.answer(GetMany((key("a"), key("b"), key("c")))) == (item("a", 2), item("b", 1), item("c", 2))
    assert walk(table) == ["a", "b", "c", "d"]
    assert table.answer(Get(key("a", "q"))) == item("a", pk="q")


def test_more_puts_than_one_request_holds_are_answered_in_order(table: Table) -> None:
    sks = [f"{n:03}" for n in range(60)]
    there = {sks[n] for n in (0, 24, 25, 49, 50, 59)}
    fill(table, *there)
    answers = table.answer(PutMany(tuple(item(sk) for sk in sks)))
    assert {sk for sk, answer in zip(sks, answers, strict=True) if isinstance(answer, AlreadyThere)} == there
    assert [answer for answer in answers if not isinstance(answer, AlreadyThere)] == [None] * 54
    assert walk(table) == sks


# -- Get and GetMany -----------------------------------------------------------------------------------------------


def test_a_get_of_what_is_not_there_answers_none_and_need_not_be_consistent(table: Table) -> None:
    fill(table, "a")
    assert table.answer(Get(key("b"))) is None
    assert table.answer(Get(key("a", "q"))) is None
    assert table.answer(Get(key("a"), consistent=False)) == item("a")


def test_a_get_that_names_a_region_is_answered_from_there(world: World) -> None:
    if isinstance(world.home, SimulatedTable):
        pytest.skip("its Regions replicate meanwhile; tests/simulator asks it of them")
    world.home.answer(Put(item("a", 1)))
    world.abroad.answer(Put(item("a", 2)))
    assert world.home.answer(Get(key("a"))) == item("a", 1)
    assert world.home.answer(At(ABROAD, Get(key("a")))) == item("a", 2)


def test_more_gets_than_one_request_holds_are_answered_in_the_order_of_the_keys(table: Table) -> None:
    fill(table, "a", "b", "c")
    asked = (key("c"), key("x"), key("a"), key("a", "q"), key("b"))
    assert table.answer(GetMany(asked)) == (item("c"), None, item("a"), None, item("b"))
    sks = [f"{n:03}" for n in range(130)]
    fill(table, *sks[::2])
    answers = table.answer(GetMany(tuple(key(sk) for sk in reversed(sks)), consistent=False))
    found = [each and each["sk"]["S"] for each in reversed(answers)]
    assert found == [sk if n % 2 == 0 else None for n, sk in enumerate(sks)]


# -- Query ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("consistent", [True, False])
def test_a_query_answers_what_lies_above_after_and_at_or_below_upto(table: Table, consistent: bool) -> None:
    assert table.answer(Query("p", consistent=consistent)) == Page((), None)
    fill(table, "f", "b", "d")
    fill(table, "c", "d", pk="q")
    for after, upto, found in (
        *((None, None, "bdf"), ("b", None, "df"), ("c", None, "df"), ("f", None, "")),  # there is no "c"
        *((None, "d", "bd"), (None, "e", "bd"), (None, "a", ""), ("b", "f", "df"), ("a", "e", "bd")),
        *(("b", "b\0", ""), ("d", "d", ""), ("f", "b", "")),
    ):
        page: Page = table.answer(Query("p", after, upto, consistent=consistent))
        assert page == Page(tuple(item(sk) for sk in found), None), (after, upto)


def test_a_query_orders_by_bytes(table: Table) -> None:
    sks = ["segment#Z", "segment$", "\uff21", "~", "a", "Z", "segment#", "\U0001f600", "é", "0"]
    fill(table, *sks)
    assert walk(table) == sorted(sks, key=str.encode)
    fill(table, "a\0", "aa")
    assert walk(table, after="a", upto="b") == ["a\0", "aa"]  # what goes on where another ends comes after it


def test_the_pages_of_a_query_hold_every_item_exactly_once_and_say_where_to_go_on(table: Table) -> None:
    sks = [f"{n:02}" for n in range(10)]
    fill(table, *sks)
    assert table.answer(Query("p", limit=2)) == Page((item("00"), item("01")), "01")
    for limit, after, upto in product((1, 2, 3), (None, "00"), (None, "08")):
        expected = [sk for sk in sks if (after is None or sk > after) and (upto is None or sk <= upto)]
        assert walk(table, after, upto, limit) == expected, (limit, after, upto)


def test_a_range_larger_than_a_page_comes_in_pages(table: Table) -> None:
    fill(table, *"abcde", padding=300_000)
    first: Page = table.answer(Query("p"))
    assert first.last == first.items[-1]["sk"]["S"]
    assert walk(table) == list("abcde")


# -- Transact ------------------------------------------------------------------------------------------------------


def test_a_transaction_writes_everything_when_both_conditions_hold(table: Table) -> None:
    fill(table, "a")
    assert table.answer(Transact((Put(item("a", 2), version_is(1)), Put(item("b"), Absent())))) is None
    assert table.answer(GetMany((key("a"), key("b")))) == (item("a", 2), item("b"))
    assert table.answer(Transact((Put(item("a", 9)), Put(item("c"), Absent())))) is None  # without a condition too
    assert table.answer(Get(key("a"))) == item("a", 9)


REFUSED: tuple[tuple[Put, Put, tuple[Item | None, ...]], ...] = (
    (Put(item("a", 2), version_is(5)), Put(item("c", 2), Absent()), (item("a"), None)),
    (Put(item("a", 2), version_is(1)), Put(item("b", 2), Absent()), (None, item("b"))),
    (Put(item("a", 2), Absent()), Put(item("c", 2), Absent()), (item("a"), None)),
    (Put(item("a", 2)), Put(item("b", 2), Absent()), (None, item("b"))),
    (Put(item("c", 2), version_is(1)), Put(item("d", 2), Absent()), ({}, None)),
)


def test_a_transaction_with_a_condition_that_fails_writes_nothing_and_shows_what_is_there(table: Table) -> None:
    fill(table, "a", "b")
    for first, second, refused in REFUSED:
        assert table.answer(Transact((first, second))) == refused
        assert table.answer(Query("p")) == Page((item("a"), item("b")), None)


# -- DeleteMany ----------------------------------------------------------------------------------------------------


def test_deletes_remove_what_is_there_and_pass_over_what_is_not(table: Table) -> None:
    fill(table, "a", "b", "c")
    fill(table, "a", pk="q")
    assert table.answer(DeleteMany((item("a"), item("x"), item("c")))) == (None, None, None)
    assert walk(table) == ["b"]
    assert table.answer(Get(key("a", "q"))) == item("a", pk="q")
    assert table.answer(Put(item("a", 2), Absent())) is None  # it can be put again
    assert table.answer(Query("p")) == Page((item("a", 2), item("b")), None)


def test_an_item_that_has_another_value_or_lacks_an_attribute_stays_and_is_shown(table: Table) -> None:
    fill(table, "a", "c", "d", "f")
    table.answer(Put(item("b", 2)))
    table.answer(Put({**item("e"), "more": {"S": "x"}}))
    lacking = {**item("d"), "more": {"S": "x"}}
    answers = table.answer(DeleteMany((item("a"), item("b"), item("c"), lacking, item("e"))))
    assert answers == (None, AlreadyThere(item("b", 2)), None, AlreadyThere(item("d")), None)
    assert walk(table) == ["b", "d", "f"]  # "e" had more attributes than were given
    keys_alone = tuple({"pk": {"S": "p"}, "sk": {"S": sk}} for sk in ("d", "x"))
    assert table.answer(DeleteMany(keys_alone)) == (None, None)
    assert walk(table) == ["b", "f"]


def test_more_deletes_than_one_request_holds_are_all_done_and_answered_in_order(table: Table) -> None:
    sks = [f"{n:03}" for n in range(60)]
    fill(table, *sks)
    other = AlreadyThere(item(sks[40]))
    answers = table.answer(DeleteMany(tuple(item(sk, 2 if sk == sks[40] else 1) for sk in sks[1:-1])))
    assert answers == tuple(other if sk == sks[40] else None for sk in sks[1:-1])
    assert walk(table) == [sks[0], sks[40], sks[-1]]


# -- Scan ----------------------------------------------------------------------------------------------------------


def test_the_pages_of_a_scan_hold_every_key_exactly_once(table: Table) -> None:
    assert table.answer(Scan()) == KeyPage((), None)
    fill(table, *"abc", padding=300_000)
    fill(table, *"abc", pk="q", padding=300_000)
    found, pages = scan(table)
    assert sorted(found) == [key(sk, pk) for pk in "pq" for sk in "abc"]
    assert pages > 1 or isinstance(table, SimulatedTable)  # it has one page for all keys


# -- Together ------------------------------------------------------------------------------------------------------


def test_requests_together_are_answered_in_their_order(table: Table) -> None:
    fill(table, "a", "b")
    answers = table.answer(
        Together((Query("p"), Get(key("x")), Put(item("a", 5), Absent()), Get(key("b")), Put(item("n", pk="q"))))
    )
    assert answers == (Page((item("a"), item("b")), None), None, item("a"), item("b"), None)
    assert table.answer(Get(key("n", "q"))) == item("n", pk="q")
    assert table.answer(Together((Get(key("x")),))) == (None,)


def test_a_pause_is_answered_with_nothing_and_so_is_a_request_of_nothing(table: Table) -> None:
    fill(table, "a")
    assert table.answer(Pause(1)) is None
    assert [table.answer(kind(())) for kind in (PutMany, GetMany, DeleteMany, Together)] == [()] * 4
    assert walk(table) == ["a"]


def test_an_unknown_request_is_a_type_error(table: Table) -> None:
    unknown: tuple[Any, ...] = ("Put", None, Now(), Together((Now(),)))  # type: ignore[arg-type]
    for request in unknown:
        with pytest.raises(TypeError, match="not a request"):
            table.answer(request)
