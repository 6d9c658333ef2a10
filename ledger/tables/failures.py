"""What a failure of botocore means: here alone a ClientError becomes one of our errors.

Rule 1: A write that may have been applied is OutcomeUnknown, never a plain failure.
Rule 2: A refusal counts as "nothing was written" only when no earlier attempt of the same write can
have been applied.
Rule 3: An unknown code of a write is OutcomeUnknown. A missing connection means that nothing was
sent only when no
attempt of the call found one: `note_attempts`.
Rule 4: What DynamoDB never sends is no answer: half a body, which botocore takes for an empty one,
so that a read would find nothing; one that differs from its checksum; one that botocore cannot
read; one without what the operation always answers. Every request asks for its cost, so no answer
is empty. A stub's answer, which came over no wire, may be.
Rule 5: A signature or a token that is too old says nothing of rights: it was refused before
anything was read, and the next request has a new one.
Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html,
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html,
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html and
https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html
"""

from __future__ import annotations

import json
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
from ledger.core.errors import LedgerError
from ledger.core.requests import Item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient as DynamoDBClient
else:  # its types are not installed with this library
    DynamoDBClient = Any


THROTTLING = {
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "ThrottlingError",
    "RequestLimitExceeded",
}
CONFLICT = {
    "TransactionConflict",
    "TransactionConflictException",
    "TransactionInProgressException",
    # of a table with multi-Region strong consistency, which botocore retries too
    "ReplicatedWriteConflictException",
    # of a PartiQL batch, if its codes lack "Exception" there, too: AWS lists none
    "ReplicatedWriteConflict",
}
DUPLICATE = {"DuplicateItemException", "DuplicateItem"}
_DENIED = {"AccessDeniedException", "AccessDenied"}
_NOT_ALLOWED = {
    *_DENIED,
    "UnrecognizedClientException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "MissingAuthenticationTokenException",
    "MissingAuthenticationToken",
    "IncompleteSignatureException",
    "IncompleteSignature",
    "NotAuthorized",
    "OptInRequired",
}
_TOO_OLD = {
    "ExpiredTokenException",
    "ExpiredToken",
    "TokenRefreshRequired",
    "RequestExpired",
    "RequestInTheFuture",
    "RequestTimeTooSkewed",
}
_SIGNATURE = {"InvalidSignatureException", "SignatureDoesNotMatch"}
_OF_A_TIME = ("signature expired", "signature not yet current")
"""What their message says where the time of the signature is wrong, and not the key."""
_SIGN_AGAIN = (
    " Call again, which signs anew. Check this machine's clock, whether it was stopped for "
    "minutes, and that its credentials are not over."
)
_MISSING = {"ResourceNotFoundException", "ResourceNotFound"}
_INVALID = {"ValidationException", "ValidationError"}

_REFUSALS: dict[str, tuple[type[LedgerError], str]] = {
    **dict.fromkeys(THROTTLING, (errors.Throttled, " Call again, slower.")),
    **dict.fromkeys(CONFLICT, (errors.TransactionConflict, " Call again.")),
    **dict.fromkeys(_NOT_ALLOWED, (errors.NotAllowed, " Check this process's role.")),
    **dict.fromkeys(_TOO_OLD, (errors.Unavailable, _SIGN_AGAIN)),
    **dict.fromkeys(_MISSING, (errors.TableMissing, " Check table, region and endpoint_url.")),
    **dict.fromkeys(
        _INVALID, (errors.TableMismatch, " The table needs the string keys pk and sk.")
    ),
    "IdempotentParameterMismatchException": (errors.TokenConflict, ""),
}
"""The error of each code that certainly wrote nothing, and what to do next."""

_LIMITS = {
    "KeyRangeThroughput": (
        "one partition key, so one lane, is busier than DynamoDB allows: the counter needs shards."
    ),
    "AccountLimit": "the table reached a quota of the account: ask AWS for a higher one.",
    "MaxOnDemandThroughput": (
        "the table reached its own maximum, tableWrites or tableReads: raise it."
    ),
    "ProvisionedThroughput": "the table reached its provisioned capacity: raise it.",
}
"""What a ThrottlingReason names, and what to do.

Its form: Table or Index, Read or Write, one of these, Exceeded.
"""

_NO_TRANSACTIONS = (  # AWS says that it is an error there, and not which
    " Or it is a global table with multi-Region strong consistency, which refuses transactions: "
    "there only counters with a limit work, and nothing is folded."
)

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


