"""Problem details (RFC 9457): what went wrong, what was written, and what the caller does next, in
this order.

Rule 1: Every answer that is not a success is one of these.
Rule 2: A problem's type is a name in docs/http-api.md, and always has the same status.
Rule 4: No text of a problem holds an amount, an exception of other code, or a key, but the
canonical spelling of a key in another spelling. A hold that ended has only its state there: what of
it counts is an amount. The members of `over-budget` say what is left, and those of a settlement
what counts, because the caller goes on by that.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ledger.budgets.errors import NotCounted, SettledOtherwise
from ledger.client.message import time_text
from ledger.core import errors
from ledger.core.checks import to_ms
from ledger.core.errors import NOT_WRITTEN, LedgerError

CONTENT_TYPE = "application/problem+json"
TYPE = "urn:ledger:problem:"

TITLES = {
    "malformed-request": (400, "The request cannot be read"),
    "idempotency-key-missing": (400, "The request has no Idempotency-Key"),
    "no-such-route": (404, "There is nothing at this path"),
    "invalid-counter": (404, "The path holds no counter's name"),
    "no-such-region": (404, "The service does not have this Region"),
    "no-limit": (404, "The counter has no limit"),
    "no-such-hold": (404, "The counter has no such hold"),
    "other-counter": (404, "The path has another counter than the request names"),
    "invalid-cursor": (404, "The cursor is not one of this list"),
    "method-not-allowed": (405, "This path does not have this method"),
    "token-conflict": (409, "The key already stands for another change"),
    "limit-reached": (409, "A limit is in the way"),
    "period-over": (409, "The counter's period is over"),
    "over-budget": (409, "A counter has too little left to reserve"),
    "hold-ended": (409, "The hold was captured, released or is over"),
    "body-too-large": (413, "The body is too large"),
    "not-json": (415, "The body is not JSON"),
    "invalid-request": (422, "A field or a parameter is not acceptable"),
    "invalid-change": (422, "The change is not acceptable"),
    "invalid-key": (422, "The idempotency key is not acceptable"),
    "invalid-time": (422, "The time is not acceptable"),
    "throttled": (429, "The table refuses more requests at the moment"),
    "internal": (500, "The service failed"),
    "misconfigured": (500, "The service is not set up as it must be"),
    "damaged": (500, "An item of the table is damaged or gone"),
    "unavailable": (503, "The table did not answer"),
    "out-of-reach": (503, "Another Region has to answer, and does not"),
    "transfer-stuck": (503, "The transfer cannot be given back for lack of room"),
    "not-yet-replicated": (503, "This Region does not hold everything yet"),
    "outcome-unknown": (504, "The change may or may not have been recorded"),
}
"""Name -> status, title."""

ELSEWHERE = "Give such a name in the body of POST /deltas."


class Problem(Exception):
    """A request that the API answers with problem details. members: further fields of the answer.

    says_what_counts: the detail itself says what may be written. After any other problem nothing
    was written.
    resets_at: when the next period begins, by UTC, and with it the refusal ends; the answer leaves
    it out once that has passed.
    """

    def __init__(
        self,
        name: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
        says_what_counts: bool = False,
        resets_at: datetime | None = None,
    ) -> None:
        super().__init__(detail)
        self.name = name
        self.status, self.title = TITLES[name]
        self.detail = detail
        self.members = {
            **(members or {}),
            **({} if resets_at is None else {"resets_at": time_text(resets_at)}),
        }
        self.headers = {"Content-Type": CONTENT_TYPE, **(headers or {})}
        if self.status in (429, 503, 504):
            self.headers["Retry-After"] = "1"
        self._says_what_counts, self._resets_at = says_what_counts, resets_at

    def body(self, of_read: bool = False) -> dict[str, Any]:
        # Rule 3: a write's problem says whether anything was written; a read's does not.
        detail = self.detail if of_read or self._says_what_counts else self.detail + NOT_WRITTEN
        return {
            "type": TYPE + self.name,
            "title": self.title,
            "status": self.status,
            "detail": detail,
        } | self.members

    def answer(self, now_ms: int, of_read: bool = False) -> dict[str, Any]:
        """As API Gateway takes it from a function."""
        if self._resets_at is not None and (wait_ms := to_ms(self._resets_at) - now_ms) > 0:
            self.headers["Retry-After"] = str(-(-wait_ms // 1_000))
        else:  # a name has no zone: in one west of UTC its period goes on for some hours
            self.members.pop("resets_at", None)
        body = json.dumps(self.body(of_read))
        return {
            "statusCode": self.status,
            "headers": self.headers,
            "body": body,
            "isBase64Encoded": False,
        }


def invalid(found: Iterable[Mapping[str, Any]]) -> Problem:
    """The problem of a request that does not fit its description: it names the places and what
    is wrong, no value.
    """
    hidden = ("value_error", "assertion_error")  # the text of an exception may quote the value
    places = [
        {
            "at": "/".join(map(str, each["loc"])),
            "error": "not acceptable" if each["type"] in hidden else str(each["msg"]),
        }
        for each in found
    ]
    return Problem("invalid-request", "See errors.", members={"errors": places})


def no_such_route() -> Problem:
    return Problem("no-such-route", "docs/openapi.json has the paths.")


_OPERATOR = "The operator must look at the service's log."
_AS_IT_WAS = "Repeat the request with the same idempotency key, the same time and the same region"
_CHANGE = (
    "A change is a whole number of magnitude at most 10^18. A hold is captured up to its amount. "
    "Under a ceiling it is above 0, under a floor below 0: else it would set nothing aside."
)
_NAME = (
    "A name has 256 characters at most. Where counters have periods it ends with one period, "
    "such as @2026-11."
)
_TIME = (
    "A time has an offset, is from 1970 to five minutes ahead, and is in the period of a name "
    "that ends with one; a hold is not over before it is granted."
)
_TAKEN = (
    "This counter, key and time already stand for another change or hold. A new one needs a "
    "new key."
)
_LIMIT = (
    "All Regions together have too little left. Nothing counts, and that is final: a new "
    "attempt needs a new key."
)
_OVER = (
    "The period is over: see since. No further attempt counts; an earlier one, without an "
    "answer, may."
)
_NOT_COUNTED = (
    "The period of a counter is over: see since. What it holds counts; a cost above that does "
    "not: over says how much is in no counter, unless an earlier request counted it."
)
_REACH = (
    "This Region has too little left, and one that may have more did not answer. Nothing "
    "was decided."
)
_STUCK = (
    "The debit counts, the target refused the credit, and the source has no room to take it "
    "back. Nothing is lost."
)
_NAMES: tuple[tuple[type[LedgerError], str, str], ...] = (
    (errors.InvalidChange, "invalid-change", _CHANGE),
    (errors.InvalidKey, "invalid-key", "An idempotency key is text of 1 to 1,024 bytes of UTF-8."),
    (errors.InvalidTime, "invalid-time", _TIME),
    (errors.InvalidCounter, "invalid-request", _NAME),
    (errors.InvalidInput, "invalid-request", "An argument is not acceptable."),
    (
        SettledOtherwise,
        "hold-ended",
        "It was settled before, with another cost, which stays: see counts.",
    ),
    (NotCounted, "period-over", _NOT_COUNTED),
    (errors.TokenConflict, "token-conflict", _TAKEN),
    (errors.LimitReached, "limit-reached", _LIMIT),
    (errors.PeriodOver, "period-over", _OVER),
    (errors.TransferStuck, "transfer-stuck", f"{_STUCK} Make room. {_AS_IT_WAS}."),
    (errors.OutOfReach, "out-of-reach", f"{_REACH} {_AS_IT_WAS}."),
    (errors.HoldEnded, "hold-ended", "See state: a hold ends once, and its first end is final."),
    (
        errors.NoSuchHold,
        "no-such-hold",
        "It was never granted, or its id or its counter is not as the answer gave it.",
    ),
    (errors.Throttled, "throttled", "Repeat the request, slower."),
    (
        errors.OutcomeUnknown,
        "outcome-unknown",
        f"Nobody knows whether it counts. {_AS_IT_WAS}: it counts once.",
    ),
    (errors.Unavailable, "unavailable", "Repeat the request."),
    (errors.TransactionConflict, "unavailable", "Repeat the request."),
    (
        errors.GaveUp,
        "unavailable",
        "Other requests changed what the limit leaves at each of many tries, or many holds that "
        "are over had to end first. Nothing was decided. Repeat the request as it was.",
    ),
    (
        errors.ReadTooSlow,
        "unavailable",
        "The read took too long. The compactor must run; then repeat the request.",
    ),
    (
        errors.NotYetReplicated,
        "not-yet-replicated",
        "A part of the counter's changes has not reached this Region yet. Repeat the request "
        "later.",
    ),
    (errors.DamagedItem, "damaged", _OPERATOR),
    (
        errors.GateLost,
        "damaged",
        "The counter's gate, the item that decides for its limit, is gone: the operator must "
        "restore it.",
    ),
    (LedgerError, "misconfigured", _OPERATOR),
)
_SAY_WHAT_COUNTS = (
    errors.LimitReached,
    errors.PeriodOver,
    errors.OutOfReach,
    errors.OutcomeUnknown,
    errors.GaveUp,
    errors.TransferStuck,
)


def problem_of(error: LedgerError) -> Problem:
    """The problem of an error of the library. Only after an unknown outcome may something count."""
    # Rule 5: of a library's error the first class that fits decides, and what fits none is for the
    # operator.
    members: dict[str, Any] = {}
    if error.delta is not None:
        members = {"region": error.delta.lane.region, "token": error.delta.token}
    if isinstance(error, errors.HoldEnded):
        members |= {"state": error.state}
    if isinstance(error, errors.PeriodOver) and error.since is not None:
        members |= {"since": time_text(error.since)}
    if isinstance(error, SettledOtherwise):
        members |= {"counts": {error.counter: error.actual}}
    if isinstance(error, NotCounted):
        members |= {"over": error.over}
    name, detail = next((name, detail) for kind, name, detail in _NAMES if isinstance(error, kind))
    resets_at = error.resets_at if isinstance(error, errors.LimitReached) else None
    says = isinstance(error, _SAY_WHAT_COUNTS)
    return Problem(name, detail, members=members, says_what_counts=says, resets_at=resets_at)


def over_budget(refused: errors.LimitReached) -> Problem:
    """The problem of a reservation that a limit refused.

    Where the refusal is repeated, `available` says what is left now.
    """
    members = {"counter": refused.counter, "available": refused.available}
    detail = "Nothing is held, and that is final: a new attempt needs a new key."
    return Problem(
        "over-budget", detail, members=members, says_what_counts=True, resets_at=refused.resets_at
    )


def in_part(error: LedgerError) -> Problem:
    """The problem of a request of several steps, one of which failed."""
    of_step = problem_of(error)
    passes = of_step.status in (429, 503, 504)
    again = " Repeat the request as it was, until you have an answer." if passes else ""
    detail = f"{of_step.detail} That was one step: those before it may count.{again}"
    return Problem(of_step.name, detail, members=of_step.members, says_what_counts=True)


def not_moved(counter: str, resets_at: datetime | None) -> Problem:
    """The problem of a transfer that the limit of a counter refused."""
    members = {"counter": counter}
    return Problem(
        "limit-reached", _LIMIT, members=members, says_what_counts=True, resets_at=resets_at
    )
