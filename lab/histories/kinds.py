"""The kinds of histories, the first seed of one that goes wrong, and how a history is shortened until it can be read.

Rule 1: a shorter list of picks, or one with more zeros, is a simpler history. Each attempt is played and judged anew.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lab.histories import history, limited, served
from lab.histories.explore import explore
from lab.histories.theatre import Played
from simulator.choices import Drawn, Replayed
from simulator.trace import Trace

ATTEMPTS_MAX = 1_500


@dataclass(frozen=True, slots=True)
class Kind:
    """every, at: one of so many seeds has such a history, and which."""

    play: Callable[..., Played]
    every: int = 1
    at: int = 0


KINDS = {
    "lanes": Kind(history.play),
    "limits": Kind(limited.play, 5),
    "service": Kind(served.play, 10),
    "thresholds": Kind(partial(served.play, thresholds=True), 10, 5),
}


def search(kind: str, at: str, histories: str) -> int:
    """Prints how a small cast goes wrong, or the first of so many seeds; 1, when one does.

    A mistake may also show as an error that no history can cause.
    """
    if not at.isdecimal():
        explored = explore(at)
        if explored.wrong:
            print(f"a cast    : {explored.trace[-1]}")
        return int(explored.wrong > 0)
    for seed in range(int(at), int(at) + int(histories)):
        try:
            violations = KINDS[kind].play(Drawn(seed)).violations
        except (ValueError, LookupError) as error:
            violations = [f"{type(error).__name__}: {error}"]
        if violations:
            print(f"seed {seed:>5}: {violations[0]}")
            return 1
    return 0


def shrink(kind: str, picks: Sequence[int]) -> list[int]:
    best, size, attempts = list(picks), len(picks) // 2, iter(range(ATTEMPTS_MAX))
    while size:
        simpler = (each for each, _ in zip(_simpler(best, size), attempts, strict=False))
        wrong = next((each for each in simpler if KINDS[kind].play(Replayed(each)).violations), None)
        best, size = (best, size // 2) if wrong is None else (wrong, min(size, len(wrong) // 2))
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


def lines(kind: str, picks: Sequence[int]) -> list[str]:
    trace = Trace()
    played = KINDS[kind].play(Replayed(picks), log=trace)
    return [*trace.lines, *(f"WRONG: {violation}" for violation in played.violations)]
