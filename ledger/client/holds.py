"""`Hold`: a part of a limit, set aside for a while; `Holds`: those of one call, in several
counters.

Rule 1: the table decides. A Hold is a value that knows its name, its amount and its end, and not
whether it is still open.
Rule 2: its text has all of this, so that a capture and a release, in any process, need only that
and the counter's name.
Rule 3: nothing here knows a gate, so that importing the ledger loads none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from ledger.core.checks import plain_text, to_datetime
from ledger.core.errors import HoldEnded, InvalidInput, LedgerError, shown
from ledger.core.running import answered, or_error
from ledger.core.tokens import until_ms
from ledger.core.values import Delta, Lane, Receipt

# characters of a wrong id that an error shows: all of an id that is damaged at its end
SHOWN_MAX = 130


class Hold:
    """A granted hold: `amount` of `counter` is set aside until `until`. What counts then is the
    clock of the process that needs the amount.

    ends: the Ledger that ends it. The end of a `with` block releases a hold that was not captured
    in it. To end it in another process, make it there from its `id`, by
    `Ledger.parse_hold(counter, id)`; or send a pickle of it, and pass that to `Ledger.capture` or
    `Ledger.release`.
    """

    __slots__ = ("_ends", "_is_over", "delta")

    def __init__(self, delta: Delta, ends: Any = None) -> None:
        if not isinstance(delta, Delta):
            raise InvalidInput(
                f"A Hold takes a Delta, not {shown(delta)}. Nothing was written. To make a hold "
                "from its id call Hold.parse."
            )
        self.delta = delta
        self._ends = ends
        self._is_over = False

    @property
    def counter(self) -> str:
        return self.delta.lane.counter

    @property
    def amount(self) -> int:
        return self.delta.change

    @property
    def until(self) -> datetime:
        """`at` plus the length that `expires` gave, rounded up by a thousandth at most."""
        return to_datetime(until_ms(self.delta.token))

    @property
    def id(self) -> str:
        """Its name beside its counter: `<token>.<Region>.<shard>.<amount>`, 1 to 120 characters,
        safe in a URL.
        """
        lane = self.delta.lane
        return f"{self.delta.token}.{lane.region}.{lane.shard}.{self.amount}"

    @classmethod
    def parse(cls, counter: str, id: str, ends: Any = None) -> Self:
        """The hold of this `id`; `Ledger.parse_hold` returns one that can end itself.

        Raises InvalidInput.
        """
        parts = (given := plain_text(id) or "").split(".")
        try:
            token, region, shard, amount = parts
            hold = cls(Delta(Lane(region, int(shard), counter), token, int(amount)), ends)
        except InvalidInput as error:
            raise InvalidInput(
                f"{shown(id, SHOWN_MAX)} is the id of no hold: {error.why}"
            ) from None
        except ValueError:
            raise InvalidInput(
                f"{shown(id, SHOWN_MAX)} is the id of no hold: an id has the form "
                "<token>.<Region>.<shard>.<amount>."
            ) from None
        if hold.id != given:
            raise InvalidInput(f"{shown(id, SHOWN_MAX)} is the id of no hold; {hold.id} is one.")
        return hold

    def capture(self, amount: int | None = None) -> Receipt:
        """As `Ledger.capture`, by the ledger that granted it."""
        receipt: Receipt = self._who().capture(self, amount)
        self._is_over = True
        return receipt

    def release(self) -> None:
        """As `Ledger.release`, by the ledger that granted it."""
        self._who().release(self)
        self._is_over = True

    def _who(self) -> Any:
        if self._ends is None:
            raise InvalidInput(
                "This hold came from elsewhere, by its id or a pickle, so it has no Ledger to end "
                "it. Nothing was written. Make it anew with Ledger.parse_hold(counter, id), or "
                "pass it to capture or release of a Ledger."
            )
        return self._ends

    def __enter__(self) -> Hold:
        self._who()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_over:
            with self._leaving(failure):
                self.release()

    def _leaving(self, failure: BaseException | None) -> suppress:
        """A failed release hides no failure of the block; a hold that is not released ends by
        itself.
        """
        return suppress(HoldEnded) if failure is None else suppress(LedgerError)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hold) and other.delta == self.delta

    def __hash__(self) -> int:
        return hash(self.delta)

    def __repr__(self) -> str:
        return (
            f"Hold({self.counter!r}, {self.amount}, until={self.until.isoformat()}, id={self.id!r})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return Hold, (self.delta,)


class Holds(tuple[Hold, ...]):
    """A tuple of holds, in the order of the call's counters. The end of a `with` block releases
    those that were not captured in it.

    In another process make them by `Holds([ledger.parse_hold(counter, id), ...])`. Raises
    InvalidInput for anything but holds of a Ledger, so also for those of an AsyncLedger.
    """

    _of: type[Hold] = Hold

    def __new__(cls, holds: Iterable[Hold] = ()) -> Self:
        granted = tuple(holds)
        for hold in granted:
            if type(hold) is not cls._of:
                raise InvalidInput(
                    f"Holds are of a Ledger's holds, not of {shown(hold)}. Nothing was written. "
                    "Make each with Ledger.parse_hold(counter, id)."
                )
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
