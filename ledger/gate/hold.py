"""`Hold`: a part of a limit that is set aside for a while. It is a value: its text names it in any process.

Rule 1: what decides is in the table. A hold knows which one it is, of how much and until when, and not whether it goes
on.
Rule 2: its text says all of it, so that a capture and a release need nothing else; the counter's name stands beside it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from ledger.checks import to_datetime
from ledger.errors import HoldEnded, InvalidInput, LedgerError, shown
from ledger.tokens import until_ms
from ledger.values import Delta, Lane, Receipt

SHOWN_MAX = 130  # of an id that is none: all of one that is damaged at its end


class Hold:
    """A hold that was granted: `amount` of `counter` is set aside until `until`, by the clock of who is short of it.

    ends: the Ledger that ends it. With `with`, leaving the block releases what was not captured in it. In another
    process, where it came as its `id` or pickled, `Ledger.parse_hold(counter, id)` makes it anew, or `Ledger.capture`
    and `Ledger.release` end it.
    """

    __slots__ = ("_ends", "_is_over", "delta")

    def __init__(self, delta: Delta, ends: Any = None) -> None:
        if not isinstance(delta, Delta):
            raise InvalidInput(f"A hold is of a Delta, not {shown(delta)}: Hold.parse reads its id.")
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
        """`at` and the length that was asked for, rounded up by a thousandth at most."""
        return to_datetime(until_ms(self.delta.token))

    @property
    def id(self) -> str:
        """What names it beside its counter: `<token>.<Region>.<shard>.<amount>`, 1 to 120 characters fit for a URL."""
        lane = self.delta.lane
        return f"{self.delta.token}.{lane.region}.{lane.shard}.{self.amount}"

    @classmethod
    def parse(cls, counter: str, id: str, ends: Any = None) -> Self:
        """The hold with this `id` of a counter, or InvalidInput. `Ledger.parse_hold` gives one that ends itself."""
        given: object = id
        parts = given.split(".") if isinstance(given, str) else []
        try:
            token, region, shard, amount = parts
            hold = cls(Delta(Lane(region, int(shard), counter), token, int(amount)), ends)
        except InvalidInput as error:
            raise InvalidInput(f"{shown(id, SHOWN_MAX)} is the id of no hold: {error.why}") from None
        except ValueError:
            raise InvalidInput(
                f"{shown(id, SHOWN_MAX)} is the id of no hold: <token>.<Region>.<shard>.<amount>."
            ) from None
        if hold.id != id:
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
                "This hold came from elsewhere: ask Ledger.parse_hold(counter, id) for one that can end itself, or "
                "pass this one to capture or release of a Ledger."
            )
        return self._ends

    def __enter__(self) -> Hold:
        self._who()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_over:
            with self._leaving(failure):
                self.release()

    def _leaving(self, failure: BaseException | None) -> suppress:
        """What fails here hides no failure of the block; a hold that is not released ends by itself."""
        return suppress(HoldEnded) if failure is None else suppress(LedgerError)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hold) and other.delta == self.delta

    def __hash__(self) -> int:
        return hash(self.delta)

    def __repr__(self) -> str:
        return f"Hold({self.counter!r}, {self.amount}, until={self.until.isoformat()}, id={self.id!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return Hold, (self.delta,)
