"""AsyncLedger on aiobotocore itself: cut off on the way, many in flight, clients that do not
fit.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from lab.engines.ministack import Engine
from ledger import Change, Cost, Ledger, Limit, Observed, Receipt, Settings
from ledger.client.aio import AsyncLedger
from ledger.core import errors
from ledger.core.errors import InvalidSettings, OutcomeUnknown, Unavailable
from ledger.tables.aio import make_async_client
from ledger.tables.boto import ATTEMPTS, CONNECT_TIMEOUT_S, POOL, READ_TIMEOUT_S
from reader import Reader
from reader.aio import AsyncReader

pytestmark = pytest.mark.anyio
REGION, ABROAD = "eu-west-1", "us-east-1"
COUNTER = "stock:85123A"
AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
KEYED: dict[str, Any] = {"idempotency_key": "536365/1", "at": AT}
Served = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def settings(table: str, url: str, **more: Any) -> Settings:
    return Settings(table=table, region=REGION, endpoint_url=url, **more)


@pytest.fixture
def table(engine: Engine, table_names: Any) -> str:
    name: str = next(table_names)
    engine.create_table(name, REGION)
    return name


@asynccontextmanager
async def server(serve: Served) -> AsyncIterator[str]:
    """A server on a free loopback port, while it is open."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    listening = await asyncio.start_server(served, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


async def request(reader: asyncio.StreamReader) -> str:
    """The operation of one request that came in whole; "" at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    except asyncio.IncompleteReadError:
        return ""
    headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
    await reader.readexactly(int(headers.get("content-length", 0)))
    return headers["x-amz-target"].partition(".")[2]


def reply(writer: asyncio.StreamWriter, connection: bytes = b"keep-alive") -> None:
    body = b'{"ConsumedCapacity": {"TableName": "counters", "CapacityUnits": 0.5}}'
    head = b"content-type: application/x-amz-json-1.0\r\nconnection: %b" % connection
    writer.write(b"HTTP/1.1 200 OK\r\n%b\r\ncontent-length: %d\r\n\r\n%b" % (head, len(body), body))


def serving(put: Served) -> Served:
    """Answers everything, a PutItem when `put` has ended, unless that closed the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while operation := await request(reader):
            if operation == "putitem":
                await put(reader, writer)
            if writer.is_closing():
                return
            reply(writer)

    return serve


async def test_what_is_awaited_on_an_engine_is_what_ledger_says(engine: Engine, table: str) -> None:
    asked = settings(
        table, engine.endpoint_url, limits={"seats:": Limit(ceiling=10, region=REGION)}
    )
    costs: list[Observed] = []
    async with AsyncLedger(asked, observe=costs.append) as ledger, AsyncReader(asked) as reader:
        receipt = await ledger.add(COUNTER, -6, **KEYED)
        assert (receipt.outcome, receipt.cost) == ("recorded", Cost(2, 2, 1.0, 1.0))
        assert (await ledger.add(COUNTER, -6, **KEYED)).outcome == "replayed"
        outcomes = await ledger.add_many([Change(COUNTER, 1, f"k{n}", AT) for n in range(60)])
        assert {each.outcome for each in outcomes if isinstance(each, Receipt)} == {"recorded"}
        assert (
            sum(each.cost.write_units for each in outcomes if each.cost)
            == costs[-1].cost.write_units
            == 60
        )
        assert await reader.value(COUNTER) == 54
        assert len([*await reader.history(COUNTER)]) == 61
        await ledger.add("seats:gig", 9, **KEYED)
        with pytest.raises(errors.LimitReached):
            await ledger.add("seats:gig", 2)
        assert (await reader.standing("seats:gig")).available.up == 1
    client = engine.client(REGION)
    assert Ledger(asked, client=client).add(COUNTER, -6, **KEYED).outcome == "replayed"
    assert Reader(asked, client=client).value(COUNTER) == 54


async def test_a_shortage_here_is_awaited_from_the_other_region(engine: Engine, table: str) -> None:
    engine.create_table(table, ABROAD)
    there: Any = {
        "region": ABROAD,
        "regions": (REGION, ABROAD),
        "limits": {"seats:": Limit(ceiling=10, region=REGION)},
    }
    async with AsyncLedger(
        Settings(table=table, endpoint_url=engine.endpoint_url, **there)
    ) as ledger:
        assert (await ledger.add("seats:gig", 4, **KEYED)).outcome == "recorded"
        with pytest.raises(errors.LimitReached):
            await ledger.add("seats:gig", 7)
    gates = {
        region: engine.client(region).scan(TableName=table)["Count"] for region in (REGION, ABROAD)
    }
    assert all(gates.values()), gates


