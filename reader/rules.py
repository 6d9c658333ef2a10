"""What all calls of a reader have in common: `Reader` runs their programs, `AsyncReader` awaits
them.

Rule 1: each checks what the caller passes before anything is sent, then reads the table's shape.
Rule 2: none reads a period whose items may have retired: nobody knows which of them are missing.
"""

from collections.abc import Callable, Iterable, Sequence

from ledger.core import clocks
from ledger.core.checks import check_counter, check_flag
from ledger.core.errors import InvalidInput, shown
from ledger.core.requests import Program
from ledger.core.settings import Settings, check_settings
from ledger.lane.shape import ShapeCheck
from reader.balance import Balance
from reader.checks import seconds
from reader.read import balances


class Rules:
    """Arguments as for Reader. units: how many read units a series, a value at an instant, a page
    of a history or of names may take, set by `bound`; None: as many as it needs."""

    def __init__(
        self, settings: Settings, ttl: float, consistent: bool, clock: clocks.Clock
    ) -> None:
        self.settings = check_settings(settings)
        self.ttl = seconds("ttl", ttl)
        self.consistent = check_flag("consistent", consistent)
        self.clock = clocks.checked(clock)
        self.now = clocks.instants(self.clock)
        self.shape = ShapeCheck(settings)
        self.units: int | None = None

    def checked(self, counter: str, max_age: float, behind: float) -> tuple[str, float, int]:
        """The checked arguments: the counter, how many seconds a cached balance may be old, how
        many ms behind.
        """
        counter = check_counter(counter)
        behind_ms = int(seconds("behind", behind) * 1_000)
        return counter, 0 if behind_ms else min(seconds("max_age", max_age), self.ttl), behind_ms

    def balances(self, counters: Sequence[str], behind_ms: int = 0) -> Program[dict[str, Balance]]:
        if self.settings.periods:
            self._check_kept(counters)
        if not self.shape.is_known:
            yield from self.shape.program(*counters)
        return (
            yield from balances(
                counters, self.settings, consistent=self.consistent, behind_ms=behind_ms
            )
        )

    def first(self, counter: str) -> Program[None]:
        """The checks before the first request about a counter.

        Raises PeriodOver and what the shape's check raises.
        """
        self._check_kept([counter])
        yield from self.shape.program(counter)

    def kept(self, prefix: str) -> Callable[[str], bool]:
        """Whether a name has the prefix, and can be read now."""
        now_ms = self.clock()
        return lambda name: name.startswith(prefix) and self.settings.plan(name).is_kept(now_ms)

    def _check_kept(self, counters: Sequence[str]) -> None:
        now_ms = self.clock()
        for counter in counters:
            self.settings.plan(counter).check_kept(now_ms)


def names_of(counters: Iterable[str]) -> list[str]:
    """Each name once."""
    given: object = counters
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput(
            f"values takes several names, such as a list of them, not {shown(given)}."
        )
    return list(dict.fromkeys(check_counter(counter) for counter in counters))
