"""Makes a history that goes wrong shorter, until a person can read it.

Rule 1: A shorter list of picks, or one with more zeros, is a simpler history.
Rule 2: Each attempt is played and judged anew, so what is kept still goes wrong.
Rule 3: The work is bounded.
"""

from collections.abc import Iterator, Sequence

from lab.histories.history import play
from simulator.choices import Replayed
from simulator.trace import Trace

ATTEMPTS_MAX = 1_500


def shrink(picks: Sequence[int]) -> list[int]:
    """A simpler list of picks that still goes wrong."""
    best = list(picks)
    attempts = 0
    size = len(best) // 2
    while size:
        for candidate in _simpler(best, size):
            attempts += 1
            if attempts > ATTEMPTS_MAX:
                return best
            if play(Replayed(candidate)).violations:
                best = candidate
                break
        else:
            size //= 2
            continue
        size = min(size, len(best) // 2)
    return best


def _simpler(picks: list[int], size: int) -> Iterator[list[int]]:
    """Without the end, without a part, with a part of zeros."""
    if len(picks) > size:
        yield picks[:-size]
    for start in range(0, len(picks), size):
        part = picks[start : start + size]
        yield picks[:start] + picks[start + size :]
        if any(part):
            yield [*picks[:start], *[0] * len(part), *picks[start + size :]]


def told(picks: Sequence[int]) -> list[str]:
    """The history of these picks, a line a step, and what is wrong with it."""
    trace = Trace()
    played = play(Replayed(picks), log=trace)
    return [*trace.lines, *(f"WRONG: {violation}" for violation in played.violations)]