async def test_a_write_whose_connection_breaks_is_unknown() -> None:
    """aiobotocore says EndpointConnectionError, as for a connection that was never made."""
    puts = []

    async def put(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        puts.append(writer)
        reset = struct.pack("ii", 1, 0)  # what is sent instead of an end
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.transport.abort()

    async with server(serving(put)) as url, AsyncLedger(settings("counters", url)) as ledger:
        with pytest.raises(OutcomeUnknown) as raised:
            await ledger.add(COUNTER, -6, **KEYED)
        assert raised.value.delta is not None
        assert raised.value.cost == Cost(2, 1 + ATTEMPTS, 0.5, untold=1)
    assert len(puts) == ATTEMPTS


async def test_where_no_attempt_found_a_connection_nothing_was_written() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        reply(writer, b"close")  # to the shape; then there is no server

    async with server(serve) as url:
        ledger = await AsyncLedger(settings("counters", url)).__aenter__()
        await ledger._run(ledger._rules.shape.program())
    with pytest.raises(Unavailable, match=r"was not sent.*Nothing was written"):
        await ledger.add(COUNTER, -6)
    await ledger.__aexit__()


async def test_the_end_of_the_block_leaves_writes_in_flight_unknown() -> None:
    came = asyncio.Semaphore(0)

    async def put(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.release()
        await reader.read()
        writer.close()

    async with server(serving(put)) as url:
        async with AsyncLedger(settings("counters", url)) as ledger:
            await ledger._run(ledger._rules.shape.program())
            adds = [asyncio.ensure_future(ledger.add(COUNTER, 1)) for _ in range(POOL + 20)]
            for _ in range(POOL):
                await came.acquire()
        found: list[Any] = await asyncio.gather(*adds, return_exceptions=True)
    assert {type(error) for error in found} == {OutcomeUnknown}
    assert all(error.delta is not None for error in found)
    assert "the client is closed" in str(found[0])


def test_a_client_of_another_loop_loses_nothing(engine: Engine, table: str) -> None:
    asked = settings(table, engine.endpoint_url)
    clients: list[Any] = []

    async def leave_a_client() -> None:
        making = make_async_client(REGION, engine.endpoint_url)
        # what was made is closed when nobody has it
        clients.extend((await making.__aenter__(), making))
        async with AsyncLedger(asked, client=clients[0]) as ledger:
            await ledger.add(COUNTER, 1)

    async def use_it() -> None:
        async with AsyncLedger(asked, client=clients[0]) as ledger:
            with pytest.raises((OutcomeUnknown, Unavailable)) as raised:
                await ledger.add(COUNTER, -6, **KEYED)
        assert raised.value.delta is not None
        async with AsyncLedger(asked) as ledger:
            assert (await ledger.apply(raised.value.delta)).outcome in ("recorded", "replayed")

    asyncio.run(leave_a_client())
    asyncio.run(use_it())
    assert Reader(asked, client=engine.client(REGION)).value(COUNTER) == 1 - 6


@pytest.mark.usefixtures("unreadable_credentials")
async def test_unreadable_credentials_are_not_the_endpoints_fault() -> None:
    with pytest.raises(errors.NotAllowed, match="boto3 makes no client: "):
        await make_async_client(REGION).__aenter__()


async def test_a_client_of_another_region_is_refused() -> None:
    both = Settings(table="counters", region=REGION, regions=(REGION, ABROAD))
    async with make_async_client(ABROAD) as abroad:
        for wrong in ({"client": abroad}, {"clients": {REGION: abroad, ABROAD: abroad}}):
            with pytest.raises(InvalidSettings, match=f"client for {REGION} asks {ABROAD}"):
                AsyncLedger(both, **wrong)
        AsyncLedger(both, clients={ABROAD: abroad})


async def test_the_client_has_this_librarys_settings() -> None:
    async with AsyncLedger(
        Settings(table="counters", region=REGION), client=make_async_client(REGION)
    ) as ledger:
        with pytest.raises(errors.InvalidInput, match="is no DynamoDB client"):
            await ledger.add(COUNTER, 1)
    with pytest.raises(InvalidSettings, match="endpoint_url="):
        await make_async_client(REGION, "nowhere").__aenter__()
    async with make_async_client(REGION, "http://127.0.0.1:9") as client:
        config = client.meta.config
    assert (config.connect_timeout, config.read_timeout) == (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
    assert config.max_pool_connections == POOL
    assert config.retries == {"mode": "standard", "total_max_attempts": ATTEMPTS}
    assert "exact-counter" in config.user_agent
