"""AsyncLedger: the answers and errors of Ledger, what a cancelled call leaves, many adds in flight, and misuse."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lab.engines.ministack import Engine
from ledger import Change, Hold, Ledger, Limit, Receipt, Settings
from ledger.aio import AsyncLedger
from ledger.dynamo.aio import AsyncDynamoTable
from ledger.errors import HoldEnded, InvalidInput, LedgerError, LimitReached, OutcomeUnknown, Unavailable
from ledger.memory import MemoryTable
from ledger.requests import Put
from ledger.values import Delta
from reader import Reader
from reader.aio import AsyncReader
from tests.ledger.test_table_errors import AGAIN, BACKED_OFF, ONCE, READS, WRITES, Script, refusal
from tests.world import A as REGION
from tests.world import Region

AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
LIKES, STOCK = "likes:1", "stock:1"
MINUTE = timedelta(minutes=1)
IN_FLIGHT = 10_000


def settings(table: str = "counters") -> Settings:
    return Settings(table=table, region=REGION, limits={"stock:": Limit(floor=0)})


def key(name: str) -> dict[str, Any]:
    return {"idempotency_key": name, "at": AT}


def run(call: Callable[[AsyncLedger], Coroutine[Any, Any, Any]], **given: Any) -> Any:
    async def main() -> Any:
        async with AsyncLedger(settings(), **given) as ledger:
            return await call(ledger)

    return asyncio.run(main())


# -- the same answers --------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Any], Any]] = {
    "an add": lambda ledger: ledger.add(LIKES, 3, **key("a")),
    "an add at a gate": lambda ledger: ledger.add(STOCK, -3, **key("a")),
    "an add again": lambda ledger: ledger.add(STOCK, 10, **key("first")),
    "another change under a key": lambda ledger: ledger.add(STOCK, 11, **key("first")),
    "more than there is": lambda ledger: ledger.add(STOCK, -11, **key("a")),
    "no name": lambda ledger: ledger.add("", 1),
    "what is no delta": lambda ledger: ledger.apply("delta"),
    "a delta of elsewhere": lambda ledger: ledger.apply(Delta(ledger.prepare(LIKES, 1).lane, "0" * 26, 1)),
    "a limit": lambda ledger: ledger.set_limit(STOCK, floor=2),
    "a limit that is passed": lambda ledger: ledger.set_limit(STOCK, floor=11),
    "a limit of no side": lambda ledger: ledger.set_limit(STOCK, ceiling=11),
    "a hold of what has no limit": lambda ledger: ledger.hold(LIKES, -1, expires=MINUTE, **key("h")),
    "a capture of no hold": lambda ledger: ledger.capture("hold"),
    "a batch": lambda ledger: ledger.add_many(
        [Change(LIKES, 1, "a", AT), Change("", 2), Change(STOCK, -4, "b", AT), Change(STOCK, -7, "c", AT)]
        + [Change(LIKES, n, f"k{n}", AT) for n in range(30)]
    ),
    "a batch in packs": lambda ledger: ledger.add_many([Change(LIKES, n, f"k{n}", AT) for n in range(9)], pack=True),
    "an empty batch": lambda ledger: ledger.add_many([]),
    "a batch of what is no change": lambda ledger: ledger.add_many([(LIKES, 1)]),
    "a batch with another pack": lambda ledger: ledger.add_many([], pack=1),
}


def plain(answer: Any) -> Any:
    """What says all of an answer, or of an error."""
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    return (type(answer), str(answer), answer.delta) if isinstance(answer, LedgerError) else answer


def test_an_awaited_call_has_the_answer_and_the_error_of_the_call() -> None:
    for what, call in CALLS.items():

        async def awaited(call: Callable[[Any], Any] = call) -> Any:
            async with AsyncLedger(settings(), table=MemoryTable(), clock=lambda: 1_700_000_000_000) as ledger:
                await ledger.add(STOCK, 10, **key("first"))
                return await call(ledger)

        def at_once(call: Callable[[Any], Any] = call) -> Any:
            ledger = Ledger(settings(), table=MemoryTable(), clock=lambda: 1_700_000_000_000)
            ledger.add(STOCK, 10, **key("first"))
            return call(ledger)

        def run_awaited(main: Callable[[], Coroutine[Any, Any, Any]] = awaited) -> Any:
            return asyncio.run(main())

        found = []
        for ask in (at_once, run_awaited):
            try:
                found.append(plain(ask()))
            except LedgerError as error:
                found.append(plain(error))
        assert found[0] == found[1], what


def test_an_awaited_table_has_the_errors_of_the_table() -> None:
    class Awaited(Script):
        def __getattr__(self, operation: str) -> Any:
            call = super().__getattr__(operation)

            async def awaited(**arguments: Any) -> Any:
                return call(**arguments)

            return awaited

    async def error_of(request: Any, *script: Exception) -> tuple[type[BaseException], list[float]]:
        pauses: list[float] = []

        async def pause(seconds: float) -> None:
            pauses.append(seconds)

        client = Awaited(script)
        table = AsyncDynamoTable(settings(), {REGION: client}, pause=pause)
        with pytest.raises(LedgerError) as raised:
            await table.answer(request)
        assert not client.lines
        return type(raised.value), pauses

    for request in (*WRITES, *READS):
        for failure, of_write, of_read in ONCE:
            expected = of_write if request in WRITES else of_read
            assert asyncio.run(error_of(request, failure)) == (expected, [])
        for code, error in AGAIN:
            found, pauses = asyncio.run(error_of(request, *[refusal(code)] * (len(BACKED_OFF) + 1)))
            assert (found, len(pauses)) == (error, len(BACKED_OFF))


# -- holds -------------------------------------------------------------------------------------------------------------


def standing(table: MemoryTable) -> tuple[int, int]:
    """The value of the stock, and what is held of it."""
    found = Reader(settings(), table=table).standing(STOCK)
    return found.value, found.held.down or 0


def test_a_block_of_a_hold_releases_what_was_not_captured_in_it_and_asks_nothing_more() -> None:
    table, names = MemoryTable(), list[str]()

    async def sell(ledger: AsyncLedger) -> None:
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
        assert names == ["add", "hold", "capture", "hold", "release", "hold", "release"]
        with pytest.raises(HoldEnded):
            await ledger.capture(Hold.parse(STOCK, hold.id))
        with pytest.raises(InvalidInput, match="is the id of no hold"):
            ledger.parse_hold(STOCK, "x")
        with pytest.raises(InvalidInput, match="`async with`"), hold:
            raise AssertionError("it was entered")

    run(sell, table=table, observe=lambda call: names.append(call.name.removeprefix("ledger.")))


def test_a_hold_that_was_refused_or_is_being_asked_for_is_not_given_to_who_awaits_it_again() -> None:
    async def hold(ledger: AsyncLedger) -> None:
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

    run(hold, table=MemoryTable())


# -- a cancelled call --------------------------------------------------------------------------------------------------


class Awaits:
    """Counts the awaits of a task, and cancels it at one of them."""

    def __init__(self, cancelled_at: int) -> None:
        self.cancelled_at = cancelled_at
        self.seen = 0
        self.task: asyncio.Task[Any] | None = None

    async def here(self, *_: object) -> None:
        if self.task is not None:
            self.seen += 1
            if self.seen == self.cancelled_at:
                self.task.cancel()
            await asyncio.sleep(0)


class AwaitedClient:
    """A client of boto3 whose calls are awaited, before the request is sent and before the answer comes; its first
    write is throttled, so that there is a back-off to be cancelled in."""

    def __init__(self, client: Any, awaits: Awaits) -> None:
        self._client, self._awaits = client, awaits
        self._throttled = False

    def __getattr__(self, operation: str) -> Any:
        async def call(**arguments: Any) -> Any:
            await self._awaits.here()
            if not self._throttled and operation in ("put_item", "update_item"):
                self._throttled = True
                raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "no"}}, operation)
            answer = getattr(self._client, operation)(**arguments)
            await self._awaits.here()
            return answer

        return call


def changes(prefix: str) -> list[Change]:
    return [Change(f"{prefix}:likes", 1, f"many/{n}", AT) for n in range(27)]


CANCELLED: dict[str, tuple[Callable[[Any, str], Any], int]] = {
    "add": (lambda ledger, name: ledger.add(f"{name}:likes", 1, **key("k")), 1),
    "add_many": (lambda ledger, name: ledger.add_many(changes(name)), 27),
    "add_many in packs": (lambda ledger, name: ledger.add_many(changes(name), pack=True), 27),
    "add at a gate without a key": (lambda ledger, name: ledger.add(f"stock:{name}", 1), 1),
}


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator[Any]:
    made = engine.client(REGION)
    engine.create_table("cancelled", REGION, made)
    yield made
    made.close()


def cancelled_at(n: int, client: Any, call: Callable[[AsyncLedger], Awaitable[Any]]) -> Any:
    """What the call answered, or the CancelledError of its n-th await."""
    awaits = Awaits(n)

    async def main() -> Any:
        table = AsyncDynamoTable(settings("cancelled"), {REGION: AwaitedClient(client, awaits)}, pause=awaits.here)
        async with AsyncLedger(settings("cancelled"), table=table) as ledger:
            awaits.task = asyncio.ensure_future(call(ledger))
            try:
                return await awaits.task
            except asyncio.CancelledError as error:
                return error

    return asyncio.run(main())


@pytest.mark.parametrize("what", CANCELLED)
def test_of_a_change_cancelled_at_any_await_the_outcome_is_unknown_and_sent_again_it_counts_once(
    what: str, client: Any
) -> None:
    call, amount = CANCELLED[what]
    ledger, reader = Ledger(settings("cancelled"), client=client), Reader(settings("cancelled"), client=client)
    there = 0
    for n in count(1):
        name = f"{'-'.join(what.split())}-{n}"
        counter = f"stock:{name}" if "gate" in what else f"{name}:likes"
        answer = cancelled_at(n, client, lambda ledger, name=name: call(ledger, name))  # type: ignore[misc]
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
            assert all(isinstance(each, Receipt) for each in (again if isinstance(again, list) else [again]))
            assert reader.read(counter).value == amount
    assert n > 5
    assert there > 0, "no cancelled change was there: the test cancels too early"


def test_a_hold_a_capture_and_a_release_cancelled_at_any_await_go_on_by_the_same_call(client: Any) -> None:
    ledger, reader = Ledger(settings("cancelled"), client=client), Reader(settings("cancelled"), client=client)
    at = datetime.now(UTC)
    for n in count(1):
        stock = f"stock:hold-{n}"
        asked: dict[str, Any] = {"expires": MINUTE, "idempotency_key": "h", "at": at}
        ledger.add(stock, 10)

        async def granted(ledger: AsyncLedger, stock: str = stock, asked: Any = asked) -> Hold:
            return await ledger.hold(stock, -4, **asked)

        outcomes = [cancelled_at(n, client, granted)]
        hold, other = ledger.hold(stock, -4, **asked), ledger.hold(stock, -4, expires=MINUTE)
        outcomes.append(cancelled_at(n, client, lambda ledger, hold=hold: ledger.capture(hold, -3)))  # type: ignore[misc]
        assert ledger.capture(hold, -3).delta.change == -3
        outcomes.append(cancelled_at(n, client, lambda ledger, hold=other: ledger.release(hold)))  # type: ignore[misc]
        ledger.release(other)
        found = reader.standing(stock)
        assert (found.value, found.held.down, found.available.down) == (7, 0, 7)
        stopped = [answer for answer in outcomes if isinstance(answer, asyncio.CancelledError)]
        assert all(type(each.__cause__) is OutcomeUnknown and each.__cause__.delta is None for each in stopped)
        if not stopped:
            assert n > 5
            return


def test_a_time_out_carries_the_change_that_may_have_been_sent_and_before_it_began_nothing_was() -> None:
    table = Region()
    table.after(Put, lambda *_: asyncio.Event().wait())

    async def add(ledger: AsyncLedger) -> None:
        task = asyncio.ensure_future(ledger.add(LIKES, 1))
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert (cancelled.value.__cause__, table.items) == (None, {})
        with pytest.raises(TimeoutError) as late:
            async with asyncio.timeout(0.01):
                await ledger.add(LIKES, 1)
        assert isinstance(late.value.__cause__, asyncio.CancelledError)
        unknown: Any = late.value.__cause__.__cause__
        assert (type(unknown), unknown.delta.change) == (OutcomeUnknown, 1)

    run(add, table=table)


def test_a_client_that_is_closed_cancels_no_task_that_nobody_cancelled() -> None:
    """aiohttp does, to those that wait for a connection; a TaskGroup would take that for an end like any other."""

    class Closed:
        async def get_item(self, **_: Any) -> Any:
            return {}

        async def put_item(self, **_: Any) -> Any:
            waiting = asyncio.get_running_loop().create_future()
            waiting.cancel()
            await waiting

    async def add(ledger: AsyncLedger) -> None:
        with pytest.raises(OutcomeUnknown) as raised:
            await ledger.add(LIKES, 1)
        assert raised.value.delta is not None
        answers = await ledger.add_many([Change(LIKES, 1), Change(LIKES, 2)], pack=True)
        assert [type(each) for each in answers] == [OutcomeUnknown, OutcomeUnknown]

    run(add, client=Closed())


# -- many in flight ----------------------------------------------------------------------------------------------------


class Crowd:
    """A client that answers no put before so many are in flight; keeps the tokens."""

    def __init__(self, most: int) -> None:
        self.tokens: list[str] = []
        self._most, self._all_here = most, asyncio.Event()

    async def get_item(self, **_: Any) -> Any:
        return {}

    async def put_item(self, **arguments: Any) -> Any:
        self.tokens.append(arguments["Item"]["sk"]["S"])
        if len(self.tokens) == self._most:
            self._all_here.set()
        await self._all_here.wait()
        return {}


def test_ten_thousand_adds_are_in_flight_at_once_in_one_process_and_each_is_recorded_once() -> None:
    async def main() -> tuple[Crowd, list[Receipt]]:
        crowd = Crowd(IN_FLIGHT)
        async with AsyncLedger(settings(), client=crowd) as ledger:
            adds = (ledger.add(LIKES, 1, idempotency_key=str(n), at=AT) for n in range(IN_FLIGHT))
            return crowd, await asyncio.gather(*adds)

    crowd, receipts = asyncio.run(main())
    assert [receipt.outcome for receipt in receipts] == ["recorded"] * IN_FLIGHT
    assert sorted(crowd.tokens) == sorted({receipt.delta.token for receipt in receipts})


# -- misuse ------------------------------------------------------------------------------------------------------------


def test_outside_of_its_block_and_in_another_loop_a_ledger_says_so_and_sends_nothing() -> None:
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


def test_a_block_opens_its_clients_once_and_who_goes_on_when_it_is_left_wrote_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []

    @asynccontextmanager
    async def slowly(region: str, _: object) -> AsyncIterator[Any]:
        opened.append(region)
        await asyncio.sleep(0)  # as one that asks for credentials
        yield clients[0]
        opened.remove(region)

    class Client:
        def __init__(self) -> None:
            self.asked, self.go = asyncio.Event(), asyncio.Event()

        async def get_item(self, **_: Any) -> Any:
            self.asked.set()
            await self.go.wait()
            return {}

    clients: list[Client] = []

    async def main() -> None:
        clients.append(client := Client())
        ledger = AsyncLedger(settings())
        entered = await asyncio.gather(ledger.__aenter__(), ledger.__aenter__(), return_exceptions=True)
        assert [type(each) for each in entered] == [AsyncLedger, InvalidInput]
        assert opened == [REGION]
        task = asyncio.ensure_future(ledger.add(LIKES, 1))
        await client.asked.wait()
        await ledger.__aexit__()
        assert not opened
        client.go.set()
        ledger._loop = asyncio.get_running_loop()
        with pytest.raises(Unavailable, match=r"is closed.*Nothing was written"):
            await task

    monkeypatch.setattr("ledger.dynamo.aio.make_async_client", slowly)
    asyncio.run(main())


def test_a_client_of_the_other_kind_and_an_unknown_argument_are_refused(client: Any) -> None:
    with pytest.raises(InvalidInput, match="one of boto3"):
        AsyncLedger(settings(), client=client)
    aio: Any = type("DynamoDB", (type("AioBaseClient", (), {}),), {})()
    with pytest.raises(InvalidInput, match="one of aiobotocore"):
        Ledger(settings(), client=aio)
    made: Any
    for made in (AsyncLedger, AsyncReader):
        with pytest.raises(TypeError, match=rf"^{made.__name__}\(\) got an unexpected keyword argument 'gather'$"):
            made(settings(), gather=True)


@pytest.mark.skipif(find_spec("aiobotocore") is not None, reason="aiobotocore is here")
def test_without_aiobotocore_a_ledger_says_what_to_install() -> None:
    with pytest.raises(InvalidInput, match=r"in a clone, pip install '\.\[async\]'"):
        run(lambda ledger: ledger.add(LIKES, 1))
