"""`AsyncLedger`: a Ledger whose calls are awaited, on aiobotocore.

Rule 1: what is asked and what is answered is that of `Ledger`, by the same programs (`programs.py`).
Rule 2: a call that is cancelled raises CancelledError, from an OutcomeUnknown that carries its delta: the change may
have been sent. Of one that was cancelled before it began nothing was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterable
from datetime import datetime, timedelta
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, NoReturn, TypedDict, Unpack

from ledger import clocks, programs
from ledger.dynamo.aio import Edge, awaited
from ledger.errors import InvalidInput, LedgerError, OutcomeUnknown
from ledger.gate.hold import Hold
from ledger.lane.add import failed
from ledger.observing import DONE, Observe, observed
from ledger.programs import Rules
from ledger.requests import Program, Result
from ledger.settings import Settings
from ledger.table import Given
from ledger.values import Change, Delta, Receipt


class Named(TypedDict, total=False):
    """What gives a change its name, as for Ledger."""

    idempotency_key: str | None
    at: datetime | None
    region: str | None


class AsyncLedger(Edge):
    """Adds changes to counters inside `async with`, for the tasks of one event loop; make one a loop and keep it.

    client, clients: of aiobotocore, open; what is not given is made and closed here. table, tables: what answers
    requests, at once or awaited. All arguments, answers and errors are otherwise those of `Ledger`; there is no
    `gather`: many changes at once are `add_many(pack=True)`.
    """

    _calls: Rules

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
        return await self._run(programs.add(self._calls, delta), delta)

    def prepare(self, counter: str, change: int, **named: Unpack[Named]) -> Delta:
        """As `Ledger.prepare`: nothing is sent, and nothing awaited."""
        return programs.prepare(self._calls, Change(counter, change, **named))

    @observed("ledger.apply")
    async def apply(self, delta: Delta) -> Receipt:
        """As `Ledger.apply`."""
        delta = programs.ours(self.settings, delta)
        return await self._run(programs.add(self._calls, delta), delta)

    @observed("ledger.add_many")
    async def add_many(self, changes: Iterable[Change], *, pack: bool = False) -> list[Receipt | LedgerError]:
        """As `Ledger.add_many`. Of one that is cancelled the cause is a group: an OutcomeUnknown for each change."""
        deltas = programs.prepare_many(self._calls, changes, pack)
        try:
            return await super()._run(programs.add_many(self._calls, deltas, pack))
        except asyncio.CancelledError as cancelled:
            unknown = [_unknown(delta) for delta in deltas if isinstance(delta, Delta)]
            raise cancelled from ExceptionGroup("add_many was cancelled", unknown)

    def hold(self, counter: str, amount: int, *, expires: timedelta, **named: Unpack[Named]) -> AsyncHold:
        """As `Ledger.hold`: `async with ledger.hold(...) as hold`, or `hold = await ledger.hold(...)`."""
        delta = programs.prepare_hold(self._calls, Change(counter, amount, **named), expires)
        return AsyncHold(delta, self, self._granted(programs.hold(self._calls, delta)))

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

    async def _run(self, program: Generator[Any, Any, Result], delta: Delta | None = None) -> Result:
        try:
            return await super()._run(program)
        except asyncio.CancelledError as cancelled:
            raise cancelled from _unknown(delta)


class AsyncHold(Hold):
    """A Hold of an AsyncLedger: it is granted when it is awaited or entered; `capture` and `release` are awaited."""

    __slots__ = ("_granting",)

    def __init__(self, delta: Delta, ends: Any = None, granting: Coroutine[Any, Any, None] | None = None) -> None:
        super().__init__(delta, ends)
        self._granting = granting

    def __await__(self) -> Generator[Any, Any, AsyncHold]:
        if self._granting is not None:
            if getcoroutinestate(self._granting) != CORO_CREATED:
                raise InvalidInput("This hold was asked for and not granted: ask the ledger for one again.")
            yield from self._granting.__await__()
            self._granting = None
        return self

    async def capture(self, amount: int | None = None) -> Receipt:  # type: ignore[override]
        """As `AsyncLedger.capture`."""
        receipt: Receipt = await self._who().capture(self, amount)
        self._is_over = True
        return receipt

    async def release(self) -> None:  # type: ignore[override]
        """As `AsyncLedger.release`."""
        await self._who().release(self)
        self._is_over = True

    def __enter__(self) -> NoReturn:
        raise InvalidInput("The block of a hold of an AsyncLedger is `async with`.")

    async def __aenter__(self) -> AsyncHold:
        return await self

    async def __aexit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if not self._is_over:
            with self._leaving(failure):
                await self.release()


def _unknown(delta: Delta | None) -> LedgerError:
    why = "The call was cancelled: it may have been applied."
    return OutcomeUnknown(f"{why} Make the same call again.") if delta is None else failed(OutcomeUnknown(why), delta)
