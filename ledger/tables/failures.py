"""What a failure of botocore means: here alone it becomes one of our errors.

Rule 1: A write that may have been applied is OutcomeUnknown, never a plain failure. So is an
unknown code of a write.
Rule 2: A refusal counts as "nothing was written" only when no earlier attempt of the same write can
have been applied.
Rule 3: A missing connection means that nothing was sent only when no attempt of the call found one:
`note_attempts`.
Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
and https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING, Any

from botocore.client import BaseClient
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
)

from ledger.core import errors
from ledger.core.errors import LedgerError, shown
from ledger.core.requests import Item
from ledger.tables import refusals

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient as DynamoDBClient
else:  # its types are not installed with this library
    DynamoDBClient = Any


FAILED = (ClientError, BotoCoreError, RuntimeError)
"""What botocore raises where a request fails.

Credentials that stay expired after a refresh are a RuntimeError.
"""

_SAYS = {"get_item": "Item", "update_item": "Attributes", "execute_statement": "Items"}
_ALWAYS = {
    "query": "Items",
    "scan": "Items",
    "batch_get_item": "Responses",
    "batch_execute_statement": "Responses",
}

_NO_CONNECTION = (EndpointConnectionError, ConnectTimeoutError)
_WITHOUT_CONNECTION = " If that fails, too, check the Region's name, the endpoint and the network."
"""What to do next where a host was not found or refused: a typo looks like that, too."""

_TITLE = re.compile(r"<title>([^<]*)</title>", re.IGNORECASE)

_SENT = "exact-counter-sent"
"""How many attempts of a call may have reached DynamoDB."""


class ConditionFailed(Exception):
    """A condition failed: programs get it as an answer. `there`: what was there, by write; None
    where it held. resent: whether an earlier attempt may have been applied."""

    def __init__(self, *there: Item | None, resent: bool) -> None:
        self.there, self.resent = there, resent


def is_async(client: object) -> bool:
    """Whether it is a client of aiobotocore, whose calls are awaited."""
    return any(kind.__name__ == "AioBaseClient" for kind in type(client).__mro__)


def is_fast(client: object) -> bool:
    # by name, because only who uses FastClient imports it
    return any(kind.__name__ == "FastClient" for kind in type(client).__mro__)


def whose_blocks(client: object) -> str:
    """Whose client it is, where its calls block; else ""."""
    if is_fast(client):
        return "a FastClient"
    return "boto3's" if isinstance(client, BaseClient) and not is_async(client) else ""


def note_attempts(client: DynamoDBClient) -> DynamoDBClient:
    """`client` itself, whose failures now say how many attempts may have reached DynamoDB, and
    which takes no half answer. An object that is no client stays as it is.

    botocore raises the failure of its last attempt, and does not say how earlier ones failed. A
    second call changes nothing.
    """
    if issubclass(type(client), BaseClient):
        client.meta.events.register(
            "needs-retry.dynamodb", _note_attempt, unique_id="ledger-attempts"
        )
        client.meta.events.register(
            "after-call-error.dynamodb", _note_sent, unique_id="ledger-sent"
        )
        check: Any = _check_awaited if is_async(client) else _check_answer
        client.meta.events.register("after-call.dynamodb", check, unique_id="ledger-answers")
    return client


def _check_answer(http_response: Any, parsed: Any, **_: Any) -> None:
    if _came(http_response):
        _check_content(http_response, http_response.content, parsed)


async def _check_awaited(http_response: Any, parsed: Any, **_: Any) -> None:
    if _came(http_response):
        _check_content(http_response, await http_response.content, parsed)


def _came(http_response: Any) -> bool:
    """Whether a success came over a wire: a stub's may be anything."""
    # a stub has no raw response; FastClient's has none either, and is checked there
    is_stub = getattr(http_response, "raw", None) is None
    return bool(http_response.status_code < 300) and not is_stub


def _check_content(http_response: Any, content: bytes, parsed: dict[str, Any]) -> None:
    """Raises ConnectionClosedError for what DynamoDB never sends, so that it counts as no
    answer.
    """
    # botocore takes half a body for an empty one, so that a read would find nothing. Every request
    # asks for its cost, so no answer is empty.
    try:
        checksum = http_response.headers.get("x-amz-crc32")
        if checksum is not None and int(checksum) != zlib.crc32(content):
            raise ValueError("the answer differs from its checksum")
        if parsed.keys() <= {"ResponseMetadata"}:
            json.loads(content)
    except ValueError as error:
        raise ConnectionClosedError(endpoint_url=http_response.url, error=error) from error


def is_foreign(answer: Any, operation: str) -> bool:
    """Whether a success is none of DynamoDB: another server's, or a proxy's, which lacks what the
    operation always answers.
    """
    if operation in _ALWAYS:
        return _ALWAYS[operation] not in answer
    known = {"ConsumedCapacity", _SAYS.get(operation)}
    return "HTTPStatusCode" in (answer.get("ResponseMetadata") or ()) and not answer.keys() & known


