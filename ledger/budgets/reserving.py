"""The programs of a budget: reserve an estimate in several at once, settle the cost, let a reservation go.

Rule 1: all budgets or none, as `Ledger.hold_all` holds.
Rule 2: every write has a name of its own, from the call's id and time, so that a repetition counts once. The ledger
names the holds of a call that nobody may repeat, and releases those that are undecided at once.
Rule 3: a cost is never dropped. The part above the hold, or after its end, is the rest. `settle` adds the rest whole;
if the budget refuses that, it halves the rest again and again, and adds each part under a name of its own. So the parts
fill the budget to the last unit. The parts that it refuses count in another counter, without a limit.
Rule 4: a gate answers a name once, and for ever, a refusal too. Parts and their names follow from the rest alone, so
whoever settles again, in any process and whatever room came back, gets the same answers and counts nothing twice.
Rule 5: an undecided request is sent again, TRIES_MAX times at most; then its error is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import methodcaller
from typing import Any

from ledger.budgets.ask import Program
from ledger.checks import check_change, check_counter
from ledger.errors import Again, HoldEnded, InvalidChange, InvalidInput, LedgerError, LimitReached, shown
from ledger.gate.hold import Hold
from ledger.requests import Doubt

TRIES_MAX = 5


class OverBudget(LimitReached):
    """A budget has too little left for an estimate: `counter` names the budget. No budget holds anything of the call;
    if a release failed, a note says so, and that hold ends with its time. Make a new call for a new attempt.
    """

    def __init__(self, counter: str, estimate: int) -> None:
        super().__init__(
            f"The budget {counter} has less than {estimate} left. Nothing of this call counts. Retry with a new call."
        )
        self.counter = counter
        self.estimate = estimate

    @classmethod
    def of(cls, refused: LimitReached, estimate: int) -> OverBudget:
        """The error of a budget whose limit refused an estimate, with the refusal's notes."""
        error = cls(str(refused.counter), estimate)
        error.__dict__.update(refused.__dict__)
        return error

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.counter, self.estimate), self.__dict__


@dataclass(frozen=True, slots=True)
class CallName:
    """The name of a call's writes: its id and when it was first requested. shared: its caller named it, so others may
    make the same call. region: where it was requested, if that may not be the ledger's Region.
    """

    id: str
    at: datetime
    shared: bool = False
    region: str | None = None

    @property
    def rest(self) -> str:
        """The name of the add above the hold, or after its end."""
        return f"{self.id}/rest"

    def part(self, number: int) -> str:
        """The name of a part of the rest. It is shorter than `rest`, whose length is checked."""
        return f"{self.id}/{number}"


def again(request: Callable[[Any], Any], tries: int = TRIES_MAX) -> Program[Any]:
    """Send a request until the table decides it. Raises what the ledger raises, and what an earlier one left open."""
    with Doubt() as doubt:
        for _ in range(tries - 1):
            try:
                return (yield request)
            except Again as error:
                doubt.note(error)
        return (yield request)


def reserve(counters: Sequence[str], estimate: int, name: CallName, expires: timedelta) -> Program[Sequence[Hold]]:
    """A hold of `estimate` in each counter, or none. Raises OverBudget and what `Ledger.hold_all` does."""
    if not counters or not estimate:
        return ()
    try:
        holds: Sequence[Hold] = yield _holds(counters, estimate, name, expires)
        return holds
    except LimitReached as refused:
        raise OverBudget.of(refused, estimate) from refused


def _holds(counters: Sequence[str], estimate: int, name: CallName, expires: timedelta) -> Callable[[Any], Any]:
    named: dict[str, Any] = {"idempotency_key": name.id, "at": name.at} if name.shared else {}
    return lambda ledger: ledger.hold_all(counters, estimate, expires=expires, **named)


