"""`python -m lab.measure.bench` (`make bench`): prints the figures that stand in docs/costs.md, each when it is there.

Rule 1: It ends with 1 when a figure that is judged is above its goal, or so low that hardly anything was done.
"""

import sys
from typing import Annotated

import typer

from lab.engines.ministack import EngineMissing, end_on_signals
from lab.measure import fast, lanes, limits, lives, process


def main(small: Annotated[bool, typer.Option("--small", help="Little of all, with the same goals.")] = False) -> None:
    """Measure units, requests, memory and CPU, in some minutes. The CPU is of requests to the demo's engine.

    Exit code: 0 when every goal is met, 1 when one is missed, 2 when it cannot run.
    """
    end_on_signals()
    missed = 0
    try:
        for room in (lives, limits, lanes, process, fast):
            for figure in room.figures(small=small):
                print(figure, flush=True)
                missed += figure.judged and not figure.is_met
    except EngineMissing as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    raise SystemExit(1 if missed else 0)


if __name__ == "__main__":
    typer.run(main)
