"""A client for this library's operations, on http.client: it takes at most two fifths of the CPU
that boto3's takes.

Rule 1: Each request costs its JSON, its signature and http.client. A botocore client, which itself
sends nothing, does what happens once (the endpoint, credentials) or is rare (bytes in an answer,
errors, when to send again).
Rule 2: An operation raises what boto3's client would raise, attempts included. An answer that is
cut off, fails its checksum or is no JSON counts as none: the request is sent again.
Rule 3: It refuses at its start each setting that it would otherwise ignore.
Sources: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
and https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html
"""

import hmac
import json
import os
import time
from base64 import b64encode
from functools import partial
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore import exceptions
from botocore.hooks import first_non_none_response
from botocore.httpsession import get_cert_path
from botocore.parsers import create_parser
from botocore.session import Session
from botocore.utils import get_environ_proxies

from ledger.core.errors import InvalidSettings
from ledger.tables.boto import make_client, process_session, session_again
from ledger.tables.connections import Answer, Connections

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


class FastClient(Base):
    """A client for `client=` and `clients=`, in place of a boto3 client of that Region. Threads may
    share it.

    session: one of botocore's, for its credentials and settings; default: the process's, as for
    every client of ours. Raises InvalidSettings and NotAllowed.
    """

    def __init__(
        self, region: str, endpoint_url: str | None = None, *, session: Session | None = None
    ) -> None:
        session = session or process_session()
        made: Any = make_client(region, endpoint_url, session)
        self._credentials: Any = _Own(session)
        self._meta, self._errors, self._parser = made.meta, made.exceptions, create_parser("json")
        self._host = _host(self._meta)
        ca_file = get_cert_path(session.get_config_variable("ca_bundle") or True)
        self._connections = Connections(self._meta.endpoint_url, ca_file)

    def __getattr__(self, operation: str) -> Any:
        if operation not in OPERATIONS:
            raise AttributeError(f"FastClient has no {operation}: a boto3 client does.")
        return partial(self._call, operation.title().replace("_", ""))

    def close(self) -> None:
        """Close the connections of this process that no call uses; a later call opens another."""
        self._connections.close()

    def _call(self, name: str, /, **arguments: Any) -> Any:
        model, events = self._meta.service_model.operation_model(name), self._meta.events
        body, context = _encode(arguments).encode(), dict[str, Any]()
        for attempts in count(1):
            failure = response = None
            try:
                headers = self._signed(name, body)
            except Exception as error:
                events.emit(f"after-call-error.dynamodb.{name}", exception=error, context=context)
                raise
            try:
                answer = self._connections.send(headers, body)
                response = answer, (parsed := self._parsed(answer, model))
            except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
                failure = error
            if response and answer.status_code < 300:
                break
            about = {
                "operation": model,
                "request_dict": {"context": context},
                "endpoint": None,
                "attempts": attempts,
            }
            about |= {"response": response, "caught_exception": failure}
            pause = first_non_none_response(events.emit(f"needs-retry.dynamodb.{name}", **about))
            if pause is None:
                break
            time.sleep(pause)
        if failure:
            raise failure
        parsed["ResponseMetadata"]["RetryAttempts"] = attempts - 1
        about = {"http_response": answer, "parsed": parsed, "model": model, "context": context}
        # gives back what a retry took of the quota
        events.emit(f"after-call.dynamodb.{name}", **about)
        if answer.status_code >= 300:
            raise self._errors.from_code(parsed["Error"]["Code"])(parsed, name)
        return parsed

    def _parsed(self, answer: Answer, model: Any) -> dict[str, Any]:
        """The answer as boto3 parses it.

        Raises HTTPClientError for a body that DynamoDB never sends.
        """
        status, headers, content = answer
        try:
            if status < 300:
                parsed: dict[str, Any] = json.loads(content)
                named = (
                    {"RequestId": headers["x-amzn-requestid"]}
                    if "x-amzn-requestid" in headers
                    else {}
                )
                parsed |= {
                    "ResponseMetadata": named | {"HTTPStatusCode": status, "HTTPHeaders": headers}
                }
            if status >= 300 or b'"B' in content:  # an error, or perhaps bytes
                given = {"status_code": status, "headers": headers, "body": content}
                parsed = self._parser.parse(given, model.output_shape)
            code = parsed["Error"]["Code"] if status >= 300 else ""
            shape = model.service_model.shape_for_error_code(code)
            return parsed if shape is None else parsed | self._parser.parse(given, shape)
        except Exception as error:
            raise exceptions.HTTPClientError(
                error=f"DynamoDB never sends {content[:99]!r}"
            ) from error

    def _signed(self, name: str, body: bytes) -> dict[str, str]:
        """The headers of a request, signed by version 4.

        Raises NoCredentialsError, and what a refresh raises.
        """
        if self._credentials is None:
            raise exceptions.NoCredentialsError
        given = self._credentials.get_frozen_credentials()
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "host": self._host,
            "x-amz-date": now,
        }
        if given.token:
            headers["x-amz-security-token"] = given.token
        headers["x-amz-target"] = f"DynamoDB_20120810.{name}"
        signed, scope = (
            ";".join(headers),
            f"{now[:8]}/{self._meta.region_name}/dynamodb/aws4_request",
        )
        lines = "".join(f"{header}:{value}\n" for header, value in headers.items())
        canonical = f"POST\n/\n\n{lines}\n{signed}\n{sha256(body).hexdigest()}"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{given.secret_key}".encode()
        for part in (*scope.split("/"), text):  # the last one is the signature
            key = hmac.digest(key, part.encode(), "sha256")
        credential = f"Credential={given.access_key}/{scope}"
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={signed}, Signature={key.hex()}"
        )
        return headers | {"accept-encoding": "identity", "user-agent": self._meta.config.user_agent}


class _Own:
    """The credentials of a session.

    A forked child finds its own, and waits for no lock of its parent.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._process = session, os.getpid()
        self._found: Any = session.get_credentials()

    def get_frozen_credentials(self) -> Any:
        """Raises NoCredentialsError, and what a refresh raises."""
        if self._process != os.getpid():
            self._session = session_again(self._session)
            self._found, self._process = self._session.get_credentials(), os.getpid()
        if self._found is None:
            raise exceptions.NoCredentialsError
        return self._found.get_frozen_credentials()


def _host(meta: Any) -> str:
    """The host header of requests.

    Raises InvalidSettings where the endpoint needs more than this client does.
    """
    url = urlsplit(str(meta.endpoint_url))
    refused = {
        "a path in an endpoint": url.path not in ("", "/") or url.query,
        "proxies": meta.config.proxies or get_environ_proxies(meta.endpoint_url).get(url.scheme),
        "account_id_endpoint_mode=required": getattr(meta.config, "account_id_endpoint_mode", "")
        == "required",
    }
    for what in (what for what, is_set in refused.items() if is_set):
        raise InvalidSettings(
            f"FastClient does not know {what} ({meta.endpoint_url}). Use a boto3 client."
        )
    return (
        url.netloc.rpartition("@")[2]
        .lower()
        .removesuffix({"http": ":80", "https": ":443"}[url.scheme])
    )
