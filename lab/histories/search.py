"""`python -m lab.histories.search N`: the first of N seeds that goes wrong, and how. With a small cast's name in the
place of N, how that goes wrong; `--limited`: of limited counters. Exit code 1 when something does.
"""

import argparse
import sys

from lab.histories import limited_restores
from lab.histories.explore import EXPLORED
from lab.histories.history import play
from simulator.choices import Drawn


def main(what: str, *, first: int = 0, of_limits: bool = False) -> int:
    """A mistake may also show as an error that no history can cause."""
    if not what.isdecimal():
        explored = EXPLORED[what]()
        if explored.wrong:
            print(f"a cast    : {explored.trace[-1]}")
        return int(explored.wrong > 0)
    for seed in range(first, first + int(what)):
        try:
            violations = (limited_restores.play if of_limits else play)(Drawn(seed)).violations
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
    given = parser.parse_args()
    sys.exit(main(given.what, first=given.first, of_limits=given.limited))
