"""`python -m lab.compare [EVENTS.csv]` (`make compare`): measures every design, writes docs/comparison.md.

Rule 1: One run, one engine.
Rule 2: A row of this library that lost, doubled, oversold or did nothing ends it with 1, and nothing is written.
Rule 3: What the simulator plays has a core of its own meanwhile, and speed is measured when that is done.
"""

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.compare import accuracy
from lab.compare.cost import ONE, SEED, SHOP, on_one_counter, shop_events, spent
from lab.compare.page import Found, page
from lab.compare.scale import AT_ONCE, CHANGES, reads, set_wall
from lab.compare.speed import COUNTERS, ROUNDS, SLICE_S, THREADS, paces, trips
from lab.designs.trial import DESIGNS, name_of, new_engine
from lab.engines.ministack import Engine, EngineMissing, end_on_signals
from lab.events import BadEvents, Event

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "comparison.md"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured: seeds of the accuracy, changes of the bill on many counters and on one, changes before a
    read, counters and threads of the speed."""

    seeds: Sequence[int] = accuracy.SEEDS
    shop: int = SHOP
    one: int = ONE
    changes: Sequence[int] = CHANGES
    writers: Sequence[tuple[int, int]] = tuple(product(COUNTERS, THREADS))
    rounds: int = ROUNDS
    slice_s: float = SLICE_S


SMALL = Sizes(accuracy.SEEDS[:1], 20, 20, (20, 1_000_000), ((1, 1), (1, 32)), 1, 0.01)


def measure(engine: Engine, events: Sequence[Event], source: str, tell: Console, sizes: Sizes) -> Found:
    """Everything; the changes of the bill are these events."""
    began = time.monotonic()

    def about(part: str) -> None:
        tell.print(f"{time.monotonic() - began:5.0f} s  {part}")

    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        exact = other.submit(accuracy.measure_all, sizes.seeds)
        about("accuracy and cost")
        shop, one = spent(engine, events[: sizes.shop]), spent(engine, on_one_counter(events[: sizes.one]))
        about("scale")
        with ThreadPoolExecutor(AT_ONCE) as threads:
            grown = list(threads.map(partial(reads, engine, changes=sizes.changes), DESIGNS))
        wall = set_wall(engine)
        on_simulator = exact.result()
    about("speed")
    of_speed = (
        paces(engine, threads, counters, rounds=sizes.rounds, slice_s=sizes.slice_s)
        for counters, threads in sizes.writers
    )
    return Found(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        engine=name_of(engine),
        events=source,
        accuracy=on_simulator,
        shop=shop,
        one=one,
        trips=[trips(engine, design) for design in DESIGNS],
        paces=[pace for found in of_speed for pace in found],
        reads=grown,
        wall=wall,
        seeds=sizes.seeds,
    )


def main(
    events: Annotated[Path | None, typer.Argument(help="A CSV file; without it, a shop's day is generated.")] = None,
    small: Annotated[
        bool, typer.Option("--small", help="Little of all, to see that it works; writes nothing.")
    ] = False,
) -> None:
    """Measure every design, in ten to twenty minutes, and write docs/comparison.md.

    Exit code: 0 when every row of this library is right, 1 when one is not, 2 when it cannot run.
    """
    end_on_signals()
    source = f"the first of {events.name}" if events else f"the first of a generated shop day, seed {SEED}"
    try:
        with new_engine() as engine:
            sizes = SMALL if small else Sizes()
            found = measure(engine, shop_events(events), source, Console(stderr=True), sizes)
    except (BadEvents, EngineMissing) as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    publish(found, None if small else PAGE)


def publish(found: Found, path: Path | None) -> None:
    """Prints the page, and writes it where nothing is wrong."""
    text = page(found)
    print(text, end="")
    if found.mistakes:
        print("WRONG, so nothing was written:", *found.mistakes, sep="\n")
        raise SystemExit(1)
    if path:
        path.write_text(text)
        print(f"wrote {path}")


if __name__ == "__main__":
    typer.run(main)
