"""`Holds`: the holds of one call in several counters, granted together, which end together.

Rule 1: each hold ends by itself and once. What ends them all tries each, and then raises the first failure.
Rule 2: nothing here knows a gate, so that whoever imports the ledger does not load one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from ledger.errors import InvalidInput, shown
from ledger.gate.hold import Hold
from ledger.requests import answered, or_error
from ledger.values import Receipt


class Holds(tuple[Hold, ...]):
    """Holds in the order in which their counters were named: a tuple. `with` releases what was not captured in it.

    In another process `Holds([ledger.parse_hold(counter, id), ...])` makes them anew. Raises InvalidInput for anything
    but holds, such as those of an AsyncLedger.
    """

    _of: type[Hold] = Hold

    def __new__(cls, holds: Iterable[Hold] = ()) -> Self:
        each = tuple(holds)
        for hold in each:
            if type(hold) is not cls._of:
                raise InvalidInput(f"Holds are of a Ledger's holds, not {shown(hold)}.")
        return super().__new__(cls, each)

    def capture(self, amount: int | None = None) -> tuple[Receipt, ...]:
        """As `Ledger.capture`, the same amount of each: a receipt each, in order.

        Raises what that raises, after all were tried: then the same again captures the others.
        """
        outcomes = [or_error(hold.capture, amount) for hold in self]
        return tuple(each for each in answered(outcomes) if isinstance(each, Receipt))

    def release(self) -> None:
        """Let each go that has not ended. Raises what `Ledger.release` does but HoldEnded, after all were tried."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Holds:
        for hold in self:
            hold.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack = ExitStack()  # which tries all
        for hold in reversed(self):
            stack.push(hold)
        stack.__exit__(kind, failure, trace)

    def __reduce__(self) -> tuple[Any, ...]:
        return Holds, (tuple(self),)
