"""`python -m lab.measure.bench` (`make bench`): prints each figure when it is there, its goal
beside it, and writes docs/bench.txt.

Rule 1: It ends with 1 if a judged figure misses its goal, or is so low that hardly anything was
done, or if a part failed. Parts know nothing of each other: it prints the failure of one, also of a
rival, and begins the next.
Rule 2: Instructions are counted beside what is exact, too. What depends on the machine comes after
both, and has it alone.
"""

import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.engines.ministack import end_on_signals
from lab.measure import (
    calls,
    clients,
    firsts,
    handler,
    instructions,
    lanes,
    latency,
    limits,
    lives,
    lookups,
    process,
    starts,
)
from lab.measure.figure import Figure, Part, Shown

ROOMS = (lives, limits, firsts, lookups, lanes, process)
COUNTED = (starts, calls)
TIMED = (handler, clients, latency)
WRITTEN = Path(__file__).parents[2] / "docs" / "bench.txt"


NOT_JUDGED = (
    "NOT JUDGED: the instructions of starts and calls, because valgrind is not on PATH "
    "(apt-get install valgrind)"
)


def measured(*, small: bool) -> Iterator[Figure | Shown | str]:
    """Every figure, or the failure of a part."""
    with ThreadPoolExecutor(1) as beside:
        counted = beside.submit(lambda: list(_of(COUNTED, small)) if _counts(small) else [])
        yield from _of(ROOMS, small)
        yield from counted.result()
    if not _counts(small):
        yield Shown(NOT_JUDGED)
    yield from _of(TIMED, small)


def _counts(small: bool) -> bool:
    return small or instructions.installed()  # a small run counts nothing


def _of(rooms: Iterable[Any], small: bool) -> Iterator[Figure | Shown | str]:
    parts: list[Part] = [part for room in rooms for part in room.PARTS]
    for part in parts:
        try:
            yield from part(small)
        except Exception as failure:
            traceback.print_exc()
            yield f"{part.__module__}.{part.__name__} FAILED: {type(failure).__name__}: {failure}"


def main(
    small: Annotated[
        bool, typer.Option("--small", help="Measure a little of everything, by the same goals.")
    ] = False,
) -> None:
    """Measure units, requests, memory, instructions and CPU, in some twelve minutes. CPU, pace and
    latency are ratios, and not judged.

    Exit code: 0 if every judged goal is met, or its line says why it is missed; 1 if one is missed
    without a reason, or a part failed. After a failure docs/bench.txt stays as it was.
    """
    end_on_signals()
    printed, failed, missed = ["$ make bench"], 0, 0
    for found in measured(small=small):
        print(found, flush=True)
        printed.append(str(found))
        failed += isinstance(found, str)
        missed += isinstance(found, Figure) and found.is_wrong
    if not small and not failed:
        WRITTEN.write_text("\n".join([*printed, ""]))
    raise SystemExit(1 if missed or failed else 0)


if __name__ == "__main__":
    typer.run(main)
