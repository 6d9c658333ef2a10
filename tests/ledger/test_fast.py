"""FastClient beside boto3's client: what a server does to both, and what it does alone."""

import multiprocessing
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials, ReadOnlyCredentials, RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, ReadTimeoutError, SSLError
from botocore.session import Session
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from urllib3.util import wait_for_read

from ledger.cost import Meter
from ledger.dynamo import connections
from ledger.dynamo.client import ATTEMPTS, CONFIG
from ledger.dynamo.failures import attempts, note_attempts
from ledger.dynamo.fast import FastClient
from ledger.errors import InvalidSettings, NotAllowed, OutcomeUnknown, Unavailable
from ledger.requests import Get
from ledger.table import DynamoTable
from tests.ledger.scripted import HALF, HANG, HANG_S, NO_SUM, OK, RESET, WRONG_SUM, Line, Server, http, refusal
from tests.ledger.test_table_errors import KEY, PASSES, PUT, REFUSED, item
from tests.reader.test_fork import in_a_child
from tests.world import settings

READ_TIMEOUT_S = 1
BY_ACCOUNT = hasattr(CONFIG, "account_id_endpoint_mode")  # older botocores have no such endpoints


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("time.sleep", lambda _: None)
    with Server() as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.over.set()
        for client in made.clients:
            client.close()
        made.shutdown()


SESSION, STATIC = Session(), Credentials("AKID", "secret")
SESSION.set_credentials(STATIC.access_key, STATIC.secret_key)


def fast(server: Server, credentials: Credentials | None = STATIC) -> Any:
    made: Any = FastClient("eu-west-1", server.url, session=SESSION)
    made._credentials = credentials
    server.clients.append(made)
    return made


def outcome(client: Any) -> object:
    """All that anybody can see of a call."""
    try:
        return client.get_item(TableName="t", Key=item())
    except ClientError as error:
        return type(error).__name__, str(error), error.response
    except BotoCoreError as error:
        return type(error), str(error), attempts(error), getattr(error, "__notes__", [])
    finally:
        client.close()


