"""The routes of the HTTP API, on Powertools' resolver.

Rules: a route translates and nothing else, so what counts is decided by the library alone; every failure is a problem;
a route that adds gives the caller what a retry needs; who may call is decided by API Gateway, before this code; no
line above debug holds an amount. One request at a time: Powertools keeps the current one in its classes.
"""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.event_handler.openapi.models import Example
from aws_lambda_powertools.event_handler.openapi.params import Body, Header, Path, Query
from pydantic import BeforeValidator

from ledger import Change, Ledger, Receipt
from ledger.errors import InvalidInput, LedgerError
from ledger.message import time_text
from reader import Balance, Reader
from reader.reader import PAGE_ENTRIES_MAX, SECONDS_MAX
from service.api import cursor as cursors
from service.api.gate import admitted, json_object
from service.api.keys import key_of_header, time_of_key
from service.api.models import (
    EXAMPLE_KEY,
    Added,
    Bulk,
    BulkDelta,
    BulkResult,
    BulkResults,
    Counter,
    CounterBalance,
    History,
    HistoryEntry,
    NewDelta,
    ProblemDetails,
    Refused,
    Time,
)
from service.api.paths import name_of, no_such_route
from service.api.problems import Problem, invalid, problem_of
from service.api.responses import ADDED, BULK, READ
from service.observe import Watch
from service.outcomes import tell

TRY_IT = "/try-it"
HEADERS = {"Cache-Control": "no-store"}

InPath = Annotated[Counter, BeforeValidator(name_of), Path(description="the counter's name, percent-encoded")]
InQuery = Annotated[Counter, Query(description="the counter's name")]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        description="a ULID, a UUIDv7, or any other text with at",
        openapi_examples={"ulid": Example(value=EXAMPLE_KEY)},
    ),
]
MaxAge = Annotated[
    float, Query(ge=0, le=SECONDS_MAX, allow_inf_nan=False, description="seconds a cached value may have")
]
Consistent = Annotated[bool, Query(description="false: half the price, may lag a little, still a true sum")]
Since = Annotated[Time | None, Query(description="included; RFC 3339")]
Until = Annotated[Time | None, Query(description="excluded; RFC 3339")]
Limit = Annotated[int, Query(ge=1, le=PAGE_ENTRIES_MAX, description="entries of a page")]
Cursor = Annotated[str | None, Query(description="next of the page before")]


