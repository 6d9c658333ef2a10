"""The problem that an error of the library is.

Rule 1: The first class that fits decides, and what fits none is for the operator.
Rule 2: Every one says what was written, or what was decided, and what to do.
Rule 3: A hold that ended is told by its state alone: what of it counts is an amount, and stands in the history.
"""

from typing import Any

from ledger import errors
from ledger.errors import LedgerError
from service.api.problems import NOT_WRITTEN, Problem

_NAMES: tuple[tuple[type[LedgerError], str, str], ...] = (
    (
        errors.InvalidChange,
        "invalid-change",
        "A change is a whole number of magnitude at most 10^18. A hold is not of 0, and is captured from 0 to its "
        f"amount. {NOT_WRITTEN}",
    ),
    (errors.InvalidKey, "invalid-key", f"An idempotency key is text of 1 to 1,024 bytes of UTF-8. {NOT_WRITTEN}"),
    (
        errors.InvalidTime,
        "invalid-time",
        "A time has an offset and is from 1970 to five minutes ahead; a hold is not over before it is granted. "
        f"{NOT_WRITTEN}",
    ),
    (errors.InvalidInput, "invalid-request", f"An argument is not acceptable. {NOT_WRITTEN}"),
    (
        errors.TokenConflict,
        "token-conflict",
        "This counter, key and time already stand for another change or hold, which counts. A new one needs a new key. "
        f"{NOT_WRITTEN}",
    ),
    (
        errors.LimitReached,
        "limit-reached",
        "All Regions together have too little left. Nothing counts, and that is final for this key, whatever comes "
        "back meanwhile. A new attempt needs a new key.",
    ),
    (
        errors.OutOfReach,
        "out-of-reach",
        "This Region has too little left, and one that may have more did not answer. Nothing was decided. Repeat the "
        "request with the same idempotency key, the same time and the same region.",
    ),
    (errors.HoldEnded, "hold-ended", f"See state: a hold ends once, and the first end is final. {NOT_WRITTEN}"),
    (
        errors.NoSuchHold,
        "no-such-hold",
        f"It was never granted, or its id or its counter is not as the answer gave it. {NOT_WRITTEN}",
    ),
    (errors.Throttled, "throttled", f"Repeat the request, slower. {NOT_WRITTEN}"),
    (
        errors.OutcomeUnknown,
        "outcome-unknown",
        "Repeat the request as it was, with the same idempotency key, the same time and the same region if it has "
        "them: it counts once.",
    ),
    (errors.Unavailable, "unavailable", f"Repeat the request. {NOT_WRITTEN}"),
    (errors.TransactionConflict, "unavailable", f"Repeat the request. {NOT_WRITTEN}"),
    (errors.GaveUp, "unavailable", "The gate changed too often. Nothing was decided. Repeat the request as it was."),
    (errors.ReadTooSlow, "unavailable", f"The compactor must run; then repeat the request. {NOT_WRITTEN}"),
    (
        errors.NotYetReplicated,
        "not-yet-replicated",
        f"Repeat the request later, or in the counter's home Region. {NOT_WRITTEN}",
    ),
    (errors.DamagedItem, "damaged", f"The operator must look at the service's log. {NOT_WRITTEN}"),
    (errors.GateLost, "damaged", f"The counter's gate is gone: the operator must restore it. {NOT_WRITTEN}"),
)


def problem_of(error: LedgerError) -> Problem:
    """The problem that an error of the library is. Only an unknown outcome may have let something count."""
    members: dict[str, Any] = {}
    if error.delta is not None:
        members = {"region": error.delta.lane.region, "token": error.delta.token}
    if isinstance(error, errors.HoldEnded):
        members |= {"state": error.state}
    for kind, name, detail in _NAMES:
        if isinstance(error, kind):
            return Problem(name, detail, members=members)
    return Problem("misconfigured", f"The operator must look at the service's log. {NOT_WRITTEN}", members=members)