def _note_attempt(request_dict: Any, caught_exception: Exception | None = None, **_: Any) -> None:
    """Count each attempt of a call that may have reached DynamoDB; the request's context is the
    call's own.

    aiobotocore has one error for a connection that broke and for one that was never made. aiohttp
    names the second; any other error of aiohttp may have come after the request.
    """
    context, error = request_dict["context"], getattr(caught_exception, "kwargs", {}).get("error")
    of_aiohttp = {
        kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("aiohttp.")
    }
    broke = bool(of_aiohttp) and "ClientConnectorError" not in of_aiohttp
    was_sent = broke or not isinstance(caught_exception, _NO_CONNECTION)
    sent = context[_SENT] = context.get(_SENT, 0) + was_sent
    if caught_exception is not None:
        vars(caught_exception)[_SENT] = sent


def _note_sent(exception: Exception, context: Any, **_: Any) -> None:
    """Note the attempts on an error that is no answer of DynamoDB, such as AWS STS's refusal of
    credentials. One that botocore could not read came in answer to an attempt, too."""
    unread = not isinstance(exception, FAILED) or isinstance(exception, RecursionError)
    vars(exception).setdefault(_SENT, context.get(_SENT, 0) + unread)


def is_of_a_request(failure: Exception) -> bool:
    """Whether a client raised it where a request failed, and not its caller by a mistake of its
    own.
    """
    return isinstance(failure, FAILED) or _SENT in vars(failure)


def attempts(failure: Exception) -> int:
    """How many HTTP requests a failed call made."""
    unknown = 0 if isinstance(failure, NoCredentialsError | PartialCredentialsError) else 1
    answered = attempts_of(failure.response) if isinstance(failure, ClientError) else unknown
    noted: int = vars(failure).get(_SENT, answered)
    return noted


def attempts_of(answer: Any) -> int:
    """How many HTTP requests the call of a response made; 1 where the response does not say."""
    try:
        return 1 + int(answer["ResponseMetadata"]["RetryAttempts"])
    except (LookupError, TypeError, ValueError):
        return 1


def error_of(failure: Exception, operation: str, writes: bool, table: str) -> Exception:
    """Our error for botocore's.

    A write that was sent more than once, and then refused, may have been applied.
    """
    sent = vars(failure).get(_SENT)
    if not isinstance(failure, ClientError):
        if isinstance(failure, NoCredentialsError | PartialCredentialsError) and not sent:
            return errors.NotAllowed(
                f"{operation}: {failure}. Nothing was written. Give this process credentials."
            )
        check = _WITHOUT_CONNECTION if isinstance(failure, EndpointConnectionError) else ""
        if writes and sent == 0:
            return errors.Unavailable(
                f"{operation} was not sent ({failure}). Nothing was written. Call again.{check}"
            )
        return no_answer(operation, writes, str(failure), check)
    code = code_of(failure)
    answer: Any = failure.response
    message = _said(answer["Error"].get("Message", str(failure)))
    sent_before = bool(sent) or attempts_of(answer) > 1
    if code == "ConditionalCheckFailed":
        reasons = answer.get("CancellationReasons") or [{"Code": code, **answer}]
        there = ((why.get("Item") or {}) if why.get("Code") == code else None for why in reasons)
        return ConditionFailed(*there, resent=sent_before)
    if writes and (sent_before or code == "TransactionInProgressException"):
        return no_answer(operation, writes, f"{code}: {message}")
    why = f"{operation} on {table}: {message}"
    return refusals.known(code, why, refusals.reasons_of(answer)) or no_answer(
        operation, writes, f"{code}: {message}"
    )


def _said(message: str) -> str:
    """What an answer says. Of a proxy's page, which botocore takes for a message, its title."""
    if not message.lstrip().startswith("<"):
        return message
    title = _TITLE.search(message)
    return f"a page, {shown(title[1].strip())}" if title else "a page, and no answer of DynamoDB"


def code_of(failure: BaseException | None) -> str:
    """The code of a ClientError; for a cancelled transaction the code of the reason that matters
    most; else "".
    """
    if not isinstance(failure, ClientError):
        return ""
    answer: Any = failure.response
    code: str = answer["Error"].get("Code", "")
    if code != "TransactionCanceledException":
        return code.removesuffix("Exception") if code == "ConditionalCheckFailedException" else code
    reasons = {reason.get("Code") for reason in answer.get("CancellationReasons") or ()}
    in_order = (
        "ConditionalCheckFailed",
        "ValidationError",
        *sorted(refusals.CONFLICT),
        *sorted(refusals.THROTTLING),
    )
    return next((reason for reason in in_order if reason in reasons), code)


def no_client(failure: Exception) -> LedgerError:
    return errors.NotAllowed(
        f"boto3 makes no client: {failure}. Nothing was written. Give this process credentials."
    )


def no_answer(operation: str, writes: bool, why: str, check: str = "") -> LedgerError:
    """check: what a reader looks at where another call fails, too."""
    if writes:
        return errors.OutcomeUnknown(f"{operation} may or may not have been applied ({why}).")
    return errors.Unavailable(
        f"{operation} got no answer ({why}). Nothing was written. Call again later.{check}"
    )
