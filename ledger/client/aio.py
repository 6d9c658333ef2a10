"""`AsyncLedger`: a Ledger whose calls are awaited, on aiobotocore.

Rule 1: its calls send and answer what those of `Ledger` do, by the same programs (`programs.py`).
Rule 2: a call that is cancelled raises CancelledError, from an OutcomeUnknown that carries its
delta: the change may have been sent. A call that is cancelled before it begins sends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from inspect import CORO_CREATED, getcoroutinestate
from types import TracebackType
from typing import Any, NoReturn, Self, TypedDict, Unpack, cast

from ledger.client import preparing, programs
from ledger.client.holds import Hold, Holds
from ledger.client.preparing import Rules
from ledger.core import clocks
from ledger.core.errors import InvalidInput, LedgerError, OutcomeUnknown
from ledger.core.observing import DONE, Observe, observed, of_transfer
from ledger.core.requests import Program, Result
from ledger.core.settings import Settings
from ledger.core.values import Change, Delta, Receipt, Transfer
from ledger.lane.add import failed
from ledger.tables.aio import Edge, awaited
from ledger.tables.dynamo import Given


class Named(TypedDict, total=False):
    """The arguments that name a change, as for Ledger."""

    idempotency_key: str | None
    at: datetime | None
    region: str | None


class AsyncLedger(Edge):
    """Adds changes to counters inside `async with`, for the tasks of one event loop: make one in
    each loop and keep it.

    client, clients: of aiobotocore, open; the ledger makes and closes those that you do not give.
    table, tables: anything that answers requests, at once or awaited. All arguments, answers and
    errors are otherwise those of `Ledger`. There is no `gather`: for many changes at once use
    `add_many(pack=True)`.
    """

    _rules: Rules

    def __init__(
        self,
        settings: Settings,
        *,
        clock: clocks.Clock = clocks.wall_clock,
        entropy: clocks.Entropy = clocks.entropy,
        observe: Observe | None = None,
        **given: Unpack[Given],
    ) -> None:
        super().__init__(settings, Rules(settings, clock, entropy), observe, **given)

    @observed("ledger.add")
    async def add(self, counter: str, change: int, **named: Unpack[Named]) -> Receipt:
        """As `Ledger.add`."""
        delta = self.prepare(counter, change, **named)
        return await self._run(programs.add(self._rules, delta), delta)

    @observed("ledger.add_up_to")
    async def add_up_to(
        self,
        counter: str,
        change: int,
        *,
        idempotency_key: str,
        at: datetime | None = None,
        region: str | None = None,
    ) -> Receipt:
        """As `Ledger.add_up_to`."""
        requested = Change(counter, change, idempotency_key, at, region)
        delta = preparing.prepare_up_to(self._rules, requested)
        return await self._run(programs.add_up_to(self._rules, delta))

    def prepare(self, counter: str, change: int, **named: Unpack[Named]) -> Delta:
        """As `Ledger.prepare`: nothing is sent, and nothing awaited."""
        return preparing.prepare(self._rules, Change(counter, change, **named))

    @observed("ledger.apply")
    async def apply(self, delta: Delta) -> Receipt:
        """As `Ledger.apply`."""
        delta = preparing.ours(self.settings, delta)
        return await self._run(programs.add(self._rules, delta), delta)

    @observed("ledger.add_many")
    async def add_many(
        self, changes: Iterable[Change], *, pack: bool = False
    ) -> list[Receipt | LedgerError]:
        """As `Ledger.add_many`.

        If it is cancelled, the cause is a group: an OutcomeUnknown for each change.
        """
        deltas = preparing.prepare_many(self._rules, changes, pack)
        try:
            return await super()._run(programs.add_many(self._rules, deltas, pack))
        except asyncio.CancelledError as cancelled:
            unknown = [_unknown(delta) for delta in deltas if isinstance(delta, Delta)]
            raise cancelled from ExceptionGroup("add_many was cancelled", unknown)

    def hold(
        self, counter: str, amount: int, *, expires: timedelta, **named: Unpack[Named]
    ) -> AsyncHold:
        """As `Ledger.hold`: `async with ledger.hold(...) as hold`, or `hold = await
        ledger.hold(...)`.
        """
        delta = preparing.prepare_hold(self._rules, Change(counter, amount, **named), expires)
        return AsyncHold(delta, self, self._granted(programs.hold(self._rules, delta)))

    def hold_all(
        self, counters: Iterable[str], amount: int, *, expires: timedelta, **named: Unpack[Named]
    ) -> AsyncHolds:
        """As `Ledger.hold_all`: `async with ledger.hold_all(...) as holds`, or `holds = await
        ledger.hold_all(...)`.
        """
        from ledger.client import hold_all

        call = hold_all.prepare(self._rules, counters, amount, expires, **named)
        holds = AsyncHolds(AsyncHold(delta, self) for delta in call.deltas)
        holds._granting = self._all_granted(hold_all.hold_all(self._rules, call), holds)
        return holds

    @observed("ledger.transfer", of_transfer)
    async def transfer(
        self,
        source: str,
        target: str,
        amount: int,
        *,
        idempotency_key: str,
        at: datetime | None = None,
        region: str | None = None,
    ) -> Transfer:
        """As `Ledger.transfer`."""
        from ledger.client.saga_steps import transfer_of
        from ledger.client.transfer import transfer

        of = transfer_of(source, target, amount, idempotency_key, at, region)
        return await self._run(transfer(self._rules, of))

    def parse_hold(self, counter: str, id: str) -> AsyncHold:
        """As `Ledger.parse_hold`."""
        return AsyncHold.parse(counter, id, self)

    capture = awaited(programs.capture, "ledger.capture")
    """As `Ledger.capture`."""
    release = awaited(programs.release, "ledger.release", DONE)
    """As `Ledger.release`."""
    set_limit = awaited(programs.set_limit, "ledger.set_limit", DONE)
    """As `Ledger.set_limit`."""

    @observed("ledger.hold", DONE)
    async def _granted(self, program: Program[None]) -> None:
        await self._run(program)

    @observed("ledger.hold_all", DONE)
    async def _all_granted(self, program: Program[tuple[Delta, ...]], holds: AsyncHolds) -> None:
        for hold, delta in zip(holds, await self._run(program), strict=True):
            hold.delta = delta  # of a call with a name it may be that of another length

    async def _run(
        self, program: Generator[Any, Any, Result], delta: Delta | None = None
    ) -> Result:
        try:
            return await super()._run(program)
        except asyncio.CancelledError as cancelled:
            raise cancelled from _unknown(delta)


class _Granted:
    """A hold, or several, that the ledger grants when the caller awaits or enters it."""

    _granting: Coroutine[Any, Any, None] | None = None

    def __await__(self) -> Generator[Any, Any, Self]:
        if self._granting is not None:
            if getcoroutinestate(self._granting) != CORO_CREATED:
                raise InvalidInput(
                    "This hold was awaited before, and was not granted. Nothing was written. Call "
                    "`hold` again for a new one."
                )
            yield from self._granting.__await__()
            self._granting = None
        return self

    def __enter__(self) -> NoReturn:
        raise InvalidInput(
            "`with` cannot enter a hold of an AsyncLedger. Nothing was written. Use `async with`."
        )

    async def __aenter__(self) -> Self:
        return await self


class AsyncHold(_Granted, Hold):
    """A Hold of an AsyncLedger, which grants it when you await or enter it.

    Await `capture` and `release`, too.
    """

    def __init__(
        self, delta: Delta, ends: Any = None, granting: Coroutine[Any, Any, None] | None = None
    ) -> None:
        super().__init__(delta, ends)
        self._granting = granting

    async def capture(self, amount: int | None = None) -> Receipt:  # type: ignore[override]
        """As `AsyncLedger.capture`."""
        receipt: Receipt = await self._who().capture(self, amount)
        self._is_over = True
        return receipt

    async def release(self) -> None:  # type: ignore[override]
        """As `AsyncLedger.release`."""
        await self._who().release(self)
        self._is_over = True

    async def __aexit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if not self._is_over:
            with self._leaving(failure):
                await self.release()


class AsyncHolds(_Granted, Holds):
    """Holds of an AsyncLedger, as an AsyncHold is a Hold."""

    _of = AsyncHold

    async def capture(  # type: ignore[override]
        self, amount: int | None = None
    ) -> tuple[Receipt, ...]:
        """As `Holds.capture`."""
        outcomes: list[Receipt | LedgerError] = []
        for hold in cast(tuple[AsyncHold, ...], self):
            try:
                outcomes.append(await hold.capture(amount))
            except LedgerError as error:
                outcomes.append(error)
        return self._captured(outcomes)

    async def release(self) -> None:  # type: ignore[override]
        """As `Holds.release`."""
        with self._saying_what_ended():
            await self.__aexit__(None, None, None)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stack = AsyncExitStack()  # it tries all
        for hold in reversed(cast(tuple[AsyncHold, ...], self)):
            stack.push_async_exit(hold)
        await stack.__aexit__(kind, failure, trace)


def _unknown(delta: Delta | None) -> LedgerError:
    why = "The call was cancelled. It may have been applied."
    return OutcomeUnknown(why) if delta is None else failed(OutcomeUnknown(why), delta)
