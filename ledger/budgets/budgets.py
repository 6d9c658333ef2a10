"""`Budgets`: what a call may cost is reserved before it, and what it did cost is settled after it.

Rule 1: a budget is a limited counter. Nothing here decides: no cache, no copy, no reset; a period is in the name.
Rule 2: what is reserved ends with the call, however it ends, and by itself when the process dies.
Rule 3: a call that fails before it said a cost counts nothing. One that said none and ended well, or was left, by a
cancelled task or after a time-out, counts its estimate: what is not known is not free.
Rule 4: a task that is cancelled while a budget is asked leaves no hold that the answer would have brought, unless the
call has a name by which others may make it, too.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from types import MappingProxyType, TracebackType
from typing import Any

from ledger import clocks
from ledger.budgets import reserving
from ledger.budgets.ask import Program, check_ledger, go_on, run, run_async, to_its_end
from ledger.budgets.reserving import TRIES_MAX, CallName, check_cost, check_counters, may_be_billed
from ledger.checks import check_counter, check_key, check_time, to_datetime
from ledger.errors import InvalidInput, InvalidKey, LedgerError, shown
from ledger.gate.hold import Hold

TIMEOUT = timedelta(minutes=10)


class Budgets:
    """Reserves in the limited counters of a ledger. Thread-safe as the ledger is; make one a process and keep it.

    ledger: a Ledger, or an AsyncLedger for `async with` alone. timeout: what no call takes longer than; what is held
    ends by itself then. over: a cost above the estimate fills the budget, and what does not fit is counted in the
    counter `over` and its name, which has no limit: the two together are what was spent. clock: as of a Ledger.
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
        span: object = timeout
        if not isinstance(span, timedelta) or span <= timedelta(0):
            raise InvalidInput(f"timeout is a timedelta above 0, how long a call may take, not {shown(timeout)}.")
        self.timeout = timeout
        self.over = check_counter(over)
        self.clock = clocks.checked(clock)

    def now(self) -> datetime:
        """By this object's clock, in UTC: what the name of a day's or a month's budget is made of."""
        return to_datetime(self.clock())

    def reserve(
        self, counters: Iterable[str], estimate: int, *, call: str | None = None, at: datetime | None = None
    ) -> Call:
        """A call that may cost `estimate` in each of these counters; nothing is held before `with` or `async with`.

        estimate, and every cost: a whole number from 0 to 10**18, such as micro-dollars or tokens. call, at: who asks
        again for the same call names both again, in any process of this Region, and reserves once; also after an error
        by which a reservation was not decided. A call that has ended, or was refused, is made again under a new name.
        Raises InvalidInput.
        """
        names = check_counters(counters)
        for name in names:
            beside = check_counter(self.over + name)
            if self.ledger.settings.limit_of(beside) is not None:
                raise InvalidInput(
                    f"{beside} counts what {name} refuses of a cost, and has a limit: give another over=."
                )
        if (call is None) is not (at is None):
            raise InvalidKey("call and at go together: both name the call, and both are the same when it is repeated.")
        when = self.now() if at is None else to_datetime(check_time("at", at))
        call_name = CallName(uuid.uuid4().hex if call is None else check_key(call), when, shared=call is not None)
        check_key(call_name.rest)
        return Call(self, names, check_cost("estimate", estimate), call_name)


class Call:
    """What one call reserved. `with` and `async with` raise OverBudget and what `Ledger.hold_all` raises, before the
    call; on leaving, what `Ledger.capture` raises, as a note where the block failed: then `close` again counts the same
    cost, once.
    """

    def __init__(self, budgets: Budgets, counters: list[str], estimate: int, name: CallName) -> None:
        self._budgets = budgets
        self._name = name
        self.id, self.at = name.id, name.at
        self.counters = tuple(counters)
        self.estimate = estimate
        self.holds: tuple[Hold, ...] = ()
        self.cost: int | None = None
        """What was said last."""
        self.ended = False
        self._was_opened = False
        self.over: Mapping[str, int] = MappingProxyType({})
        """When it has ended: what a budget refused to take of the cost."""

    def settle(self, cost: int) -> None:
        """Say what the call costs, all in all; again as more is known. It is written when the block is left, by an
        exception or a cancelled task, too. Raises InvalidInput: then the estimate counts, or what was said if that is
        more, until another cost is said; and for a call that has ended.
        """
        if self.ended:
            raise InvalidInput(f"The call {self.id} has ended: what else it cost is an `add` to its budgets.")
        self.cost = max(self.estimate, self.cost or 0)
        self.cost = check_cost("cost", cost)

    def open(self) -> Call:
        """As `with`, for code that ends elsewhere: call `close` there. Raises InvalidInput the second time."""
        self._check_new()
        self.holds = tuple(run(self._reserved(), self._budgets.ledger))
        self._was_opened = True
        return self

    def close(self, *, failed: bool = False) -> None:
        """End what `open` began: the cost that was said counts; if none was, all of the estimate, or nothing if the
        call `failed` or was never open, such as one that was refused.
        """
        self._keep(run(self._ended(failed), self._budgets.ledger))

    def __enter__(self) -> Call:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
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
            go_on(self._let_go(reservation))
            raise
        self._was_opened = True
        return self

    async def aclose(self, *, failed: bool = False, tries: int = TRIES_MAX) -> None:
        """As `close`. When its task is cancelled meanwhile it goes on to its end, and the task is cancelled then.

        tries: how often each write is asked until it is decided; with one, the first that is not is raised at once.
        """

        async def closed() -> None:
            self._keep(await run_async(self._ended(failed, tries), self._budgets.ledger))

        await to_its_end(closed)

    async def __aenter__(self) -> Call:
        return await self.aopen()

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.aclose(failed=not may_be_billed(failure))
        except LedgerError as error:
            self._raise_or_note(error, failure)

    def _reserved(self) -> Program[Sequence[Hold]]:
        return reserving.reserve(self.counters, self.estimate, self._name, self._budgets.timeout)

    def _check_new(self) -> None:
        if self._was_opened or self.ended:
            raise InvalidInput(f"The call {self.id} was opened before: reserve another one.")

    def _ended(self, failed: bool, tries: int = TRIES_MAX) -> Program[dict[str, int]]:
        if self.cost is None and (failed or not self._was_opened):
            yield from reserving.release(self.holds)
            return {}
        cost = self.estimate if self.cost is None else self.cost
        return (yield from reserving.settle(self.counters, self.holds, cost, self._name, self._budgets.over, tries))

    def _keep(self, over: dict[str, int]) -> None:
        self.over = MappingProxyType(over)
        self.ended = True

    def _raise_or_note(self, error: LedgerError, failure: BaseException | None) -> None:
        """An error at the end hides no failure of the block."""
        if failure is None:
            raise error
        failure.add_note(f"{self.id}, cost={self.cost}: not settled: {error}")

    async def _let_go(self, reservation: asyncio.Task[Sequence[Hold]]) -> None:
        """Release what is granted to a task that was cancelled, unless others may hold it by the same name."""
        with suppress(LedgerError):
            holds = await reservation
            if not self._name.shared:
                await run_async(reserving.release(holds), self._budgets.ledger)
