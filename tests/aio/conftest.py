"""What needs aiobotocore: `make test` runs it beside `.venv/async`; elsewhere nothing is
collected here.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest

from lab.engines.dynamodb_local import DynamoDBLocal
from lab.engines.ministack import Engine
from ledger import Settings
from ledger.core.requests import Request
from ledger.tables.aio import AsyncClient, AsyncDynamoTable, make_async_client
from ledger.tables.dynamo import DynamoTable
from tests.contract.conftest import ABROAD, HOME, Replicas

collect_ignore_glob = [] if find_spec("aiobotocore") else ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def _credentials() -> Iterator[None]:
    """By which DynamoDB Local has tables."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "embedded")
        yield


class Blocking(DynamoTable):
    """An AsyncDynamoTable, for tests that do not await; a DynamoTable in its name and kind
    alone.
    """

    def __init__(
        self, settings: Settings, run: Callable[..., Any], clients: dict[str, AsyncClient]
    ) -> None:
        super().__init__(settings.table, settings.region, self._never)
        self._awaited, self._await = AsyncDynamoTable(settings, clients), run

    def _never(self, region: str) -> Any:
        raise AssertionError("boto3 was asked")

    def answer(self, request: Request, /) -> Any:
        return self._await(self._awaited.answer(request))


@pytest.fixture(scope="session")
def new_replicas(table_names: Iterator[str]) -> Iterator[Callable[[Engine], Replicas]]:
    """Makes an empty table of an engine in two Regions, that is awaited in an event loop of this
    session.
    """
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        @cache
        def client(url: str, region: str) -> AsyncClient:
            return runner.run(stack.enter_async_context(make_async_client(region, url)))

        def make(engine: Engine) -> Replicas:
            clients = {region: client(engine.endpoint_url, region) for region in (HOME, ABROAD)}
            name = f"{'local-' if isinstance(engine, DynamoDBLocal) else ''}{next(table_names)}"
            for region in clients:
                engine.create_table(name, region)
            return Replicas(
                *(
                    Blocking(Settings(table=name, region=each), runner.run, clients)
                    for each in clients
                )
            )

        yield make
        runner.run(stack.aclose())