def note_attempts(client: DynamoDBClient) -> DynamoDBClient:
    """`client` itself, whose failures now say how many attempts may have reached DynamoDB, and
    which takes no half answer. An object that is no client stays as it is.

    botocore raises what its last attempt met and does not say what earlier ones met. A second call
    changes nothing.
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
    """Whether a success came over a wire.

    A stub has no raw response; FastClient's has none either, and is checked.
    """
    is_stub = getattr(http_response, "raw", None) is None
    return bool(http_response.status_code < 300) and not is_stub


def _check_content(http_response: Any, content: bytes, parsed: dict[str, Any]) -> None:
    try:
        checksum = http_response.headers.get("x-amz-crc32")
        if checksum is not None and int(checksum) != zlib.crc32(content):
            raise ValueError("the answer differs from its checksum")
        if parsed.keys() <= {"ResponseMetadata"}:
            json.loads(content)
    except ValueError as error:
        raise ConnectionClosedError(endpoint_url=http_response.url, error=error) from error


def is_foreign(answer: Any, operation: str) -> bool:
    """Whether a success is none of DynamoDB: another server's, or a proxy's."""
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
        if writes and sent == 0:
            return errors.Unavailable(
                f"{operation} was not sent ({failure}). Nothing was written. Call again."
            )
        return no_answer(operation, writes, str(failure))
    code = code_of(failure)
    answer: Any = failure.response
    message = answer["Error"].get("Message", str(failure))
    sent_before = bool(sent) or attempts_of(answer) > 1
    if code == "ConditionalCheckFailed":
        reasons = answer.get("CancellationReasons") or [{"Code": code, **answer}]
        there = ((why.get("Item") or {}) if why.get("Code") == code else None for why in reasons)
        return ConditionFailed(*there, resent=sent_before)
    if writes and (sent_before or code == "TransactionInProgressException"):
        return no_answer(operation, writes, f"{code}: {message}")
    why = f"{operation} on {table}: {message}"
    return known(code, why, _reasons(answer)) or no_answer(operation, writes, f"{code}: {message}")


def _reasons(answer: Any) -> tuple[str, ...]:
    """Why DynamoDB throttled a request, in its own words; nothing where it does not say."""
    found = answer.get("ThrottlingReasons") or answer.get("throttlingReasons") or ()
    try:
        return tuple(dict.fromkeys(str(reason["reason"]) for reason in found))
    except (LookupError, TypeError):
        return ()


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
    in_order = ("ConditionalCheckFailed", "ValidationError", *sorted(CONFLICT), *sorted(THROTTLING))
    return next((reason for reason in in_order if reason in reasons), code)


def known(code: str, message: str, reasons: tuple[str, ...] = ()) -> LedgerError | None:
    """The error of a refusal that certainly wrote nothing; None for everything else.

    reasons: for throttling.
    """
    if code not in _REFUSALS:
        return None
    kind, next_step = _REFUSALS[code]
    if code in _SIGNATURE and any(words in message.lower() for words in _OF_A_TIME):
        kind, next_step = errors.Unavailable, _SIGN_AGAIN
    if kind is errors.Throttled:
        next_step += "".join(
            f" {name}: {do}" for name in reasons for limit, do in _LIMITS.items() if limit in name
        )
    if kind is errors.TableMismatch and "Item size" in message:
        kind, next_step = errors.ItemTooLarge, " No retry helps."
    elif kind is errors.TableMismatch and message.startswith("transact_write_items "):
        next_step += _NO_TRANSACTIONS
    error = kind(f"{message.rstrip('. ')}. Nothing was written.{next_step}")
    if isinstance(error, errors.Throttled):
        error.reasons = reasons
    if isinstance(error, errors.NotAllowed):
        error.is_denied = code in _DENIED
    return error


def no_client(failure: Exception) -> LedgerError:
    return errors.NotAllowed(
        f"boto3 makes no client: {failure}. Nothing was written. Give this process credentials."
    )


def no_answer(operation: str, writes: bool, why: str) -> LedgerError:
    if writes:
        return errors.OutcomeUnknown(f"{operation} may or may not have been applied ({why}).")
    return errors.Unavailable(
        f"{operation} got no answer ({why}). Nothing was written. Call again later."
    )
