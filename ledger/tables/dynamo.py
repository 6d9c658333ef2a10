"""DynamoDB itself, and which table a class uses: only this file calls boto3's operations.

Rule 1: it drives the programs of `exchange.py`, and decides nothing.
Rule 2: a caller who gives no clients and no tables gets DynamoDB, with this library's clients.
Rule 3: a request to the process's own Region is plain, one to another Region is At it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict

from ledger.core.clocks import PerProcess
from ledger.core.cost import here
from ledger.core.errors import InvalidInput, InvalidSettings, Unavailable, shown
from ledger.core.requests import At, AtOnce, Pause, Request, Table
from ledger.core.running import drive
from ledger.core.settings import ClientName, Settings
from ledger.tables import exchange, failures
from ledger.tables.boto import POOL, make_client, taken
from ledger.tables.failures import DynamoDBClient
from ledger.tables.send import Endpoint, Send, method_of


class DynamoTable:
    """Answers requests from a DynamoDB table in `region`, and those At another Region from there.

    insert_only: put deltas and packs by PartiQL INSERT. clients(region) returns the boto3 client of
    a Region; pause(seconds) and jitter() -> [0, 1) are for tests.
    """

    def __init__(
        self,
        name: str,
        region: str,
        clients: Callable[[str], DynamoDBClient],
        *,
        insert_only: bool = False,
        pause: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name, self.region = name, region
        self._metered = partial(Endpoint, name, region, jitter, insert_only)
        self._clients, self._pause = clients, pause
        self._threads = PerProcess(
            lambda: ThreadPoolExecutor(POOL, thread_name_prefix="ledger-table")
        )

    @classmethod
    def of(
        cls,
        settings: Settings,
        clients: Mapping[str, DynamoDBClient] | None = None,
        region: str | None = None,
    ) -> DynamoTable:
        """The table of `settings`, seen from `region` (default: its own).

        It makes the clients that are not given. Raises InvalidInput, and InvalidSettings for a
        client of another Region.
        """
        if any(map(failures.is_async, (clients or {}).values())):
            raise InvalidInput(
                "A client is aiobotocore's. Nothing was written. Use AsyncLedger and AsyncReader."
            )
        given: dict[str, DynamoDBClient] = taken(settings.regions, clients)
        known = PerProcess(lambda: dict(given))
        here = region or settings.region
        make: Callable[[str, str | None], DynamoDBClient] = make_client
        if settings.client == "fast":
            from ledger.tables import fast  # which the other clients need not import

            make = fast.fast_client
            if here not in given:
                fast.check_possible(here, settings.endpoint_url)

        def client_of(region: str) -> DynamoDBClient:
            clients = known.value
            if region not in clients:
                clients[region] = make(region, settings.endpoint_url)
            return clients[region]

        return cls(
            settings.table,
            here,
            client_of,
            insert_only=settings.insert_only,
        )

    def answer(self, request: Request, /) -> Any:
        """The answer to a request, as `requests.py` describes it.

        Raises TypeError for anything else.
        """
        return drive(exchange.answer(self._metered(here()), request), self._do)

    def _do(self, request: Request | Send) -> Any:
        match request:
            case Send():
                return method_of(self._clients, request)(**request.operation.arguments)
            case Pause(ms):
                return self._pause(ms / 1_000)
            case AtOnce(parts):
                return list(self._threads.value.map(partial(drive, answer=self._do), parts))


class ByRegion:
    """The tables of several Regions, as a process in the Region `here` reaches them."""

    def __init__(self, here: str, tables: Mapping[str, Table]) -> None:
        self._here, self._tables = here, tables
        self.one_at_a_time = any(
            getattr(table, "one_at_a_time", False) for table in tables.values()
        )

    def answer(self, request: Request, /) -> Any:
        """The answer of the request's Region. Raises Unavailable where that has no table."""
        if isinstance(request, At):
            table = self._tables.get(request.region)
            if table is None:
                raise Unavailable(
                    f"This process has no table for {request.region}. Nothing was written. Give "
                    "one in tables=."
                )
            if not getattr(table, "may_be_cut_off", False):
                return table.answer(request.request)
        return self._tables[self._here].answer(request)


class Given(TypedDict, total=False):
    """Where the table is, as `table_of` takes it; for AsyncLedger with aiobotocore's clients,
    and awaited tables.
    """

    client: Any
    clients: Mapping[str, Any] | None
    table: Any
    tables: Mapping[str, Any] | None


def table_of(
    settings: Settings,
    *,
    client: DynamoDBClient | ClientName | None = None,
    clients: Mapping[str, DynamoDBClient] | None = None,
    table: Table | None = None,
    tables: Mapping[str, Table] | None = None,
    make: Callable[[Settings, Mapping[str, Any] | None], Table] = DynamoTable.of,
) -> Table:
    """The table that answers for these settings.

    Raises InvalidInput, and InvalidSettings where a Region lacks one, or has
    another's client.
    """
    given = {"client": client, "clients": clients, "table": table, "tables": tables}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise InvalidInput(
            f"{' and '.join(names)} came together. Nothing was written. Give one of them."
        )
    for name in ("clients", "tables"):
        if given[name] is not None and not isinstance(given[name], Mapping):
            raise InvalidInput(f"{name} is a mapping by Region, not {shown(given[name])}.")
    if table is not None:
        return check_table(table)
    if isinstance(client, str):
        settings, client = replace(settings, client=client), None
    if tables is None:
        return make(settings, {settings.region: client} if client is not None else clients)
    lacking = [region for region in settings.regions if region not in tables]
    if lacking:
        raise InvalidSettings(
            f"tables lacks {lacking} of regions={settings.regions!r}. Give one for each Region."
        )
    return ByRegion(
        settings.region, {region: check_table(tables[region]) for region in settings.regions}
    )


def check_table(table: Table) -> Table:
    """`table` itself; raises InvalidInput for an object that answers no requests."""
    if not callable(getattr(table, "answer", None)):
        raise InvalidInput(
            f"A table answers requests, as a MemoryTable does; {shown(table)} has no answer(). "
            "Nothing was written. The name of a table goes into Settings(table=...)."
        )
    return table