class Api:
    """The handler: an event of API Gateway's HTTP API (payload format 2.0) to an answer.

    reader reads strongly, eventual does not. try_it serves a page to try the API at /try-it.
    """

    def __init__(self, ledger: Ledger, reader: Reader, eventual: Reader, watch: Watch, *, try_it: bool = False) -> None:
        self._ledger = ledger
        self._readers = {True: reader, False: eventual}
        self._watch = watch
        self._pages = (TRY_IT,) if try_it else ()
        self.app = APIGatewayHttpResolver(enable_validation=True, json_body_deserializer=json_object, debug=False)
        self._route_writes()
        self._route_reads()
        self._route_failures()
        if try_it:
            self.app.enable_swagger(path=TRY_IT, title="exact-counter")

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        try:
            event = admitted(event, self._pages)
        except Problem as problem:
            return problem.answer()
        return self.app.resolve(event, context)

    def _route_writes(self) -> None:
        @self.app.post(
            "/counters/<counter>/deltas", summary="Add a change", operation_id="add", responses=ADDED, status_code=201
        )
        def add(counter: InPath, delta: Annotated[NewDelta, Body()], idempotency_key: Key) -> Response[Added]:
            key = key_of_header(idempotency_key)
            at = time_of_key(key, delta.at)
            receipt = self._ledger.add(counter, delta.change, idempotency_key=key, at=at, region=delta.region)
            tell(self._watch, receipt)
            hit = {"Idempotency-Hit": "true"} if receipt.outcome == "replayed" else {}
            return Response(_status(receipt), "application/json", _added(receipt), HEADERS | hit)

        @self.app.post("/deltas", summary="Add up to 100 changes", operation_id="addMany", responses=BULK)
        def add_many(bulk: Annotated[Bulk, Body()]) -> Response[BulkResults]:
            asked = [_change(delta) for delta in bulk.deltas]
            outcomes = iter(self._ledger.add_many(change for change in asked if isinstance(change, Change)))
            results = [self._result(next(outcomes) if isinstance(each, Change) else each) for each in asked]
            return Response(200, "application/json", BulkResults(results=results), HEADERS)

    def _route_reads(self) -> None:
        @self.app.get("/counters/<counter>", summary="Read a counter", operation_id="read", responses=READ)
        def read(counter: InPath, max_age: MaxAge = 0, consistent: Consistent = True) -> Response[CounterBalance]:
            return self._read(counter, max_age, consistent)

        @self.app.get("/counters", summary="Read a counter of any name", operation_id="readAny", responses=READ)
        def read_any(counter: InQuery, max_age: MaxAge = 0, consistent: Consistent = True) -> Response[CounterBalance]:
            return self._read(counter, max_age, consistent)

        @self.app.get(
            "/counters/<counter>/history", summary="List a counter's changes", operation_id="history", responses=READ
        )
        def history(
            counter: InPath, since: Since = None, until: Until = None, limit: Limit = 100, cursor: Cursor = None
        ) -> Response[History]:
            return self._history(counter, since, until, limit, cursor)

        @self.app.get(
            "/history", summary="List the changes of a counter of any name", operation_id="historyAny", responses=READ
        )
        def history_any(
            counter: InQuery, since: Since = None, until: Until = None, limit: Limit = 100, cursor: Cursor = None
        ) -> Response[History]:
            return self._history(counter, since, until, limit, cursor)

    def _route_failures(self) -> None:
        """What is raised and what answers it; the nearest class decides."""
        handles = self.app.exception_handler
        handles(Problem)(Problem.response)
        handles(LedgerError)(self._failed)
        handles(RequestValidationError)(lambda error: invalid(error.errors()).response())
        handles(NotFoundError)(lambda error: no_such_route().response())
        handles(Exception)(self._broken)

    def _failed(self, error: LedgerError) -> Response[str]:
        tell(self._watch, error)
        return problem_of(error).response()

    def _broken(self, error: Exception) -> Response[str]:
        self._watch.logger.exception("the API failed")
        detail = (
            "If the request adds a change, it may have been recorded: repeat it with the same key, and it counts once."
        )
        return Problem("internal", detail).response()

    def _result(self, outcome: Receipt | LedgerError | Problem) -> BulkResult:
        if isinstance(outcome, Problem):
            tell(self._watch, InvalidInput("A delta of a bulk is not as described."))
            problem = outcome
        elif isinstance(outcome, Receipt):
            tell(self._watch, outcome)
            return BulkResult(status=_status(outcome), added=_added(outcome))
        else:
            tell(self._watch, outcome)
            problem = problem_of(outcome)
        return BulkResult(status=problem.status, problem=ProblemDetails(**problem.body()))

    def _read(self, counter: str, max_age: float, consistent: bool) -> Response[CounterBalance]:
        balance: Balance = self._readers[consistent].read(counter, max_age=max_age)
        said = CounterBalance(
            counter=counter,
            value=balance.value,
            count=balance.count,
            as_of=time_text(balance.as_of),
            pending=balance.pending,
            by_region=dict(balance.by_region),
            cached=balance.cached,
        )
        return Response(200, "application/json", said, HEADERS)

    def _history(self, counter: str, since: Since, until: Until, limit: int, cursor: str | None) -> Response[History]:
        after = None if cursor is None else cursors.position_of(counter, cursor)
        page = self._readers[True].history_page(counter, since=since, until=until, after=after, limit=limit)
        entries = [
            HistoryEntry(token=entry.token, at=time_text(entry.at), change=entry.change, region=entry.region)
            for entry in page.entries
        ]
        following = None if page.next is None else cursors.text_of(counter, page.next)
        return Response(200, "application/json", History(counter=counter, entries=entries, next=following), HEADERS)


def _change(delta: BulkDelta | Refused) -> Change | Problem:
    if isinstance(delta, Refused):
        return invalid(delta.errors)
    try:
        at = time_of_key(delta.idempotency_key, delta.at)
    except Problem as problem:
        return problem
    return Change(delta.counter, delta.change, delta.idempotency_key, at, delta.region)


def _status(receipt: Receipt) -> int:
    return 201 if receipt.outcome == "recorded" else 200


def _added(receipt: Receipt) -> Added:
    lane, delta = receipt.delta.lane, receipt.delta
    at = time_text(delta.at)
    return Added(outcome=receipt.outcome, counter=lane.counter, token=delta.token, region=lane.region, at=at)
