"""The calls of one process that reserved and have not ended.

Rule 1: a call is found by its mark, and ends once: the code that takes it out of the table ends it.
No two have one mark, whatever their callers name them.
Rule 2: a call that its task leaves has no hook. It is over when the task was cancelled, or when
Python frees LiteLLM's own object of it, which nobody then has any more. One that is still open
after the time-out is over, too: what was noted counts, else its estimate.
Rule 3: the answer waits for one try of a settlement. What that does not decide is tried again
beside it, for ten minutes; LiteLLM gets no error, its answer stands.
Rule 4: nothing of a call stays with the task that made it, which may live as long as its process.
"""

from __future__ import annotations

import asyncio
import uuid
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from exact_counter.budgets import TRIES_MAX, Call, go_on, to_its_end
from exact_counter.errors import LedgerError

from ledger_litellm.errors import is_paid, log
from ledger_litellm.prices import Asked, field, streamed_cost

AGAIN_S = 10  # after so long a settlement that failed is tried again
AGAIN_MAX = 60


@dataclass(slots=True)
class OpenCall:
    """owner: LiteLLM's id of the call that reserved; its attempts may have others; None of one that
    came to the proxy.
    details: the arguments of LiteLLM's log events of it. forget: takes back what would end it when
    it is left. noted: what its answers cost; last: the answer that was noted last.
    """

    call: Call
    owner: str | None
    asked: Asked
    details: object = None
    forget: Callable[[], object] = tuple
    noted: int | None = None
    last: object = None

    def is_of(self, request: Mapping[str, Any]) -> bool:
        """Whether this is the call itself, and not an attempt that it makes."""
        return self.owner is not None and self.owner == request.get("litellm_call_id")

    @property
    def least(self) -> int | None:
        """What it cost when it was left: the input, which it may bill; the estimate where an
        answer had come.
        """
        answered = field(self.details, "original_response") is not None
        return None if answered else self.asked.input

    def note(self, cost: int | None, of: object) -> None:
        """Note one more answer, or failure, which LiteLLM reports once for each time that the hooks
        are installed; where its cost is unknown the estimate counts.
        """
        if of is self.last:
            return
        self.last = of
        if cost is None:
            cost = self.call.estimate
            log.warning(
                "%s: the cost of an answer is unknown, so its estimate of %d counts",
                self.call.id,
                cost,
            )
        self.noted = (self.noted or 0) + cost


class OpenCalls:
    """By mark; for the loop that the hooks run in."""

    def __init__(self) -> None:
        self._there: dict[str, tuple[OpenCall, asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._there)

    async def begin(self, opening: OpenCall, timeout_s: float) -> str:
        """The mark of a call that has reserved now. Raises what `Call.aopen` does."""
        await opening.call.aopen()
        mark = uuid.uuid4().hex
        self._there[mark] = (
            opening,
            asyncio.get_running_loop().call_later(timeout_s, self._over, mark),
        )
        return mark

    def end_when_left(self, mark: str, logging: object) -> None:
        """A call that is not streamed is over when its task was cancelled, or gave it up and goes
        on: then nobody has LiteLLM's own object of it any more. Whichever thread frees that, the
        call ends in this loop.
        """
        loop, task, there = asyncio.get_running_loop(), asyncio.current_task(), self.get(mark)
        if there is None or task is None:
            return

        def cancelled(task: asyncio.Task[Any]) -> None:
            if task.cancelled():
                self._left(mark)

        freed = weakref.finalize(logging, self._freed, loop, mark)
        freed.atexit = False
        task.add_done_callback(cancelled)
        there.forget = lambda: (freed.detach(), task.remove_done_callback(cancelled))

    def _freed(self, loop: asyncio.AbstractEventLoop, mark: str) -> None:
        with suppress(RuntimeError):  # the loop has ended: the time of its holds ends the call
            loop.call_soon_threadsafe(self._left, mark)

    def _left(self, mark: str) -> None:
        there = self.get(mark)
        if there is not None:
            go_on(self.end(mark, there.least))

    def get(self, mark: str | None) -> OpenCall | None:
        there = self._there.get(mark) if mark is not None else None
        return there and there[0]

    def mark_by(self, details: object) -> str | None:
        """Of the call that LiteLLM itself knows by these."""
        return next(
            (mark for mark, (there, _) in self._there.items() if there.details is details), None
        )

    async def end(self, mark: str | None, otherwise: int | None = None) -> None:
        """What was noted counts; where nothing was, `otherwise`, and where that is None the
        estimate.
        """
        there = self._there.pop(mark, None) if mark is not None else None
        if there is not None:
            ending, timer = there
            timer.cancel()
            ending.forget()
            cost = otherwise if ending.noted is None else ending.noted
            if cost is not None:
                ending.call.settle(cost)
            await to_its_end(lambda: self._settled(ending, AGAIN_MAX))

    async def counted(
        self, mark: str | None, there: OpenCall | None, response: Any, logging: Any
    ) -> AsyncGenerator[Any, None]:
        """The chunks of a stream, which ends its call however it ends: what it gave counts."""
        chunks: list[Any] = []
        cut: BaseException | None = None
        try:
            async for chunk in response:
                chunks.append(chunk)
                yield chunk
        except BaseException as failure:
            cut = failure
            raise
        finally:
            if there is not None and self.get(mark) is there:
                if chunks:
                    there.note(streamed_cost(there.asked, chunks, logging), chunks)
                await self.end(mark, there.asked.input if is_paid(cut) else 0)

    async def _settled(self, ending: OpenCall, tries: int) -> None:
        """The first time each write is asked once, then as often as elsewhere."""
        call, first = ending.call, tries == AGAIN_MAX
        try:
            await call.aclose(tries=1 if first else TRIES_MAX)
        except LedgerError as error:
            log.error(
                "%s, cost %s: not settled%s: %s",
                call.id,
                call.cost,
                "; again soon" if tries else "",
                error,
            )
            if first:
                go_on(self._settled(ending, tries - 1))
            elif tries:
                asyncio.get_running_loop().call_later(
                    AGAIN_S, lambda: go_on(self._settled(ending, tries - 1))
                )
        else:
            for counter, rest in call.over.items():
                log.warning(
                    "%s: %s refused %d of the cost: an estimate was too low", call.id, counter, rest
                )

    def _over(self, mark: str) -> None:
        there = self._there.get(mark)
        if there is not None:
            of, noted = there[0].call, there[0].noted
            counts = f"its estimate of {of.estimate}" if noted is None else f"its cost of {noted}"
            log.warning(
                "%s: no hook reported its end within the time-out, so %s counts in %s. "
                "A stream was left, or the timeout is too short.",
                *(of.id, counts, ", ".join(of.counters)),
            )
            go_on(self.end(mark))
