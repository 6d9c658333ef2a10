"""`python -m lab.measure.bench` (`make bench`): prints each figure when it is there, its goal
beside it, and writes docs/bench.txt.

Rule 1: It ends with 1 if a judged figure misses its goal, or is so low that hardly anything was
done, or if a part failed. Parts know nothing of each other: it prints the failure of one, also of a
rival, and begins the next.
"""

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from lab.engines.ministack import end_on_signals
from lab.measure import clients, handler, lanes, limits, lives, process
from lab.measure.figure import Figure

ROOMS = (lives, limits, lanes, process, handler, clients)
WRITTEN = Path(__file__).parents[2] / "docs" / "bench.txt"


def measured(*, small: bool) -> Iterator[Figure | str]:
    """Every figure, or the failure of a part."""
    for part in (part for room in ROOMS for part in room.PARTS):
        try:
            yield from part(small)
        except Exception as failure:
            traceback.print_exc()
            yield f"{part.__module__}.{part.__name__} FAILED: {type(failure).__name__}: {failure}"


def main(
    small: Annotated[
        bool, typer.Option("--small", help="Little of all, with the same goals.")
    ] = False,
) -> None:
    """Measure units, requests, memory and CPU, in ten minutes. CPU and pace are ratios, and not
    judged.

    Exit code: 0 if every judged goal is met, 1 if one is missed or a part failed; then
    docs/bench.txt stays as it was.
    """
    end_on_signals()
    printed, failed, missed = ["$ make bench"], 0, 0
    for found in measured(small=small):
        print(found, flush=True)
        printed.append(str(found))
        failed += isinstance(found, str)
        missed += isinstance(found, Figure) and found.judged and not found.is_met
    if not small and not failed:
        WRITTEN.write_text("\n".join([*printed, ""]))
    raise SystemExit(1 if missed or failed else 0)


if __name__ == "__main__":
    typer.run(main)
