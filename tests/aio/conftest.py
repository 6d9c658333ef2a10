"""What needs aiobotocore: `make async` runs it, over .venv/async; elsewhere nothing is collected here."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Any

import pytest

from lab.engines.dynamodb_local import DynamoDBLocal
from lab.engines.ministack import Engine
from ledger import Settings
from ledger.dynamo.aio import AsyncClient, AsyncDynamoTable, make_async_client
from ledger.requests import Request
from ledger.table import DynamoTable
from tests.contract.conftest import ABROAD, HOME, World

collect_ignore_glob = [] if find_spec("aiobotocore") else ["test_*.py"]

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "embedded",
    "AWS_SECRET_ACCESS_KEY": "embedded",
}  # DynamoDB Local has tables by them


@pytest.fixture(scope="session", autouse=True)
def _credentials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        yield


class Background:
    """An event loop, for tests that do not await, and the clients of it."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.run = runner.run
        self.stack = AsyncExitStack()
        self._clients: dict[tuple[str, str], AsyncClient] = {}

    def client(self, engine: Engine, region: str) -> AsyncClient:
        """The engine's client of a Region, made once."""
        known = engine.endpoint_url, region
        if known not in self._clients:
            made = make_async_client(region, engine.endpoint_url)
            self._clients[known] = self.run(self.stack.enter_async_context(made))
        return self._clients[known]


@pytest.fixture(scope="session")
def background() -> Iterator[Background]:
    with asyncio.Runner() as runner:
        made = Background(runner)
        yield made
        made.run(made.stack.aclose())


class Blocking(DynamoTable):
    """An AsyncDynamoTable, for tests that do not await; a DynamoTable in its name and kind alone."""

    def __init__(self, settings: Settings, background: Background, clients: dict[str, AsyncClient]) -> None:
        super().__init__(settings.table, settings.region, self._never)
        self._awaited, self._background = AsyncDynamoTable(settings, clients), background

    def _never(self, region: str) -> Any:
        raise AssertionError("boto3 was asked")

    def answer(self, request: Request, /) -> Any:
        return self._background.run(self._awaited.answer(request))


@pytest.fixture(scope="session")
def new_world(table_names: Iterator[str], background: Background) -> Callable[[Engine], World]:
    """An empty table of an engine in two Regions, that is awaited."""

    def make(engine: Engine) -> World:
        clients = {region: background.client(engine, region) for region in (HOME, ABROAD)}
        name = f"{'local-' if isinstance(engine, DynamoDBLocal) else ''}{next(table_names)}"
        for region in clients:
            engine.create_table(name, region)
        return World(*(Blocking(Settings(table=name, region=each), background, clients) for each in clients))

    return make
