"""A client for this library's operations: an add takes at most a quarter of the CPU that a bare
put_item of boto3's takes.

Rule 1: Each request costs its JSON, its signature and its bytes. A botocore client, which itself
sends nothing, does what happens once (the endpoint, credentials) or is rare (bytes in an answer,
errors, when to send again).
Rule 2: An operation raises what boto3's client would raise, attempts included. An answer that is
cut off, fails its checksum or is no JSON counts as none: the request is sent again.
Rule 3: It refuses at its start each setting that it would otherwise ignore.
Source:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html
"""

import functools
import json
import os
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from botocore import exceptions
from botocore.credentials import Credentials
from botocore.hooks import first_non_none_response
from botocore.httpsession import get_cert_path
from botocore.parsers import create_parser
from botocore.session import Session
from botocore.useragent import sanitize_user_agent_string_component as sanitized

from ledger.core.clocks import PerProcess
from ledger.core.errors import LedgerError
from ledger.tables.answers import Answer, check_installed
from ledger.tables.boto import make_client, not_made, process_session, session_again
from ledger.tables.connections import Connections
from ledger.tables.fast_checks import check_endpoint, check_settings_of, check_unobserved
from ledger.tables.signing import Signer

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient as Base
else:
    Base = object

_READS = {"batch_get_item", "get_item", "query", "scan"}
_WRITES = {"delete_item", "put_item", "transact_write_items", "update_item"}
OPERATIONS = _READS | _WRITES | {"batch_execute_statement", "execute_statement"}

_encode = json.JSONEncoder(
    separators=(",", ":"), default=lambda value: b64encode(value).decode()
).encode


_making = PerProcess(threading.Lock)
"""Who holds it makes a client that the threads of this process share."""


class Operation(NamedTuple):
    """model: botocore's. The others are names of botocore's events."""

    model: Any
    needs_retry: str
    after_call: str
    after_call_error: str


class Destination(NamedTuple):
    """Where the requests of an account go. account: None where its number is unknown."""

    account: str | None
    url: str
    region: str
    signer: Signer
    connections: Connections


_RESOLUTION, _ACCOUNT = "before-endpoint-resolution", "ledger-account"


