"""The programs of a budget: reserve an estimate in several at once, settle what it cost, let it go.

Rule 1: all budgets or none, as `Ledger.hold_all` holds.
Rule 2: every write has a name of its own, from the call's id and time, so that a repetition counts once. The holds of a
call that nobody may repeat are named by the ledger: what is not decided of them is released at once.
Rule 3: a cost is never dropped. What is above the hold, or comes after it ended, is the rest. It is added whole; where
its budget refuses that, it is halved again and again, and each part is asked for under a name of its own. So the budget
is filled to the last unit. What it refuses of the parts is counted under another name, without a limit.
Rule 4: a gate answers a name once, and for ever, a refusal too. Parts and their names follow from the rest alone, so
whoever settles again, in any process and whatever room came back, gets the same answers and counts nothing twice.
Rule 5: what a table did not decide is asked again, some times; then its error is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import methodcaller
from typing import Any

from ledger.budgets.ask import Program
from ledger.checks import check_change, check_counter
from ledger.errors import Again, HoldEnded, InvalidChange, InvalidInput, LedgerError, LimitReached, shown
from ledger.gate.hold import Hold

TRIES_MAX = 5


class OverBudget(LimitReached):
    """A budget has too little left for an estimate: `counter` names it, `estimate` is what was asked. No budget holds
    anything of the call; one whose release failed, which a note says, until its time is over. A new attempt is a new
    call.
    """

    def __init__(self, counter: str, estimate: int) -> None:
        super().__init__(f"The budget {counter} has less than {estimate} left. Nothing of this call counts.")
        self.counter = counter
        self.estimate = estimate

    @classmethod
    def of(cls, refused: LimitReached, estimate: int) -> OverBudget:
        """That of a limit that refused an estimate, with its notes."""
        error = cls(str(refused.counter), estimate)
        error.__dict__.update(refused.__dict__)
        return error

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.counter, self.estimate), self.__dict__


@dataclass(frozen=True, slots=True)
class CallName:
    """What a call's writes are named by: its id and when it was first asked for. shared: its caller named it, so others
    may make the same call. region: where, if that need not be the ledger's.
    """

    id: str
    at: datetime
    shared: bool = False
    region: str | None = None

    @property
    def rest(self) -> str:
        """The name of what is added above the hold, or after it ended."""
        return f"{self.id}/rest"

    def part(self, number: int) -> str:
        """The name of a part of the rest. Shorter than `rest`, which is checked to fit."""
        return f"{self.id}/{number}"


def again(request: Callable[[Any], Any], tries: int = TRIES_MAX) -> Program[Any]:
    """Ask until the table decides. Raises what the ledger does."""
    for _ in range(tries - 1):
        with suppress(Again):
            return (yield request)
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
    """Let every hold go that has not ended. Raises what `Ledger.release` does, after all were tried."""
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
    """Count `cost` in each counter, once, however often this is called. Answers what each budget refused to take.

    Raises what `Ledger.capture` and `Ledger.add` do, after all were tried: then the same again. With one try, the first
    that is not decided is raised at once.
    """
    refused: dict[str, int] = {}
    failures: list[LedgerError] = []
    held = {hold.counter: hold for hold in holds}
    for counter in counters:
        try:
            rest = (yield from _capture(held[counter], cost, tries)) if counter in held else cost
            if left := (yield from _filled(counter, rest, name, tries)):
                yield from again(_add(over + counter, left, name.rest, name), tries)
                refused[counter] = left
        except LedgerError as error:
            if tries == 1:
                raise
            failures.append(error)
    if failures:
        raise failures[0]
    return refused


def _capture(hold: Hold, cost: int, tries: int) -> Program[int]:
    """What is left to count when the hold has taken what it can."""
    used = min(cost, hold.amount)
    try:
        yield from again(lambda ledger: ledger.capture(hold, used), tries)
    except HoldEnded as ended:
        # Captured before, with another cost: that one counts. Over or released: nothing counts yet.
        return 0 if ended.state == "captured" else cost
    return cost - used


def _filled(counter: str, rest: int, name: CallName, tries: int) -> Program[int]:
    """How much of the rest is left when the budget is full."""
    if not rest or (yield from _added(counter, rest, name.rest, name, tries)):
        return 0
    left = 0
    for number, part in enumerate(parts(rest)):
        if not (yield from _added(counter, part, name.part(number), name, tries)):
            left += part
    return left


def parts(rest: int) -> Iterator[int]:
    """Halves, from the larger to the smaller: those that fit, taken in this order, are as much as fits."""
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
    """The names of budgets, each once; one text is one name. Raises InvalidInput."""
    if not isinstance(counters, Iterable):
        raise InvalidInput(f"The budgets of a call are the names of counters, [] for none, not {shown(counters)}.")
    return list(dict.fromkeys(map(check_counter, [counters] if isinstance(counters, str) else counters)))


def may_be_billed(end: BaseException | None) -> bool:
    """Whether a call that ended like this may be paid for: it was answered, or nobody waited for the answer.

    A time-out is an error with that in its name: those of httpx, OpenAI, Anthropic and botocore are no TimeoutError.
    Of a group, as a TaskGroup raises it, one is enough.
    """
    if isinstance(end, BaseExceptionGroup):
        return any(map(may_be_billed, end.exceptions))
    return not isinstance(end, Exception) or any("timeout" in each.__name__.lower() for each in type(end).__mro__)


def check_cost(name: str, cost: object) -> int:
    """`cost` itself; raises InvalidChange unless it is a whole number from 0 to 10**18."""
    if not isinstance(cost, int) or isinstance(cost, bool) or cost < 0:
        raise InvalidChange(
            f"{name}={shown(cost)} is no cost: a whole number of 0 or more in the budget's unit, such as micro-dollars."
        )
    return check_change(cost)
