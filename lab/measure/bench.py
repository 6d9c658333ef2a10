"""`python -m lab.measure.bench` (`make bench`): prints the figures that stand in docs/costs.md, each when it is there.

Rule 1: It ends with 1 when a figure is above its goal, or so low that hardly anything was done.
"""

from typing import Annotated

import typer

from lab.measure import lanes, limits, lives


def main(small: Annotated[bool, typer.Option("--small", help="Little of all, with the same goals.")] = False) -> None:
    """Measure units and requests, in some minutes, on tables in memory.

    Exit code: 0 when every goal is met, 1 when one is missed.
    """
    missed = 0
    for room in (lives, limits, lanes):
        for figure in room.figures(small=small):
            print(figure, flush=True)
            missed += not figure.is_met
    raise SystemExit(1 if missed else 0)


if __name__ == "__main__":
    typer.run(main)
