"""The programs of a budget: reserve an estimate in several at once, settle the cost, let a
reservation go.

Rule 1: every write has a name of its own, from the call's id and time, so that a repetition counts
once. The ledger names the holds of a call that nobody may repeat, and releases those that are
undecided at once.
Rule 2: a cost is never dropped. The part above the hold, or after its end, is the rest. It counts
in the budget as far as that has room, and beside it, in a counter without a limit, for what the
budget refuses.
Rule 3: a gate answers a name once, and for ever, a refusal too. Parts of a rest and their names
follow from the rest alone. So a call that settles again, in any process and whatever room came
back, gets the same answers and counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from operator import methodcaller
from typing import Any

from ledger.budgets.ask import Program, once
from ledger.budgets.errors import FINAL, NotCounted, OverBudget, SettledOtherwise
from ledger.client.holds import Hold
from ledger.core.again import TRIES_MAX, again
from ledger.core.checks import check_change, check_counter
from ledger.core.errors import (
    HoldEnded,
    InvalidChange,
    InvalidInput,
    LedgerError,
    LimitReached,
    PeriodOver,
    TokenConflict,
    shown,
)
from ledger.core.tokens import Step, step


@dataclass(frozen=True, slots=True)
class CallName:
    """The name of a call's writes: its id, when it was first requested, and its budgets. shared:
    its caller named it, so others may make the same call. region: where it was requested, if that
    may be another Region than the ledger's.

    The names of its steps hold its id and its budgets, and are of a kind of their own. What a
    process sets, its timeout, is in none.
    """

    id: str
    at: datetime
    shared: bool = False
    region: str | None = None
    counters: tuple[str, ...] = ()

    @property
    def holds(self) -> Step:
        """The name of the holds."""
        return step("budget/holds", self.id)

    @property
    def rest(self) -> Step:
        """The name of the add above the hold, or after its end."""
        return step("budget/rest", self.id, *sorted(self.counters))

    def part(self, number: int) -> Step:
        """The name of a part of the rest."""
        return step("budget/part", str(number), self.id, *sorted(self.counters))


def reserve(
    counters: Sequence[str], estimate: int, name: CallName, expires: timedelta
) -> Program[Sequence[Hold]]:
    """A hold of `estimate` in each counter, or none.

    Raises OverBudget and what `Ledger.hold_all` does.
    """
    if not counters or not estimate:
        return ()
    try:
        holds: Sequence[Hold] = yield _holds(counters, estimate, name, expires)
        return holds
    except LimitReached as refused:
        raise OverBudget.of(refused, estimate) from refused


def _holds(
    counters: Sequence[str], estimate: int, name: CallName, expires: timedelta
) -> Callable[[Any], Any]:
    named: dict[str, Any] = {"idempotency_key": name.holds, "at": name.at} if name.shared else {}
    return lambda ledger: ledger.hold_all(counters, estimate, expires=expires, **named)


def release(holds: Sequence[Hold]) -> Program[None]:
    """Let every hold go that has not ended.

    Tries all, then raises what `Ledger.release` raised first.
    """
    failures: list[LedgerError] = []
    for hold in holds:
        try:
            yield from again(partial(once, methodcaller("release", hold)))
        except HoldEnded:
            pass
        except LedgerError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def settle(
    counters: Sequence[str],
    holds: Sequence[Hold],
    cost: int,
    name: CallName,
    over: str,
    tries: int = TRIES_MAX,
) -> Program[dict[str, int]]:
    """Count `cost` in each counter, once, however often you call it. Returns how much each budget
    refused.

    Tries all, then raises the first error of `Ledger.capture` and `Ledger.add`: call again. With
    one try the first error that is not final ends it.
    """
    refused: dict[str, int] = {}
    failures: list[LedgerError] = []
    counted: list[str] = []
    held = {hold.counter: hold for hold in holds}
    for counter in counters:
        try:
            used = yield from _used(counter, held.get(counter), cost, name, tries)
            counted += [counter] * (used > 0)
            if left := (yield from _above(counter, used, cost, name, over, tries)):
                refused[counter] = left
            counted.append(counter)
        except LedgerError as error:
            failures.append(error)
            if tries == 1 and not isinstance(error, FINAL):
                break
    raise_first(failures, refused, counted)
    return refused


def raise_first(
    failures: Sequence[LedgerError], refused: Mapping[str, int], counted: Iterable[str] = ()
) -> None:
    """Raise the first failure, if there is one: before those that are final one after which the
    next call goes on, else nobody would make it. refused: by budget, how much it refused of the
    cost. counted: budgets in which some of it counts."""
    late = [error for error in failures if isinstance(error, NotCounted)]
    over = {**refused, **{counter: left for error in late for counter, left in error.over.items()}}
    for error in late:
        error.over = over
    if not failures:
        return
    first = next((error for error in failures if not isinstance(error, FINAL)), failures[0])
    if names := ", ".join(dict.fromkeys(counted)):
        then = "" if isinstance(first, FINAL) else " Settle the call again."
        first.leaves(f"{names}: the cost counts, perhaps in part.{then}")
    raise first


def _used(counter: str, hold: Hold | None, cost: int, name: CallName, tries: int) -> Program[int]:
    """How much of the cost the hold has taken.

    Raises SettledOtherwise where it took part of another cost.
    """
    used = min(cost, hold.amount) if hold is not None else 0
    if hold is None:
        return used
    try:
        capture = partial(once, methodcaller("capture", hold, used))
        receipt = yield from again(capture, tries)
    except HoldEnded as ended:
        if ended.state != "captured":
            return 0  # over or released: nothing counts yet
        is_least = ended.actual == hold.amount
        raise SettledOtherwise(counter, cost, ended.actual, is_least=is_least) from ended
    if cost == hold.amount and receipt is not None and receipt.outcome == "replayed":
        yield from _check_no_rest(counter, cost, name, tries)
    return used


def _check_no_rest(counter: str, cost: int, name: CallName, tries: int) -> Program[None]:
    """Raise SettledOtherwise where the first cost had a rest.

    A rest of 0 says that there was none, for ever.
    """
    try:
        yield from again(_add(counter, 0, name.rest, name), tries)
    except PeriodOver:
        pass  # nobody can look any more
    except TokenConflict as error:
        raise SettledOtherwise(
            counter, cost, cost + (error.counts or 0), is_least=error.counts is None
        ) from error
    except LimitReached as error:
        raise SettledOtherwise(counter, cost, cost, is_least=True) from error


def _above(
    counter: str, used: int, cost: int, name: CallName, over: str, tries: int
) -> Program[int]:
    """Count what is left of a cost, beside the budget as far as that refuses it: so much."""
    try:
        if left := (yield from _filled(counter, cost - used, name, tries)):
            yield from again(_add(over + counter, left, name.rest, name), tries)
        return left
    except TokenConflict as error:
        is_least = error.counts is None
        raise SettledOtherwise(
            counter, cost, used + (error.counts or 0), is_least=is_least
        ) from error
    except PeriodOver as error:
        raise NotCounted(counter, used, cost, error.since) from error


def _filled(counter: str, rest: int, name: CallName, tries: int) -> Program[int]:
    """How much of the rest is left when the budget is full.

    The rest is added whole. If the budget refuses that, its halves are added, each under a name of
    its own: so they fill the budget to the last unit.
    """
    if not rest or (yield from _added(counter, rest, name.rest, name, tries)):
        return 0
    counted = left = 0
    for number, part in enumerate(parts(rest)):
        try:
            fits = yield from _added(counter, part, name.part(number), name, tries)
        except LedgerError as error:
            if counted:
                error.leaves(f"{counter}: {counted} of the cost counts. Settle the call again.")
            if isinstance(error, TokenConflict):
                error.counts = None  # of a part, which says little of the whole
            raise
        counted, left = (counted + part, left) if fits else (counted, left + part)
    return left


def parts(rest: int) -> Iterator[int]:
    """Yield halves, from the larger to the smaller: those that fit, taken in this order, are as
    much as fits.
    """
    while rest:
        yield rest - rest // 2
        rest //= 2


def _added(counter: str, change: int, key: str, name: CallName, tries: int) -> Program[bool]:
    try:
        yield from again(_add(counter, change, key, name), tries)
    except LimitReached:
        return False
    return True


def _add(counter: str, change: int, key: str, name: CallName) -> Callable[[], Program[Any]]:
    named = {"idempotency_key": key, "at": name.at, "region": name.region}
    return partial(once, methodcaller("add", counter, change, **named))


def check_counters(counters: object) -> list[str]:
    """The names of budgets, each once; a text is a single name. Raises InvalidInput."""
    if not isinstance(counters, Iterable):
        raise InvalidInput(
            f"The budgets of a call are the names of counters, [] for none, not {shown(counters)}."
        )
    return list(
        dict.fromkeys(map(check_counter, [counters] if isinstance(counters, str) else counters))
    )


def may_be_billed(end: BaseException | None) -> bool:
    """Whether a call with this end may cost money: it got an answer, or nobody waited for the
    answer.

    A time-out is an error with "timeout" in its name: those of httpx, OpenAI, Anthropic and
    botocore are no TimeoutError. In a group, as a TaskGroup raises it, one is enough.
    """
    if isinstance(end, BaseExceptionGroup):
        return any(map(may_be_billed, end.exceptions))
    return not isinstance(end, Exception) or any(
        "timeout" in kind.__name__.lower() for kind in type(end).__mro__
    )


def check_cost(name: str, cost: object) -> int:
    """`cost` itself; raises InvalidChange unless it is a whole number from 0 to 10**18."""
    if not isinstance(cost, int) or isinstance(cost, bool) or int.__int__(cost) < 0:
        raise InvalidChange(
            f"{name}={shown(cost)} is no cost. A cost is a whole number, 0 or more, in the unit of "
            "the budget, such as micro-dollars."
        )
    return check_change(cost)
