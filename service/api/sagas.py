"""The routes of several counters, reservations and transfers, and what they take. models.py has the
rules of bodies.

Rule 1: a reservation is its holds, named by their ids. The service keeps nothing between two
requests.
Rule 2: the hold's own token and time name what is added above it, in its lane's Region. So a
settlement that somebody repeats, in any Region, counts once; one with another cost is refused.
Rule 3: a cost counts as in `Budgets`: what a limit refuses counts beside its counter, under OVER
and its name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body
from pydantic import ConfigDict, Field

from ledger import Hold, Ledger
from ledger.budgets.ask import run
from ledger.budgets.reserving import CallName, raise_first, release, settle
from ledger.core.checks import check_counter
from ledger.core.errors import InvalidInput, LedgerError, LimitReached, TransferStuck
from ledger.core.ranges import CHANGE_MAX
from service.api import responses
from service.api.checked import check_region, check_takes_holds, check_writable, hold_of
from service.api.keys import time_of_key
from service.api.models import (
    HOLD_ID,
    Counter,
    ExpiresS,
    FirstAsked,
    InRegion,
    Key,
    Strict,
    example,
    text,
)
from service.api.problems import Problem, in_part, invalid, not_moved, over_budget
from service.api.responses import Held, Moved, Reservation, Settled
from service.observe import Watch, report

OVER = "over:"
HOLDS_MAX = 10


class NewReservation(Strict):
    """The same amount to set aside in each of several counters, or in none."""

    model_config = example({"counters": ["llm:acme"], "amount": 100, "expires_s": 300})

    counters: list[Counter] = Field(
        min_length=1,
        max_length=HOLDS_MAX,
        description="the narrowest first, each once",
        json_schema_extra={"uniqueItems": True},
    )
    amount: int = Field(ge=1, le=CHANGE_MAX, description="in each of them, below its ceiling")
    expires_s: ExpiresS
    at: FirstAsked = None
    region: InRegion = None


class HoldName(Strict):
    """A hold of a reservation, as its answer gave it: these two fields name it."""

    model_config = ConfigDict(extra="ignore")  # a misspelled one lacks what is required

    counter: Counter
    id: Annotated[str, text(HOLD_ID)]


class EndOfReservation(Strict):
    """A reservation to release."""

    holds: list[HoldName] = Field(min_length=1, max_length=HOLDS_MAX)


class Settlement(EndOfReservation):
    """A reservation whose cost is known."""

    cost: int = Field(
        ge=0,
        le=CHANGE_MAX,
        description="counts in each of its counters, also above what is held",
        examples=[80],
    )


class NewTransfer(Strict):
    """An amount to move from one counter to another."""

    model_config = example({"source": "wallet:ann", "target": "wallet:bob", "amount": 5})

    source: Counter
    target: Counter
    amount: int = Field(ge=1, le=CHANGE_MAX)
    at: FirstAsked = None
    region: InRegion = None


class Sagas:
    """A method for each route. prefixes: of the counters that the API writes."""

    def __init__(self, ledger: Ledger, watch: Watch, prefixes: tuple[str, ...]) -> None:
        self._ledger, self._watch = ledger, watch
        self._settings, self._prefixes = ledger.settings, prefixes

    def reserve(
        self, wanted: Annotated[NewReservation, Body()], idempotency_key: Key
    ) -> Reservation:
        """Each counter holds the amount, or none does. The holds of the answer settle and release
        the reservation. Key, time and counters name it: with another expires_s it is the same, and
        ends when the first request said.
        """
        for counter in wanted.counters:
            if wanted.counters.count(counter) > 1:
                raise _refused("counters", f"{counter} is named twice: name each counter once")
            self._check_reservable(counter)
        check_region(wanted.region, self._settings)
        expires, at = timedelta(seconds=wanted.expires_s), time_of_key(idempotency_key, wanted.at)
        named: Any = {"idempotency_key": idempotency_key, "at": at, "region": wanted.region}
        try:
            with self._in_steps():
                holds = self._ledger.hold_all(
                    wanted.counters, wanted.amount, expires=expires, **named
                )
        except LimitReached as refused:
            report(self._watch, refused)
            raise over_budget(refused) from refused
        held = [responses.filled(Held, hold, **responses.named(hold.delta)) for hold in holds]
        return Reservation(id=idempotency_key, holds=held)

    def settle(self, end: Annotated[Settlement, Body()]) -> Settled:
        """The cost counts in every counter. What a limit refuses of it counts in over:<counter>.
        Another cost for the same holds is a conflict (409): the first cost stays, and the member
        counts says how much of it counts."""
        holds = self._holds(end)
        with self._in_steps():
            return Settled(over=_settled(self._ledger, holds, end.cost))

    def release_all(self, end: Annotated[EndOfReservation, Body()]) -> Response[str]:
        """All holds that have not ended are released. If the request fails, repeat it."""
        holds = self._holds(end)
        with self._in_steps():
            run(release(holds), self._ledger)
        return Response(204, body="")

    def transfer(
        self, wanted: Annotated[NewTransfer, Body()], idempotency_key: Key
    ) -> Response[Moved]:
        """The amount moves once; key, source and target name the transfer. After a failure a part
        may count: repeat the request until you have an answer."""
        if wanted.source == wanted.target:
            raise _refused("target", "The source and target are the same counter: name two")
        for counter in (wanted.source, wanted.target):
            check_writable(counter, self._prefixes)
        check_region(wanted.region, self._settings)
        at = time_of_key(idempotency_key, wanted.at)
        named: Any = {"idempotency_key": idempotency_key, "at": at, "region": wanted.region}
        with self._in_steps():
            done = self._ledger.transfer(wanted.source, wanted.target, wanted.amount, **named)
        if done.debit is None or done.credit is None:
            counter = wanted.source if done.debit is None else wanted.target
            term = self._settings.plan(counter).term
            raise not_moved(counter, None if term is None else term.resets_at)
        report(self._watch, done.debit, done.credit)
        of = {name: getattr(wanted, name) for name in ("source", "target", "amount")}
        return responses.counted(Moved, done.credit, **of, outcome="moved")

    @contextmanager
    def _in_steps(self) -> Iterator[None]:
        """Raises a Problem that says what may count, where one step of several fails."""
        try:
            yield
        except (InvalidInput, LimitReached, TransferStuck):
            raise
        except LedgerError as error:
            report(self._watch, error)
            raise in_part(error) from error

    def _holds(self, end: EndOfReservation) -> list[Hold]:
        """Raises Problem and NoSuchHold."""
        for named in end.holds:
            self._check_reservable(named.counter)
        holds = [hold_of(named.counter, named.id, self._settings) for named in end.holds]
        if any(hold.amount < 0 for hold in holds):
            raise _refused(
                "holds",
                "No reservation has a hold below 0: send the holds as its answer gave them",
            )
        return holds

    def _check_reservable(self, counter: str) -> None:
        check_takes_holds(counter, self._settings, self._prefixes)
        if self._settings.limit_of(check_counter(OVER + counter)) is not None:
            raise InvalidInput(
                f"{OVER}{counter} has a limit, and must count what {counter} refuses of a cost."
            )


def _refused(field: str, why: str) -> Problem:
    return invalid([{"loc": (field,), "type": "reservation", "msg": why}])


def _settled(ledger: Ledger, holds: list[Hold], cost: int) -> dict[str, int]:
    """What each counter refused of a cost.

    Raises what `Ledger.capture` and `add` do, after all were tried.
    """
    over: dict[str, int] = {}
    failures: list[LedgerError] = []
    for hold in holds:
        name = CallName(hold.delta.token, hold.delta.at, region=hold.delta.lane.region)
        try:
            over |= run(settle([hold.counter], [hold], cost, name, OVER), ledger)
        except LedgerError as error:
            failures.append(error)
    raise_first(failures, over)
    return over
