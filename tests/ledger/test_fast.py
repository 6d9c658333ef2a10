"""FastClient beside boto3's client: what a server does to both, and what it does alone."""

import time
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials, ReadOnlyCredentials, RefreshableCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    CredentialRetrievalError,
    HTTPClientError,
    ReadTimeoutError,
)
from botocore.session import Session

from ledger.core.cost import Meter
from ledger.core.errors import InvalidSettings, NotAllowed, OutcomeUnknown, Unavailable
from ledger.core.requests import Get
from ledger.tables import connections
from ledger.tables.boto import ATTEMPTS, CONFIG
from ledger.tables.dynamo import DynamoTable
from ledger.tables.failures import attempts, note_attempts
from ledger.tables.fast import FastClient
from tests.ledger.scripted import (
    BY_ACCOUNT,
    HALF,
    HANG,
    NO_SUM,
    OK,
    RESET,
    SESSION,
    WRONG_SUM,
    Line,
    Server,
    fast,
    http,
    refusal,
)
from tests.ledger.test_table_errors import KEY, PASSES, PUT, REFUSED, item
from tests.world import settings

READ_TIMEOUT_S = 1


def outcome(client: Any, **of_a_put: Any) -> object:
    """All that anybody can see of a call."""
    try:
        if of_a_put:
            return client.put_item(**of_a_put)
        return client.get_item(TableName="t", Key=item())
    except ClientError as error:
        return type(error).__name__, str(error), error.response
    except BotoCoreError as error:
        return type(error), str(error), attempts(error), getattr(error, "__notes__", [])
    finally:
        client.close()


