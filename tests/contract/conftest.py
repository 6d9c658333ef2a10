"""DynamoDB Local, for the contract: as `make contract` got it; where CI is set it is got now, if it can be."""

import os
from collections.abc import Iterator

import pytest

from torture.dynamodb_local import DynamoDBLocal
from torture.maven import can_be_had, installed


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[DynamoDBLocal]:
    if installed() is None and not can_be_had():
        pytest.skip("DynamoDB Local needs a JDK and Maven, and they are not on PATH")
    if installed() is None and not os.environ.get("CI"):
        pytest.skip("DynamoDB Local is not here; `make contract` gets it")
    with DynamoDBLocal() as running:
        yield running
