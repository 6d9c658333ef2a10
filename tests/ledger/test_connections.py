"""What becomes of FastClient's connections: closed, interrupted, by many threads at once,
forked, of strangers.
"""

import multiprocessing
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.credentials import CredentialResolver, RefreshableCredentials
from botocore.exceptions import CredentialRetrievalError, SSLError
from botocore.session import Session
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from urllib3.util import wait_for_read

from ledger import Ledger
from ledger.core.errors import InvalidSettings, NotAllowed, Unavailable
from ledger.tables import boto, connections
from ledger.tables.boto import ATTEMPTS, CONFIG
from ledger.tables.dynamo import DynamoTable
from ledger.tables.failures import note_attempts
from ledger.tables.fast import FastClient, fast_client
from tests.ledger.scripted import HANG_S, OK, SESSION, Line, Server, fast, http
from tests.ledger.test_fast import outcome
from tests.ledger.test_table_errors import PUT
from tests.reader.test_fork import in_a_child
from tests.world import settings


def test_nothing_was_sent_where_no_connection_is_made(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = fast(server)
    table = DynamoTable.of(settings(), {"eu-west-1": client})
    for error in (ConnectionRefusedError(), TimeoutError(), socket.gaierror()):
        monkeypatch.setattr("socket.create_connection", Mock(side_effect=error))
        with pytest.raises(Unavailable, match="Nothing was written"):
            table.answer(PUT)
    assert server.requests == []


def test_an_idle_connection_the_server_closed_costs_no_attempt(server: Server) -> None:
    client = fast(server)
    server.script = [Line(http(), "close"), OK]
    client.put_item()
    assert wait_for_read(
        client._destination.connections._idle.value[0]._socket, HANG_S
    )  # its end has come
    for _ in range(2):
        assert client.put_item()["ResponseMetadata"]["RetryAttempts"] == 0
    assert server.connections == 2


def test_a_call_that_ctrl_c_ends_leaves_its_answer_to_nobody(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, before = fast(server), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for sent in (b"", http(body={"Item": "of another"})[:-9]):
            ctrl_c = threading.Timer(
                0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
            )
            monkeypatch.setattr(
                server,
                "line",
                lambda _, press=ctrl_c, sent=sent: press.start() or Line(sent, "hang"),
            )
            with pytest.raises(KeyboardInterrupt):
                client.put_item()
            monkeypatch.setattr(server, "line", lambda _: OK)
            assert client.put_item()["ResponseMetadata"]["RetryAttempts"] == 0
        assert len(client._destination.connections._idle.value) == 1
    finally:
        signal.signal(signal.SIGINT, before)


def test_connections_of_many_threads_do_not_stay(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "POOL", 2)
    client, at_once = fast(server), threading.Barrier(16)
    for _ in range(3):
        monkeypatch.setattr(server, "line", lambda _: (at_once.wait(HANG_S), OK)[1])
        with ThreadPoolExecutor(16) as threads:
            assert len([*threads.map(lambda _: client.put_item(), range(16))]) == 16
        # threads that end at once may each keep one
        assert len(client._destination.connections._idle.value) < 8


# Python 3.12 on: that is the test
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_threads_and_a_forked_child_get_their_own_answers(server: Server) -> None:
    client = fast(server)

    def answers(who: int) -> bool:
        return all(
            client.put_item(Item={"n": f"{who}-{n}"})["Item"] == {"n": f"{who}-{n}"}
            for n in range(50)
        )

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


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("kind", ["FastClient", "the default client", "boto3's default session"])
def test_a_forked_child_waits_for_no_refresh_of_its_parent(
    server: Server, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    refreshing, over = threading.Event(), threading.Event()

    def refresh() -> dict[str, str]:
        refreshing.set()
        over.wait(HANG_S)
        return dict.fromkeys(("access_key", "secret_key", "token"), "x") | {
            "expiry_time": "2999-01-01T00:00:00Z"
        }

    soon = datetime.now(UTC) + timedelta(minutes=5)
    # of the environment, where the child finds them again
    credentials: Any = RefreshableCredentials("a", "s", "t", soon, refresh, "env")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session() if "boto3" in kind else None)
    default: Any = boto3.DEFAULT_SESSION
    inner = default._session if "boto3" in kind else boto._session()
    monkeypatch.setattr(inner, "_credentials", credentials)
    made: Any = FastClient("eu-west-1", server.url) if kind == "FastClient" else None
    ledger = Ledger(settings(endpoint_url=server.url), client=made)
    threading.Thread(target=credentials.get_frozen_credentials, daemon=True).start()
    refreshing.wait()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    server.script = [Line(http(body={"ConsumedCapacity": {"CapacityUnits": 1.0}}))]
    try:
        assert in_a_child(lambda: ledger.add("c", 1).outcome) == "recorded"
    finally:
        over.set()


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_takes_no_lock_of_its_parents_events(server: Server) -> None:
    client, entered, over = fast(server), threading.Event(), threading.Event()

    def held(**_: Any) -> None:  # as a thread that counts retries holds the quota's lock
        entered.set()
        over.wait(HANG_S)

    client._meta.events.register("after-call.dynamodb", held)
    thread = threading.Thread(target=client.put_item, daemon=True)
    thread.start()
    try:
        assert entered.wait(HANG_S)
        assert in_a_child(lambda: client.put_item(Item="mine")["Item"]) == "mine"
    finally:
        over.set()
        thread.join()


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_threads_that_come_at_once_share_one_client(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of a forked child, where the first call makes it."""
    made, make = list[Any](), boto._made

    def slowly(*arguments: Any) -> Any:
        made.append(arguments)
        time.sleep(0.05)  # here the others would come
        return make(*arguments)

    monkeypatch.setattr(boto, "_made", slowly)
    # moto may be imported
    monkeypatch.setattr("ledger.tables.fast.check_unobserved", lambda _: None)
    client = fast(server)

    def at_once(call: Callable[[], object]) -> list[object]:
        made.clear()
        start = threading.Barrier(8)
        with ThreadPoolExecutor(8) as threads:
            return [*threads.map(lambda _: (start.wait(HANG_S), call())[1], range(8))]

    def in_the_child() -> int:
        at_once(client.put_item)
        return len(made)

    assert in_a_child(in_the_child) == 1
    shared = at_once(lambda: fast_client("eu-west-1", server.url))
    assert len(made) == len(set(map(id, shared))) == 1


class Role:
    def __init__(self, name: str | None) -> None:
        self._cache_key = name  # as botocore's fetchers have it

    def fetch(self) -> dict[str, str]:
        raise AssertionError("refreshed")


def expiring(method: str, role: str | None = None) -> Any:
    later = datetime.now(UTC) + timedelta(hours=1)
    return RefreshableCredentials("AROLE", "s", "t", later, Role(role).fetch, method)


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["sts-assume-role", "env"])
@pytest.mark.parametrize(
    ("is_fast", "is_default"), [(True, False), (True, True), (False, True)], ids=str
)
def test_a_forked_child_signs_as_nobody_else(
    server: Server, monkeypatch: pytest.MonkeyPatch, is_fast: bool, is_default: bool, method: str
) -> None:
    """is_default: by boto3's default session, else by one that FastClient is given."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "MACHINE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    server.script = [Line(http(body={"ConsumedCapacity": {"CapacityUnits": 1.0}}))]
    given: Any = Session()
    given._credentials = expiring(method)
    default = boto3.Session(botocore_session=given) if is_default else None
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", default)
    client: Any = None
    if is_fast:
        client = FastClient("eu-west-1", server.url, session=None if is_default else given)
        server.clients.append(client)
    ledger = Ledger(settings(endpoint_url=server.url), client=client)

    def added() -> str:
        try:
            return ledger.add("c", 1).outcome
        except InvalidSettings as error:
            return str(error)

    def added_by_its_own() -> str:
        boto3.setup_default_session(aws_access_key_id="CHILD", aws_secret_access_key="x")
        return added()

    def signed_by() -> set[str]:
        heads = [headers["authorization"] for headers in server.requests]
        server.requests = []
        return {head.partition("Credential=")[2].partition("/")[0] for head in heads}

    assert (added(), signed_by()) == ("recorded", {"AROLE"})
    found = str(in_a_child(added))
    if method == "env":  # found again
        assert (found, signed_by()) == ("recorded", {"MACHINE"})
    else:
        assert "(sts-assume-role) expire, and the child finds others (env). Nothing was" in found
        assert signed_by() == set()
    if is_default:
        assert (in_a_child(added_by_its_own), signed_by()) == ("recorded", {"CHILD"})


def test_a_forked_child_finds_its_parents_role_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    given: Any = Session()
    given._credentials = expiring("assume-role", "ours")

    def found_again(found: Any) -> Any:
        monkeypatch.setattr(
            CredentialResolver, "load_credentials", Mock(side_effect=[found, AssertionError])
        )
        boto._anew.cache_clear()
        return boto.session_again(given).get_credentials()

    ours = expiring("assume-role", "ours")
    assert found_again(ours) is ours
    for other in (expiring("assume-role", "another"), expiring("sso", "ours"), None):
        with pytest.raises(InvalidSettings, match=r"\(assume-role\) expire"):
            found_again(other)
    for failure in (CredentialRetrievalError(provider="x", error_msg="x"), ValueError("no JSON")):
        with pytest.raises(NotAllowed, match="Nothing was written"):
            found_again(failure)


def certificate(pem: Path) -> Path:
    """Of 127.0.0.1, signed by itself, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ledger")])
    made = x509.CertificateBuilder(
        name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1)
    )
    for extension in (
        x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]),
        x509.BasicConstraints(ca=True, path_length=None),
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
    ):
        made = made.add_extension(extension, critical=False)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(secret + made.sign(key, SHA256()).public_bytes(Encoding.PEM))
    return pem


def test_a_server_of_no_trusted_certificate_is_sent_nothing(
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
                theirs: Any = SESSION.create_client(
                    "dynamodb", "eu-west-1", endpoint_url=url, config=CONFIG
                )
                for client in (
                    note_attempts(theirs),
                    FastClient("eu-west-1", url, session=SESSION),
                ):
                    server.requests = []
                    end: Any = outcome(client)  # which closes it
                    assert len(server.requests) == asked
                    found.append(end if asked else (end[0], end[2:]))
            assert found[0] == found[1]
            assert asked or found[0] == (SSLError, (attempts_made, []))
        server.shutdown()
