"""Driving a program: `run`, `through`, the pages of a range, and what the table in memory adds."""

import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from compactor.lanes import every_lane
from compactor.listing import strays
from compactor.recount import recount
from compactor.verify import verify
from ledger.core import actions, conditions
from ledger.core.clocks import instants
from ledger.core.cost import item_bytes
from ledger.core.errors import ItemTooLarge, TableMismatch, Throttled, Unavailable
from ledger.core.requests import (
    ITEM_BYTES_MAX,
    AtOnce,
    Get,
    Key,
    KeyPage,
    Page,
    Program,
    Put,
    Query,
    Scan,
    Update,
    keyed,
)
from ledger.core.running import run, through
from ledger.lane import tail
from ledger.lane.tail import Pages, every_item
from ledger.tables.memory import MemoryTable
from reader.history import history
from reader.read import read
from tests.ledger.test_table_errors import KEY, item
from tests.world import COUNTER, LANE, READ_MS, compactor, delta, settings, two_regions


def test_now_is_the_given_clock_beside_a_monotonic_one() -> None:
    before_ms = time.monotonic_ns() // 1_000_000
    instant = instants(lambda: 1_000)()
    assert instant.wall_ms == 1_000
    assert before_ms <= instant.steady_ms <= time.monotonic_ns() // 1_000_000


def test_an_update_adds_to_the_digit_and_refuses_a_bad_item() -> None:
    table, most = MemoryTable(), 10**38 - 1
    for add, total in ((1, 1), (most - 1, most)):
        assert table.answer(Update(KEY, (actions.Add("number", add),))) is None
        assert table.answer(Get(KEY)) == {**item("a"), "number": {"N": str(total)}}
    with pytest.raises(TableMismatch, match="38 digits"):
        table.answer(Update(KEY, (actions.Add("number", 2),)))
    assert table.answer(Get(KEY))["number"] == {"N": str(most)}
    text = Key("p", "text")
    room = ITEM_BYTES_MAX - item_bytes({**item("text"), "text": {"S": ""}})
    with pytest.raises(ItemTooLarge):
        table.answer(Update(text, (actions.Set("text", {"S": "x" * (room + 1)}),)))
    assert table.answer(Get(text)) is None
    assert table.answer(Update(text, (actions.Set("text", {"S": "x" * room}),))) is None


def test_an_answer_does_not_change_later() -> None:
    table = MemoryTable()
    table.answer(Put(item("a")))
    page = table.answer(Query("p"))
    table.answer(Put({**item("a"), "change": {"N": "1"}}))
    assert page == Page((item("a"),), None)
    sets = conditions.Equals("s", {"SS": ["a", "b"]}), conditions.Equals("s", {"BS": [b"a"]})
    assert [each.holds({"s": {"SS": ["b", "a"]}}) for each in sets] == [True, False]
    assert sets[1].holds({"s": {"BS": [b"a"]}})


def test_a_step_raises_its_failure_where_the_program_asked() -> None:
    def asks(*texts: str) -> Generator[str, Any, list[object]]:
        """Asks each, and takes a failure for an answer."""
        answers: list[object] = []
        for text in texts:
            try:
                answers.append((yield text))
            except Throttled as failure:
                answers.append(failure)
        return answers

    def twice(text: str) -> Generator[str, Any, str]:
        return f"{(yield text + '1')} {(yield text + '2')}"

    program, failure = through(asks("a", "b"), twice), Throttled("slow")
    assert [next(program), program.send(1), program.throw(failure), program.send(3)] == [
        "a1",
        "a2",
        "b1",
        "b2",
    ]
    assert end_of(program, 4) == [failure, "3 4"]
    program = through(asks("a", "b"), twice)
    next(program)
    with pytest.raises(Unavailable):
        program.throw(Unavailable("gone"))


def test_run_answers_parts_one_after_the_other() -> None:
    table = MemoryTable()

    def puts(name: str) -> Program[Any]:
        there = yield Get(KEY)
        yield Put(keyed(KEY, name={"S": name}))
        return there

    def both() -> Program[Any]:
        return (yield AtOnce((puts("first"), puts("second"))))

    first, second = run(both(), table, instants(lambda: 0))
    assert (first, second["name"]) == (None, {"S": "first"})


def end_of(program: Generator[Any, Any, Any], answer: object) -> Any:
    with pytest.raises(StopIteration) as ended:
        program.send(answer)
    return ended.value.value


def test_every_item_goes_on_page_by_page_up_to_its_bound() -> None:
    program = every_item("p", "a", "z", consistent=False)
    assert next(program) == Query("p", "a", "z", None, False)
    assert program.send(Page((item("b"),), "b")) == Query("p", "b", "z", None, False)
    # an empty page need not be the last
    assert program.send(Page((), "c")) == Query("p", "c", "z", None, False)
    assert end_of(program, Page((item("d"),), None)) == [item("b"), item("d")]
    program = every_item("p", None, None, most=3, consistent=True)
    assert next(program) == Query("p", None, None, 3, True)
    assert program.send(Page((item("a"), item("b")), "b")) == Query("p", "b", None, 1, True)
    assert end_of(program, Page((item("c"),), "c")) == [item("a"), item("b"), item("c")]
    pages = Pages(Scan())
    pages.take(KeyPage((KEY,), KEY))
    assert (pages.next, pages.more) == (Scan(KEY), True)
    pages.take(KeyPage((), None))
    assert not pages.more


def test_nothing_is_silently_short(monkeypatch: pytest.MonkeyPatch) -> None:
    home, away = two_regions(page_size=1)
    home.put(*map(delta, (1, 2, 3)))
    compactor(home, away, fold_max=1, clean=False).compact(COUNTER)
    home.put(*map(delta, (4, 5, 6)))
    programs: list[Callable[[], Program[object]]] = [
        lambda: read([LANE], consistent=True, read_time_max_ms=READ_MS),
        lambda: history(LANE, consistent=True, read_time_max_ms=READ_MS),
        lambda: every_lane(settings(), lambda lane: True),
        lambda: strays(LANE),
        lambda: recount(LANE),
        lambda: verify(LANE),
    ]
    for program in programs:
        monkeypatch.setattr(tail, "PAGES_MAX", 1_000)
        home.run(program())
        monkeypatch.setattr(tail, "PAGES_MAX", 2)
        with pytest.raises(Unavailable, match="more than 2 pages"):
            home.run(program())
    last = Pages(Query("p"))
    last.take(Page((), "a"))
    last.take(Page((), None))  # as many as are ever read
    assert not last.more
