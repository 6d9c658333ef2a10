"""DynamoDB for the designs: `ledger.table` with their pauses and their clients.

Rule 1: Whether the SDK sends again what got no answer is a matter of the client (`config`), because designs differ in
it.
"""

import random
import time
from collections.abc import Callable

from botocore.config import Config
from mypy_boto3_dynamodb.client import DynamoDBClient

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
