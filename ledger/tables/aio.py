"""DynamoDB, awaited: only this file calls aiobotocore's operations.

Rule 1: it drives the programs of `exchange.py`, as `dynamo.py` does, and decides nothing.
Rule 2: a client and its users stay in one event loop.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial, wraps
from inspect import isawaitable
from types import coroutine
from typing import Any, Concatenate, ParamSpec, Self, Unpack

from botocore.exceptions import BotoCoreError, ConnectionClosedError, HTTPClientError

from ledger.core.cost import here
from ledger.core.errors import InvalidInput, InvalidSettings
from ledger.core.observing import Observe, Observer, Outcome, observed, of_receipts
from ledger.core.requests import AtOnce, Now, Pause, Program, Request, Result
from ledger.core.running import through
from ledger.core.settings import Settings
from ledger.tables import exchange
from ledger.tables.boto import OPTIONS, not_made, taken
from ledger.tables.dynamo import Given, table_of
from ledger.tables.failures import note_attempts, whose_blocks
from ledger.tables.send import Endpoint, Send, method_of

Arguments = ParamSpec("Arguments")

AsyncClient = Any
"""A DynamoDB client of aiobotocore, for which this library has no types."""


@asynccontextmanager
async def make_async_client(
    region: str, endpoint_url: str | None = None
) -> AsyncIterator[AsyncClient]:
    """An aiobotocore client with our time-outs, retries and pool, open inside `async with`.

    Raises InvalidInput without aiobotocore, InvalidSettings and NotAllowed.
    """
    try:
        import aiobotocore
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session
    except ModuleNotFoundError:
        why = (
            "aiobotocore is not installed. Nothing was written. Run pip install "
            "'exact-counter[async]', or in a clone pip install '.[async]'."
        )
        raise InvalidInput(why) from None
    config = AioConfig(**OPTIONS, user_agent=f"aiobotocore/{aiobotocore.__version__} exact-counter")
    async with AsyncExitStack() as stack:
        made = get_session().create_client(
            "dynamodb", region_name=region, endpoint_url=endpoint_url, config=config
        )
        try:
            client = await stack.enter_async_context(made)
        except (BotoCoreError, ValueError) as failure:
            raise not_made(endpoint_url, failure) from failure
        yield note_attempts(client)


async def answered(response: Awaitable[Any]) -> Any:
    """An awaited response. A closed client fails it, as any connection that ends does.

    When the client closes, aiohttp cancels a task that waits for a connection, as if somebody had
    cancelled that task. A later request finds no session, and one from another event loop finds the
    wrong loop.
    """
    try:
        return await response
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionClosedError(
            endpoint_url="of a client that is closed", error=cancelled
        ) from cancelled
    except HTTPClientError as failure:
        if isinstance(failure.kwargs.get("error"), AttributeError | RuntimeError):
            failure.args = (
                "the client is closed, or belongs to another event loop; each loop needs its own",
            )
        raise


class AsyncDynamoTable:
    """As DynamoTable, but `answer` is awaited. pause(seconds) is for tests."""

    def __init__(
        self,
        settings: Settings,
        clients: Mapping[str, AsyncClient] | None = None,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if settings.client == "fast":
            raise InvalidSettings(
                'client="fast" blocks, so AsyncLedger and AsyncReader cannot take it. Nothing was '
                'written. Give them client="boto3" or Settings(client="boto3"): they await '
                "aiobotocore's client."
            )
        self._settings = settings
        self._metered = partial(
            Endpoint, settings.table, settings.region, random.random, settings.insert_only
        )
        given: Mapping[str, AsyncClient] = clients or {}
        for client in given.values():
            if whose := whose_blocks(client):
                raise InvalidInput(
                    f"A client is {whose}, and cannot be awaited. Nothing was written. Give "
                    "aiobotocore's."
                )
        self._clients = taken(settings.regions, given)
        self._pause = pause

    async def open(self, stack: AsyncExitStack) -> None:
        """Make the clients that the caller did not give; `stack` closes them.

        Raises NotAllowed and InvalidSettings.
        """
        for region in self._settings.regions if self._settings.limits else [self._settings.region]:
            if region not in self._clients:
                made = make_async_client(region, self._settings.endpoint_url)
                self._clients[region] = await stack.enter_async_context(made)
                stack.callback(self._clients.pop, region)

    async def answer(self, request: Request, /) -> Any:
        return await drive(exchange.answer(self._metered(here()), request), self._do)

    async def _do(self, request: Request | Send) -> Any:
        match request:
            case Send():
                method = method_of(self._clients.get, request)
                return await answered(method(**request.operation.arguments))
            case Pause(ms):
                return await self._pause(ms / 1_000)
            case AtOnce(parts):
                return await asyncio.gather(*(drive(part, self._do) for part in parts))


class Edge:
    """The base of AsyncLedger and AsyncReader: `async with` in one event loop, where alone
    programs are awaited.
    """

    def __init__(
        self, settings: Settings, rules: Any, observe: Observe | None, **given: Unpack[Given]
    ) -> None:
        for unknown in sorted(given.keys() - Given.__annotations__.keys()):
            raise TypeError(
                f"{type(self).__name__}() got an unexpected keyword argument {unknown!r}"
            )
        self.settings, self._observer = settings, Observer(observe)
        self._table: Any = table_of(settings, make=AsyncDynamoTable, **given)
        self._rules = rules
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            used = f"This {type(self).__name__} is in an `async with` already."
            raise InvalidInput(f"{used} Nothing was written. Make another one.")
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            stack.callback(setattr, self, "_loop", None)
            if isinstance(self._table, AsyncDynamoTable):
                await self._table.open(stack)
            self._opened = stack.pop_all()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._opened.aclose()

    def _check_loop(self) -> None:
        if self._loop is not asyncio.get_running_loop():
            where, do = "in another event loop than", "Make one in each loop"
            if self._loop is None:
                where, do = "outside of", "Enter it by `async with` first"
            used = f"This {type(self).__name__} is used {where} its `async with`."
            raise InvalidInput(f"{used} Nothing was written. {do}.")

    async def _run(self, program: Generator[Any, Any, Result]) -> Result:
        self._check_loop()
        return await drive(program, self._answer)

    async def _answer(self, request: Request) -> Any:
        if isinstance(request, Now):
            return self._rules.now()
        if isinstance(request, AtOnce):
            return await asyncio.gather(*(drive(part, self._answer) for part in request.parts))
        answer = self._table.answer(request)
        return await answer if isawaitable(answer) else answer


def awaited(
    call: Callable[Concatenate[Any, Arguments], Program[Result]],
    name: str,
    outcome: Outcome = of_receipts,
) -> Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Result]]:
    """A method that awaits a program of the edge's rules, and is observed under this name."""

    @observed(name, outcome)
    @wraps(call)
    async def method(self: Edge, /, *args: Arguments.args, **named: Arguments.kwargs) -> Result:
        return await self._run(call(self._rules, *args, **named))

    return method


@coroutine
def drive(
    program: Generator[Any, Any, Result], answer: Callable[[Any], Awaitable[Any]]
) -> Generator[Any, Any, Result]:
    """As `running.drive`, awaited.

    A cancellation is no failure: it ends the program where it waits.
    """
    return (yield from through(program, lambda request: answer(request).__await__()))