BYTES = {"B": "AP8="}
ODD = {"B": {"M": {"B": {"BS": ["YQ==", "Yg=="]}, "BS": {"L": [{"S": '"B"'}]}, "n": {"N": "1"}, "z": {"NULL": True}}}}
REASONS = [{"Code": "ConditionalCheckFailed", "Item": {"b": BYTES}, "Message": "No."}, {"Code": "None"}]
OF_CLOCKS = ["InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed"]  # botocore corrects none
SCRIPTS: list[list[Line]] = [
    [OK],
    *([bad, OK] for bad in (RESET, WRONG_SUM, Line(http(500)), Line(then="close"), refusal("ThrottlingException"))),
    *([bad] for bad in (RESET, Line(then="close"))),
    *([Line(http(status, body))] for status in (302, 400, 413, 429, 500, 503) for body in ("", "<html>", "{}")),
    [Line(http(400, "no JSON"))],
    [RESET, refusal("AccessDeniedException")],
    [HANG, refusal("AccessDeniedException")],
    *([refusal(code)] for code in [*REFUSED, *PASSES, *OF_CLOCKS, "TransactionInProgressException", "New:http://x/"]),
    [refusal("ConditionalCheckFailedException", Item={"b": BYTES} | ODD)],
    [Line(http(500)), refusal("ConditionalCheckFailedException")],
    [refusal("TransactionCanceledException", CancellationReasons=REASONS)],
    [Line(http(body={"Item": {"b": BYTES} | ODD, "ConsumedCapacity": {"CapacityUnits": 0.5}}))],
    [Line(http(body="{}", Connection="close"), "close")],
    [Line(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")],
    [Line(b"HTTP/1.1 200 OK\r\n\r\n{}", "close")],
]


def test_whatever_a_server_does_a_call_ends_as_one_of_boto3s_client(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", READ_TIMEOUT_S)
    config = CONFIG.merge(Config(read_timeout=READ_TIMEOUT_S))
    for script in SCRIPTS:
        found = []
        theirs: Any = SESSION.create_client("dynamodb", "eu-west-1", endpoint_url=server.url, config=config)
        for client in (note_attempts(theirs), fast(server)):
            server.script, server.requests = [*script], []
            found.append((outcome(client), len(server.requests)))
        assert found[0] == found[1], script
    server.script = [HANG]
    with pytest.raises(ReadTimeoutError):
        fast(server)._connections.send({}, b"{}")


def test_what_is_no_whole_answer_of_dynamodb_is_none_and_a_write_may_have_been_applied(server: Server) -> None:
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
            server.script = [line, OK]
            assert table.answer(request) is None


def test_nothing_was_sent_where_no_connection_is_made(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = fast(server)
    table = DynamoTable.of(settings(), {"eu-west-1": client})
    for error in (ConnectionRefusedError(), TimeoutError(), socket.gaierror()):
        monkeypatch.setattr("socket.create_connection", Mock(side_effect=error))
        with pytest.raises(Unavailable, match="Nothing was written"):
            table.answer(PUT)
    assert server.requests == []


def test_an_idle_connection_that_the_server_closed_costs_no_attempt(server: Server) -> None:
    client = fast(server)
    server.script = [Line(http(), "close"), OK]
    client.put_item()
    assert wait_for_read(client._connections._idle.value[0], HANG_S)  # its end has come
    for _ in range(2):
        assert client.put_item()["ResponseMetadata"]["RetryAttempts"] == 0
    assert server.connections == 2


def test_retries_that_help_do_not_use_up_those_of_later_calls(server: Server) -> None:
    client = fast(server)
    for _ in range(50):
        server.script = [Line(http(500)), OK]
        assert client.put_item()["ResponseMetadata"]["RetryAttempts"] == 1


def test_a_call_that_ctrl_c_ends_leaves_its_answer_to_nobody(server: Server) -> None:
    client, main = fast(server), threading.main_thread().ident
    assert main is not None
    for sent in (b"", http(body={"Item": "of another"})[:-9]):
        server.script, server.requests = [Line(sent, "hang")], []

        def press(item: Any) -> Line:
            threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)).start()
            return server.script[0]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(server, "line", press)
            with pytest.raises(KeyboardInterrupt):
                client.put_item()
        server.script = []
        assert client.put_item(Item="mine")["Item"] == "mine"
    assert len(client._connections._idle.value) == 1


def test_connections_that_many_threads_opened_at_once_do_not_stay(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "POOL", 2)
    client, at_once = fast(server), threading.Barrier(16)
    for _ in range(3):
        monkeypatch.setattr(server, "line", lambda _: (at_once.wait(HANG_S), OK)[1])
        with ThreadPoolExecutor(16) as threads:
            assert len([*threads.map(lambda _: client.put_item(), range(16))]) == 16
        assert len(client._connections._idle.value) < 8  # threads that end at once may each keep one


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # Python 3.12 on: that is the test
def test_threads_and_a_forked_child_have_the_answers_of_their_own_requests(server: Server) -> None:
    client = fast(server)

    def answers(who: int) -> bool:
        return all(client.put_item(Item={"n": f"{who}-{n}"})["Item"] == {"n": f"{who}-{n}"} for n in range(50))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(answers, range(8)))
        assert server.connections <= 8
        before = server.connections
        child = threads.submit(in_a_child, lambda: answers(9))
        assert all(threads.map(answers, range(7)))
        assert child.result() is True
    assert server.connections > before


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_keeps_no_connection_of_its_parent_open(server: Server) -> None:
    client = fast(server)
    client.put_item()

    def end() -> bool:
        client.close()
        return server.closed.wait(HANG_S)

    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=fork.Event().wait)
    child.start()
    try:
        assert end()
    finally:
        child.kill()
        child.join()


