"""AsyncReader: the answers and errors of Reader, one load for many tasks, and misuse."""

import asyncio
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ledger import Ledger, Limit, Period, Settings, Threshold
from ledger.core.checks import to_datetime
from ledger.core.errors import DamagedItem, InvalidInput, LedgerError, TableError, Unavailable
from ledger.core.requests import GetMany
from reader import Balance, Position, Reader
from reader.aio import AsyncReader
from tests.world import Region, fail

LIKES, STOCK = "likes:1", "stock:1"
NOW_MS = 1_700_000_000_000
BY_PREFIX: dict[str, Any] = {
    "limits": {"stock:": Limit(floor=0)},
    "shards": {"likes:": 2},
    "thresholds": {
        "likes:": (Threshold(above=3),),
        "stock:": (Threshold(left=20), Threshold(left=5)),
    },
}
SETTINGS = Settings(table="counters", region="eu-west-1", **BY_PREFIX)


@pytest.fixture
def table() -> Region:
    made = Region(page_size=2)
    ledger = Ledger(SETTINGS, table=made, clock=lambda: NOW_MS)
    for _ in range(5):
        ledger.add(LIKES, 3)
    ledger.add(STOCK, 10)
    return made


def of(kind: Callable[..., Any], table: Any) -> Any:
    return kind(SETTINGS, table=table, clock=lambda: NOW_MS)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        answer = call()
        return [*answer] if isinstance(answer, Iterator) else answer
    except LedgerError as error:
        return type(error), str(error)


CALLS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("value", lambda reader: reader.value(LIKES)),
    ("values", lambda reader: reader.values([LIKES, STOCK, LIKES])),
    ("values", lambda reader: reader.values(LIKES)),
    ("read", lambda reader: reader.read(LIKES)),
    ("read", lambda reader: reader.read(LIKES, 3)),
    ("read", lambda reader: reader.read(LIKES, behind=60)),
    ("read", lambda reader: reader.read(LIKES, -1)),
    ("history", lambda reader: reader.history(LIKES)),
    ("history", lambda reader: reader.history(LIKES, since="yesterday")),
    ("history", lambda reader: reader.history(STOCK)),
    ("history_page", lambda reader: reader.history_page(LIKES, limit=2)),
    (
        "history_page",
        lambda reader: reader.history_page(LIKES, after=Position("0" * 26, "eu-west-1")),
    ),
    ("history_page", lambda reader: reader.history_page(LIKES, limit=0)),
    ("series", lambda reader: reader.series(LIKES, since=to_datetime(0), every="hour")),
    ("series", lambda reader: reader.series(STOCK, since=to_datetime(0), zone="nowhere")),
    ("value_at", lambda reader: reader.value_at(STOCK, to_datetime(NOW_MS))),
    ("value_at", lambda reader: reader.value_at(LIKES, to_datetime(NOW_MS + 1))),
    ("counters", lambda reader: reader.counters("like", limit=3)),
    ("standing", lambda reader: reader.standing(STOCK)),
    ("standing", lambda reader: reader.standing(LIKES)),
    ("holds", lambda reader: reader.holds(STOCK)),
    ("periods", lambda reader: reader.periods(STOCK, Period("month"))),
    ("crossed", lambda reader: reader.crossed(LIKES)),
    ("crossed", lambda reader: reader.crossed(STOCK)),
    ("top", lambda reader: reader.top("like")),
    ("top", lambda reader: reader.top(n=1, by="pending")),
    ("top", lambda reader: reader.top(by="name")),
)


def test_an_awaited_call_has_the_calls_answer_and_error(table: Region) -> None:
    async def answer(call: Callable[[Any], Any]) -> Any:
        async with of(AsyncReader, table) as reader:
            return await call(reader)

    named = {
        name
        for kind in (Reader, AsyncReader)
        for name, made in vars(kind).items()
        if callable(made)
    }
    assert {name for name in named if not name.startswith("_")} == {name for name, _ in CALLS}
    for name, call in CALLS:
        awaited = outcome(partial(asyncio.run, answer(call)))
        assert awaited == outcome(partial(call, of(Reader, table))), name


def test_no_error_of_a_read_says_that_nothing_was_written(
    table: Region,
) -> None:
    kinds = [*LedgerError.__subclasses__(), *TableError.__subclasses__()]
    kinds.remove(DamagedItem)
    for _, call in CALLS:
        texts = [outcome(lambda call=call: call(of(Reader, table)))]  # type: ignore[misc]
        for kind in kinds:
            failing = Region()
            failing.before(object, fail(kind("It failed. Nothing was written. Call again.")))
            with pytest.raises(LedgerError) as raised:
                list(call(of(Reader, failing)) or [])
            texts.append(str(pickle.loads(pickle.dumps(raised.value))))
        assert not [text for text in texts if "written" in str(text)]
    failing = Region()
    failing.before(object, fail(Unavailable("Nothing was written. Call again.")))
    for counter in (LIKES, STOCK):  # of a limited one a read failed
        with pytest.raises(Unavailable, match="Nothing was written"):
            Ledger(SETTINGS, table=failing).add(counter, 1)


def test_of_tasks_that_ask_at_once_one_loads_for_all(
    table: Region,
) -> None:
    async def main() -> None:
        go, failures = asyncio.Event(), [Unavailable("No answer.")]

        async def loads(answer: Any) -> Any:
            await go.wait()
            if failures:
                raise failures.pop()
            return answer

        table.after(GetMany, lambda _, answer: loads(answer))
        table.asked.clear()
        async with of(AsyncReader, table) as reader:
            reads = [asyncio.ensure_future(reader.read(LIKES, 5)) for _ in range(52)]
            await asyncio.sleep(0)
            reads[0].cancel()
            go.set()
            found = await asyncio.gather(*reads, return_exceptions=True)
        assert [type(each) for each in found] == [
            asyncio.CancelledError,
            Unavailable,
            *[Balance] * 50,
        ]
        balances = [each for each in found if isinstance(each, Balance)]
        # of the one that was cancelled, and of the one that failed, too
        assert table.kinds.count(GetMany) == 3
        assert {balance.value for balance in balances} == {15}
        assert sorted(balance.cached for balance in balances) == [False] + [True] * 49
        assert len({id(balance.by_region) for balance in balances}) == 50

    asyncio.run(main())


def test_a_reader_outside_its_block_or_loop_answers_nothing(
    table: Region,
) -> None:
    async def main() -> None:
        reader = of(AsyncReader, table)
        with pytest.raises(InvalidInput, match=r"is used outside of its .*\. Enter it by `async"):
            await reader.history(LIKES)
        async with reader:
            assert await reader.value(LIKES) == 15
            with pytest.raises(InvalidInput, match="in another event loop"):
                await asyncio.to_thread(asyncio.run, reader.value(LIKES))
        for call in (reader.value(LIKES), reader.values([LIKES]), reader.values([])):
            with pytest.raises(InvalidInput, match="outside of its `async with`"):
                await call

    asyncio.run(main())
