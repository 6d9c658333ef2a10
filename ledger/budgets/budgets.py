"""`Budgets`: reserve what a call may cost before it, and settle what it did cost after it.

Rule 1: a budget is a limited counter. Nothing here decides: no cache, no copy, no reset; a period
is in the name.
Rule 2: a reservation ends with its call, however that ends, and by itself when the process dies.
Rule 3: a call that fails before it has a cost counts nothing. A call without a cost that ended
well, or that a cancelled task or a time-out left, counts its estimate: an unknown cost is not free.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from types import MappingProxyType, TracebackType
from typing import Any

from ledger.budgets import reserving
from ledger.budgets.ask import Program, check_ledger, go_on, run, run_async, to_its_end
from ledger.budgets.errors import NotCounted, SettledOtherwise
from ledger.budgets.reserving import CallName, check_cost, check_counters, may_be_billed
from ledger.client.holds import Hold
from ledger.core import clocks
from ledger.core.again import TRIES_MAX
from ledger.core.checks import check_counter, check_key, check_time, plain_length, to_datetime
from ledger.core.errors import InvalidInput, InvalidKey, LedgerError, shown
from ledger.core.keys import at_of, needs_at

TIMEOUT = timedelta(minutes=10)
LONGEST = "/rest"
"""A call's name is so much shorter than a key: a client in another language may name its own
steps by it.
"""


class Budgets:
    """Reserves in the limited counters of a ledger. It is as thread-safe as the ledger: make one in
    each process.

    ledger: a Ledger, or an AsyncLedger for `async with` alone. timeout: no call takes longer; then
    its reservation ends by itself. over: a cost above the estimate fills the budget, and the rest
    of it counts in a counter named `over` and the budget's name, which has no limit: the two
    together are what was spent. clock: as for Ledger.
    """

    def __init__(
        self,
        ledger: Any,
        *,
        timeout: timedelta = TIMEOUT,
        over: str = "over:",
        clock: clocks.Clock = clocks.wall_clock,
    ) -> None:
        self.ledger = check_ledger(ledger)
        length = plain_length(timeout)
        if length is None or length <= timedelta(0):
            raise InvalidInput(
                f"timeout is a timedelta above 0, how long a call may take, not {shown(timeout)}."
            )
        self.timeout = length
        self.over = check_counter(over)
        self.clock = clocks.checked(clock)

    def now(self) -> datetime:
        """The time by this object's clock, in UTC, from which you make the name of a day's or a
        month's budget.
        """
        return to_datetime(self.clock())

    def reserve(
        self,
        counters: Iterable[str],
        estimate: int,
        *,
        call: str | None = None,
        at: datetime | None = None,
    ) -> Call:
        """A call that may cost `estimate` in each of these counters. It holds nothing before `with`
        or `async with`.

        estimate, and every cost: a whole number from 0 to 10**18, such as micro-dollars or tokens.
        call, at: the name of the call, with its counters; a `call` that is a ULID or a UUIDv7
        needs no `at`, as in `Ledger.add`. Give the same again to repeat the call, in any process of
        this Region, whatever its timeout: it reserves once, also after an error. A call that has
        ended, or was refused, needs a new name. Raises InvalidInput.
        """
        names = check_counters(counters)
        for name in names:
            beside = check_counter(self.over + name)
            if self.ledger.settings.limit_of(beside) is not None:
                raise InvalidInput(
                    f"{beside} would count the part of a cost that {name} refuses, but {beside} "
                    "has a limit itself. Nothing was written. Give another over=."
                )
        at = at_of(call, at)
        if (call is None) is not (at is None):
            raise InvalidKey(
                "call or at came alone. Nothing was written. Give both; to repeat the call, give "
                f"the same two again. {needs_at(call)}"
            )
        when = self.now() if at is None else to_datetime(check_time("at", at))
        id = (
            uuid.uuid4().hex
            if call is None
            else check_key(check_key(call) + LONGEST).removesuffix(LONGEST)
        )
        call_name = CallName(id, when, shared=call is not None, counters=tuple(names))
        return Call(self, names, check_cost("estimate", estimate), call_name)


class Call:
    """A call and what it reserved.

    Entering it, by `with` or `async with`, raises OverBudget and what `Ledger.hold_all` raises:
    then do not make the call. Leaving it raises SettledOtherwise, NotCounted and what
    `Ledger.capture` raises: then `close` it again. If the block itself failed, its own exception
    goes on, with such an error as a note.
    """

    def __init__(
        self, budgets: Budgets, counters: list[str], estimate: int, name: CallName
    ) -> None:
        self._budgets = budgets
        self._name = name
        self.id, self.at = name.id, name.at
        self.counters = tuple(counters)
        self.estimate = estimate
        self.holds: tuple[Hold, ...] = ()
        self.cost: int | None = None
        """The last cost that `settle` got."""
        self.ended = False
        self._was_opened = False
        self.over: Mapping[str, int] = MappingProxyType({})
        """After the end: how much of the cost each budget refused.

        That part counts in the counter named `over` and the budget's name. After NotCounted it is
        in no counter, unless an earlier settlement counted it.
        """

    def settle(self, cost: int) -> None:
        """Set the whole cost of the call, and set it again when you know more. The end of the block
        writes it, also after an exception or a cancelled task.

        Raises InvalidInput for a call that has ended, and for a bad cost: then the estimate counts,
        or the last cost if that is more, until you set another.
        """
        if self.ended:
            raise InvalidInput(
                f"The call {self.id} has ended, so its cost stays. Nothing was written. `add` what "
                "is missing to its budgets."
            )
        self.cost = max(self.estimate, self.cost or 0)
        self.cost = check_cost("cost", cost)

    def open(self) -> Call:
        """As `with`, for code that ends elsewhere: there, call `close`.

        Raises InvalidInput the second time.
        """
        self._check_new()
        self.holds = tuple(run(self._reserved(), self._budgets.ledger))
        self._was_opened = True
        return self

    def close(self, *, failed: bool = False) -> None:
        """End what `open` began: the cost from `settle` counts, else the estimate, or nothing if
        the call `failed` or nobody opened it, as after a refusal.
        """
        with self._ending():
            self._keep(run(self._ended(failed), self._budgets.ledger))

    def __enter__(self) -> Call:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close(failed=not may_be_billed(failure))
        except LedgerError as error:
            self._raise_or_note(error, failure)

    async def aopen(self) -> Call:
        """As `open`."""
        self._check_new()
        reservation = go_on(run_async(self._reserved(), self._budgets.ledger))
        try:
            self.holds = tuple(await asyncio.shield(reservation))
        except asyncio.CancelledError:
            # Rule 4: the cancelled task releases the hold that the answer brings, unless the call
            # has a name by which others may make it, too.
            go_on(self._let_go(reservation))
            raise
        self._was_opened = True
        return self

    async def aclose(self, *, failed: bool = False, tries: int = TRIES_MAX) -> None:
        """As `close`. If its task is cancelled meanwhile it goes on to its end, and then the task
        is cancelled.

        tries: how often each write is sent at most, until it is decided; with one, the first error
        is raised at once.
        """

        async def closed() -> None:
            with self._ending():
                self._keep(await run_async(self._ended(failed, tries), self._budgets.ledger))

        await to_its_end(closed)

    async def __aenter__(self) -> Call:
        return await self.aopen()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.aclose(failed=not may_be_billed(failure))
        except LedgerError as error:
            self._raise_or_note(error, failure)

    def _reserved(self) -> Program[Sequence[Hold]]:
        return reserving.reserve(self.counters, self.estimate, self._name, self._budgets.timeout)

    def _check_new(self) -> None:
        if self._was_opened or self.ended:
            raise InvalidInput(
                f"The call {self.id} was opened before, and a call opens once. Nothing was "
                "written. Call `reserve` again for another one."
            )

    def _ended(self, failed: bool, tries: int = TRIES_MAX) -> Program[dict[str, int]]:
        if self.cost is None and (failed or not self._was_opened):
            yield from reserving.release(self.holds)
            return {}
        cost = self.estimate if self.cost is None else self.cost
        return (
            yield from reserving.settle(
                self.counters, self.holds, cost, self._name, self._budgets.over, tries
            )
        )

    def _keep(self, over: dict[str, int]) -> None:
        self.over = MappingProxyType(over)
        self.ended = True

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """What is final of an end that fails."""
        try:
            yield
        except SettledOtherwise:
            self.ended = True
            raise
        except NotCounted as error:
            self.over = MappingProxyType(error.over)
            raise

    def _raise_or_note(self, error: LedgerError, failure: BaseException | None) -> None:
        """An error at the end hides no failure of the block."""
        if failure is None:
            raise error
        failure.add_note(f"The cost of the call {self.id}, {self.cost}, is not settled: {error}")

    async def _let_go(self, reservation: asyncio.Task[Sequence[Hold]]) -> None:
        """Release what a cancelled task was granted, unless others may hold it by the same name."""
        with suppress(LedgerError):
            holds = await reservation
            if not self._name.shared:
                await run_async(reserving.release(holds), self._budgets.ledger)