BYTES = {"B": "AP8="}
ODD = {
    "B": {
        "M": {
            "B": {"BS": ["YQ==", "Yg=="]},
            "BS": {"L": [{"S": '"B"'}]},
            "n": {"N": "1"},
            "z": {"NULL": True},
        }
    }
}
REASONS = [
    {"Code": "ConditionalCheckFailed", "Item": {"b": BYTES}, "Message": "No."},
    {"Code": "None"},
]
# botocore corrects none
OF_CLOCKS = ["InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed"]
HANGING = b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}"
SCRIPTS: list[list[Line]] = [
    [OK],
    *(
        [bad, OK]
        for bad in (
            RESET,
            WRONG_SUM,
            Line(http(500)),
            Line(then="close"),
            refusal("ThrottlingException"),
        )
    ),
    *([bad] for bad in (RESET, Line(then="close"))),
    *(
        [Line(http(status, body))]
        for status in (302, 400, 413, 429, 500, 503)
        for body in ("", "<html>", "{}")
    ),
    [Line(http(400, "no JSON"))],
    [RESET, refusal("AccessDeniedException")],
    [HANG, refusal("AccessDeniedException")],
    *(
        [refusal(code)]
        for code in [
            *REFUSED,
            *PASSES,
            *OF_CLOCKS,
            "TransactionInProgressException",
            "New:http://x/",
        ]
    ),
    [refusal("ConditionalCheckFailedException", Item={"b": BYTES} | ODD)],
    [Line(http(500)), refusal("ConditionalCheckFailedException")],
    [refusal("TransactionCanceledException", CancellationReasons=REASONS)],
    [Line(http(body={"Item": {"b": BYTES} | ODD, "ConsumedCapacity": {"CapacityUnits": 0.5}}))],
    [Line(http(body="{}", Connection="close"), "close")],
    [Line(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")],
    [Line(b"HTTP/1.1 200 OK\r\n\r\n{}", "close")],
]


def test_a_call_ends_as_one_of_boto3_whatever_the_server_does(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", READ_TIMEOUT_S)
    config = CONFIG.merge(Config(read_timeout=READ_TIMEOUT_S))
    for script in SCRIPTS:
        found = []
        theirs: Any = SESSION.create_client(
            "dynamodb", "eu-west-1", endpoint_url=server.url, config=config
        )
        for client in (note_attempts(theirs), fast(server)):
            server.script, server.requests = [*script], []
            found.append((outcome(client), len(server.requests)))
        assert found[0] == found[1], script
    server.script = [HANG]
    with pytest.raises(ReadTimeoutError):
        fast(server)._destination.connections.send(HANGING)


def test_an_answer_may_come_before_the_request_is_sent(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a gateway that refuses a large request by its first lines."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 0.2)
    config = CONFIG.merge(Config(connect_timeout=0.2, read_timeout=0.2))
    large = {"TableName": "t", "Item": {"a": {"B": bytes(8_000_000)}}}  # more than a socket takes
    for early, is_refused in (
        (Line(http(413, "<html>too large", Connection="close")), True),
        (refusal("ValidationException"), True),
        (Line(http(503)), True),
        (Line(), False),
        (Line(http(413), "hang"), False),
    ):
        found: list[Any] = []
        server.early = early
        theirs: Any = SESSION.create_client(
            "dynamodb", "eu-west-1", endpoint_url=server.url, config=config
        )
        for client in (note_attempts(theirs), fast(server)):
            server.requests = []
            found.append((outcome(client, **large), len(server.requests)))
        assert found[0] == found[1], early
        assert isinstance(found[0][0][0], str) == is_refused, early
    # boto3 would take a success for an answer to all of the request
    server.early, client = OK, fast(server)
    with pytest.raises(ConnectionClosedError):
        client.put_item(**large)


def test_an_answer_that_is_not_whole_is_none(
    server: Server,
) -> None:
    client = fast(server)
    table = DynamoTable("counters", "eu-west-1", lambda _: client)
    strange = [Line(http(status, body)) for status in (200, 400) for body in ("[]", '"x"')]
    for line in (HALF, RESET, WRONG_SUM, NO_SUM, *strange):
        for request, error in ((PUT, OutcomeUnknown), (Get(KEY), Unavailable)):
            client = fast(server)
            server.script, server.requests = [line], []
            with pytest.raises(error):
                table.answer(request)
            assert len(server.requests) == ATTEMPTS
            server.script = [line, Line(http(body={"ConsumedCapacity": {"CapacityUnits": 1.0}}))]
            assert table.answer(request) is None


def test_retries_that_help_do_not_use_up_those_of_later_calls(server: Server) -> None:
    client = fast(server)
    for _ in range(50):
        server.script = [Line(http(500)), OK]
        assert client.put_item()["ResponseMetadata"]["RetryAttempts"] == 1


def test_it_signs_with_the_credentials_of_boto3s_default_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session("DEFAULT", "secret"))
    assert b"Credential=DEFAULT/" in FastClient("eu-west-1")._signed("PutItem", b"")[0]


def test_the_signature_is_botocores(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any credentials and at any time, as threads may ask: also across midnight and back."""
    midnight = datetime(2026, 11, 29, tzinfo=UTC).timestamp()
    given = (Credentials("AKID", "secret"), Credentials("AKID2", "secret/2", "a token"))
    client, body = fast(server), '{"ü":"\u2028"}'.encode()
    for now in (midnight - 0.01, midnight, midnight - 1, midnight + 0.5, midnight + 86_400):
        monkeypatch.setattr("time.time", lambda now=now: now)
        for credentials in given:
            client._credentials = credentials
            for operation in ("PutItem", "GetItem"):
                head, _ = client._signed(operation, body)
                check_signature(head, server.url, credentials, body)
                assert (
                    time.strftime("\r\nx-amz-date: %Y%m%dT%H%M%SZ", time.gmtime(now))
                    in head.decode()
                )


def test_threads_sign_each_with_its_own_credentials(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    midnight, steps = datetime(2026, 11, 29, tzinfo=UTC).timestamp(), count(-50)
    monkeypatch.setattr("time.time", lambda: midnight + next(steps) / 10)
    signer = fast(server)._destination.signer

    def sign(number: int) -> None:
        given = Credentials(f"AKID{number % 3}", f"secret{number % 3}", f"token{number % 3}")
        head = signer.head(given.get_frozen_credentials(), "PutItem", b"{}")
        check_signature(head, server.url, given, b"{}")

    with ThreadPoolExecutor(8) as threads:
        assert len([*threads.map(sign, range(400))]) == 400


def check_signature(head: bytes, url: str, credentials: Credentials, body: bytes) -> None:
    lines = [line.partition(": ") for line in head.decode().splitlines()]
    headers = {name: value for name, _, value in lines}
    theirs = AWSRequest("POST", f"{url}/", data=body)
    for name in ("content-type", "host", "x-amz-date", "x-amz-security-token", "x-amz-target"):
        if name in headers:
            theirs.headers[name] = headers[name]
    theirs.context["timestamp"] = headers["x-amz-date"]
    auth = SigV4Auth(credentials, "dynamodb", "eu-west-1")
    text = auth.string_to_sign(theirs, auth.canonical_request(theirs))
    signed = (
        f"{auth.scope(theirs)}, SignedHeaders={auth.signed_headers(auth.headers_to_sign(theirs))}"
    )
    assert headers["authorization"] == (
        f"AWS4-HMAC-SHA256 Credential={signed}, Signature={auth.signature(text, theirs)}"
    )


def test_credentials_are_refreshed_and_nothing_is_sent_without(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fresh() -> dict[str, str]:
        expires = (datetime.now(UTC) + timedelta(1)).isoformat()
        return {"access_key": "NEW", "secret_key": "s", "token": "t", "expiry_time": expires}

    old = RefreshableCredentials("OLD", "s", "t", datetime.now(UTC) - timedelta(1), fresh, "here")
    fast(server, old).put_item()
    assert "Credential=NEW/" in server.requests.pop()["authorization"]
    now = [datetime.now(UTC)]
    monkeypatch.setattr("time.sleep", lambda _: now.append(now[-1] + timedelta(hours=2)))
    ends = RefreshableCredentials(
        "OLD", "s", "t", now[0] + timedelta(hours=1), fresh, "here", lambda: now[-1]
    )
    server.script = [Line(http(500)), OK]
    fast(server, ends).put_item()  # they end between its attempts
    used = [server.requests.pop()["authorization"].partition("/")[0][-3:] for _ in range(2)]
    assert used == ["NEW", "OLD"]
    with pytest.raises(NotAllowed, match="Nothing was written"):
        DynamoTable.of(settings(), {"eu-west-1": fast(server, None)}).answer(PUT)
    with pytest.raises(HTTPClientError, match="more than one line"):
        fast(server, Credentials("AKID", "secret", "a token\nof: another")).put_item()
    assert server.requests == []


class Signing(Credentials):
    """They can sign so many requests; then a refresh fails."""

    def __init__(self, requests: int, failure: Exception) -> None:
        super().__init__("AKID", "secret")
        self.left, self.failure = requests, failure

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        if not self.left:
            raise self.failure
        self.left -= 1
        return super().get_frozen_credentials()


def test_a_write_that_outlives_its_credentials_is_unknown(
    server: Server,
) -> None:
    server.script = [Line(then="close")]
    refused = ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, "AssumeRole")
    gone = CredentialRetrievalError(provider="a role", error_msg="gone")
    expired = RuntimeError(
        "Credentials were refreshed, but the refreshed credentials are still expired."
    )
    for failure, requests, error in (
        *((refused, 0, NotAllowed), (refused, 1, OutcomeUnknown)),
        *((gone, 0, Unavailable), (gone, 1, OutcomeUnknown)),
        *((expired, 0, Unavailable), (expired, 1, OutcomeUnknown)),
    ):
        session = Session()
        vars(session)["_credentials"] = Signing(requests, copy(failure))
        theirs: Any = session.create_client("dynamodb", "eu-west-1", endpoint_url=server.url)
        for client in (note_attempts(theirs), fast(server, Signing(requests, copy(failure)))):
            server.requests = []
            with Meter() as meter, pytest.raises(error):
                DynamoTable.of(settings(), {"eu-west-1": client}).answer(PUT)
            assert meter.take().attempts == len(server.requests) == requests
            client.close()


def test_what_it_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="list_tables"):
        FastClient("eu-west-1").list_tables
    for url, name, value, error in (
        ("https://x/path", "A", "", InvalidSettings),
        ("no url", "A", "", InvalidSettings),
        (None, "HTTPS_PROXY", "http://proxy", InvalidSettings),
        *(
            [(None, "AWS_ACCOUNT_ID_ENDPOINT_MODE", "required", InvalidSettings)]
            if BY_ACCOUNT
            else []
        ),
        (None, "AWS_PROFILE", "nobody's", NotAllowed),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(error):
                FastClient("eu-west-1", url)
