"""AsyncLedger: holds that are awaited, what a cancelled call leaves, and misuse.

That it answers as Ledger does is in test_writer.py and test_observing.py, which ask both.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from itertools import count
from typing import Any
from unittest.mock import AsyncMock

import pytest

from lab.engines.ministack import Engine
from ledger import Change, Hold, Ledger, Limit, Receipt, Settings
from ledger.client.aio import AsyncLedger
from ledger.core.errors import (
    HoldEnded,
    InvalidInput,
    LedgerError,
    LimitReached,
    OutcomeUnknown,
    Unavailable,
)
from ledger.core.requests import Put, Update
from ledger.tables.aio import AsyncDynamoTable
from ledger.tables.memory import MemoryTable
from reader import Reader
from reader.aio import AsyncReader
from tests.ledger.test_table_errors import FAILURES, PUT, Script, refusal
from tests.world import A as REGION
from tests.world import Region

pytestmark = pytest.mark.anyio
AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
LIKES, STOCK = "likes:1", "stock:1"
MINUTE = timedelta(minutes=1)


def settings(table: str = "counters") -> Settings:
    return Settings(table=table, region=REGION, limits={"stock:": Limit(floor=0)})


class Client(Script):
    """A script whose calls are awaited."""

    async def here(self) -> None: ...

    def __getattr__(self, operation: str) -> Any:
        call = super().__getattr__(operation)

        async def awaited(**arguments: Any) -> Any:
            await self.here()
            return call(**arguments)

        return awaited


async def test_an_awaited_table_fails_and_pauses_as_the_table() -> None:
    for failures, of_write, _ in FAILURES:
        pause = AsyncMock()
        with pytest.raises(LedgerError) as raised:
            await AsyncDynamoTable(settings(), {REGION: Client(failures)}, pause=pause).answer(PUT)
        assert (type(raised.value), pause.await_count) == (of_write, len(failures) - 1)
    client = Client([{}, {}])  # the first is the shape
    inserts = Settings(table="counters", region=REGION, insert_only=True)
    async with AsyncLedger(inserts, client=client) as ledger:
        assert (await ledger.add(LIKES, 1)).outcome == "recorded"
    assert [name for name, _ in client.calls] == ["get_item", "execute_statement"]


# -- holds


def standing(table: MemoryTable) -> tuple[int, int]:
    """The value of the stock, and what is held of it."""
    found = Reader(settings(), table=table).standing(STOCK)
    return found.value, found.held.down or 0


async def test_a_block_releases_what_was_not_captured() -> None:
    table, names = MemoryTable(), list[str]()
    async with AsyncLedger(
        settings(), table=table, observe=lambda call: names.append(call.name)
    ) as ledger:
        await ledger.add(STOCK, 10)
        async with ledger.hold(STOCK, -4, expires=MINUTE) as hold:
            assert standing(table) == (10, 4)
            assert (await hold.capture(-3)).delta.change == -3
        with pytest.raises(ZeroDivisionError):
            async with ledger.hold(STOCK, -4, expires=MINUTE):
                standing(table)[0] / 0
        assert standing(table) == (7, 0)
        hold = await ledger.hold(STOCK, -5, expires=MINUTE)
        async with ledger.parse_hold(STOCK, hold.id) as same:
            assert (same, standing(table)) == (hold, (7, 5))
        called = [name.removeprefix("ledger.") for name in names]
        assert called == ["add", "hold", "capture", "hold", "release", "hold", "release"]
        with pytest.raises(HoldEnded):
            await ledger.capture(Hold.parse(STOCK, hold.id))
        with pytest.raises(InvalidInput, match="is the id of no hold"):
            ledger.parse_hold(STOCK, "x")
        with pytest.raises(InvalidInput, match="`async with`"), hold:
            raise AssertionError("it was entered")


async def test_a_refused_or_pending_hold_is_not_awaited_again() -> None:
    async with AsyncLedger(settings(), table=MemoryTable()) as ledger:
        await ledger.add(STOCK, 3)
        refused = ledger.hold(STOCK, -8, expires=MINUTE)
        with pytest.raises(LimitReached):
            await refused
        with pytest.raises(InvalidInput, match="not granted"):
            await refused
        with pytest.raises(InvalidInput, match="not granted"):
            async with refused:
                raise AssertionError("nothing is held")
        granted = ledger.hold(STOCK, -3, expires=MINUTE)
        assert await granted is await granted


# -- a cancelled call


class Cancelling:
    """A client of boto3 whose calls are awaited, before a request is sent and before its answer
    comes. `task` is cancelled at the n-th of these awaits; the first write is throttled, so that
    there is a back-off to be cancelled in.
    """

    def __init__(self, client: Any, n: int) -> None:
        self._client, self._left, self._throttled = client, n, False
        self.task: asyncio.Task[Any] | None = None

    async def here(self, *_: object) -> None:
        if self.task is not None:
            self._left -= 1
            if self._left == 0:
                self.task.cancel()
            await asyncio.sleep(0)

    def __getattr__(self, operation: str) -> Any:
        async def call(**arguments: Any) -> Any:
            await self.here()
            if not self._throttled and operation in ("put_item", "update_item"):
                self._throttled = True
                raise refusal("ThrottlingException")
            answer = getattr(self._client, operation)(**arguments)
            await self.here()
            return answer

        return call


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator[Any]:
    made = engine.client(REGION)
    engine.create_table("cancelled", REGION, made)
    yield made
    made.close()


async def cancelled_at(n: int, client: Any, call: Callable[[AsyncLedger], Awaitable[Any]]) -> Any:
    """What the call answered, or the CancelledError of its n-th await."""
    awaited = Cancelling(client, n)
    table = AsyncDynamoTable(settings("cancelled"), {REGION: awaited}, pause=awaited.here)
    async with AsyncLedger(settings("cancelled"), table=table) as ledger:
        awaited.task = asyncio.ensure_future(call(ledger))
        try:
            return await awaited.task
        except asyncio.CancelledError as error:
            return error


def many(name: str) -> list[Change]:
    return [Change(f"{name}:likes", 1, f"many/{n}", AT) for n in range(27)]


CANCELLED: dict[str, tuple[Callable[..., Any], int]] = {
    "add": (lambda ledger, name: ledger.add(f"{name}:likes", 1, idempotency_key="k", at=AT), 1),
    "add_many": (lambda ledger, name: ledger.add_many(many(name)), 27),
    "add_many in packs": (lambda ledger, name: ledger.add_many(many(name), pack=True), 27),
    "add at a gate without a key": (lambda ledger, name: ledger.add(f"stock:{name}", 1), 1),
}


@pytest.mark.parametrize("what", CANCELLED)
async def test_a_cancelled_change_is_unknown_and_counts_once_again(what: str, client: Any) -> None:
    call, amount = CANCELLED[what]
    ledger, reader = (
        Ledger(settings("cancelled"), client=client),
        Reader(settings("cancelled"), client=client),
    )
    there = 0
    for n in count(1):
        name = f"{'-'.join(what.split())}-{n}"
        counter = f"stock:{name}" if "gate" in what else f"{name}:likes"
        answer = await cancelled_at(n, client, partial(call, name=name))
        if not isinstance(answer, asyncio.CancelledError):
            assert reader.read(counter).value == amount
            break
        there += reader.read(counter).value
        cause = answer.__cause__
        causes: Any = cause.exceptions if isinstance(cause, ExceptionGroup) else [cause]
        assert [type(each) for each in causes] == [OutcomeUnknown] * amount
        assert {ledger.apply(each.delta).outcome for each in causes} <= {"recorded", "replayed"}
        assert reader.read(counter).value == amount
        if "without" not in what:
            again = call(ledger, name)
            assert all(
                isinstance(each, Receipt)
                for each in (again if isinstance(again, list) else [again])
            )
            assert reader.read(counter).value == amount
    assert n > 5
    assert there > 0, "no cancelled change was there: the test cancels too early"


async def test_a_time_out_carries_the_change_if_it_may_be_sent() -> None:
    async def late(call: Coroutine[Any, Any, Any]) -> Any:
        """What the call that does not end in time left."""
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(0.01):
                await call
        assert isinstance(raised.value.__cause__, asyncio.CancelledError)
        assert isinstance(raised.value.__cause__.__cause__, OutcomeUnknown)
        return raised.value.__cause__.__cause__.delta

    table, never = Region(), asyncio.Event()
    async with AsyncLedger(settings(), table=table) as ledger:
        task = asyncio.ensure_future(ledger.add(LIKES, 1))
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert (cancelled.value.__cause__, table.items) == (None, {})
        await ledger.add(STOCK, 10)
        one, other = [await ledger.hold(STOCK, -4, expires=MINUTE) for _ in range(2)]
        table.after((Put, Update), lambda *_: never.wait())
        assert (await late(ledger.add(LIKES, 1))).change == 1
        for call in (ledger.capture(one, -3), ledger.release(other)):
            assert await late(call) is None
    assert standing(table) == (7, 0)


class Closed:
    """A client that is closed cancels who waits for a connection, as aiohttp does; a TaskGroup
    would take that for an end like any other."""

    async def get_item(self, **_: Any) -> Any:
        return {}

    async def put_item(self, **_: Any) -> Any:
        waiting = asyncio.get_running_loop().create_future()
        waiting.cancel()
        await waiting


async def test_a_closed_client_cancels_no_other_task() -> None:
    client: Any = Closed()
    async with AsyncLedger(settings(), client=client) as ledger:
        with pytest.raises(OutcomeUnknown) as raised:
            await ledger.add(LIKES, 1)
        assert raised.value.delta is not None
        answers = await ledger.add_many([Change(LIKES, 1), Change(LIKES, 2)], pack=True)
        assert [type(each) for each in answers] == [OutcomeUnknown, OutcomeUnknown]


# -- misuse


def test_a_ledger_outside_its_block_or_loop_sends_nothing() -> None:
    table = MemoryTable()
    ledger = AsyncLedger(settings(), table=table)
    with pytest.raises(InvalidInput, match="outside of its `async with`"):
        asyncio.run(ledger.add(LIKES, 1))

    async def enter() -> None:
        await ledger.__aenter__()
        with pytest.raises(InvalidInput, match="in an `async with` already"):
            await ledger.__aenter__()

    asyncio.run(enter())  # its loop is closed, and the ledger was not left
    for call in (ledger.add(LIKES, 1), ledger.add_many([Change(LIKES, 1)])):
        with pytest.raises(InvalidInput, match="in another event loop"):
            asyncio.run(call)
    assert not table.items


async def test_a_block_opens_its_clients_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    came, go = asyncio.Event(), asyncio.Event()

    class Waits(Client):
        async def here(self) -> None:
            came.set()
            await go.wait()

    @asynccontextmanager
    async def slowly(region: str, _: object) -> AsyncIterator[Any]:
        opened.append(region)
        await asyncio.sleep(0)  # as one that asks for credentials
        yield Waits([{}])
        opened.remove(region)

    monkeypatch.setattr("ledger.tables.aio.make_async_client", slowly)
    ledger = AsyncLedger(settings())
    entered = await asyncio.gather(ledger.__aenter__(), ledger.__aenter__(), return_exceptions=True)
    assert [type(each) for each in entered] == [AsyncLedger, InvalidInput]
    assert opened == [REGION]
    task = asyncio.ensure_future(ledger.add(LIKES, 1))
    await came.wait()
    await ledger.__aexit__()
    assert not opened
    go.set()
    ledger._loop = asyncio.get_running_loop()
    with pytest.raises(Unavailable, match=r"is closed.*Nothing was written"):
        await task


def test_a_client_of_the_other_kind_is_refused(client: Any) -> None:
    with pytest.raises(InvalidInput, match="client is boto3's"):
        AsyncLedger(settings(), client=client)
    aio: Any = type("DynamoDB", (type("AioBaseClient", (), {}),), {})()
    with pytest.raises(InvalidInput, match="client is aiobotocore's"):
        Ledger(settings(), client=aio)
    made: Any
    for made in (AsyncLedger, AsyncReader):
        with pytest.raises(
            TypeError, match=rf"^{made.__name__}\(\) got an unexpected keyword argument 'gather'$"
        ):
            made(settings(), gather=True)


@pytest.mark.skipif(find_spec("aiobotocore") is not None, reason="aiobotocore is here")
async def test_without_aiobotocore_a_ledger_says_what_to_install() -> None:
    with pytest.raises(InvalidInput, match=r"in a clone pip install '\.\[async\]'"):
        await AsyncLedger(settings()).__aenter__()
