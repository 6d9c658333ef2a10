"""The clients of this library: their time-outs, retries and pool, because boto3's own defaults changed in 1.44.

Rule 1: Only documented options of botocore's Config.
Rule 2: What spares CPU on every request may take nothing from an answer or an error. botocore does not validate
parameters, because requests are built from values that checked themselves.
Rule 3: What the table refuses is an error all the same. The User-Agent header is fixed, because botocore would put it
together twice for every request, a tenth of the client's CPU: it names boto3, botocore and this library, but not the
machine, nor AWS_SDK_UA_APP_ID. Whoever needs either passes a `client=` of their own. A client is one process's: two
processes on one connection, as after a fork, may take each other's answers. A parent's client stays in the cache,
because closing it may need a lock that another thread of the parent held.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ConnectionClosedError, HTTPClientError

from ledger.clocks import PerProcess
from ledger.dynamo.failures import is_async, no_client, note_attempts
from ledger.errors import InvalidInput, InvalidSettings, shown

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


CONNECT_TIMEOUT_S, READ_TIMEOUT_S = 2, 5
ATTEMPTS = 4
"""HTTP requests of one call, the first included (mode "standard": 5xx, time-outs, throttling)."""

POOL = 50

OPTIONS: Mapping[str, Any] = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "read_timeout": READ_TIMEOUT_S,
    "retries": {"mode": "standard", "total_max_attempts": ATTEMPTS},
    "max_pool_connections": POOL,
    "tcp_keepalive": True,
    "parameter_validation": False,
}
CONFIG = Config(**OPTIONS, user_agent=f"Boto3/{boto3.__version__} exact-counter")

_making_a_client = PerProcess(threading.Lock)


def make_client(region: str, endpoint_url: str | None = None) -> DynamoDBClient:
    """A boto3 client with our time-outs, retries and pool. One for each Region and endpoint of a process."""
    with _making_a_client.value:  # boto3's default session is not thread-safe while it makes a client
        try:
            return _client(region, endpoint_url, os.getpid())
        except ValueError as failure:  # boto3 looks at the whole URL
            raise _url_refused(endpoint_url, failure) from None


def _url_refused(endpoint_url: str | None, failure: ValueError) -> InvalidSettings:
    return InvalidSettings(f"endpoint_url={shown(endpoint_url, 200)} is refused by boto3: {failure}.")


@functools.cache
def _client(region: str, endpoint_url: str | None, process: int) -> DynamoDBClient:
    return note_attempts(boto3.client("dynamodb", region_name=region, endpoint_url=endpoint_url, config=CONFIG))


# -- aiobotocore's -----------------------------------------------------------------------------------------------------

AsyncClient = Any
"""A DynamoDB client of aiobotocore, which is typed by nobody here."""


@asynccontextmanager
async def make_async_client(region: str, endpoint_url: str | None = None) -> AsyncIterator[AsyncClient]:
    """An aiobotocore client with our time-outs, retries and pool, open inside `async with`.

    Raises InvalidInput without aiobotocore, InvalidSettings and NotAllowed.
    """
    try:
        import aiobotocore
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session
    except ModuleNotFoundError:
        raise InvalidInput("aiobotocore is not installed: in a clone, pip install '.[async]'.") from None
    config = AioConfig(**OPTIONS, user_agent=f"aiobotocore/{aiobotocore.__version__} exact-counter")
    async with AsyncExitStack() as stack:
        made = get_session().create_client("dynamodb", region_name=region, endpoint_url=endpoint_url, config=config)
        try:
            client = await stack.enter_async_context(made)
        except BotoCoreError as failure:
            raise no_client(failure) from failure
        except ValueError as failure:
            raise _url_refused(endpoint_url, failure) from None
        yield note_attempts(client)


async def answered(response: Awaitable[Any]) -> Any:
    """An awaited response. A client that is closed fails it, as any connection that ends does.

    aiohttp then cancels who waits for a connection, as if somebody had cancelled that task; what comes later meets a
    session that is not there, and one of another event loop meets that.
    """
    try:
        return await response
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionClosedError(endpoint_url="of a client that is closed", error=cancelled) from cancelled
    except HTTPClientError as failure:
        if isinstance(failure.kwargs.get("error"), AttributeError | RuntimeError):
            failure.args = ("the client is closed, or of another event loop: each loop needs its own",)
        raise


def check_sync(client: DynamoDBClient) -> DynamoDBClient:
    """`client` itself; raises InvalidInput for one of aiobotocore."""
    if is_async(client):
        raise InvalidInput("The client is one of aiobotocore: AsyncLedger and AsyncReader take it.")
    return client


def check_async(client: AsyncClient) -> AsyncClient:
    """`client` itself; raises InvalidInput for one of boto3."""
    if isinstance(client, BaseClient) and not is_async(client):
        raise InvalidInput("The client is one of boto3, whose calls cannot be awaited: one of aiobotocore is needed.")
    return client
