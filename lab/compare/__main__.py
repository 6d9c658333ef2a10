"""`python -m lab.compare [EVENTS.csv]` (`make compare`): measures every design, writes docs/comparison.md.

Rule 1: One run, one engine.
Rule 2: What the simulator plays has a core of its own meanwhile, and speed is measured when that is done.
"""

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.compare import accuracy
from lab.compare.cost import ONE, SEED, SHOP, on_one_counter, shop_events, spent
from lab.compare.page import Found, page
from lab.compare.scale import AT_ONCE, reads, set_wall
from lab.compare.speed import COUNTERS, THREADS, paces, trips
from lab.designs.trial import DESIGNS, name_of, new_engine
from lab.engines.ministack import Engine, EngineMissing, end_on_signals
from lab.events import BadEvents, Event

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "comparison.md"


def measure(engine: Engine, events: Sequence[Event], source: str, tell: Console) -> Found:
    """Everything, in ten to twenty minutes; the changes of the bill are these events."""
    began = time.monotonic()

    def about(part: str) -> None:
        tell.print(f"{time.monotonic() - began:5.0f} s  {part}")

    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        exact = other.submit(accuracy.measure_all)
        about("accuracy and cost")
        shop, one = spent(engine, events[:SHOP]), spent(engine, on_one_counter(events[:ONE]))
        about("scale")
        with ThreadPoolExecutor(AT_ONCE) as threads:
            grown = list(threads.map(partial(reads, engine), DESIGNS))
        wall = set_wall(engine)
        on_simulator = exact.result()
    about("speed")
    return Found(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        engine=name_of(engine),
        events=source,
        accuracy=on_simulator,
        shop=shop,
        one=one,
        trips=[trips(engine, design) for design in DESIGNS],
        paces=[pace for counters in COUNTERS for threads in THREADS for pace in paces(engine, threads, counters)],
        reads=grown,
        wall=wall,
    )


def main(
    events: Annotated[Path | None, typer.Argument(help="A CSV file; without it, a shop's day is generated.")] = None,
) -> None:
    """Measure every design, in ten to twenty minutes, and write docs/comparison.md."""
    end_on_signals()
    source = f"the first of {events.name}" if events else f"the first of a generated shop day, seed {SEED}"
    try:
        with new_engine() as engine:
            found = measure(engine, shop_events(events), source, Console(stderr=True))
    except (BadEvents, EngineMissing) as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    text = page(found)
    print(text, end="")
    PAGE.write_text(text)
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    typer.run(main)
