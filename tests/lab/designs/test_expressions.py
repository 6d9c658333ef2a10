"""Every condition and action means the same as an expression on a real engine and as an effect in Python."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from lab.designs.actions import Add, Exclude, Include, Set, SetSum
from lab.designs.attributes import keyed, number, text
from lab.designs.conditions import Both, Compare, Condition, Contains, Either, Missing, Not, SizeBelow
from lab.designs.writes import DeleteItem, Program, PutItem, Transaction, UpdateItem, Write
from ledger.requests import Get, Item, Key
from tests.lab.designs.support import OnEngine
from tests.strategies import effort

KEY = Key("p", "s")
numbers, texts = st.integers(-3, 3), st.sampled_from("ab")

conditions: st.SearchStrategy[Condition] = st.recursive(
    st.builds(Missing, st.sampled_from(["pk", "n", "t", "s"]))
    | st.builds(Compare, st.just("n"), st.sampled_from(["=", "<=", ">="]), numbers.map(number))
    | st.builds(Compare, st.sampled_from(["t", "n"]), st.just("="), texts.map(text))
    | st.builds(Contains, st.just("s"), texts)
    | st.builds(SizeBelow, st.just("s"), st.integers(0, 3)),
    lambda inner: st.builds(Not, inner) | st.builds(Both, inner, inner) | st.builds(Either, inner, inner),
    max_leaves=4,
)
on_number = st.builds(Add, st.just("n"), numbers) | st.builds(SetSum, st.just("n"), numbers)
on_text = st.builds(Set, st.just("t"), texts.map(text))
on_set = st.builds(Include, st.just("s"), texts) | st.builds(Exclude, st.just("s"), texts)
actions = st.tuples(on_number, on_text, on_set).flatmap(
    lambda each: st.lists(st.sampled_from(each), min_size=1, unique_by=lambda action: action.name)
)
items = st.fixed_dictionaries(
    {}, optional={"n": numbers.map(number), "t": texts.map(text), "s": st.just({"SS": ["a"]})}
).map(lambda attributes: keyed(KEY, **attributes))
writes: st.SearchStrategy[Write] = st.one_of(
    st.builds(UpdateItem, st.just(KEY), actions, condition=conditions | st.none()),
    st.builds(PutItem, items, condition=conditions | st.none()),
    st.builds(DeleteItem, st.just(KEY), condition=conditions | st.none()),
)


def same(item: Item | None) -> object:
    """An item as it can be compared: a set has no order."""
    return item and {name: {k: sorted(v) if k == "SS" else v for k, v in a.items()} for name, a in item.items()}


def expected(there: Item | None, row: list[Write]) -> Iterator[tuple[object, Item | None]]:
    for write in row:
        holds = write.holds(there)
        answer = None if holds else there or {}
        there = write.becomes(there) if holds else there
        yield same(answer), there


@effort(1.5)
@given(st.lists(writes, min_size=4, max_size=8))
def test_an_expression_and_its_effect_are_the_same(place: OnEngine, row: list[Write]) -> None:
    place.run(deleted())
    for write, (answer, becomes) in zip(row, expected(None, row), strict=True):
        assert same(place.table.answer(write)) == answer, write.arguments()
        assert same(place.table.answer(Get(KEY))) == same(becomes), write.arguments()


def deleted() -> Program[None]:
    yield DeleteItem(KEY)


@given(st.lists(items, max_size=1), writes, writes)
def test_a_transaction_says_of_each_write_whether_it_could_be(
    place: OnEngine, there: list[Item], one: Write, other: Write
) -> None:
    place.table.answer(PutItem(there[0]) if there else DeleteItem(KEY))
    away = UpdateItem(Key("p", "away"), (Add("n", 1),), condition=other.condition)
    beside = place.table.answer(Get(away.key))
    answer = place.table.answer(Transaction((one, away)))
    before = there[0] if there else None
    holds = one.holds(before), away.holds(beside)
    reasons = None if holds[0] else before or {}, None if holds[1] else beside or {}
    assert (answer and tuple(map(same, answer))) == (None if all(holds) else tuple(map(same, reasons)))
    assert same(place.table.answer(Get(KEY))) == same(one.becomes(before) if all(holds) else before)
