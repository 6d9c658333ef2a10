"""`SoldOut`: what a process remembers of gates between its calls. It saves requests and decides
nothing: a call that trusts it writes with the condition that it is still so.
"""

from dataclasses import dataclass, field

from ledger.core.errors import LedgerError
from ledger.core.limit import DOWN, UP
from ledger.core.requests import Instant, in_time
from ledger.gate.left import Left

REMEMBERED_MS = 1_000
COUNTERS_MAX = 10_000


@dataclass(slots=True)
class SoldOut:
    """Four memories, shared by all calls of a ledger; the last of several threads wins.

    Both clocks age the first two: the wall clock may step back, and the other one may stop while
    the process sleeps. So a wrong clock only makes the process forget.
    """

    # By counter and side: since when which amount is too much, and how much was left then.
    _short: dict[tuple[str, str], tuple[Instant, int, Left]] = field(default_factory=dict)
    # By Region: when it did not answer, and the error.
    _silent: dict[str, tuple[Instant, str]] = field(default_factory=dict)
    # The tokens of holds that this process saw in their gate, which had room for them.
    _in_gate: dict[str, None] = field(default_factory=dict)
    # The counters of which the last hold to end here was filed.
    _filing: dict[str, None] = field(default_factory=dict)

    def note(self, counter: str, side: str, need: int, began: Instant, left: Left) -> None:
        """Remember that since `began` all lanes together had less than `need`."""
        if len(self._short) >= COUNTERS_MAX:
            self._short.clear()
        self._short[counter, side] = (began, need, left._replace(remembered=True))

    def knows(self, counter: str, side: str, need: int, now: Instant) -> Left | None:
        """How much was left a moment ago, if that was too little.

        A call that believes it does not go to every lane for rights that none had a moment ago. So
        a refusal may be of a moment up to REMEMBERED_MS before its call.
        """
        if (known := self._short.get((counter, side))) is None:
            return None
        began, short, left = known
        return left.at(now) if need >= short and in_time(began, now, REMEMBERED_MS) else None

    def changed(self, counter: str, change: int) -> None:
        """Note that a change counts: the rights that it took of one side came to the other."""
        if change:
            self.forget(counter, UP if change < 0 else DOWN)

    def forget(self, counter: str, *sides: str) -> None:
        """Forget that sides were short: some rights came back through this process."""
        for side in sides:
            self._short.pop((counter, side), None)

    def note_silent(self, region: str, error: LedgerError, now: Instant) -> None:
        self._silent[region] = (now, f"a moment ago its Region did not answer: {error}")

    def silent(self, now: Instant) -> dict[str, str]:
        """The Regions that did not answer a moment ago, each with the error.

        It leaves out this very millisecond: a clock that stands still, as in tests, would remember
        it for ever.
        """
        return {
            region: why
            for region, (noted, why) in self._silent.copy().items()
            if noted.wall_ms != now.wall_ms and in_time(noted, now, REMEMBERED_MS)
        }

    def granted(self, token: str) -> None:
        """Note that a hold is in its gate, which has room for it."""
        if len(self._in_gate) >= COUNTERS_MAX:
            self._in_gate.clear()
        self._in_gate[token] = None

    def is_in_gate(self, counter: str, token: str) -> bool:
        """Whether a hold that ends now is probably still in its gate: then its end need not look
        for it first.
        """
        return self._in_gate.pop(token, ...) is None and counter not in self._filing

    def ended(self, counter: str, *, filed: bool) -> None:
        """Note where a hold was when it ended: filed, or in its gate."""
        if not filed:
            self._filing.pop(counter, None)
        elif len(self._filing) < COUNTERS_MAX:
            self._filing[counter] = None
