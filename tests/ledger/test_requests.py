"""Driving a program: `run`, `through`, and what the table in memory adds."""

import operator
import time
from collections.abc import Generator
from typing import Any

import pytest

from ledger import actions, conditions, requests
from ledger.clocks import instants
from ledger.conditions import Absent, Equals
from ledger.cost import item_bytes
from ledger.errors import ItemTooLarge, LedgerError, TableMismatch, Throttled, Unavailable
from ledger.lane.tail import through
from ledger.memory import MemoryTable
from ledger.requests import (
    ITEM_BYTES_MAX,
    Get,
    Instant,
    Item,
    Key,
    Now,
    Page,
    Program,
    Put,
    Query,
    Request,
    Together,
    Transact,
    Update,
    run,
)


def item(sk: str, pk: str = "p") -> Item:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


class Broken(MemoryTable):
    """A table in memory that refuses every request about the collection "bad"."""

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, Query) and request.pk == "bad":
            raise Throttled("slow")
        return super().answer(request)


def instant() -> Instant:
    return Instant(7, 8)


KINDS: list[Any] = [
    value
    for module in (requests, conditions, actions)
    for value in vars(module).values()
    if isinstance(value, type)
    and hasattr(value, "_fields")
    and value is not Key
    and value.__module__ == module.__name__
]


def filled(kind: Any, value: object = 3) -> Any:
    """One of its kind, with the same value in every field."""
    return kind(*[value] * len(kind._fields))


def test_all_kinds_of_requests_conditions_and_answers_are_looked_at() -> None:
    names = "Absent Equals Add Put Update Transact DeleteMany Pause Now Instant AlreadyThere Page"
    assert {*names.split()} <= {kind.__name__ for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_request_is_true_has_no_order_and_equals_its_own_kind_alone(kind: Any) -> None:
    one = filled(kind)
    assert bool(one)
    assert operator.eq(one, filled(kind))
    assert not operator.ne(one, filled(kind))
    for other in (tuple(one), *(filled(each) for each in KINDS if each is not kind)):
        for left, right in ((one, other), (other, one)):
            assert operator.ne(left, right)
            assert not operator.eq(left, right)
        assert one not in [other]
    if kind._fields:
        assert one != filled(kind, 4)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        for other in (filled(kind, 4), filled(Key)):
            with pytest.raises(TypeError):
                compare(one, other)


def test_now_is_the_given_clock_beside_a_monotonic_one() -> None:
    now = instants(lambda: 1_000)
    before_ms = time.monotonic_ns() // 1_000_000
    instant = now()
    assert instant.wall_ms == 1_000
    assert before_ms <= instant.steady_ms <= time.monotonic_ns() // 1_000_000


def test_run_sends_each_answer_and_raises_a_failure_where_it_was_asked_for() -> None:
    def program() -> Program[list[Any]]:
        return [(yield Put(item("a"))), (yield Now()), (yield Get(Key("p", "a")))]

    def catches() -> Program[str]:
        try:
            yield Query("bad")
        except Throttled:
            page: Page = yield Query("good")
            return f"caught, then {len(page.items)}"
        return "not reached"

    def does_not_catch() -> Program[None]:
        yield Query("bad")

    assert run(program(), MemoryTable(), instant) == [None, Instant(7, 8), item("a")]
    assert run(catches(), Broken(), instant) == "caught, then 0"
    with pytest.raises(Throttled, match="slow"):
        run(does_not_catch(), Broken(), instant)


def test_an_error_among_requests_together_is_a_value_in_memory_too() -> None:
    first, failed, last = Broken().answer(Together((Query("p"), Query("bad"), Query("q"))))
    assert first == last == Page((), None)
    assert isinstance(failed, LedgerError)


def test_an_update_makes_the_item_where_there_is_none_and_writes_into_one_that_is_there() -> None:
    table, key = MemoryTable(), Key("p", "a")
    for number in (1, 2):
        assert table.answer(Update(key, (actions.Add("number", 1),))) is None
        assert table.answer(Get(key)) == {**item("a"), "number": {"N": str(number)}}


def test_an_update_adds_to_the_digit_and_refuses_what_has_more_than_38() -> None:
    table, key, most = MemoryTable(), Key("p", "a"), 10**38 - 1
    table.answer(Put({**item("a"), "number": {"N": str(most - 1)}}))
    assert table.answer(Update(key, (actions.Add("number", 1),))) is None
    assert table.answer(Get(key))["number"] == {"N": str(most)}
    table.answer(Put({**item("a"), "number": {"N": f"-{most}"}}))
    with pytest.raises(TableMismatch, match="38 digits"):
        table.answer(Update(key, (actions.Add("number", -2),)))
    assert table.answer(Get(key))["number"] == {"N": f"-{most}"}


def test_an_update_that_would_make_an_item_larger_than_any_may_be_writes_nothing() -> None:
    table, key = MemoryTable(), Key("p", "a")
    room = ITEM_BYTES_MAX - item_bytes({**item("a"), "text": {"S": ""}})
    with pytest.raises(ItemTooLarge):
        table.answer(Update(key, (actions.Set("text", {"S": "x" * (room + 1)}),)))
    assert table.answer(Get(key)) is None
    assert table.answer(Update(key, (actions.Set("text", {"S": "x" * room}),))) is None


def test_a_transaction_that_is_refused_shows_what_was_there_where_a_condition_failed() -> None:
    table = MemoryTable()
    table.answer(Put(item("a")))
    writes = Put(item("a"), Absent()), Put(item("b"), Absent()), Put(item("c"), Equals("version", {"N": "1"}))
    assert table.answer(Transact(writes)) == (item("a"), None, {})


def test_what_was_answered_stays_as_it_was() -> None:
    table = MemoryTable()
    table.answer(Put(item("a")))
    page = table.answer(Query("p"))
    table.answer(Put({**item("a"), "change": {"N": "1"}}))
    assert page == Page((item("a"),), None)


# -- one program sent through another ----------------------------------------------------------------------------------


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


def end_of(program: Generator[Any, Any, Any], answer: object) -> object:
    with pytest.raises(StopIteration) as ended:
        program.send(answer)
    return ended.value.value


def test_a_step_asks_as_often_as_it_likes_for_each_request_and_answers_it() -> None:
    program = through(asks("a", "b"), twice)
    assert [next(program), program.send(1), program.send(2), program.send(3)] == ["a1", "a2", "b1", "b2"]
    assert end_of(program, 4) == ["1 2", "3 4"]


def test_a_failure_of_a_step_is_raised_where_the_program_asked_and_ends_both_if_not_caught() -> None:
    failure = Throttled("slow")
    program = through(asks("a", "b"), twice)
    next(program)
    assert program.throw(failure) == "b1"
    program.send(1)
    assert end_of(program, 2) == [failure, "1 2"]
    program = through(asks("a", "b"), twice)
    next(program)
    with pytest.raises(Unavailable):
        program.throw(Unavailable("gone"))
