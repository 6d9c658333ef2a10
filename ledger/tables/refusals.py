"""What DynamoDB's refusals mean: for each code the error of ours, and what to do next.

Rule 1: Only a code that stands here certainly wrote nothing. An unknown code of a write is
OutcomeUnknown (`failures.py`).
Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html,
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html and
https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html
"""

from typing import Any

from ledger.core import errors
from ledger.core.errors import LedgerError

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
UNACCEPTED = {
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
"""The codes by which AWS does not accept credentials at all, so they say nothing of a role."""

# Such a signature or token says nothing of rights: it was refused before anything was read, and
# the next request has a new one.
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
    " Call again, which signs anew. Check this machine's clock, whether the machine was stopped "
    "for minutes, and whether its credentials have expired."
)
_MISSING = {"ResourceNotFoundException", "ResourceNotFound"}
_INVALID = {"ValidationException", "ValidationError"}

_REFUSALS: dict[str, tuple[type[LedgerError], str]] = {
    **dict.fromkeys(THROTTLING, (errors.Throttled, " Call again, slower.")),
    **dict.fromkeys(CONFLICT, (errors.TransactionConflict, " Call again.")),
    **dict.fromkeys(_DENIED, (errors.NotAllowed, " Check this process's role.")),
    **dict.fromkeys(UNACCEPTED, (errors.NotAllowed, " Check this process's credentials.")),
    **dict.fromkeys(_TOO_OLD, (errors.Unavailable, _SIGN_AGAIN)),
    **dict.fromkeys(
        _MISSING,
        (
            errors.TableMissing,
            " Check table, region and endpoint_url, or make it with `ledgerctl init`.",
        ),
    ),
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


def reasons_of(answer: Any) -> tuple[str, ...]:
    """Why DynamoDB throttled a request, in its own words; nothing where it does not say."""
    found = answer.get("ThrottlingReasons") or answer.get("throttlingReasons") or ()
    try:
        return tuple(dict.fromkeys(str(reason["reason"]) for reason in found))
    except (LookupError, TypeError):
        return ()
