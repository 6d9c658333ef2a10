"""A client of another Region than the one that it is given for: two Regions would decide with the
share of one, and oversell.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from compactor import Compactor
from ledger import Ledger, Limit, Settings
from ledger.core.errors import InvalidSettings
from ledger.tables.fast import FastClient
from reader import Reader
from tests.ledger.scripted import SESSION

HERE, THERE = REGIONS = ("eu-west-1", "us-east-1")
LIMITS = {"seats:": Limit(ceiling=10, region=HERE)}
SETTINGS = Settings(table="counters", region=HERE, regions=REGIONS, limits=LIMITS)


def boto(region: str, url: str | None = None) -> Any:
    return SESSION.create_client("dynamodb", region, endpoint_url=url)


def fast(region: str, url: str | None = None) -> Any:
    return FastClient(region, url, session=SESSION)


MAKES: list[Callable[..., Any]] = [boto, fast]


@pytest.mark.parametrize("make", MAKES)
def test_a_client_of_another_region_is_refused(make: Callable[..., Any]) -> None:
    here, there = make(HERE), make(THERE)
    for wrong in (
        lambda: Ledger(SETTINGS, client=there),
        lambda: Ledger(SETTINGS, clients={HERE: here, THERE: here}),
        lambda: Ledger(SETTINGS, clients={HERE: there, THERE: here}),
        lambda: Reader(SETTINGS, client=there),
        lambda: Compactor(SETTINGS, clients={HERE: here, THERE: here}),
    ):
        with pytest.raises(InvalidSettings, match=r"asks .*Nothing was written\. Make it for"):
            wrong()
    Ledger(SETTINGS, clients={HERE: here, THERE: there})
    Reader(SETTINGS, client=here)
    Compactor(SETTINGS, clients={THERE: there})


@pytest.mark.parametrize("make", MAKES)
def test_one_client_of_an_engine_may_serve_all_regions(make: Callable[..., Any]) -> None:
    engine = make(HERE, "http://127.0.0.1:8000")
    Ledger(SETTINGS, clients=dict.fromkeys(REGIONS, engine))
    Reader(SETTINGS, client=make(THERE, "http://127.0.0.1:8000"))


HOSTS = [
    "https://vpce-0a1b.dynamodb.us-east-1.vpce.amazonaws.com",
    "https://dynamodb-fips.us-east-1.amazonaws.com",
    "https://DynamoDB.US-EAST-1.api.aws",
]


def test_any_endpoint_of_aws_in_its_region_is_taken() -> None:
    for url in HOSTS:
        there = boto(THERE, url)
        Ledger(replace(SETTINGS, region=THERE), client=there)
        with pytest.raises(InvalidSettings, match=r"The client for eu-west-1 asks us-east-1"):
            Ledger(SETTINGS, client=there)


@mock_aws
def test_what_stands_in_awss_place_may_serve_all_regions() -> None:
    mocked: Any = boto3.client("dynamodb", THERE)
    stubbed = boto(THERE)
    emulated = boto(THERE, "http://dynamodb.us-east-1.localhost.localstack.cloud:4566")
    with Stubber(stubbed):
        for client in (mocked, stubbed, emulated):
            Ledger(SETTINGS, client=client)
            Compactor(SETTINGS, clients=dict.fromkeys(REGIONS, client))


def test_a_client_that_is_no_client_yet_is_not_touched() -> None:
    class Later:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(f"{name} is asked before the first request")

    lazy: Any = Later()
    Ledger(SETTINGS, client=lazy)
    Ledger(SETTINGS, clients={HERE: boto(HERE), "default": boto(HERE)})
