"""The handler of the HTTP API: the routes on Powertools' resolver, which validates and describes them.

Rule 1: Every failure is a problem, and no answer may be kept by a cache on its way.
Rule 2: A parameter that a route does not have is refused, because a misspelled one would be lost.
Rule 3: Who may call is decided by API Gateway, before this code.
Rule 4: One request at a time: Powertools keeps the current one in its classes.
"""

from typing import Any, NoReturn

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError

from ledger import Ledger, Settings
from ledger.clocks import Clock, wall_clock
from ledger.errors import LedgerError
from ledger.requests import Table
from reader import Reader
from service.api.admission import admitted, json_object, methods_of
from service.api.documented import ROUTES
from service.api.parameters import only_known
from service.api.paths import no_such_route
from service.api.problems import Problem, invalid, problem_of
from service.api.routes import Routes
from service.observe import Watch, report
from service.writable import Names

TRY_IT = "/try-it"


class Api:
    """The handler: an event of API Gateway's HTTP API (payload format 2.0) to an answer.

    table stands in for DynamoDB. try_it serves a page to try the API at /try-it. names: which counters it writes.
    """

    def __init__(
        self,
        settings: Settings,
        watch: Watch,
        *,
        table: Table | None = None,
        clock: Clock = wall_clock,
        try_it: bool = False,
        names: Names | None = None,
    ) -> None:
        readers = {strong: Reader(settings, consistent=strong, table=table, clock=clock) for strong in (True, False)}
        routes = Routes(Ledger(settings, table=table, clock=clock), readers, watch, names or Names())
        self._watch = watch
        self._pages = (TRY_IT,) if try_it else ()
        self.app = APIGatewayHttpResolver(enable_validation=True, json_body_deserializer=json_object, debug=False)
        self.app.use([only_known(*self._pages)])
        self.app.exception_handler(Exception)(self._failed)
        for route in ROUTES:
            self.app.route(
                route.path,
                route.method,
                summary=route.summary,
                description=route.description,
                operation_id=route.operation,
                responses=route.responses,
                status_code=route.status,
            )(getattr(routes, route.name))
        if try_it:
            self.app.enable_swagger(path=TRY_IT, title="exact-counter")

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        method = str(event["requestContext"]["http"]["method"]).upper()
        try:
            answer = self._answer(event, method, context)
        except Problem as problem:
            answer = problem.answer(of_read=method in ("GET", "HEAD"))
        answer["headers"] = {"Cache-Control": "no-store"} | answer["headers"]
        if method == "HEAD":
            answer |= {"body": "", "isBase64Encoded": False}
        return answer

    def _answer(self, event: dict[str, Any], method: str, context: Any) -> dict[str, Any]:
        if method == "OPTIONS":
            headers = {"Allow": methods_of(event, self._pages)}
            return {"statusCode": 204, "headers": headers, "body": "", "isBase64Encoded": False}
        return self.app.resolve(admitted(event, self._pages), context)

    def _failed(self, error: Exception) -> NoReturn:
        """Raises the problem that an exception is."""
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
        retry = "repeat it with the same key, and it counts once."
        detail = f"If the request adds a change, it may have been recorded: {retry}"
        raise Problem("internal", detail, says_what_counts=True)
