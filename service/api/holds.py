"""The routes of limited counters: a hold, its end, and where the counter stands.

Rule 1: A route translates and nothing else, as in app.py: the gate decides.
Rule 2: The token in a hold's id decides its end, once, so a capture and a release need no idempotency key.
Rule 3: An id that cannot be one in this table names a hold that is not there; it was damaged on its way.
Rule 4: The id of a hold has its amount, so no line above debug holds one.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, TypeVar

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from ledger import Ledger
from ledger.errors import InvalidChange, InvalidInput, NoSuchHold, shown
from ledger.gate.hold import Hold
from ledger.message import time_text
from ledger.values import Delta
from reader import Reader
from service.api.documented import CAPTURED, HELD, READ, RELEASED
from service.api.keys import key_of_header, time_of_key
from service.api.limited_models import Captured, CounterStanding, EndOfHold, Held, NewCapture, NewHold
from service.api.parameters import Again, Consistent, IdInPath, InPath, InQuery, Key
from service.api.paths import same
from service.api.problems import check_name, check_region, no_limit
from service.api.responses import HEADERS, counted, json_of
from service.observe import Watch, report
from service.writable import Names

Ended = TypeVar("Ended")


class Holds:
    """Adds the routes to an app. readers: by whether they read strongly. names: which counters they write."""

    def __init__(self, ledger: Ledger, readers: Mapping[bool, Reader], watch: Watch, names: Names) -> None:
        self._ledger, self._readers, self._watch, self._names = ledger, readers, watch, names

    def route_writes(self, app: APIGatewayHttpResolver) -> None:
        @app.post(
            "/counters/<counter>/holds",
            summary="Set a part of a limit aside",
            operation_id="hold",
            responses=HELD,
            status_code=201,
        )
        def hold(counter: InPath, asked: Annotated[NewHold, Body()], idempotency_key: Key) -> Response[Held]:
            same(counter, asked.counter)
            return json_of(self._hold(asked, key_of_header(idempotency_key)), 201)

        @app.post(
            "/counters/<counter>/holds/<id>/capture",
            summary="Count what a hold was for",
            operation_id="capture",
            responses=CAPTURED,
            status_code=201,
        )
        def capture(counter: InPath, id: IdInPath, asked: Annotated[NewCapture, Body()]) -> Response[Captured]:
            receipt = self._end(same(counter, asked.counter), id, lambda hold: self._ledger.capture(hold, asked.amount))
            report(self._watch, receipt)
            named = _named(receipt.delta)
            return counted(Captured(**named, change=receipt.delta.change, outcome=receipt.outcome), receipt)

        @app.post(
            "/counters/<counter>/holds/<id>/release",
            summary="Let a hold go",
            operation_id="release",
            responses=RELEASED,
            status_code=204,
        )
        def release(counter: InPath, id: IdInPath, asked: Annotated[EndOfHold, Body()]) -> Response[str]:
            self._end(same(counter, asked.counter), id, self._ledger.release)
            return Response(204, body="", headers=HEADERS)

    def route_reads(self, app: APIGatewayHttpResolver) -> None:
        @app.get(
            "/counters/<counter>/standing", summary="What of a limit is left", operation_id="standing", responses=READ
        )
        def standing(counter: InPath, again: Again, consistent: Consistent = True) -> Response[CounterStanding]:
            return self._standing(same(counter, again), consistent)

        @app.get(
            "/standing",
            summary="What of the limit of a counter of any name is left",
            operation_id="standingAny",
            responses=READ,
        )
        def standing_any(counter: InQuery, consistent: Consistent = True) -> Response[CounterStanding]:
            return self._standing(counter, consistent)

    def _hold(self, asked: NewHold, key: str) -> Held:
        check_name(asked.counter, self._names)
        self._must_be_limited(asked.counter)
        check_region(asked.region, self._ledger.settings.regions)
        hold = self._ledger.hold(
            asked.counter,
            asked.amount,
            expires=timedelta(seconds=asked.expires_s),
            idempotency_key=key,
            at=time_of_key(key, asked.at),
            region=asked.region,
        )
        return Held(**_named(hold.delta), id=hold.id, amount=hold.amount, until=time_text(hold.until))

    def _end(self, counter: str, id: str, end: Callable[[Hold], Ended]) -> Ended:
        check_name(counter, self._names)
        self._must_be_limited(counter)
        try:
            return end(Hold.parse(counter, id))
        except InvalidChange:  # what is to be captured is wrong, not the id
            raise
        except InvalidInput:
            raise NoSuchHold(f"{shown(id, 120)} is the id of no hold of this table. Nothing was written.") from None

    def _standing(self, counter: str, consistent: bool) -> Response[CounterStanding]:
        self._must_be_limited(counter)
        known = asdict(self._readers[consistent].standing(counter))
        return json_of(CounterStanding(**known | {"counter": counter, "as_of": time_text(known["as_of"])}))

    def _must_be_limited(self, counter: str) -> None:
        if self._ledger.settings.limit_of(counter) is None:
            raise no_limit()


def _named(delta: Delta) -> dict[str, str]:
    lane = delta.lane
    return {"counter": lane.counter, "token": delta.token, "region": lane.region, "at": time_text(delta.at)}
