"""The decorator: what a function's result cost, or what the items of a generator cost, is settled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any

import pytest

from integrations.reserving import OverBudget
from ledger.errors import InvalidChange, InvalidInput
from tests.integrations.support import CAP, Town

A, B = "llm:ann", "llm:bob"


@pytest.fixture
def town() -> Town:
    return Town()


def test_a_function_and_a_coroutine_function_reserve_by_their_arguments_and_settle_by_their_result(town: Town) -> None:
    budgets = town.budgets()

    @budgets.spends(lambda user, most: [f"llm:{user}"], lambda user, most: most, len)
    def answer(user: str, most: int) -> str:
        assert town.held(f"llm:{user}") == most
        return "seven"

    @budgets.spends(lambda user, most: [f"llm:{user}"], lambda user, most: most, len)
    async def later(user: str, most: int) -> str:
        await asyncio.sleep(0)
        return f"for {user}"

    assert answer("ann", most=600) == "seven"
    with pytest.raises(OverBudget):
        answer("ann", CAP)
    assert asyncio.run(later("ann", 300)) == "for ann"
    assert town.stands(A) == (12, 0)
    assert (answer.__name__, later.__name__) == ("answer", "later")


def test_a_stream_that_is_cut_off_counts_what_it_gave(town: Town) -> None:
    closed = []

    @town.budgets().spends(lambda: [A], lambda: 600, len)
    def stream() -> Generator[str, None, None]:
        try:
            yield from ("one", "two", "three")
        finally:
            closed.append(town.held(A))

    assert list(stream()) == ["one", "two", "three"]
    assert town.stands(A) == (11, 0)
    cut = stream()
    assert (next(cut), next(cut)) == ("one", "two")
    cut.close()
    assert town.stands(A) == (17, 0)
    assert closed == [600, 600]


def test_a_coroutine_or_a_stream_that_is_given_up_before_it_gave_anything_counts_its_estimate(town: Town) -> None:
    spends = town.budgets().spends(lambda began: [A], lambda began: 30, lambda answer: 7)

    @spends
    async def asks(began: asyncio.Event) -> None:
        began.set()
        await asyncio.Event().wait()

    @spends
    async def streams(began: asyncio.Event) -> AsyncIterator[str]:
        await asks.__wrapped__(began)  # type: ignore[attr-defined]
        yield "never"

    async def give_up(call: Callable[[asyncio.Event], Awaitable[object]]) -> None:
        began = asyncio.Event()
        calling = asyncio.ensure_future(call(began))
        await began.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

    for call in (asks, lambda began: anext(streams(began))):
        asyncio.run(give_up(call))
    assert town.stands(A) == (60, 0)


def test_an_asynchronous_stream_whose_task_is_cancelled_counts_what_it_gave(town: Town) -> None:
    @town.budgets().spends(lambda: [A], lambda: 600, len)
    async def stream() -> AsyncIterator[str]:
        yield "one"
        yield "two"
        await asyncio.Event().wait()

    async def main() -> None:
        two = asyncio.Event()

        async def consume() -> None:
            async for word in stream():
                if word == "two":
                    two.set()

        task = asyncio.ensure_future(consume())
        await two.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert town.stands(A) == (6, 0)


def test_a_stream_that_gives_nothing_or_fails_counts_what_it_gave(town: Town) -> None:
    @town.budgets().spends(lambda words: [A], lambda words: 600, len)
    def stream(words: list[str]) -> Iterator[str]:
        yield from words
        1 / 0

    with pytest.raises(ZeroDivisionError):
        list(stream([]))
    assert town.stands(A) == (0, 0)
    with pytest.raises(ZeroDivisionError):
        list(stream(["one"]))
    assert town.stands(A) == (3, 0)


@pytest.mark.parametrize("cost", [lambda result: -1, lambda result: 1 // 0])
def test_a_result_whose_cost_cannot_be_told_counts_its_estimate(town: Town, cost: object) -> None:
    @town.budgets().spends(lambda: [A], lambda: 600, cost)  # type: ignore[arg-type]
    def answer() -> str:
        return "paid for"

    with pytest.raises((InvalidChange, ZeroDivisionError)):
        answer()
    assert town.stands(A) == (600, 0)


@pytest.mark.parametrize("cost", [0.5, None, -1])
def test_a_stream_of_which_an_items_cost_cannot_be_told_counts_its_estimate(town: Town, cost: Any) -> None:
    costs = {"one": 7, "two": cost}

    @town.budgets().spends(lambda: [A], lambda: 600, costs.__getitem__)
    def stream() -> Iterator[str]:
        yield from costs

    @town.budgets().spends(lambda: [B], lambda: 5, costs.__getitem__)
    async def awaited() -> AsyncIterator[str]:
        for each in costs:
            yield each

    async def main() -> None:
        async for each in awaited():
            assert each == "one"

    with pytest.raises(InvalidChange):
        list(stream())
    with pytest.raises(InvalidChange):
        asyncio.run(main())
    assert (town.stands(A), town.stands(B)) == ((600, 0), (7, 0))


def test_what_is_no_function_is_told(town: Town) -> None:
    with pytest.raises(InvalidInput, match="spends decorates a function"):
        town.budgets().spends(lambda: [A], lambda: 1, len)("answer")  # type: ignore[arg-type]
