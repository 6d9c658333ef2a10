"""DynamoDB for the designs: `ledger.table` with their pauses, their clients, and a count of what was sent.

Rule 1: Whether the SDK sends again what got no answer is a matter of the client (`config`), because designs differ in
it.
Rule 2: What was sent is counted below the SDK, once for each attempt.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError
from mypy_boto3_dynamodb.client import DynamoDBClient

from ledger.dynamo import failures
from ledger.dynamo.client import CONFIG
from ledger.table import DynamoTable


def config(attempts: int) -> Config:
    """The ledger's settings of a client, with so many HTTP attempts for a call; with 1 the SDK sends nothing twice."""
    return CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": attempts}))


def table_of(
    name: str,
    client: DynamoDBClient,
    pause: Callable[[float], None] = lambda seconds: time.sleep(seconds * random.random()),
) -> DynamoTable:
    """A table in the client's Region. Every pause, also one that a design asks for, is at most as long as was asked."""
    return DynamoTable(name, client.meta.region_name, lambda _: client, pause=pause, jitter=lambda: 1.0)


class Traffic:
    """What a client sent: `calls`, the HTTP `attempts` they took, and how many of those met a `conflict` and so on."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        client.meta.events.register("before-parameter-build.dynamodb", self._called)
        client.meta.events.register("response-received.dynamodb", self._attempted)

    @property
    def retries(self) -> int:
        """What the SDK sent again by itself."""
        return self.counts["attempts"] - self.counts["calls"]

    def _called(self, **_: Any) -> None:
        with self._lock:
            self.counts["calls"] += 1

    def _attempted(self, parsed_response: Any = None, **_: Any) -> None:
        code = ""
        if parsed_response and "Error" in parsed_response:
            code = failures.code_of(ClientError(parsed_response, ""))
        with self._lock:
            self.counts["attempts"] += 1
            self.counts["conflicts"] += code in failures.CONFLICT
            self.counts["throttled"] += code in failures.THROTTLING
            self.counts["refused"] += code == "ConditionalCheckFailed"
