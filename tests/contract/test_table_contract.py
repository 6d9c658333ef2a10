"""One contract for whatever answers requests: sessions of requests and their answers, and what
pages and sizes do.
"""

from itertools import product
from typing import Any

import pytest

from ledger.core import items, tokens
from ledger.core.conditions import Absent
from ledger.core.cost import item_bytes
from ledger.core.entries import ENTRIES_MAX, ENTRY, Entries
from ledger.core.errors import ItemTooLarge
from ledger.core.items import version_is
from ledger.core.requests import (
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
    Request,
    Scan,
    Table,
    Together,
    Transact,
    key_of,
    keyed,
)
from ledger.core.values import Delta, Lane, Pack
from ledger.lane.add import pack_of
from ledger.tables.memory import MemoryTable
from simulator.double import SimulatedTable
from tests.contract.conftest import ABROAD, Replicas

PAGES_MAX = 100
LANE = Lane("eu-west-1", 0, "stock:85123A")
TOKENS = [tokens.make(n, n.to_bytes(tokens.RANDOM_BYTES, "big")) for n in range(4)]


def item(sk: str, version: int = 1, *, pk: str = "p", padding: int = 0) -> Item:
    extra = {"padding": {"B": b"x" * padding}} if padding else {}
    return {"pk": {"S": pk}, "sk": {"S": sk}, "version": {"N": str(version)}, **extra}


def key(sk: str, pk: str = "p") -> Key:
    return Key(pk, sk)


def pack(*numbers: int) -> Item:
    return items.pack_item(pack_of([Delta(LANE, TOKENS[n], n) for n in numbers]))


def tail(after: str | None = None) -> Query:
    return Query(items.delta_pk(LANE), after)


def fill(table: Table, *sks: str, pk: str = "p", padding: int = 0) -> None:
    for sk in sks:
        assert table.answer(Put(item(sk, pk=pk, padding=padding))) is None


def walk(
    table: Table, after: str | None = None, upto: str | None = None, limit: int | None = None
) -> list[str]:
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


# -- sessions

WHOLE: Item = {
    **item("a"),
    "total": {"N": "-" + "9" * 38},
    "entries": {"B": bytes(range(256))},
    "last": {"S": "#é/%"},
}
MORE: Item = {**item("d"), "more": {"S": "x"}}
A_AND_B = (Query("p"), Page((item("a"), item("b")), None))
Session = list[tuple[Request, Any]]
SESSIONS: dict[str, Session] = {
    "a put if absent is written once and speaks of the whole key": [
        (Put(item("a"), Absent()), None),
        (Put(item("a", 2), Absent()), item("a", 1)),
        (Get(key("a")), item("a", 1)),
        (Put(item("b"), Absent()), None),
        (Put(item("a", pk="q"), Absent()), None),
    ],
    "a put without condition replaces what is there and every kind of attribute comes back": [
        (Put(item("a")), None),
        (Put(item("a", 7)), None),
        (Query("p"), Page((item("a", 7),), None)),
        (Put(WHOLE), None),
        (Get(key("a")), WHOLE),
    ],
    "a get of what is not there answers None and need not be consistent": [
        (Put(item("a")), None),
        (Get(key("b")), None),
        (Get(key("a", "q")), None),
        (Get(key("a"), consistent=False), item("a")),
    ],
    (
        "a transaction and a put over a version write if their conditions hold and else show what "
        "is there"
    ): [
        (PutMany((item("a"), item("b"))), (None, None)),
        (
            Transact((Put(item("a", 2), version_is(5)), Put(item("c", 2), Absent()))),
            (item("a"), None),
        ),
        (
            Transact((Put(item("a", 2), version_is(1)), Put(item("b", 2), Absent()))),
            (None, item("b")),
        ),
        (Transact((Put(item("a", 2)), Put(item("b", 2), Absent()))), (None, item("b"))),
        (Transact((Put(item("c", 2), version_is(1)), Put(item("d", 2), Absent()))), ({}, None)),
        A_AND_B,
        (Transact((Put(item("a", 9)), Put(item("c"), Absent()))), None),  # without a condition too
        (GetMany((key("a"), key("c"))), (item("a", 9), item("c"))),
        (Put(item("a", 3), version_is(2)), item("a", 9)),
        (Put(item("absent", 2), version_is(1)), {}),
        (Put(item("a", 10), version_is(9)), None),
        (Get(key("a")), item("a", 10)),
    ],
    "an item that has another value or lacks an attribute stays and is shown": [
        (
            PutMany(
                (item("a"), item("b", 2), item("c"), item("d"), {**item("e"), "more": {"S": "x"}})
            ),
            (None,) * 5,
        ),
        (
            # "e" had more attributes than were given
            DeleteMany((item("a"), item("b"), item("c"), MORE, item("e"))),
            (None, AlreadyThere(item("b", 2)), None, AlreadyThere(item("d")), None),
        ),
        (Query("p"), Page((item("b", 2), item("d")), None)),
        (
            DeleteMany(
                ({"pk": {"S": "p"}, "sk": {"S": "d"}}, {"pk": {"S": "p"}, "sk": {"S": "x"}})
            ),
            (None, None),
        ),
        (Query("p"), Page((item("b", 2),), None)),
    ],
    "requests together are answered in their order": [
        (PutMany((item("a"), item("b"))), (None, None)),
        (
            Together(
                (
                    Query("p"),
                    Get(key("x")),
                    Put(item("a", 5), Absent()),
                    Get(key("b")),
                    Put(item("n", pk="q")),
                )
            ),
            (Page((item("a"), item("b")), None), None, item("a"), item("b"), None),
        ),
        (Get(key("n", "q")), item("n", pk="q")),
        (Together((Get(key("x")),)), (None,)),
    ],
    "a pack put again is no other item and it is deleted by its key alone": [
        *[(Together((Put(pack(0, 1)), Put(pack(0, 2, 3)))), (None, None))] * 2,
        (DeleteMany(tuple(keyed(key_of(each)) for each in (pack(0, 1), pack(1, 2)))), (None, None)),
        (tail(), Page((pack(0, 2, 3),), None)),
        (Put(pack(0, 1)), None),
        (tail(), Page((pack(0, 1), pack(0, 2, 3)), None)),
    ],
    "a pause is answered with nothing and so is a request of nothing": [
        (Pause(1), None),
        *((kind(()), ()) for kind in (PutMany, GetMany, DeleteMany, Together)),
        (Query("p"), Page((), None)),
        (Query("p", consistent=False), Page((), None)),
        (Scan(), KeyPage((), None)),
    ],
}


