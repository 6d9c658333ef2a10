"""DynamoDB itself: the only file that calls boto3's operations.

Rule 1: it does what the steps of `exchange.py` say, one after the other, and decides nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ledger import failures
from ledger.client import POOL, check_sync, make_client
from ledger.exchange import Exchange
from ledger.forks import PerProcess
from ledger.requests import Request, Result, drive
from ledger.settings import Settings
from ledger.steps import AtOnce, Send, Step, Steps, Wait, method_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class DynamoTable:
    """Answers requests from a DynamoDB table in `region`, and those At another Region from there.

    insert_only: deltas and packs are put by PartiQL INSERT. clients(region) gives the boto3 client of a Region;
    pause(seconds) and jitter() -> [0, 1) may be given by tests.
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
        self.name = name
        self.region = region
        self._exchange = Exchange(name, region, jitter, insert_only)
        self._clients = clients
        self._pause = pause
        self._threads = PerProcess(lambda: ThreadPoolExecutor(POOL, thread_name_prefix="ledger-table"))

    @classmethod
    def of(
        cls, settings: Settings, clients: Mapping[str, DynamoDBClient] | None = None, region: str | None = None
    ) -> DynamoTable:
        """The table of `settings`, seen from `region` (default: its own), with clients made where none is given."""
        given = {region: failures.note_attempts(check_sync(client)) for region, client in (clients or {}).items()}
        return cls(
            settings.table,
            region or settings.region,
            lambda region: given[region] if region in given else make_client(region, settings.endpoint_url),
            insert_only=settings.insert_only,
        )

    def answer(self, request: Request, /) -> Any:
        """The answer to a request, as `requests.py` describes it. Raises TypeError for anything else."""
        return self._run(self._exchange.metered().answer(request))

    def _run(self, steps: Steps[Result]) -> Result:
        return drive(steps, self._do)

    def _do(self, step: Step) -> Any:
        match step:
            case Send():
                return method_of(self._clients, step)(**step.operation.arguments)
            case Wait(seconds):
                return self._pause(seconds)
            case AtOnce(parts):
                return list(self._threads.value.map(self._run, parts))
