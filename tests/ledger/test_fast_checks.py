"""Where FastClient goes as boto3's client does, and what speaks against it, by name."""

import functools
import types
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore import handlers
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.credentials import Credentials, DeferredRefreshableCredentials
from botocore.exceptions import ConnectionClosedError
from botocore.session import Session

from compactor import Compactor
from ledger import Ledger, Settings
from ledger.client.aio import AsyncLedger
from ledger.core.errors import InvalidInput, InvalidSettings, OutcomeUnknown
from ledger.memory import MemoryTable
from ledger.tables import fast
from ledger.tables.answers import Answer
from ledger.tables.boto import CONFIG, make_client, process_session, session_again
from ledger.tables.connections import Connections
from ledger.tables.dynamo import DynamoTable
from ledger.tables.fast import FastClient
from ledger.tables.fast_checks import EVENTS, WAY, check_unobserved
from reader import Reader
from reader.aio import AsyncReader
from tests.ledger.scripted import BY_ACCOUNT, Line, Server, http
from tests.ledger.test_table_errors import PUT
from tests.reader.test_fork import in_a_child
from tests.world import settings


def session(**defaults: Any) -> Session:
    made = Session()
    made.set_credentials("AKID", "secret")
    if defaults:
        made.set_default_client_config(Config(**defaults))
    return made


def sent_by_boto3(region: str, endpoint_url: str | None, given: Session) -> dict[str, str]:
    """Where boto3's client sends a request, and what it says there."""
    found: list[Any] = []

    def take(request: Any, **_: Any) -> AWSResponse:
        found.append(request)
        body: Any = types.SimpleNamespace(stream=lambda **_: iter([b"{}"]))
        return AWSResponse(request.url, 200, HTTPHeaders(), body)

    client: Any = given.create_client(
        "dynamodb", region_name=region, endpoint_url=endpoint_url, config=CONFIG
    )
    client.meta.events.register("before-send.dynamodb", take)
    client.get_item(TableName="t", Key={})
    (request,) = found
    signed = request.headers["Authorization"].decode()
    return {"url": request.url, "scope": signed.partition("/20")[2].partition(",")[0][6:]}


def sent_by_fast(region: str, endpoint_url: str | None, given: Session) -> dict[str, str]:
    client: Any = FastClient(region, endpoint_url, session=given)
    found: list[tuple[Any, bytes]] = []

    def take(connections: Any, request: bytes) -> Answer:
        found.append((connections, request))
        return Answer(200, {}, b"{}")

    with patch.object(Connections, "send", take):
        client.get_item(TableName="t", Key={})
    ((connections, request),) = found
    lines = request.decode().splitlines()
    headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    assert headers["host"].split(":")[0] == connections._address[0]
    scheme = "http" if connections._tls is None else "https"
    scope = headers["authorization"].partition("/20")[2].partition(",")[0][6:]
    return {"url": f"{scheme}://{headers['host']}/", "scope": scope}