def release(holds: Sequence[Hold]) -> Program[None]:
    """Let every hold go that has not ended. Tries all, then raises what `Ledger.release` raised first."""
    failures: list[LedgerError] = []
    for hold in holds:
        try:
            yield from again(methodcaller("release", hold))
        except HoldEnded:
            pass
        except LedgerError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def settle(
    counters: Sequence[str], holds: Sequence[Hold], cost: int, name: CallName, over: str, tries: int = TRIES_MAX
) -> Program[dict[str, int]]:
    """Count `cost` in each counter, once, however often you call it. Returns how much each budget refused.

    Tries all, then raises the first error of `Ledger.capture` and `Ledger.add`: call again. With one try it raises at
    once.
    """
    refused: dict[str, int] = {}
    failures: list[LedgerError] = []
    counted: list[str] = []
    held = {hold.counter: hold for hold in holds}
    for counter in counters:
        try:
            rest = (yield from _capture(held[counter], cost, tries)) if counter in held else cost
            counted += [counter] * (rest < cost)
            if left := (yield from _filled(counter, rest, name, tries)):
                yield from again(_add(over + counter, left, name.rest, name), tries)
                refused[counter] = left
            counted.append(counter)
        except LedgerError as error:
            failures.append(error)
            if tries == 1:
                break
    if failures and counted:
        failures[0].leaves(f"{', '.join(dict.fromkeys(counted))}: the cost counts, perhaps in part. Settle it again.")
    if failures:
        raise failures[0]
    return refused


def _capture(hold: Hold, cost: int, tries: int) -> Program[int]:
    """How much of the cost is left when the hold has taken what it can."""
    used = min(cost, hold.amount)
    try:
        yield from again(lambda ledger: ledger.capture(hold, used), tries)
    except HoldEnded as ended:
        # A hold that was captured before, with another cost, counts that one. Over or released: nothing counts yet.
        return 0 if ended.state == "captured" else cost
    return cost - used


def _filled(counter: str, rest: int, name: CallName, tries: int) -> Program[int]:
    """How much of the rest is left when the budget is full."""
    if not rest or (yield from _added(counter, rest, name.rest, name, tries)):
        return 0
    counted = left = 0
    for number, part in enumerate(parts(rest)):
        try:
            counts = yield from _added(counter, part, name.part(number), name, tries)
        except LedgerError as error:
            if counted:
                error.leaves(f"{counter}: {counted} of the cost counts. Settle it again.")
            raise
        counted, left = (counted + part, left) if counts else (counted, left + part)
    return left


def parts(rest: int) -> Iterator[int]:
    """Yield halves, from the larger to the smaller: those that fit, taken in this order, are as much as fits."""
    while rest:
        yield rest - rest // 2
        rest //= 2


def _added(counter: str, change: int, key: str, name: CallName, tries: int) -> Program[bool]:
    try:
        yield from again(_add(counter, change, key, name), tries)
    except LimitReached:
        return False
    return True


def _add(counter: str, change: int, key: str, name: CallName) -> Callable[[Any], Any]:
    return lambda ledger: ledger.add(counter, change, idempotency_key=key, at=name.at, region=name.region)


def check_counters(counters: object) -> list[str]:
    """The names of budgets, each once; a text is a single name. Raises InvalidInput."""
    if not isinstance(counters, Iterable):
        raise InvalidInput(f"The budgets of a call are the names of counters, [] for none, not {shown(counters)}.")
    return list(dict.fromkeys(map(check_counter, [counters] if isinstance(counters, str) else counters)))


def may_be_billed(end: BaseException | None) -> bool:
    """Whether a call with this end may cost money: it got an answer, or nobody waited for the answer.

    A time-out is an error with "timeout" in its name: those of httpx, OpenAI, Anthropic and botocore are no
    TimeoutError. In a group, as a TaskGroup raises it, one is enough.
    """
    if isinstance(end, BaseExceptionGroup):
        return any(map(may_be_billed, end.exceptions))
    return not isinstance(end, Exception) or any("timeout" in kind.__name__.lower() for kind in type(end).__mro__)


def check_cost(name: str, cost: object) -> int:
    """`cost` itself; raises InvalidChange unless it is a whole number from 0 to 10**18."""
    if not isinstance(cost, int) or isinstance(cost, bool) or int.__int__(cost) < 0:
        raise InvalidChange(
            f"{name}={shown(cost)} is no cost. A cost is a whole number from 0 in the budget's unit (micro-dollars)."
        )
    return check_change(cost)
