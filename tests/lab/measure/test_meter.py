"""The meter on real boto3 clients: HTTP answers are made up, and one connection is refused."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from mypy_boto3_dynamodb import DynamoDBClient

from lab.measure.charge import Charge
from lab.measure.charges import Uncountable
from lab.measure.meter import Meter

KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}
A_PUT = Charge(requests=1, write_units=1, replicated_units=1)


class Body:
    """The little of an HTTP body that botocore reads."""

    def stream(self, **_: Any) -> Any:
        yield b"{}"


def client_of(*answers: int | Exception, attempts: int = 1) -> DynamoDBClient:
    """A client whose HTTP attempts come to these statuses and errors, in order, without being sent."""
    coming = iter(answers)

    def answer(**_: Any) -> Any:
        end = next(coming, 200)
        if isinstance(end, Exception):
            raise end
        return AWSResponse("", end, HTTPHeaders(), Body())

    config = Config(retries={"mode": "standard", "total_max_attempts": attempts})
    made: DynamoDBClient = boto3.Session("a", "a", region_name="eu-west-1").client("dynamodb", config=config)
    made.meta.events.register_first("before-send.dynamodb", answer)
    return made


def test_every_attempt_that_was_answered_is_a_request_a_lost_answer_too_and_a_refused_connection_is_none() -> None:
    url = {"endpoint_url": "here"}
    client, meter = client_of(500, 200, EndpointConnectionError(**url), ReadTimeoutError(**url), attempts=2), Meter()
    meter.attach(client)
    client.put_item(TableName="t", Item=KEY)
    assert meter.total() == A_PUT + Charge(requests=1)
    with pytest.raises(ReadTimeoutError):
        client.put_item(TableName="t", Item=KEY)
    assert meter.total() == A_PUT + Charge(requests=1) + A_PUT


def test_two_clients_and_many_threads_may_share_a_meter_and_its_memory() -> None:
    one, other, meter = client_of(), client_of(), Meter()
    for each in (one, other, one):  # twice counts once
        meter.attach(each)
    one.put_item(TableName="t", Item={**KEY, "entries": {"B": bytes(2000)}})
    other.delete_item(TableName="t", Key=KEY)
    assert meter.costs()["DeleteItem"].write_units == 2
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: one.get_item(TableName="t", Key=KEY), range(80)))
    assert meter.costs()["GetItem"] == Charge(requests=80, read_units=40)


def test_an_uncountable_request_is_not_sent() -> None:
    client, meter = client_of(AssertionError("sent")), Meter()
    meter.attach(client)
    with pytest.raises(Uncountable):
        client.scan(TableName="t", Select="COUNT")
    assert meter.total() == Charge()
