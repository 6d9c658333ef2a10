"""The clients of this library: their time-outs, retries and pool, because boto3's own defaults
changed in 1.44.

Rule 1: Only documented options of botocore's Config.
Rule 2: Saving CPU on every request may take nothing from an answer or an error.
Rule 3: A client belongs to one process: two processes on one connection, as after a fork, may take
each other's answers. A child waits for no lock of its parent.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import botocore
from botocore.client import BaseClient
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session, get_session

from ledger.core.checks import is_url
from ledger.core.clocks import PerProcess
from ledger.core.errors import InvalidSettings, LedgerError, shown
from ledger.tables.failures import DynamoDBClient, is_fast, no_client, note_attempts

CONNECT_TIMEOUT_S, READ_TIMEOUT_S, POOL = 2, 5, 50
# HTTP requests of one call, the first included (mode "standard": 5xx, time-outs, throttling)
ATTEMPTS = 4
# botocore's pauses between them, the longest that it draws, where all are throttled
BACK_OFF_S_MAX = 1 + 2 + 4

CALL_S_MAX = ATTEMPTS * (CONNECT_TIMEOUT_S + READ_TIMEOUT_S) + BACK_OFF_S_MAX
"""The seconds that one call of a client lasts at most, where nobody answers: each request reaches
both time-outs. A function that may be killed begins no call when less time than this is left."""

OPTIONS: Mapping[str, Any] = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "read_timeout": READ_TIMEOUT_S,
    "retries": {"mode": "standard", "total_max_attempts": ATTEMPTS},
    "max_pool_connections": POOL,
    "tcp_keepalive": True,
    # Requests are built from values that checked themselves, and what the table refuses is an error
    # all the same.
    "parameter_validation": False,
}
# The User-Agent header is fixed, because botocore would put it together twice for every request, a
# tenth of the client's CPU. It names botocore and this library, but not the machine, nor
# AWS_SDK_UA_APP_ID. If you need either, pass a `client=` of your own.
CONFIG = Config(**OPTIONS, user_agent=f"Botocore/{botocore.__version__} exact-counter")

OF_AWS = (
    ".amazonaws.com",
    ".amazonaws.com.cn",
    ".amazonaws.eu",
    ".api.aws",
    ".api.amazonwebservices.com.cn",
)
"""How the names of AWS's hosts end, by botocore's partitions.json."""

_making_a_client = PerProcess(threading.Lock)


def make_client(
    region: str, endpoint_url: str | None = None, session: Session | None = None
) -> DynamoDBClient:
    """DynamoDB's client, as `client_of` makes it; with a session a new one.

    Raises InvalidSettings and NotAllowed.
    """
    if endpoint_url is not None and not is_url(endpoint_url):
        raise url_refused(endpoint_url, "it is no URL")
    make = client_of if session is None else functools.partial(_client_of_session, session)
    try:
        client: DynamoDBClient = make("dynamodb", region, endpoint_url)
    except LedgerError:  # ours, of which some are ValueErrors
        raise
    except (BotoCoreError, ValueError) as failure:
        raise not_made(endpoint_url, failure) from failure
    return client


def client_of(service: str, region: str, endpoint_url: str | None = None) -> Any:
    """A client with our time-outs, retries and pool: one in each process for a service, Region
    and endpoint.
    """
    with _making_a_client.value:  # a session is not thread-safe while it makes a client
        return _client(service, region, endpoint_url, os.getpid())


def _client_of_session(
    session: Session, service: str, region: str, endpoint_url: str | None
) -> Any:
    with _making_a_client.value:
        return _made(session, service, region, endpoint_url)


def taken(regions: Sequence[str], clients: Mapping[str, Any] | None) -> dict[str, Any]:
    """The clients that a caller gave, by Region, each with `note_attempts`.

    regions: those of the settings. Raises InvalidSettings where a client asks AWS in another Region
    than the one that it is given for.
    """
    given = clients or {}
    for region in regions:
        meta = _meta_of(given.get(region))
        if meta is not None and meta.region_name != region:
            _check_elsewhere(region, meta)
    return {region: note_attempts(client) for region, client in given.items()}


def _meta_of(client: Any) -> Any:
    """botocore's `meta` of a client, also of a FastClient; None of anything else, which may be made
    when it is first used.
    """
    if is_fast(client):
        return client._meta
    return client.meta if issubclass(type(client), BaseClient) else None


def _check_elsewhere(region: str, meta: Any) -> None:
    """Raises InvalidSettings where a client of another Region asks AWS.

    Its writes would stand where the owner of their lane, or of their share of a limit, does not
    look. An engine on this computer may serve all Regions, and so does what stands in AWS's place
    in this process, such as moto.
    """
    from ledger.tables.fast_checks import is_answered_here  # which others need not import

    host = urlsplit(meta.endpoint_url).hostname or ""
    if host.endswith(OF_AWS) and not is_answered_here(meta.events):
        raise InvalidSettings(
            f"The client for {region} asks {meta.region_name} ({meta.endpoint_url}). So two "
            "Regions would decide with the share of one, and oversell. Nothing was written. Make "
            f"it for {region}, or name its own Region in the Settings."
        )


def not_made(endpoint_url: str | None, failure: BotoCoreError | ValueError) -> LedgerError:
    """What it means that botocore makes no client. A BotoCoreError is of a profile that does not
    exist, for example. A ValueError is of the URL, or without one of a credential process whose
    answer is no JSON.
    """
    if isinstance(failure, BotoCoreError) or endpoint_url is None:
        return no_client(failure)
    return url_refused(endpoint_url, failure)


def url_refused(endpoint_url: str, why: object) -> InvalidSettings:
    return InvalidSettings(f"boto3 refuses endpoint_url={shown(endpoint_url, 200)}: {why}.")


@functools.cache
def _client(service: str, region: str, endpoint_url: str | None, process: int) -> Any:
    # A parent's client stays in the cache: closing it may need a lock that another thread of the
    # parent held.
    return _made(process_session(), service, region, endpoint_url)


def _made(session: Session, service: str, region: str, endpoint_url: str | None) -> Any:
    make: Any = session.create_client
    return note_attempts(
        make(service, region_name=region, endpoint_url=endpoint_url, config=CONFIG)
    )


def process_session() -> Session:
    """The botocore session inside boto3's default session where the process has one, else one of
    botocore.

    Raises in a forked child as `session_again`.
    """
    # The default session may have a profile. Without one boto3, which builds on botocore's session,
    # would first import s3transfer and multiprocessing.
    default = _default_session()
    if default is None:
        return _session()
    inner = getattr(default, "_session", None)  # boto3 documents none, so a newer one may lack it
    if isinstance(inner, Session):
        return session_again(inner) if default is _inherited.value else inner
    profile = default.profile_name
    return _again(default, None if profile == "default" else profile, None)


def session_again(session: Session) -> Session:
    """A session of this process, in the place of its parent's, with the parent's profile and
    default client config, and its keys where they were given.

    Raises InvalidSettings where requests would be signed by somebody else than the parent's, and
    NotAllowed.
    """
    return _again(session, session.profile, session.get_default_client_config())


def _again(theirs: Any, profile: str | None, config: Config | None) -> Session:
    try:
        credentials = theirs.get_credentials()
        session = _anew(profile, credentials, config, os.getpid())
        found = session.get_credentials()
    except (BotoCoreError, ValueError) as failure:
        raise no_client(failure) from failure
    # Credentials that a caller put into a session are found nowhere: the child would find the
    # machine's own, perhaps of another account.
    if type(credentials) is not Credentials and _origin(credentials) != _origin(found):
        raise InvalidSettings(
            f"A forked child cannot use its parent's session: its credentials "
            f"({_method(credentials)}) expire, and the child finds others ({_method(found)}). "
            "Nothing was written. Make the session in the child: boto3's default one by "
            "boto3.setup_default_session, any other with its client."
        )
    return session


def _origin(credentials: Any) -> tuple[str, object]:
    """How botocore found them, and for which role where it assumes one."""
    fetcher = getattr(getattr(credentials, "_refresh_using", None), "__self__", None)
    return _method(credentials), getattr(fetcher, "_cache_key", None)


def _method(credentials: Any) -> str:
    return str(getattr(credentials, "method", "none"))


def _default_session() -> Any:
    return getattr(sys.modules.get("boto3"), "DEFAULT_SESSION", None)


_IMPORTED_BY = os.getpid()
_inherited = PerProcess(lambda: None if os.getpid() == _IMPORTED_BY else _default_session())
"""The default session that a child has from its parent."""


@functools.cache
def _session() -> Session:
    return get_session()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_session.cache_clear)


@functools.cache
def _anew(profile: str | None, credentials: Any, config: Config | None, process: int) -> Session:
    session = Session(profile=profile)
    if config is not None:
        session.set_default_client_config(config)
    # Others, which expire, are found again as the profile says: those that a thread of the parent
    # refreshed at the fork stay locked for ever.
    if type(credentials) is Credentials:
        given: Any = credentials.get_frozen_credentials()
        session.set_credentials(*given)  # with its account, where this botocore knows any
    return session
