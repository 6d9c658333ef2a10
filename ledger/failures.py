"""What a failure of botocore means: the one place where a ClientError becomes one of ours.

Rules: whatever may have been applied is OutcomeUnknown, never a plain failure; a refusal counts as "nothing was
written" only when no earlier attempt of the same write can have been applied; an unknown code of a write is
OutcomeUnknown.
Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html and
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError, PartialCredentialsError

from ledger import errors
from ledger.errors import LedgerError
from ledger.requests import Item

_THROTTLING = {
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "ThrottlingError",
    "RequestLimitExceeded",
}
_CONFLICT = {"TransactionConflict", "TransactionConflictException", "TransactionInProgressException"}
_NOT_ALLOWED = {
    "AccessDeniedException",
    "AccessDenied",
    "UnrecognizedClientException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "IncompleteSignatureException",
}


class ConditionFailed(Exception):
    """Not a failure to a program: the condition of a write did not hold; `item` is what was there."""

    def __init__(self, item: Item) -> None:
        self.item = item


def error_of(failure: ClientError | BotoCoreError, operation: str, writes: bool, table: str) -> Exception:
    """Our error for botocore's. What was sent more than once, and refused only then, may have been applied before."""
    if not isinstance(failure, ClientError):
        if isinstance(failure, NoCredentialsError | PartialCredentialsError | NoRegionError):
            return errors.NotAllowed(f"{operation}: {failure}. Nothing was written. Give this process credentials.")
        return no_answer(operation, writes, str(failure))
    answer: Any = failure.response
    code, message = answer["Error"].get("Code", ""), answer["Error"].get("Message", str(failure))
    if code == "ConditionalCheckFailedException":
        return ConditionFailed(answer.get("Item") or {})
    if code == "TransactionCanceledException":
        reasons = {reason.get("Code") for reason in answer.get("CancellationReasons", [])}
        if "ConditionalCheckFailed" in reasons:
            return ConditionFailed({})
        code = next(iter(reasons & (_CONFLICT | _THROTTLING)), f"{code} {sorted(map(str, reasons))}")
    sent_before = answer.get("ResponseMetadata", {}).get("RetryAttempts", 0) > 0
    if writes and sent_before and operation != "transact_write_items":  # its token makes a repeat harmless
        return no_answer(operation, writes, f"{code} after retries: {message}")
    return known(code, f"{operation} on {table}: {message}") or no_answer(operation, writes, f"{code}: {message}")


def known(code: str, message: str) -> LedgerError | None:
    """The error of a refusal that certainly wrote nothing; None for everything else."""
    if code in _THROTTLING:
        return errors.Throttled(f"{message} Nothing was written. Call again, slower.")
    if code in _CONFLICT:
        return errors.TransactionConflict(f"{message} Nothing was written. Call again.")
    if code in _NOT_ALLOWED:
        return errors.NotAllowed(f"{message} Nothing was written. Check this process's role.")
    if code in ("ResourceNotFoundException", "ResourceNotFound"):
        return errors.TableMissing(f"{message} Nothing was written. Check table, region and endpoint_url.")
    if code in ("ValidationException", "ValidationError"):
        return errors.TableMismatch(f"{message} Nothing was written. The table needs the string keys pk and sk.")
    return None


def no_answer(operation: str, writes: bool, why: str) -> LedgerError:
    if writes:
        return errors.OutcomeUnknown(
            f"{operation} may or may not have been applied ({why}). "
            "Call again with the same idempotency key and at, or apply this error's delta: it counts once."
        )
    return errors.Unavailable(f"{operation} got no answer ({why}). Nothing was written. Read again later.")