@pytest.mark.shows(6)
@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_has_the_answers_of_the_contract(table: Table, session: str) -> None:
    for request, answer in SESSIONS[session]:
        assert table.answer(request) == answer, request


def test_a_get_that_names_a_region_is_answered_from_there(replicas: Replicas) -> None:
    home, abroad = replicas.home, replicas.abroad
    if isinstance(home, SimulatedTable) or home is abroad:
        pytest.skip("its Regions replicate meanwhile; tests/simulator asks it of them")
    home.answer(Put(item("a", 1)))
    abroad.answer(Put(item("a", 2)))
    assert home.answer(Get(key("a"))) == item("a", 1)
    assert home.answer(At(ABROAD, Get(key("a")))) == item("a", 2)


def test_an_unknown_request_is_a_type_error(table: Table) -> None:
    unknown: tuple[Any, ...] = ("Put", None, Now(), Together((Now(),)))  # type: ignore[arg-type]
    for request in unknown:
        with pytest.raises(TypeError, match="not a request"):
            table.answer(request)


# -- more than one request holds


@pytest.mark.shows(5)
def test_more_than_one_request_holds_is_answered_in_order(
    table: Table,
) -> None:
    sks = [f"{n:03}" for n in range(60)]
    there, other = {sks[n] for n in (0, 24, 25, 49, 50, 59)}, AlreadyThere(item(sks[40], 2))
    fill(table, *there)
    answers = table.answer(PutMany(tuple(item(sk, 2) for sk in sks)))
    for sk, answer in zip(sks, answers, strict=True):  # the store need not show what is there
        assert answer in ((AlreadyThere(item(sk)), AlreadyThere(None)) if sk in there else (None,))
    items_there = {sk: item(sk, 1 if sk in there else 2) for sk in sks}
    asked = [f"{n:03}" for n in reversed(range(130))]
    for consistent in (True, False):
        found = table.answer(GetMany(tuple(map(key, asked)), consistent=consistent))
        assert found == tuple(map(items_there.get, asked))
    deleted = tuple(item(sk) if sk == sks[40] else items_there[sk] for sk in sks[1:-1])
    assert table.answer(DeleteMany(deleted)) == tuple(
        other if sk == sks[40] else None for sk in sks[1:-1]
    )
    assert walk(table) == [sks[0], sks[40], sks[-1]]