def certificate(pem: Path) -> Path:
    """Of 127.0.0.1, signed by itself, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ledger")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    for extension in (
        x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]),
        x509.BasicConstraints(ca=True, path_length=None),
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
    ):
        made = made.add_extension(extension, critical=False)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(secret + made.sign(key, SHA256()).public_bytes(Encoding.PEM))
    return pem


def test_a_server_whose_certificate_nobody_signed_or_is_of_another_host_is_sent_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    pem, strange = (str(certificate(tmp_path / name)) for name in ("ours.pem", "theirs.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem)
    with Server(tls) as server:
        server.script = [OK]
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        elsewhere = server.url.replace("127.0.0.1", "localhost")
        for url, ca_file, attempts_made, asked in (
            (server.url, pem, None, 1),
            (server.url, strange, ATTEMPTS, 0),
            (elsewhere, pem, ATTEMPTS, 0),
        ):
            found = []
            with monkeypatch.context() as patch:
                patch.setenv("AWS_CA_BUNDLE", ca_file)
                theirs: Any = SESSION.create_client("dynamodb", "eu-west-1", endpoint_url=url, config=CONFIG)
                for client in (note_attempts(theirs), FastClient("eu-west-1", url, session=SESSION)):
                    server.requests = []
                    end: Any = outcome(client)  # which closes it
                    assert len(server.requests) == asked
                    found.append(end if asked else (end[0], end[2:]))
            assert found[0] == found[1]
            assert asked or found[0] == (SSLError, (attempts_made, []))
        server.shutdown()


def test_it_signs_with_the_credentials_of_boto3s_default_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session("DEFAULT", "secret"))
    assert "Credential=DEFAULT/" in FastClient("eu-west-1")._signed("PutItem", b"")["authorization"]


def test_the_signature_is_botocores(server: Server) -> None:
    for credentials in (Credentials("AKID", "secret"), Credentials("AKID2", "secret/2", "a token")):
        headers = fast(server, credentials)._signed("PutItem", body := '{"ü":"\u2028"}'.encode())
        theirs = AWSRequest("POST", f"{server.url}/", data=body)
        for name in ("content-type", "host", "x-amz-date", "x-amz-security-token", "x-amz-target"):
            if name in headers:
                theirs.headers[name] = headers[name]
        theirs.context["timestamp"] = headers["x-amz-date"]
        auth = SigV4Auth(credentials, "dynamodb", "eu-west-1")
        text = auth.string_to_sign(theirs, auth.canonical_request(theirs))
        signed = f"{auth.scope(theirs)}, SignedHeaders={auth.signed_headers(auth.headers_to_sign(theirs))}"
        signature = auth.signature(text, theirs)
        assert headers["authorization"] == f"AWS4-HMAC-SHA256 Credential={signed}, Signature={signature}"


def test_credentials_are_refreshed_before_they_expire_and_without_any_nothing_is_sent(
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
    ends = RefreshableCredentials("OLD", "s", "t", now[0] + timedelta(hours=1), fresh, "here", lambda: now[-1])
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
    """They can sign so many requests; then a refresh is refused."""

    def __init__(self, requests: int) -> None:
        super().__init__("AKID", "secret")
        self.left = requests

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        if not self.left:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, "AssumeRole")
        self.left -= 1
        return super().get_frozen_credentials()


def test_a_write_whose_credentials_end_after_its_first_attempt_may_have_been_applied(server: Server) -> None:
    server.script = [Line(then="close")]
    for requests, error in ((0, NotAllowed), (1, OutcomeUnknown)):
        session = Session()
        vars(session)["_credentials"] = Signing(requests)
        theirs: Any = session.create_client("dynamodb", "eu-west-1", endpoint_url=server.url)
        for client in (note_attempts(theirs), fast(server, Signing(requests))):
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
        *([(None, "AWS_ACCOUNT_ID_ENDPOINT_MODE", "required", InvalidSettings)] if BY_ACCOUNT else []),
        (None, "AWS_PROFILE", "nobody's", NotAllowed),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(error):
                FastClient("eu-west-1", url)
