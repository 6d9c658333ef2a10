"""Every condition and action means the same as an expression on a real engine and as an effect in Python."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from bench.approaches import expressions as e
from ledger.requests import Get, Item, Key
from tests.bench.approaches.support import OnEngine
from tests.strategies import effort

KEY = Key("p", "s")
numbers, texts = st.integers(-3, 3), st.sampled_from("ab")

conditions: st.SearchStrategy[e.Condition] = st.recursive(
    st.builds(e.Missing, st.sampled_from(["pk", "n", "t", "s"]))
    | st.builds(e.Compare, st.just("n"), st.sampled_from(["=", "<=", ">="]), numbers.map(e.number))
    | st.builds(e.Compare, st.sampled_from(["t", "n"]), st.just("="), texts.map(e.text))
    | st.builds(e.Contains, st.just("s"), texts)
    | st.builds(e.SizeBelow, st.just("s"), st.integers(0, 3)),
    lambda inner: st.builds(e.Not, inner) | st.builds(e.Both, inner, inner) | st.builds(e.Either, inner, inner),
    max_leaves=4,
)
on_number = st.builds(e.Add, st.just("n"), numbers) | st.builds(e.SetSum, st.just("n"), numbers)
on_text = st.builds(e.Set, st.just("t"), texts.map(e.text))
on_set = st.builds(e.Include, st.just("s"), texts) | st.builds(e.Exclude, st.just("s"), texts)
actions = st.tuples(on_number, on_text, on_set).flatmap(
    lambda each: st.lists(st.sampled_from(each), min_size=1, unique_by=lambda action: action.name)
)
items = st.fixed_dictionaries(
    {}, optional={"n": numbers.map(e.number), "t": texts.map(e.text), "s": st.just({"SS": ["a"]})}
).map(lambda attributes: e.keyed(KEY, **attributes))
writes: st.SearchStrategy[e.Write] = st.one_of(
    st.builds(e.UpdateItem, st.just(KEY), actions, condition=conditions | st.none()),
    st.builds(e.PutItem, items, condition=conditions | st.none()),
    st.builds(e.DeleteItem, st.just(KEY), condition=conditions | st.none()),
)


def same(item: Item | None) -> object:
    """An item as it can be compared: a set has no order."""
    return item and {name: {k: sorted(v) if k == "SS" else v for k, v in a.items()} for name, a in item.items()}


def expected(there: Item | None, row: list[e.Write]) -> Iterator[tuple[object, Item | None]]:
    for write in row:
        holds = write.holds(there)
        answer = None if holds else there or {}
        there = write.becomes(there) if holds else there
        yield same(answer), there


@effort(1.5)
@given(st.lists(writes, min_size=4, max_size=8))
def test_an_expression_and_its_effect_are_the_same(place: OnEngine, row: list[e.Write]) -> None:
    place.run(iter_delete())
    for write, (answer, becomes) in zip(row, expected(None, row), strict=True):
        assert same(place.table.answer(write)) == answer, write.arguments()
        assert same(place.table.answer(Get(KEY))) == same(becomes), write.arguments()


def iter_delete() -> e.Program[None]:
    yield e.DeleteItem(KEY)


@given(st.lists(items, max_size=1), writes, writes)
def test_a_transaction_says_of_each_write_whether_it_could_be(
    place: OnEngine, there: list[Item], one: e.Write, other: e.Write
) -> None:
    place.table.answer(e.PutItem(there[0]) if there else e.DeleteItem(KEY))
    away = e.UpdateItem(Key("p", "away"), (e.Add("n", 1),), condition=other.condition)
    beside = place.table.answer(Get(away.key))
    answer = place.table.answer(e.Transaction((one, away)))
    before = there[0] if there else None
    holds = one.holds(before), away.holds(beside)
    reasons = None if holds[0] else before or {}, None if holds[1] else beside or {}
    assert (answer and tuple(map(same, answer))) == (None if all(holds) else tuple(map(same, reasons)))
    assert same(place.table.answer(Get(KEY))) == same(one.becomes(before) if all(holds) else before)
