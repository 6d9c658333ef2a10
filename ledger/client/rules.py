"""`Rules`: what the calls of one ledger share: its settings, clock and entropy, and what it learnt
of the table.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ledger.core import clocks, tokens
from ledger.core.errors import InvalidInput, PeriodOver, shown
from ledger.core.plan import Plan
from ledger.core.settings import Settings, check_settings, plan_of
from ledger.core.values import Delta
from ledger.lane.shape import ShapeCheck

if TYPE_CHECKING:
    from ledger.gate.gates import Gates
    from ledger.gate.sold_out import SoldOut

COUNTERS_MAX = 10_000  # counters whose gates a process keeps at hand


class Rules:
    """The arguments are those of Ledger. Raises InvalidInput."""

    def __init__(self, settings: Settings, clock: clocks.Clock, entropy: clocks.Entropy) -> None:
        self.settings = check_settings(settings)
        self.clock = clocks.checked(clock)
        if not callable(entropy):
            raise InvalidInput(
                f"entropy is a function that returns random bytes, not {shown(entropy)}."
            )
        self._entropy = entropy
        self.now = clocks.instants(self.clock)
        self.shape = ShapeCheck(settings, writes=True)
        self.sold_out: SoldOut | None = None
        self.gates = lru_cache(COUNTERS_MAX)(self._gates)
        """A counter's gates; None when it has no limit."""
        if settings.limits:
            # a process without limits never needs that third of the package
            from ledger.gate.sold_out import SoldOut

            self.sold_out = SoldOut()

    def randomness(self) -> bytes:
        """The random bytes of a token. Raises InvalidInput for an entropy that returns others."""
        answer: object = self._entropy(size := tokens.RANDOM_BYTES)
        if type(answer) is not bytes or len(answer) != size:
            raise InvalidInput(f"entropy({size}) returns {size} bytes, not {shown(answer)}.")
        return answer

    def plan(self, delta: Delta) -> Plan:
        """The plan of a delta's counter."""
        return plan_of(self.settings, delta.lane.counter)

    def check_takes(self, delta: Delta) -> None:
        """Raises PeriodOver, with the delta, where the delta's period takes no more changes."""
        try:
            plan_of(self.settings, delta.lane.counter).check_takes(self.clock())
        except PeriodOver as error:
            error.delta = delta
            raise

    def _gates(self, counter: str) -> Gates | None:
        if not self.settings.limits:
            return None
        from ledger.gate.gates import Gates

        return Gates.of(self.settings, counter, self.sold_out)
