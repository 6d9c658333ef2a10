"""`python -m lab.histories.search N`: the first of N seeds that goes wrong, and how; exit code 1 when one does.

With a small cast's name in the place of N, how that goes wrong. `--limited`, `--served`, `--thresholds`: histories of
limited counters, of the service, of the service with thresholds.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from lab.histories import history, limited_restores, served
from lab.histories.explore import EXPLORED
from simulator.choices import Drawn


def main(what: str, play: Callable[[Drawn], Any], *, first: int = 0) -> int:
    """A mistake may also show as an error that no history can cause."""
    if not what.isdecimal():
        explored = EXPLORED[what]()
        if explored.wrong:
            print(f"a cast    : {explored.trace[-1]}")
        return int(explored.wrong > 0)
    for seed in range(first, first + int(what)):
        try:
            violations = play(Drawn(seed)).violations
        except (ValueError, LookupError) as error:
            violations = [f"{type(error).__name__}: {error}"]
        if violations:
            print(f"seed {seed:>5}: {violations[0]}")
            return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m lab.histories.search", description=__doc__)
    parser.add_argument("what", metavar="N")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--limited", action="store_true")
    parser.add_argument("--served", action="store_true")
    parser.add_argument("--thresholds", action="store_true")
    given = parser.parse_args()
    of: Callable[[Drawn], Any] = (
        limited_restores.play if given.limited else served.play if given.served else history.play
    )
    of = partial(served.play, thresholds=True) if given.thresholds else of
    sys.exit(main(given.what, of, first=given.first))
