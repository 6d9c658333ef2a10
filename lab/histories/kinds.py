"""The kinds of histories, the first seed of one that goes wrong, and a history as it can be
read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lab.histories.explore import explore
from lab.histories.parts import budgets, calls, periods, sagas
from lab.histories.parts import lanes as history
from lab.histories.parts import limits as limited
from lab.histories.parts import service as served
from lab.histories.stage.stage import Played
from simulator.choices import Drawn
from simulator.trace import Trace


@dataclass(frozen=True, slots=True)
class Kind:
    """every, at: one of so many seeds has such a history, and which.

    shows: what is counted of it.
    """

    play: Callable[..., Played]
    shows: tuple[str, ...]
    every: int = 1
    at: int = 0


KINDS = {
    "lanes": Kind(history.play, ("deltas", "packs", "reads", "cleaned")),
    "series": Kind(history.play_charts, ("charts",), 5, 2),
    "limits": Kind(limited.play, ("decided",), 5),
    "takes": Kind(partial(limited.play, takes=True), ("parts",), 5, 4),
    "strong": Kind(limited.play_strong, ("conflicts",), 10, 4),
    "periods": Kind(periods.play, ("looks", "over", "carried"), 5, 3),
    "sagas": Kind(sagas.play, ("moved", "refunded", "stuck"), 5, 1),
    "service": Kind(served.play, ("rings", "visits", "late"), 10),
    "thresholds": Kind(partial(served.play, thresholds=True), ("crossings",), 10, 5),
}


ASIDE = {"calls": Kind(calls.play, ("calls",)), "budgets": Kind(budgets.play, ("settled",))}
"""What `make simulate` does not play, because the tests do."""


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
            violations = (KINDS | ASIDE)[kind].play(Drawn(seed)).violations
        except (ValueError, LookupError) as error:
            violations = [f"{type(error).__name__}: {error}"]
        if violations:
            print(f"seed {seed:>5}: {violations[0]}")
            return 1
    return 0


def lines(kind: str, seed: int) -> list[str]:
    """What happens in a history, and what is wrong with it."""
    trace = Trace()
    played = KINDS[kind].play(Drawn(seed), log=trace)
    return [*trace.lines, *(f"WRONG: {violation}" for violation in played.violations)]
