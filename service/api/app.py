"""The routes of the HTTP API, on Powertools' resolver.

Rule 1: A route translates and nothing else, so what counts is decided by the library alone. Those of limited counters
are in holds.py.
Rule 2: Every failure is a problem.
Rule 3: A route that adds gives the caller what a retry needs.
Rule 4: A parameter that a route does not have is refused, because a misspelled one would be lost.
Rule 5: Who may call is decided by API Gateway, before this code.
Rule 6: No line above debug holds an amount. One request at a time: Powertools keeps the current one in its classes.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.event_handler.openapi.params import Body

from ledger import Change, Ledger, Receipt, Settings
from ledger.clocks import Clock, wall_clock
from ledger.errors import InvalidInput, LedgerError
from ledger.message import time_text
from ledger.requests import Table
from reader import Balance, Reader
from service.api import cors, models
from service.api import cursor as cursors
from service.api.admission import admitted, json_object, methods_of
from service.api.documented import ADDED, BULK, READ
from service.api.holds import Holds
from service.api.keys import key_of_header, time_of_key
from service.api.models import Added, BulkResults, CounterBalance, CounterNames, History, NewDelta
from service.api.names import check_which, names_page
from service.api.parameters import (
    After,
    Again,
    Consistent,
    Cursor,
    InPath,
    InQuery,
    Key,
    Limit,
    MaxAge,
    NamesMax,
    OrInQuery,
    Prefix,
    Since,
    Until,
)
from service.api.paths import named_again, no_such_route, same
from service.api.problem_of import problem_of
from service.api.problems import NOT_WRITTEN, Problem, check_name, check_region, invalid
from service.api.responses import HEADERS, added_of, counted, json_of, status_of
from service.observe import Watch, report
from service.writable import Names

TRY_IT = "/try-it"
READS = ("GET", "HEAD")


class Api:
    """The handler: an event of API Gateway's HTTP API (payload format 2.0) to an answer.

    table stands in for DynamoDB. try_it serves a page to try the API at /try-it. origins: whose pages may call it from
    a browser. names: which counters it writes.
    """

    def __init__(
        self,
        settings: Settings,
        watch: Watch,
        *,
        table: Table | None = None,
        clock: Clock = wall_clock,
        try_it: bool = False,
        origins: Sequence[str] = (),
        names: Names | None = None,
    ) -> None:
        self._ledger = Ledger(settings, table=table, clock=clock)
        self._readers = {
            strong: Reader(settings, consistent=strong, table=table, clock=clock) for strong in (True, False)
        }
        self._watch = watch
        self._names = names or Names()
        self._pages = (TRY_IT,) if try_it else ()
        self._cors = cors.of(origins)
        self.app = APIGatewayHttpResolver(enable_validation=True, json_body_deserializer=json_object, debug=False)
        self.app.use([_only_known_parameters])
        holds = Holds(self._ledger, self._readers, watch, self._names)
        self._route_writes()
        holds.route_writes(self.app)
        self._route_reads()
        holds.route_reads(self.app)
        self._route_failures()
        if try_it:
            self.app.enable_swagger(path=TRY_IT, title="exact-counter")

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        try:
            answer = self._answer(event, context)
        except Problem as problem:
            answer = problem.answer()
        if _method(event) in READS and answer["statusCode"] >= 400:
            answer["body"] = answer["body"].replace(f" {NOT_WRITTEN}", "")
        answer["headers"] = answer["headers"] | cors.headers(self._cors, event.get("headers") or {})
        if _method(event) == "HEAD":
            answer |= {"body": "", "isBase64Encoded": False}
        return answer

    def _answer(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        if _method(event) == "OPTIONS":
            headers = HEADERS | {"Allow": methods_of(event, self._pages)}
            return {"statusCode": 204, "headers": headers, "body": "", "isBase64Encoded": False}
        return self.app.resolve(admitted(event, self._pages), context)

    def _route_writes(self) -> None:
        @self.app.post(
            "/counters/<counter>/deltas", summary="Add a change", operation_id="add", responses=ADDED, status_code=201
        )
        def add(counter: InPath, delta: Annotated[NewDelta, Body()], idempotency_key: Key) -> Response[Added]:
            same(counter, delta.counter)
            asked = self._change(delta, key_of_header(idempotency_key))
            receipt = self._ledger.add(
                asked.counter, asked.change, idempotency_key=asked.idempotency_key, at=asked.at, region=asked.region
            )
            report(self._watch, receipt)
            return counted(added_of(receipt), receipt)

        @self.app.post("/deltas", summary="Add up to 100 changes", operation_id="addMany", responses=BULK)
        def add_many(bulk: Annotated[models.Bulk, Body()]) -> Response[BulkResults]:
            asked = [self._change_or_problem(delta) for delta in bulk.deltas]
            outcomes = iter(self._ledger.add_many(change for change in asked if isinstance(change, Change)))
            results = [self._result(next(outcomes) if isinstance(each, Change) else each) for each in asked]
            return json_of(BulkResults(results=results))

    def _route_reads(self) -> None:
        @self.app.get("/counters/<counter>", summary="Read a counter", operation_id="read", responses=READ)
        def read(
            counter: InPath, again: Again, max_age: MaxAge = 0, consistent: Consistent = True
        ) -> Response[CounterBalance]:
            return self._read(same(counter, again), max_age, consistent)

        @self.app.get(
            "/counters",
            summary="Read a counter of any name, or list counters",
            description="Exactly one of counter and prefix: the balance of that counter, or names of counters.",
            operation_id="readAny",
            responses=READ,
        )
        def read_any(
            counter: OrInQuery = None,
            max_age: MaxAge = 0,
            consistent: Consistent = True,
            prefix: Prefix = None,
            after: After = None,
            limit: NamesMax = 100,
        ) -> Response[CounterBalance | CounterNames]:
            check_which(self.app.current_event.query_string_parameters)
            if counter is not None:
                return self._read(counter, max_age, consistent)  # type: ignore[return-value]
            return names_page(self._readers[True], self._watch, prefix or "", after, limit)  # type: ignore[return-value]

        @self.app.get(
            "/counters/<counter>/history", summary="List a counter's changes", operation_id="history", responses=READ
        )
        def history(
            counter: InPath,
            again: Again,
            since: Since = None,
            until: Until = None,
            limit: Limit = 100,
            cursor: Cursor = None,
        ) -> Response[History]:
            return self._history(same(counter, again), since, until, limit, cursor)

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
        handles(RequestValidationError)(
            lambda error: invalid(named_again(error.errors(), self.app.current_event.path)).response()
        )
        handles(NotFoundError)(lambda error: no_such_route().response())
        handles(Exception)(self._broken)

    def _change(self, delta: NewDelta, key: str) -> Change:
        """The change that is asked for. Raises Problem."""
        check_name(delta.counter, self._names)
        check_region(delta.region, self._ledger.settings.regions)
        return Change(delta.counter, delta.change, key, time_of_key(key, delta.at), delta.region)

    def _change_or_problem(self, delta: models.BulkDelta | models.Refused) -> Change | Problem:
        if isinstance(delta, models.Refused):
            return invalid(delta.errors)
        try:
            return self._change(delta, delta.idempotency_key)
        except Problem as problem:
            return problem

    def _failed(self, error: LedgerError) -> Response[str]:
        report(self._watch, error)
        return problem_of(error).response()

    def _broken(self, error: Exception) -> Response[str]:
        self._watch.logger.exception("the API failed")
        retry = "repeat it with the same key, and it counts once."
        return Problem("internal", f"If the request adds a change, it may have been recorded: {retry}").response()

    def _result(self, outcome: Receipt | LedgerError | Problem) -> models.BulkResult:
        if isinstance(outcome, Problem):
            report(self._watch, InvalidInput("A delta of a bulk is not as described."))
            problem = outcome
        elif isinstance(outcome, Receipt):
            report(self._watch, outcome)
            return models.BulkResult(status=status_of(outcome), added=added_of(outcome))
        else:
            report(self._watch, outcome)
            problem = problem_of(outcome)
        return models.BulkResult(status=problem.status, problem=models.ProblemDetails(**problem.body()))

    def _read(self, counter: str, max_age: float, consistent: bool) -> Response[CounterBalance]:
        balance: Balance = self._readers[consistent].read(counter, max_age=max_age)
        names = ("value", "count", "pending", "cached", "closed")
        known: dict[str, Any] = {name: getattr(balance, name) for name in names}
        as_of, by_region = time_text(balance.as_of), dict(balance.by_region)
        return json_of(CounterBalance(counter=counter, as_of=as_of, by_region=by_region, **known))

    def _history(self, counter: str, since: Since, until: Until, limit: int, cursor: str | None) -> Response[History]:
        after = None if cursor is None else cursors.position_of(counter, cursor)
        page = self._readers[True].history_page(counter, since=since, until=until, after=after, limit=limit)
        entries = [
            models.HistoryEntry(token=entry.token, at=time_text(entry.at), change=entry.change, region=entry.region)
            for entry in page.entries
        ]
        following = None if page.next is None else cursors.text_of(counter, page.next)
        return json_of(History(counter=counter, entries=entries, next=following))


def _method(event: dict[str, Any]) -> str:
    return str(event["requestContext"]["http"]["method"]).upper()


def _only_known_parameters(app: Any, next_middleware: Callable[[Any], Any]) -> Any:
    route = app.context["_route"]
    known = {field.alias for field in route.dependant.query_params}
    unknown = sorted(app.current_event.query_string_parameters.keys() - known)
    if unknown and route.path != TRY_IT:
        raise invalid({"loc": ("query", name), "type": "unknown", "msg": "Unknown parameter"} for name in unknown)
    return next_middleware(app)
