"""Puts the cost of each public call on its answer or its error, and reports each as `Observed` to
an `observe=`.

Rule 1: each call is reported once, when it is over, also if it failed, was cancelled or was
interrupted.
Rule 2: an observer changes no answer and loses no change: its first error is logged at WARNING, and
no error of it or of the log goes further; only an interruption does. Calls that an observer makes
itself are not reported.
Rule 3: a call inside another one's meter (`cost.py`) adds its cost to it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from inspect import iscoroutine, iscoroutinefunction
from time import perf_counter
from typing import Any, TypeVar, cast

from ledger.core.cost import NOTHING, Cost, Meter
from ledger.core.errors import InvalidInput, LedgerError, shown
from ledger.core.values import Receipt

READ, DONE, MIXED = "read", "done", "mixed"
WELL = frozenset({"recorded", "replayed", "accepted", MIXED, READ, DONE})

LOG = logging.getLogger("ledger")


@dataclass(frozen=True, slots=True)
class Observed:
    """A public call that is over, for `observe=`.

    - name: class and method, such as "ledger.add", also of an awaited call.
    - milliseconds: how long the caller waited. cost: of all its requests.
    - outcome: "recorded", "replayed" or "accepted", as the receipt says; "mixed" where those of one
      `add_many` differ; "read" for a reader's calls; "done" for other calls that succeeded. For
      others the name of the error's class; for `add_many` and `Compactor.run` the class of the
      first error among the answers; "LimitReached" for a transfer that did not move.
    """

    name: str
    milliseconds: float
    cost: Cost
    outcome: str

    @property
    def went_well(self) -> bool:
        return self.outcome in WELL


Observe = Callable[[Observed], object]


class Observer:
    """Reports to an `observe=`, if there is one.

    Raises InvalidInput for what cannot be called or would be awaited.
    """

    def __init__(self, observe: Observe | None) -> None:
        if observe is not None and not callable(observe):
            raise InvalidInput(
                f"observe={shown(observe)} is no function. Nothing was written. Give a function."
            )
        if iscoroutinefunction(observe) or iscoroutinefunction(type(observe).__call__):
            raise InvalidInput(
                f"observe={shown(observe)} must be awaited. Nothing was written. Give a plain "
                "function."
            )
        self.observe = observe
        self._has_failed = False

    def report(self, observe: Observe, over: Observed) -> None:
        if _REPORTING.get():
            return
        try:
            _REPORTING.set(True)
            answer = observe(over)
            if iscoroutine(answer):
                answer.close()
                raise TypeError(
                    "observe= returned a coroutine, and no caller awaits it. Give a plain function."
                )
        except BaseException as failure:
            # Nothing is awaited here, so asyncio's CancelledError, which is not imported for it,
            # cancels no task.
            if not isinstance(failure, Exception) and type(failure).__name__ != "CancelledError":
                raise
            has_failed, self._has_failed = self._has_failed, True
            if not has_failed:
                with suppress(Exception):
                    LOG.warning(
                        "observe= raised an error: calls go on, and its next errors are not logged",
                        exc_info=True,
                    )
        finally:
            _REPORTING.set(False)


_REPORTING: ContextVar[bool] = ContextVar("ledger-reporting", default=False)


def of_receipts(answer: Any) -> str:
    """The outcome of an add, or of many."""
    if not isinstance(answer, list):
        return str(answer.outcome)
    errors = [one for one in answer if isinstance(one, LedgerError)]
    outcomes = {receipt.outcome for receipt in answer} if not errors else {type(errors[0]).__name__}
    return outcomes.pop() if len(outcomes) == 1 else MIXED if outcomes else DONE


def of_transfer(answer: Any) -> str:
    """The outcome of a transfer: a refused one has that of a refused add."""
    return DONE if answer.outcome == "moved" else "LimitReached"


Outcome = str | Callable[[Any], str]


class _Call(Meter):
    __slots__ = ("_began", "_name", "_observer", "_outcome", "_reads", "cost")

    def __init__(self, observer: Observer, name: str, reads: bool) -> None:
        super().__init__()
        self._observer, self._name, self._reads = observer, name, reads
        self._outcome, self.cost = "", NOTHING
        self._began = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: object
    ) -> None:
        super().__exit__(kind, failure, trace)
        if failure is not None:
            self.cost, self._outcome = self.take(), type(failure).__name__
        if isinstance(failure, LedgerError):
            failure.cost, failure.of_read = self.cost, self._reads
        if self.outer is not None and self.cost is not NOTHING:
            self.outer.add(self.cost)
        if (observe := self._observer.observe) is not None:
            waited_ms = (perf_counter() - self._began) * 1_000
            over = Observed(self._name, waited_ms, self.cost, self._outcome)
            self._observer.report(observe, over)

    def answered(self, answer: Any, outcome: Outcome) -> Any:
        """The answer, with what it cost where it has a place for that."""
        self.cost = self.take()
        if self._observer.observe is not None:
            self._outcome = outcome if isinstance(outcome, str) else outcome(answer)
        if isinstance(answer, list):
            sent = [one for one in answer if getattr(one, "delta", None) is not None]
            share = self.cost.share(len(sent) or 1)
            return [_paid(one, share if one.delta is not None else NOTHING) for one in answer]
        return _paid(answer, self.cost)


def _paid(answer: Any, cost: Cost) -> Any:
    if isinstance(answer, LedgerError):
        answer.cost = cost
        return answer
    if type(answer) is Receipt:  # at a fifth of what `replace` takes, at each add
        return Receipt(answer.outcome, answer.delta, cost)
    return replace(answer, cost=cost) if hasattr(answer, "cost") else answer


Method = TypeVar("Method", bound=Callable[..., Any])


def observed(name: str, outcome: Outcome = of_receipts) -> Callable[[Method], Method]:
    """Decorates a public method of an object with an `_observer`, plain or awaited."""

    def decorate(method: Method) -> Method:
        @wraps(method)
        def at_once(self: Any, /, *args: Any, **named: Any) -> Any:
            with _Call(self._observer, name, outcome == READ) as call:
                return call.answered(method(self, *args, **named), outcome)

        @wraps(method)
        async def awaited(self: Any, /, *args: Any, **named: Any) -> Any:
            with _Call(self._observer, name, outcome == READ) as call:
                return call.answered(await method(self, *args, **named), outcome)

        return cast(Method, awaited if iscoroutinefunction(method) else at_once)

    return decorate
