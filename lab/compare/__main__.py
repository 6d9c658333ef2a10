"""`python -m lab.compare [EVENTS.csv]` (`make compare`): measures every approach, writes docs/comparison.md.

Rules: one run, one engine; what the simulator plays has a core of its own meanwhile, and speed is measured when that is
done.
"""

from __future__ import annotations

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

from lab.bench.compaction import fold_peak_mb
from lab.bench.compaction import speed as steps_of
from lab.compare import accuracy
from lab.compare.backlog import DELTAS, compaction
from lab.compare.cost import ONE, SEED, SHOP, on_one_counter, shop_events, spent
from lab.compare.page import Found, page
from lab.compare.scale import AT_ONCE, BACKLOGS, reads, set_wall
from lab.compare.speed import COUNTERS, THREADS, paces, trips
from lab.designs import every
from lab.designs.item_collection import NaiveMerge, Ours
from lab.designs.trial import APPROACHES, name_of, new_engine
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
        exact, peaks_mb = other.submit(accuracy.measure_all), other.map(fold_peak_mb, BACKLOGS)
        about("accuracy, on the simulator and on the engine")
        on_engine = [accuracy.measure_on(engine, approach) for approach in every(accuracy.SETTINGS)]
        about("cost")
        shop, one = spent(engine, events[:SHOP]), spent(engine, on_one_counter(events[:ONE]))
        about("scale")
        with ThreadPoolExecutor(AT_ONCE) as threads:
            grown = list(threads.map(partial(reads, engine), APPROACHES))
        wall = set_wall(engine)
        on_simulator, peaks = exact.result(), dict(zip(BACKLOGS, peaks_mb, strict=True))
    about("speed")
    return Found(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        engine=name_of(engine),
        events=source,
        accuracy=on_simulator,
        accuracy_on_engine=on_engine,
        shop=shop,
        one=one,
        trips=[trips(engine, approach) for approach in APPROACHES],
        paces=[pace for counters in COUNTERS for threads in THREADS for pace in paces(engine, threads, counters)],
        reads=grown,
        wall=wall,
        compactions=[compaction(engine, each) for each in APPROACHES if isinstance(each, NaiveMerge | Ours)],
        steps=steps_of(engine, DELTAS),
        peaks_mb=peaks,
    )


def main(
    events: Annotated[Path | None, typer.Argument(help="A CSV file; without it, a shop's day is generated.")] = None,
) -> None:
    """Measure every approach, in ten to twenty minutes, and write docs/comparison.md."""
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