@pytest.mark.parametrize(
    ("region", "endpoint_url", "environ"),
    [
        ("eu-west-1", None, {}),
        ("us-gov-west-1", None, {}),
        ("cn-north-1", None, {}),
        ("us-east-1", None, {"AWS_USE_FIPS_ENDPOINT": "true"}),
        ("eu-west-1", None, {"AWS_USE_DUALSTACK_ENDPOINT": "true"}),
        ("us-east-1", None, {"AWS_USE_FIPS_ENDPOINT": "1", "AWS_USE_DUALSTACK_ENDPOINT": "1"}),
        ("eu-west-1", None, {"AWS_ENDPOINT_URL": "http://all.example:8000"}),
        ("eu-west-1", None, {"AWS_ENDPOINT_URL_DYNAMODB": "https://dynamo.example"}),
        (
            "eu-west-1",
            None,
            {"AWS_ENDPOINT_URL": "http://x", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
        ),
        ("eu-west-1", "http://localhost:8000", {}),
        ("eu-west-1", "https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com:443", {}),
        ("eu-west-1", "http://LOCALHOST:80/", {}),
        ("local", None, {}),
        ("eu-west-1", None, {"AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled"}),
    ],
)
def test_it_goes_where_boto3_goes(
    region: str,
    endpoint_url: str | None,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    found = sent_by_fast(region, endpoint_url, session())
    expected = sent_by_boto3(region, endpoint_url, session())
    expected["url"] = expected["url"].lower().replace(":443/", "/").replace(":80/", "/")
    assert found == expected


def of_account(account: str | None, then: str | None = None) -> Session:
    """A session whose credentials name an account: at once, or where `then` is given after their
    refresh.
    """
    made: Any = session()
    if then is None:
        made._credentials = Credentials("AKID", "secret", account_id=account)
        return made  # type: ignore[no-any-return]
    told = {"access_key": "AKID", "secret_key": "secret", "token": None, "account_id": then}
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    made._credentials = DeferredRefreshableCredentials(
        lambda: told | {"expiry_time": later}, "assume-role"
    )
    return made  # type: ignore[no-any-return]


@pytest.mark.skipif(not BY_ACCOUNT, reason="this botocore knows no endpoint of an account")
@pytest.mark.parametrize("then", [None, "222222222222"])
@pytest.mark.parametrize(
    ("endpoint_url", "environ", "of_the_account"),
    [
        (None, {}, True),
        (None, {"AWS_ACCOUNT_ID_ENDPOINT_MODE": "preferred"}, True),
        (None, {"AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled"}, False),
        (None, {"AWS_USE_FIPS_ENDPOINT": "true"}, False),
        ("http://localhost:8000", {}, False),
    ],
)
def test_it_goes_to_the_endpoint_of_its_account(
    endpoint_url: str | None,
    environ: dict[str, str],
    of_the_account: bool,
    then: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    given = of_account("111111111111", then)
    found = sent_by_fast("us-east-1", endpoint_url, given)
    assert found == sent_by_boto3("us-east-1", endpoint_url, given)
    assert (f"{then or '111111111111'}.ddb" in found["url"]) == of_the_account


@pytest.mark.skipif(not BY_ACCOUNT, reason="this botocore knows no endpoint of an account")
def test_a_client_follows_credentials_into_another_account() -> None:
    given: Any = session()
    client: Any = FastClient("eu-west-1", session=given)
    for account, host in (
        (None, "dynamodb"),
        ("111111111111", "111111111111.ddb"),
        ("222222222222", "222222222222.ddb"),
    ):
        client._credentials = Credentials("AKID", "secret", account_id=account)
        head, connections = client._signed("PutItem", b"{}")
        assert f"\r\nhost: {host}.eu-west-1." in head.decode()
        assert connections._address[0].startswith(f"{host}.eu-west-1.")
        assert client._signed("PutItem", b"{}")[1] is connections


@pytest.mark.skipif(not BY_ACCOUNT, reason="this botocore knows no endpoint of an account")
def test_a_proxy_of_an_accounts_endpoint_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "dynamodb.eu-west-1.amazonaws.com")
    with pytest.raises(InvalidSettings, match=r"proxies \(https://111111111111\.ddb"):
        FastClient("eu-west-1", session=of_account("111111111111"))
    client: Any = FastClient("eu-west-1", session=of_account(None, "111111111111"))
    table = DynamoTable.of(settings(), {"eu-west-1": client})
    with pytest.raises(InvalidSettings, match=r"proxies .* Nothing was written"):
        table.answer(PUT)
    # between two attempts, of which the first may have been applied
    client._credentials = Credentials("AKID", "secret", account_id=None)

    def no_answer(*_: Any) -> Answer:
        client._credentials = Credentials("AKID", "secret", account_id="111111111111")
        raise ConnectionClosedError(endpoint_url="https://x")

    with patch.object(Connections, "send", no_answer), pytest.raises(OutcomeUnknown):
        table.answer(PUT)


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("is_default", [False, True])
def test_a_forked_child_goes_where_its_parent_goes(
    is_default: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = session(use_fips_endpoint=True)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session(botocore_session=given))
    client: Any = FastClient("us-east-1", session=given)

    def url() -> object:
        if is_default:
            return make_client("us-east-1", session=process_session()).meta.endpoint_url
        client._make(session_again(given))
        return client._destination.url

    assert in_a_child(url) == url() == "https://dynamodb-fips.us-east-1.amazonaws.com"


def test_proxies_are_refused_where_boto3_would_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    for url, given in (
        (None, session()),
        (None, session(proxies={"https": "http://proxy"})),
        ("http://x", session(proxies={"http": "http://proxy"})),
    ):
        with pytest.raises(InvalidSettings, match=r"proxies .*Use a boto3 client"):
            FastClient("eu-west-1", url, session=given)
    monkeypatch.setenv("NO_PROXY", "amazonaws.com")
    FastClient("eu-west-1", session=session())
    monkeypatch.delenv("NO_PROXY")
    for url, given in (
        ("http://x", session()),
        (None, session(proxies={})),
        (None, session(proxies={"http": "http://proxy"})),
    ):
        FastClient("eu-west-1", url, session=given)


def test_what_it_would_ignore_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for given, what in (
        (session(client_cert="client.pem"), "client_cert"),
        (session(signature_version="v4a"), "signature_version=v4a"),
    ):
        with pytest.raises(InvalidSettings, match=what):
            FastClient("eu-west-1", session=given)
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        with monkeypatch.context() as patch:
            patch.delenv("AWS_CA_BUNDLE", raising=False)
            patch.setenv(name, str(tmp_path / "none.pem"))
            with pytest.raises(InvalidSettings, match=r"none\.pem cannot be read"):
                FastClient("eu-west-1", session=session())


def test_the_user_agent_has_what_the_user_adds(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SDK_UA_APP_ID", "shop (1)\r\nx: y")
    given = session(user_agent_extra="extra/1")
    client: Any = FastClient("eu-west-1", server.url, session=given)
    server.clients.append(client)
    client.put_item()
    (headers,), agent = server.requests, vars(CONFIG)["user_agent"]
    assert headers["user-agent"] == f"{agent} extra/1 app/shop--1---x--y"


# -- client="fast"


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """The process's session, as it is where nobody imported moto."""
    # imported first, because it adds its hook once, to the list that the process keeps
    import moto.core.models  # noqa: F401

    own = [spec for spec in handlers.BUILTIN_HANDLERS if "moto" not in type(spec[1]).__module__]
    monkeypatch.setattr(handlers, "BUILTIN_HANDLERS", own)
    made = session()
    monkeypatch.setattr(fast, "process_session", lambda: made)
    fast._client.cache_clear()
    yield made
    fast._client.cache_clear()


WANTED = settings(endpoint_url="http://127.0.0.1:9")
AGAINST = Settings.from_env({"LEDGER_CLIENT": "fast"}, table="counters", region="eu-west-1")
MAKERS: list[Callable[[], object]] = [
    lambda: Ledger(WANTED, client="fast"),
    lambda: Reader(WANTED, client="fast"),
    lambda: Ledger(AGAINST),
    lambda: Reader(AGAINST),
    lambda: Compactor(AGAINST),
]


def test_a_ledger_takes_it_by_name(
    server: Server, ours: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    server.script = [Line(http(body={"ConsumedCapacity": {"CapacityUnits": 1.0}}))]
    named = settings(endpoint_url=server.url)
    of_env = Settings.from_env(
        {"LEDGER_CLIENT": "fast", "LEDGER_ENDPOINT_URL": server.url},
        table="counters",
        region="eu-west-1",
    )
    # mypy holds that a client of settings is one that a Ledger takes
    for ledger in (
        Ledger(named, client="fast"),
        Ledger(of_env),
        Ledger(named, client=of_env.client),
    ):
        assert ledger.add("c", 1).outcome == "recorded"
    assert server.connections == 1  # a process has one client of a Region
    assert {headers["accept-encoding"] for headers in server.requests} == {"identity"}
    server.requests = []
    made: Any = ours.create_client("dynamodb", "eu-west-1", endpoint_url=server.url, config=CONFIG)
    for ledger in (Ledger(of_env, client=made), Ledger(of_env, client="boto3")):
        ledger.add("c", 1)
    fast.fast_client("eu-west-1", server.url).close()
    assert server.connections > 1
    Ledger(of_env, table=MemoryTable()).add("c", 1)  # a table needs no client


def test_a_client_of_another_name_is_refused() -> None:
    for name in ("", "Fast", "aiobotocore"):
        with pytest.raises(InvalidSettings, match='neither "boto3" nor "fast"'):
            Ledger(settings(), client=name)  # type: ignore[arg-type]
        with pytest.raises(InvalidSettings, match='neither "boto3" nor "fast"'):
            settings(client=name)
    with pytest.raises(InvalidInput, match="client and table came together"):
        Ledger(settings(), client="fast", table=MemoryTable())


def test_what_awaits_cannot_take_it() -> None:
    for given, client in ((settings(), "fast"), (AGAINST, None)):
        for kind in (AsyncLedger, AsyncReader):
            with pytest.raises(InvalidSettings, match=r'Settings\(client="boto3"\)'):
                kind(given, client=client)
    made: Any = FastClient("eu-west-1", session=session())
    for named in ({"client": made}, {"clients": {"eu-west-1": made}}):
        with pytest.raises(InvalidInput, match=r"A client is a FastClient.* Nothing was written"):
            AsyncLedger(settings(), **named)
    AsyncLedger(AGAINST, client="boto3")
    AsyncLedger(AGAINST, table=MemoryTable())


def test_a_hook_on_the_session_speaks_against_it(ours: Session) -> None:
    def traced(**_: Any) -> None: ...

    for event in EVENTS:
        for name in (f"{event}.*.*", event, f"{event}.dynamodb.PutItem"):
            ours.register(name, traced)
            for make in MAKERS:
                with pytest.raises(
                    InvalidSettings, match=r"the hook tests\..*traced.*FastClient\("
                ):
                    make()
            ours.unregister(name, traced)
    FastClient("eu-west-1", session=ours)
    for make in MAKERS:
        make()


def test_a_hook_on_its_client_speaks_against_the_next_ledger(ours: Session) -> None:
    made: Any = fast.fast_client("eu-west-1")
    Ledger(AGAINST)
    made._meta.events.register("before-send.dynamodb", lambda **_: None)
    with pytest.raises(InvalidSettings, match="the hook"):
        Ledger(AGAINST)


def test_motos_mock_speaks_against_it(ours: Session) -> None:
    from moto.core.models import botocore_stubber

    stubber: Any = botocore_stubber
    ours.register("before-send", stubber)
    for make in MAKERS:
        with pytest.raises(InvalidSettings, match="BotocoreStubber"):
            make()


@pytest.mark.parametrize("kind", ["by functools", "by a class, as wrapt's"])
def test_a_tracers_replacement_speaks_against_it(
    ours: Session, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As of X-Ray, OpenTelemetry, Datadog and New Relic."""

    class Wrapper:
        def __init__(self, wrapped: Any) -> None:
            vars(self).update(__wrapped__=wrapped, __module__=wrapped.__module__)

    def wrapped(function: Any) -> Any:
        if kind != "by functools":
            return Wrapper(function)
        return functools.wraps(function)(lambda *given, **named: function(*given, **named))

    for owner, name in ((owner, name) for owner, names in WAY.items() for name in names):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, wrapped(vars(owner)[name]))
            with pytest.raises(InvalidSettings, match=f"what replaced {owner.__name__}.{name}"):
                check_unobserved(ours.get_component("event_emitter"))
    check_unobserved(ours.get_component("event_emitter"))


def test_hooks_that_cannot_be_seen_speak_against_it() -> None:
    with pytest.raises(InvalidSettings, match="hooks that this botocore does not show"):
        check_unobserved(object())


def test_a_proxy_speaks_against_it(ours: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    with pytest.raises(InvalidSettings, match="proxies"):
        Ledger(AGAINST)
