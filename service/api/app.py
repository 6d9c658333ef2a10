"""The handler of the HTTP API: the routes on Powertools' resolver, which validates and describes
them.

Rule 1: Every failure is a problem, and no cache on the way may keep an answer.
Rule 2: The API refuses a parameter that a route does not have, because a misspelled one would be
lost. Of `GET /counters`, exactly one of `counter` and `prefix` says whether a balance or a list is
meant; the API refuses the parameters of the other one.
Rule 3: One request at a time: Powertools keeps the current one in its classes. API Gateway decides
who may call, before this code.
"""

from collections.abc import Callable
from datetime import timedelta
from inspect import getdoc
from typing import Any, NoReturn

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError

from ledger import Keep, Ledger, Limit, Settings
from ledger.core.clocks import Clock, wall_clock
from ledger.core.errors import LedgerError
from ledger.core.requests import Table
from reader import Reader
from reader.bounded import bound
from service.api import models
from service.api.admission import admitted, allow, json_object, routed
from service.api.documented import ABOUT, ROUTES
from service.api.page import fitting
from service.api.problems import Problem, invalid, no_such_route, problem_of
from service.api.routes import Routes
from service.api.sagas import Sagas
from service.observe import Watch, report

TRY_IT = "/try-it"


class Api:
    """The handler: an event of API Gateway's HTTP API (payload format 2.0) to an answer.

    table: instead of DynamoDB. try_it: serve a page to try the API at /try-it. prefixes: of the
    counters it writes.
    """

    def __init__(
        self,
        settings: Settings,
        watch: Watch,
        *,
        table: Table | None = None,
        clock: Clock = wall_clock,
        try_it: bool = False,
        prefixes: tuple[str, ...] = (),
    ) -> None:
        readers = {
            strong: bound(
                Reader(settings, consistent=strong, table=table, clock=clock), models.UNITS_MAX
            )
            for strong in (True, False)
        }
        ledger = Ledger(settings, table=table, clock=clock)
        routes, sagas = Routes(ledger, readers, watch, prefixes), Sagas(ledger, watch, prefixes)
        self._watch, self._clock = watch, clock
        self._pages = (TRY_IT,) if try_it else ()
        self.app = APIGatewayHttpResolver(
            enable_validation=True, json_body_deserializer=json_object, debug=False
        )
        self.app.use([_only_known])
        self.app.exception_handler(Exception)(self._failed)
        for name, route in ROUTES.items():
            method = getattr(routes, name, None) or getattr(sagas, name)
            self.app.route(**route._asdict(), description=getdoc(method))(method)
        if try_it:
            self.app.enable_swagger(path=TRY_IT, middlewares=[fitting], **ABOUT)

    @classmethod
    def in_memory(cls, watch: Watch, *, try_it: bool = False) -> "Api":
        """On a table in memory, the same one in two Regions. A name that begins with "seats:" or
        "llm:" has a ceiling of 10,000, and each period of a name that begins with "calls:" has one
        of 1,000."""
        from ledger.tables.memory import MemoryTable

        here, there = regions = ("eu-west-1", "us-east-1")
        ceilings = {"seats:": 10_000, "llm:": 10_000, "calls:": 1_000}
        limits = {
            prefix: Limit(ceiling=ceiling, region=here) for prefix, ceiling in ceilings.items()
        }
        periods = {"calls:": Keep(late=timedelta(hours=1), keep=timedelta(days=400))}
        settings = Settings(
            table="memory", region=here, regions=regions, limits=limits, periods=periods
        )
        table = MemoryTable()
        table.peers = {there: table}
        return cls(settings, watch, table=table, try_it=try_it)

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        method = str(event["requestContext"]["http"]["method"]).upper()
        answer: dict[str, Any]
        try:
            path, allowed = routed(event, self._pages)
            if method == "OPTIONS":
                answer = {
                    "statusCode": 204,
                    "headers": {"Allow": allow(allowed)},
                    "body": "",
                    "isBase64Encoded": False,
                }
            else:
                answer = self.app.resolve(admitted(event, path, allowed), context)
        except Problem as problem:
            answer = problem.answer(self._clock(), of_read=method in ("GET", "HEAD"))
        answer["headers"] = {"Cache-Control": "no-store"} | answer["headers"]
        if method == "HEAD":
            answer |= {"body": "", "isBase64Encoded": False}
        return answer

    def _failed(self, error: Exception) -> NoReturn:
        """Raises the Problem for an exception."""
        match error:
            case Problem():
                raise error
            case NotFoundError():
                raise no_such_route()
            case RequestValidationError():
                raise invalid(error.errors())
            case LedgerError():
                report(self._watch, error)
                raise problem_of(error)
        self._watch.logger.exception("the API failed")
        retry = "Repeat it with the same key: it counts once."
        detail = f"If the request adds a change, the table may have recorded it. {retry}"
        raise Problem("internal", detail, says_what_counts=True)


def _only_known(app: Any, following: Callable[[Any], Any]) -> Any:
    """Raises Problem for parameters that the route does not have, and for those that contradict
    each other.
    """
    route, given = app.context["_route"], app.current_event.query_string_parameters.keys()
    unknown = sorted(given - {field.alias for field in route.dependant.query_params})
    if unknown and route.path != TRY_IT:
        raise invalid(
            {"loc": ("query", name), "type": "unknown", "msg": "Unknown parameter"}
            for name in unknown
        )
    if route.path == "/counters":
        if ("counter" in given) == ("prefix" in given):
            reason = (
                "Give exactly one: counter, to read one, or prefix (it may be empty), to list them"
            )
            raise invalid([{"loc": ("query",), "type": "which", "msg": reason}])
        one, others = ("prefix", {"at", "max_age", "consistent"})
        if "counter" in given:
            one, others = (
                ("at", {"after", "limit", "max_age"})
                if "at" in given
                else ("counter", {"after", "limit"})
            )
        if wrong := sorted(others & given):
            raise invalid(
                {"loc": ("query", name), "type": "which", "msg": f"Does not go with {one}"}
                for name in wrong
            )
    return following(app)
