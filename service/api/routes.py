"""What each route does: it translates and nothing else, so the library alone decides what counts.
The docstring of a route's method is its description in docs/openapi.json.

Rule 1: A route that adds gives the caller what a retry needs.
Rule 2: The token in a hold's id decides its end, once, so a capture and a release need no
idempotency key.
Rule 3: No line above debug holds an amount, and the id of a hold has one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from ledger import Change, Ledger, Receipt
from ledger.core.errors import InvalidInput, InvalidTime, LedgerError, ReadTooLarge
from ledger.core.running import or_error
from reader import Reader
from reader.periods import asked_for
from service.api import cursor as cursors
from service.api import models, responses
from service.api.checked import (
    check_limited,
    check_partial,
    check_region,
    check_same,
    check_takes_holds,
    check_writable,
    hold_of,
)
from service.api.keys import time_of_key
from service.api.models import Consistent, IdInPath, InPath, InQuery, Key
from service.api.problems import Problem, invalid, problem_of
from service.api.responses import (
    Added,
    Captured,
    CounterBalance,
    CounterNames,
    CounterSeries,
    CounterStanding,
    CounterValue,
    Held,
    History,
)
from service.observe import Watch, report


class Routes:
    """A method for each route of one counter, and of the lists.

    readers: by whether they read strongly. prefixes: of the counters that the API writes.
    """

    def __init__(
        self,
        ledger: Ledger,
        readers: Mapping[bool, Reader],
        watch: Watch,
        prefixes: tuple[str, ...],
    ) -> None:
        self._ledger, self._readers, self._watch = ledger, readers, watch
        self._settings, self._prefixes = ledger.settings, prefixes

    def add(
        self, counter: InPath, delta: Annotated[models.NewDelta, Body()], idempotency_key: Key
    ) -> Response[Added]:
        """A change counts exactly once under its Idempotency-Key, however often and wherever you
        repeat the request.
        """
        check_same(counter, delta.counter)
        change = self._change(delta, idempotency_key)
        receipt = self._add(change)
        report(self._watch, receipt)
        return responses.counted(Added, receipt, **responses.part_of(change, receipt))

    def add_many(self, bulk: Annotated[models.Bulk, Body()]) -> responses.BulkResults:
        """Each change has a key and a result of its own. If a result is 429 or 5xx, repeat the
        whole request.
        """
        changes = [self._change_or_problem(delta) for delta in bulk.deltas]
        outcomes = self._outcomes(changes)
        results = [
            self._result(change, outcome) for change, outcome in zip(changes, outcomes, strict=True)
        ]
        return responses.BulkResults(results=results)

    def read_or_list(
        self,
        counter: models.OrInQuery = None,
        max_age: models.MaxAge = 0,
        consistent: Consistent = True,
        prefix: models.Prefix = None,
        after: models.After = None,
        limit: models.NamesMax = 100,
        at: models.At = None,
    ) -> CounterBalance | CounterValue | CounterNames:
        """With counter you get its balance, or with at, too, its value at that instant. With prefix
        you get the names that begin with it.
        """
        if counter is None:
            return self._list(prefix or "", after, limit)
        if at is not None:
            with _of_the_past():
                value = self._readers[consistent].value_at(counter, at)
            return CounterValue.model_validate({"counter": counter, "at": at, "value": value})
        balance = self._readers[consistent].read(counter, max_age=max_age)
        return responses.filled(CounterBalance, balance, counter=counter)

    def history(
        self,
        counter: InQuery,
        since: models.Since = None,
        until: models.Until = None,
        limit: models.Limit = 100,
        cursor: models.Cursor = None,
    ) -> History:
        """The changes come in the order of time, in pages: while next is not null, send it as
        cursor.
        """
        after = None if cursor is None else cursors.position_of(counter, cursor)
        try:
            page = self._readers[True].history_page(
                counter, since=since, until=until, after=after, limit=limit
            )
        except ReadTooLarge as error:
            raise _too_large(error) from None
        following = None if page.next is None else cursors.text_of(counter, page.next)
        return responses.filled(History, page, counter=counter, next=following)

    def series(
        self,
        counter: InQuery,
        since: models.From,
        until: models.To = None,
        every: models.Every = "day",
        zone: models.Zone = None,
    ) -> CounterSeries:
        """Each step has its change, the number of changes, and the value at its end, by the
        clocks of zone.
        """
        with _of_the_past():
            found = self._readers[True].series(
                counter, since=since, until=until, every=every, zone=zone, limit=models.STEPS_MAX
            )
        return responses.filled(CounterSeries, found, counter=counter)

    def standing(self, counter: InQuery, consistent: Consistent = True) -> CounterStanding:
        """The answer says what you can take here and in all Regions, what is between lanes, and
        what holds keep.
        """
        check_limited(counter, self._settings)
        return responses.filled(
            CounterStanding, self._readers[consistent].standing(counter), counter=counter
        )

    def periods(
        self,
        counter: InQuery,
        every: models.Unit = "month",
        zone: models.Zone = None,
        anchor: models.Anchor = 1,
        begins: models.Begins = None,
        last: models.Last = 12,
    ) -> responses.CounterPeriods:
        """Each period has its value and, under a limit, what is left of it. The oldest comes
        first.
        """
        try:
            period = asked_for(self._settings, counter, every, zone, anchor, begins)
            found = self._readers[True].periods(counter, period, last)
        except InvalidInput as error:
            raise invalid([{"loc": ("query",), "type": "period", "msg": error.why}]) from None
        of_standing = {"floor": None, "ceiling": None, "available": None, "carried": 0, "took": 0}
        rows = [
            responses.filled(
                responses.PeriodBalance,
                row,
                **{
                    name: getattr(row.standing, name, without)
                    for name, without in of_standing.items()
                },
            )
            for row in found
        ]
        return responses.CounterPeriods(counter=counter, periods=rows)

    def hold(
        self, counter: InPath, wanted: Annotated[models.NewHold, Body()], idempotency_key: Key
    ) -> Held:
        """The part is set aside until you capture or release the hold, or its time is over."""
        check_same(counter, wanted.counter)
        check_takes_holds(counter, self._settings, self._prefixes)
        check_region(wanted.region, self._settings)
        hold = self._ledger.hold(
            counter,
            wanted.amount,
            expires=timedelta(seconds=wanted.expires_s),
            idempotency_key=idempotency_key,
            at=time_of_key(idempotency_key, wanted.at),
            region=wanted.region,
        )
        return responses.filled(Held, hold, **responses.named(hold.delta))

    def capture(
        self, counter: InPath, id: IdInPath, end: Annotated[models.NewCapture, Body()]
    ) -> Response[Captured]:
        """The hold counts, or the part that you name, and the rest is free. The same request again
        is a success.
        """
        check_same(counter, end.counter)
        check_takes_holds(counter, self._settings, self._prefixes)
        receipt = self._ledger.capture(hold_of(counter, id, self._settings), end.amount)
        report(self._watch, receipt)
        return responses.counted(Captured, receipt, change=receipt.delta.change)

    def release(
        self, counter: InPath, id: IdInPath, end: Annotated[models.EndOfHold, Body()]
    ) -> Response[str]:
        """All that the hold set aside is free, and nothing counts. The same request again is a
        success.
        """
        check_same(counter, end.counter)
        check_takes_holds(counter, self._settings, self._prefixes)
        self._ledger.release(hold_of(counter, id, self._settings))
        return Response(204, body="")

    def _list(self, prefix: str, after: str | None, limit: int) -> CounterNames:
        place = None if after is None else cursors.place_of(prefix, after)
        page = self._readers[True].counters(prefix, after=place, limit=limit)
        # Rule 4: a list skips an item of the directory that names no lane, counts it and logs it.
        for key in page.damaged:
            self._watch.logger.error(
                "a directory item names no lane", extra={"pk": key.pk, "sk": key.sk}
            )
            self._watch.publish({"LanesDamaged": 1})
        following = None if page.next is None else cursors.text_of_place(prefix, page.next)
        return CounterNames(counters=list(page.counters), next=following)

    def _change(self, delta: models.NewDelta, key: str) -> Change:
        """The change that a body describes. Raises Problem."""
        check_writable(delta.counter, self._prefixes)
        check_region(delta.region, self._settings)
        if delta.partial:
            check_partial(delta.counter, delta.change, self._settings)
        at = time_of_key(key, delta.at)
        return Change(delta.counter, delta.change, key, at, delta.region, partial=delta.partial)

    def _change_or_problem(self, delta: models.BulkDelta | models.Refused) -> Change | Problem:
        if isinstance(delta, models.Refused):
            return invalid(delta.errors)
        try:
            return self._change(delta, delta.idempotency_key)
        except Problem as problem:
            return problem

    def _outcomes(
        self, changes: Sequence[Change | Problem]
    ) -> Iterator[Receipt | LedgerError | Problem]:
        """An outcome for each: those of which a part may count each by itself, the others at
        once.
        """
        at_once = (each for each in changes if isinstance(each, Change) and not each.partial)
        added = iter(self._ledger.add_many(at_once))
        for change in changes:
            if isinstance(change, Problem):
                yield change
            elif change.partial:
                yield or_error(self._add, change)
            else:
                yield next(added)

    def _add(self, change: Change) -> Receipt:
        add: Any = self._ledger.add_up_to if change.partial else self._ledger.add
        receipt: Receipt = add(
            change.counter,
            change.change,
            idempotency_key=change.idempotency_key,
            at=change.at,
            region=change.region,
        )
        return receipt

    def _result(
        self, change: Change | Problem, outcome: Receipt | LedgerError | Problem
    ) -> responses.BulkResult:
        refused = InvalidInput(
            "A delta of a bulk does not fit its description. It was not written."
        )
        report(self._watch, refused if isinstance(outcome, Problem) else outcome)
        if isinstance(outcome, Receipt):
            assert isinstance(change, Change)
            said = responses.named(outcome.delta) | responses.part_of(change, outcome)
            added = responses.filled(Added, outcome, **said)
            return responses.BulkResult(status=responses.status_of(outcome), added=added)
        problem = problem_of(outcome) if isinstance(outcome, LedgerError) else outcome
        return responses.BulkResult(
            status=problem.status, problem=responses.ProblemDetails(**problem.body())
        )


@contextmanager
def _of_the_past() -> Iterator[None]:
    """Raises Problem for times, steps and zones that cannot be, with the library's reason as a
    hint.
    """
    try:
        yield
    except InvalidTime:
        times = (
            "Give since and at from 1970 to now, by the service's clock, and until at most "
            "in November 9999."
        )
        raise Problem("invalid-time", times) from None
    except ReadTooLarge as error:
        raise _too_large(error) from None
    except InvalidInput as error:
        raise invalid([{"loc": ("query",), "type": "series", "msg": error.why}]) from None


def _too_large(error: ReadTooLarge) -> Problem:
    """The problem of a request that would take more of the table than one may."""
    why = error.why.replace("without a bound", "the library or `ledgerctl`, which have no bound")
    return invalid([{"loc": ("query",), "type": "units", "msg": why}])
