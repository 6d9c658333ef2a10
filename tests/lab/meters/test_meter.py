"""The meter on real boto3 clients: moto answers, and a refused connection does not."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from moto import mock_aws
from mypy_boto3_dynamodb import DynamoDBClient

from lab.meters.charge import Charge
from lab.meters.charges import Uncountable
from lab.meters.meter import Meter

KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}


def make_client(attempts: int = 1) -> DynamoDBClient:
    config = Config(retries={"mode": "standard", "total_max_attempts": attempts}, connect_timeout=1)
    return boto3.client("dynamodb", "eu-west-1", config=config, aws_access_key_id="a", aws_secret_access_key="a")


@pytest.fixture
def client() -> Iterator[DynamoDBClient]:
    with mock_aws():
        made = make_client()
        made.create_table(
            TableName="t",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )
        yield made


@pytest.fixture
def meter(client: DynamoDBClient) -> Meter:
    made = Meter()
    made.attach(client)
    return made


def make_answered_client(*answers: tuple[int, bytes]) -> DynamoDBClient:
    """A client whose HTTP attempts get these answers, in order, without being sent."""
    raws = iter([AWSResponse("", status, HTTPHeaders(), _Raw(body)) for status, body in answers])

    def hook(**_: Any) -> Any:
        return next(raws)

    made = make_client(attempts=len(answers))
    made.meta.events.register("before-send.dynamodb", hook)
    return made


class _Raw:
    """The little of an HTTP body that botocore reads."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._body


def test_a_put_and_a_transaction_cost_as_much_when_their_condition_fails(client: DynamoDBClient, meter: Meter) -> None:
    put: Any = {"TableName": "t", "Item": {**KEY, "change": {"N": "-6"}}}
    put["ConditionExpression"] = "attribute_not_exists(pk)"
    client.put_item(**put, ReturnValuesOnConditionCheckFailure="ALL_OLD")
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        client.put_item(**put, ReturnValuesOnConditionCheckFailure="ALL_OLD")
    with pytest.raises(client.exceptions.TransactionCanceledException):
        client.transact_write_items(TransactItems=[{"Put": put}])
    assert meter.costs() == {
        "PutItem": Charge(requests=2, write_units=2, replicated_units=1),
        "TransactWriteItems": Charge(requests=1, write_units=2),
    }


def test_every_attempt_that_was_answered_is_a_request() -> None:
    client, meter = make_answered_client((500, b"{}"), (200, b"{}")), Meter()
    meter.attach(client)
    client.put_item(TableName="t", Item=KEY)
    assert meter.total() == Charge(requests=2, write_units=1, replicated_units=1)


def test_a_lost_answer_is_a_request_and_a_refused_connection_is_none(client: DynamoDBClient, meter: Meter) -> None:
    def fail(error: Exception) -> None:
        def hook(**_: Any) -> None:
            raise error

        client.meta.events.register_first("before-send.dynamodb", hook, unique_id="fail")
        with pytest.raises(type(error)):
            client.put_item(TableName="t", Item=KEY)
        client.meta.events.unregister("before-send.dynamodb", unique_id="fail")

    fail(EndpointConnectionError(endpoint_url="here"))
    assert meter.total() == Charge()
    fail(ReadTimeoutError(endpoint_url="here"))
    assert meter.total() == Charge(requests=1, write_units=1, replicated_units=1)


def test_two_clients_and_many_threads_may_share_a_meter_and_its_memory(client: DynamoDBClient, meter: Meter) -> None:
    other = make_client()
    for each in (client, other):  # the first is attached already: that counts once
        meter.attach(each)
    client.put_item(TableName="t", Item={**KEY, "entries": {"B": bytes(2000)}})
    other.delete_item(TableName="t", Key=KEY)
    assert meter.costs()["DeleteItem"].write_units == 2
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: client.get_item(TableName="t", Key=KEY), range(80)))
    assert meter.costs()["GetItem"] == Charge(requests=80, read_units=40)


def test_an_uncountable_request_is_not_sent(client: DynamoDBClient, meter: Meter) -> None:
    with pytest.raises(Uncountable):
        client.scan(TableName="t", Select="COUNT")
    assert meter.total() == Charge()
