"""`Holds`: the holds of one call in several counters, which are granted together and end together.

Rule 1: each hold ends by itself, once. A method that ends them all tries each, and then raises the
first failure.
Rule 2: nothing here knows a gate, so that importing the ledger loads none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

from ledger.core.errors import InvalidInput, LedgerError, shown
from ledger.core.running import answered, or_error
from ledger.core.values import Receipt
from ledger.gate.hold import Hold


class Holds(tuple[Hold, ...]):
    """A tuple of holds, in the order of the call's counters. The end of a `with` block releases
    uncaptured ones.

    In another process `Holds([ledger.parse_hold(counter, id), ...])` makes them anew. Raises
    InvalidInput for anything but holds, such as those of an AsyncLedger.
    """

    _of: type[Hold] = Hold

    def __new__(cls, holds: Iterable[Hold] = ()) -> Self:
        granted = tuple(holds)
        for hold in granted:
            if type(hold) is not cls._of:
                raise InvalidInput(f"Holds are of a Ledger's holds, not {shown(hold)}.")
        return super().__new__(cls, granted)

    def capture(self, amount: int | None = None) -> tuple[Receipt, ...]:
        """As `Ledger.capture`, with the same amount for each: a receipt each, in order.

        Tries all, then raises the first error: call it again to capture the others.
        """
        return self._captured([or_error(hold.capture, amount) for hold in self])

    def _captured(self, outcomes: list[Receipt | LedgerError]) -> tuple[Receipt, ...]:
        """The receipts. Raises the first error, which says what was captured."""
        with self._saying_what_ended():
            return tuple(outcome for outcome in answered(outcomes) if isinstance(outcome, Receipt))

    @contextmanager
    def _saying_what_ended(self) -> Iterator[None]:
        try:
            yield
        except LedgerError as error:
            if over := ", ".join(hold.counter for hold in self if hold._is_over):
                error.leaves(f"{over}: the hold has ended. Call again to end the others.")
            raise

    def release(self) -> None:
        """Let each hold go that has not ended.

        Tries all, then raises the first error but HoldEnded.
        """
        with self._saying_what_ended():
            self.__exit__(None, None, None)

    def __enter__(self) -> Holds:
        for hold in self:
            hold.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stack = ExitStack()  # it tries all
        for hold in reversed(self):
            stack.push(hold)
        stack.__exit__(kind, failure, trace)

    def __reduce__(self) -> tuple[Any, ...]:
        return Holds, (tuple(self),)
