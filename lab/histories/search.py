"""`python -m lab.histories.search N`: prints the first seed below N that goes wrong, and how; exit code 1."""

import argparse
import sys

from lab.histories.history import play
from simulator.choices import Drawn


def main(histories: int) -> int:
    """Play seeds 0 to `histories` - 1. A mistake may also show as an error that no history can cause."""
    for seed in range(histories):
        try:
            violations = play(Drawn(seed)).violations
        except (ValueError, LookupError) as error:
            violations = [f"{type(error).__name__}: {error}"]
        if violations:
            print(seed, violations[0])
            return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m lab.histories.search", description=(__doc__ or "").partition(": ")[2]
    )
    parser.add_argument("histories", metavar="N", type=int)
    sys.exit(main(parser.parse_args().histories))