def _set_account(builtins: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    """Resolve an endpoint for the account that is asked for: botocore would refresh credentials to
    know it.
    """
    builtins["AWS::Auth::AccountId"] = context.get(_ACCOUNT)


def _account_of(given: Any) -> str | None:
    return getattr(given, "account_id", None)  # older botocores know none


class FastClient(Base):
    """A client for `client=` and `clients=`, in place of a boto3 client of that Region. Threads may
    share it.

    session: one of botocore's, for its credentials and settings; default: the process's, as for
    every client of ours. In a forked child the operations raise InvalidSettings where its
    credentials expire and the child finds others. Raises InvalidSettings, also without httptools,
    which the extra `fast` brings, and NotAllowed.
    """

    def __init__(
        self, region: str, endpoint_url: str | None = None, *, session: Session | None = None
    ) -> None:
        check_installed()
        self._region, self._endpoint_url = region, endpoint_url
        self._is_of_this_process = PerProcess(lambda: False)
        self._given = session
        self._make(session or process_session())

    def __getattr__(self, operation: str) -> Any:
        raise AttributeError(f"FastClient has no {operation}: a boto3 client does.")

    def close(self) -> None:
        """Close the connections of this process that no call uses; a later call opens another."""
        self._destination.connections.close()

    def _make(self, session: Session) -> None:
        made: Any = make_client(self._region, self._endpoint_url, session)
        check_settings_of(made.meta)
        made.meta.events.register(f"{_RESOLUTION}.dynamodb", _set_account, "ledger-account")
        self._made, credentials = made, session.get_credentials()
        self._meta, self._errors, self._parser = made.meta, made.exceptions, create_parser("json")
        self._operations: dict[str, Operation] = {}
        # those that expire say their account once they are refreshed, which may ask AWS
        account = _account_of(credentials) if type(credentials) is Credentials else None
        self._credentials, self._destination = credentials, self._resolved(account, None)
        self._is_of_this_process.value = True

    def _resolved(self, account: str | None, before: Destination | None) -> Destination:
        """Where boto3's client would send the requests of an account.

        before: stays what it is where only the account is another. Raises InvalidSettings, and
        NotAllowed where botocore knows no endpoint.
        """
        made, context = self._made, dict[str, Any]({_ACCOUNT: account})
        model = made.meta.service_model.operation_model("GetItem")
        try:
            url, *_ = made._resolve_endpoint_ruleset(model, {}, context)
        except exceptions.BotoCoreError as failure:
            raise not_made(self._endpoint_url, failure) from failure
        region = context.get("signing", {}).get("region", made.meta.region_name)
        if before is not None and (before.url, before.region) == (url, region):
            return before._replace(account=account)
        check_endpoint(url, made.meta.config)
        signer = Signer(region, _host(url), _user_agent(made.meta.config))
        return Destination(account, url, region, signer, Connections(url, _ca_file(made)))

    def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        if not self._is_of_this_process.value:
            self._make_again()
        operation, events = self._operations.get(name) or self._known(name), self._meta.events
        body, context = _encode(arguments).encode(), dict[str, Any]()
        for attempts in count(1):
            failure = response = None
            try:
                head, connections = self._signed(name, body)
            except LedgerError as error:  # says that nothing was written
                if attempts > 1:
                    raise exceptions.HTTPClientError(error=error) from error
                raise
            except Exception as error:
                events.emit(operation.after_call_error, exception=error, context=context)
                raise
            try:
                answer = connections.send(head + body)
                response = answer, (parsed := self._parsed(answer, operation.model))
            except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
                failure = error
            if response and answer.status_code < 300:
                break
            about = {
                "operation": operation.model,
                "request_dict": {"context": context},
                "endpoint": None,
                "attempts": attempts,
            }
            about |= {"response": response, "caught_exception": failure}
            pause = first_non_none_response(events.emit(operation.needs_retry, **about))
            if pause is None:
                break
            time.sleep(pause)
        if failure:
            raise failure
        parsed["ResponseMetadata"]["RetryAttempts"] = attempts - 1
        # gives back what a retry took of the quota
        events.emit(
            operation.after_call,
            http_response=answer,
            parsed=parsed,
            model=operation.model,
            context=context,
        )
        if answer.status_code >= 300:
            raise self._errors.from_code(parsed["Error"]["Code"])(parsed, name)
        return parsed

    def _make_again(self) -> None:
        """In a forked child: at the fork a thread of the parent may have held a lock of its
        credentials or events.
        """
        with _making.value:
            if not self._is_of_this_process.value:
                given = self._given
                self._make(process_session() if given is None else session_again(given))

    def _known(self, name: str) -> Operation:
        model = self._meta.service_model.operation_model(name)
        events = ("needs-retry", "after-call", "after-call-error")
        named = [f"{event}.dynamodb.{name}" for event in events]
        return self._operations.setdefault(name, Operation(model, *named))

    def _signed(self, name: str, body: bytes) -> tuple[bytes, Connections]:
        """The head of a request, and the connections to the host that it names.

        Raises NoCredentialsError, what a refresh raises, and as `_resolved`.
        """
        if self._credentials is None:
            raise exceptions.NoCredentialsError
        given, destination = self._credentials.get_frozen_credentials(), self._destination
        if destination.account != _account_of(given):
            destination = self._moved(_account_of(given))
        return destination.signer.head(given, name, body), destination.connections

    def _moved(self, account: str | None) -> Destination:
        with _making.value:
            before = self._destination
            if before.account != account:
                self._destination = self._resolved(account, before)
                if self._destination.connections is not before.connections:
                    before.connections.close()
            return self._destination

    def _parsed(self, answer: Answer, model: Any) -> dict[str, Any]:
        """The answer as boto3 parses it.

        Raises HTTPClientError for a body that DynamoDB never sends.
        """
        status, headers, content = answer
        try:
            if status < 300:
                parsed: dict[str, Any] = json.loads(content)
                about = {"HTTPStatusCode": status, "HTTPHeaders": headers}
                if request_id := headers.get("x-amzn-requestid"):
                    about["RequestId"] = request_id
                parsed["ResponseMetadata"] = about
                if b'"B' not in content:  # no bytes, which JSON cannot hold
                    return parsed
            given = {"status_code": status, "headers": headers, "body": content}
            parsed = self._parser.parse(given, model.output_shape)
            code = parsed["Error"]["Code"] if status >= 300 else ""
            shape = model.service_model.shape_for_error_code(code)
            return parsed if shape is None else parsed | self._parser.parse(given, shape)
        except Exception as error:
            raise exceptions.HTTPClientError(
                error=f"DynamoDB never sends {content[:99]!r}"
            ) from error


def _method(operation: str) -> Callable[..., Any]:
    name = operation.title().replace("_", "")

    def call(self: FastClient, **arguments: Any) -> Any:
        return self._call(name, arguments)

    return call


for _operation in OPERATIONS:
    setattr(FastClient, _operation, _method(_operation))


def fast_client(region: str, endpoint_url: str | None = None) -> FastClient:
    """One in each process for a Region and endpoint.

    Raises InvalidSettings, where anybody but botocore would see boto3's requests, and NotAllowed.
    """
    with _making.value:
        return _client(region, endpoint_url, os.getpid())


def check_possible(region: str, endpoint_url: str | None = None) -> None:
    """Raises as `fast_client`, also for a hook that came after the client was made."""
    check_unobserved(fast_client(region, endpoint_url)._meta.events)


@functools.cache
def _client(region: str, endpoint_url: str | None, process: int) -> FastClient:
    made = FastClient(region, endpoint_url)
    check_unobserved(made._meta.events)
    return made


def _host(endpoint_url: str) -> str:
    """The host header of requests."""
    url = urlsplit(endpoint_url)
    port = {"http": ":80", "https": ":443"}[url.scheme]
    return url.netloc.rpartition("@")[2].lower().removesuffix(port)


def _user_agent(config: Any) -> str:
    """That of every client of ours, and AWS_SDK_UA_APP_ID."""
    if config.user_agent_appid is None:
        return str(config.user_agent)
    return f"{config.user_agent} app/{sanitized(raw_str=config.user_agent_appid, allow_hash=True)}"


def _ca_file(made: Any) -> str | None:
    """Who may sign the endpoint's certificate, as the botocore client would check it."""
    # from ca_bundle of a profile, AWS_CA_BUNDLE, REQUESTS_CA_BUNDLE, or certifi
    path: str | None = get_cert_path(made._endpoint.http_session._verify)
    return path