# -- ranges and pages


@pytest.mark.parametrize("consistent", [True, False])
def test_a_query_answers_above_after_and_up_to(table: Table, consistent: bool) -> None:
    fill(table, "f", "b", "d")
    fill(table, "c", "d", pk="q")
    for after, upto, found in (
        # there is no "c"
        *((None, None, "bdf"), ("b", None, "df"), ("c", None, "df"), ("f", None, "")),
        *(
            (None, "d", "bd"),
            (None, "e", "bd"),
            (None, "a", ""),
            ("b", "f", "df"),
            ("a", "e", "bd"),
        ),
        *(("b", "b\0", ""), ("d", "d", ""), ("f", "b", "")),
    ):
        page: Page = table.answer(Query("p", after, upto, consistent=consistent))
        assert page == Page(tuple(item(sk) for sk in found), None), (after, upto)


@pytest.mark.shows(7)
def test_a_query_orders_by_bytes(table: Table) -> None:
    sks = ["segment#Z", "segment$", "\uff21", "~", "a", "Z", "segment#", "\U0001f600", "é", "0"]
    fill(table, *sks)
    assert walk(table) == sorted(sks, key=str.encode)
    fill(table, "a\0", "aa")
    # what goes on where another ends comes after it
    assert walk(table, after="a", upto="b") == ["a\0", "aa"]


def test_a_querys_pages_hold_every_item_once(
    table: Table,
) -> None:
    sks = [f"{n:02}" for n in range(10)]
    fill(table, *sks)
    assert table.answer(Query("p", limit=2)) == Page((item("00"), item("01")), "01")
    for limit, after, upto in product((1, 2, 3), (None, "00"), (None, "08")):
        expected = [
            sk for sk in sks if (after is None or sk > after) and (upto is None or sk <= upto)
        ]
        assert walk(table, after, upto, limit) == expected, (limit, after, upto)


def test_a_large_range_comes_in_pages_and_a_scan_has_every_key(
    table: Table,
) -> None:
    fill(table, *"abcde", padding=300_000)
    fill(table, *"abc", pk="q", padding=300_000)
    first: Page = table.answer(Query("p"))
    assert first.last == first.items[-1]["sk"]["S"]
    assert walk(table) == list("abcde")
    pages = [table.answer(Scan())]
    while pages[-1].last is not None and len(pages) < PAGES_MAX:
        pages.append(table.answer(Scan(pages[-1].last)))
    found = [each for page in pages for each in page.keys]
    assert sorted(found) == [*map(key, "abcde"), *(key(sk, "q") for sk in "abc")]
    assert len(pages) > 1 or isinstance(table, SimulatedTable)  # it has one page for all keys


# -- sizes


def test_the_largest_pack_is_put_and_read_back(table: Table) -> None:
    first = tokens.to_bytes(TOKENS[1])[:8]
    entries = (ENTRY.pack(first + n.to_bytes(8, "big"), n) for n in range(ENTRIES_MAX))
    whole = items.pack_item(Pack(LANE, Entries.of(entries)))
    assert 384_000 < item_bytes(whole) < 400 * 1_024
    assert table.answer(Together((Put(whole), Put(pack(0, 1))))) == (None, None)
    assert table.answer(Get(key_of(whole))) == whole
    assert (
        len(items.entries_of(LANE, table.answer(tail(items.tail_after(TOKENS[1]))).items[-1]))
        == ENTRIES_MAX
    )


def test_packs_put_together_are_answered_each_on_its_own(table: Table) -> None:
    if isinstance(table, SimulatedTable | MemoryTable):
        pytest.skip("it takes an item of any size")
    too_large: Item = keyed(key_of(pack(3)), entries={"B": bytes(410_000)})
    answers = table.answer(
        Together(tuple(map(Put, (pack(0, 1), too_large, pack(1, 2), pack(0, 1)))))
    )
    assert isinstance(answers[1], ItemTooLarge)
    assert [answers[0], *answers[2:]] == [None] * 3
    assert table.answer(tail()) == Page((pack(0, 1), pack(1, 2)), None)
