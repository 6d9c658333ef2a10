"""`python -m lab.measure.compare [EVENTS.csv]` (`make compare`): measures every design, writes docs/comparison.md.

Rule 1: One run, one engine.
Rule 2: A row of this library that lost, doubled, oversold or did nothing ends it with 1, and nothing is written.
Rule 3: The simulator has a core of its own meanwhile, and speed is measured when that is done.
"""

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer

from lab.designs import Design, every
from lab.designs.trial import DESIGNS, name_of, new_engine
from lab.engines.ministack import Engine, EngineMissing, end_on_signals
from lab.events import BadEvents, Event
from lab.measure import accuracy
from lab.measure.cost import ONE, SEED, SHOP, on_one_counter, shop_events, spend
from lab.measure.page import Row, Run, page
from lab.measure.speed import COUNTERS, ROUNDS, SLICE_S, measure_pace

PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured: seeds of the accuracy, changes of the bill on many counters and on one, rounds of speed."""

    seeds: Sequence[int] = accuracy.SEEDS
    shop: int = SHOP
    one: int = ONE
    rounds: int = ROUNDS
    slice_s: float = SLICE_S


SMALL = Sizes(accuracy.SEEDS[:1], 20, 20, 1, 0.01)


def measure(engine: Engine, events: Sequence[Event], sizes: Sizes) -> Iterator[Row]:
    """A row for each design; the changes of the bill are these events."""
    shop, one = events[: sizes.shop], on_one_counter(events[: sizes.one])
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        exact = other.map(partial(accuracy.measure, seeds=sizes.seeds), every(accuracy.SETTINGS))
        spent = []
        for design in DESIGNS:
            spent.append((spend(engine, shop, design), spend(engine, one, design)))
            show(design, f"{spent[-1][1].write_units:.2f} write units")
        found = []
        for design in DESIGNS:
            found.append(next(exact))
            faults = found[-1].faults.values()
            show(design, f"{sum(of.lost for of in faults)} lost, {sum(of.doubled for of in faults)} doubled")
    for design, of_design, (on_shop, on_one) in zip(DESIGNS, found, spent, strict=True):
        paces = [measure_pace(engine, design, counters, sizes.rounds, sizes.slice_s) for counters in COUNTERS]
        show(design, ", ".join(f"{pace.rate:.2f} of ADD's rate, {pace.given_up} given up" for pace in paces))
        yield Row(of_design, on_shop, on_one, paces)


def show(design: Design, found: str) -> None:
    print(f"{design.name:<40}{found}", flush=True)


def main(
    events: Annotated[Path | None, typer.Argument(help="A CSV file; without it, a shop's day is generated.")] = None,
    small: Annotated[bool, typer.Option("--small", help="Little of all; judges, and writes nothing.")] = False,
) -> None:
    """Measure every design, in ten to twenty minutes, and write docs/comparison.md.

    Exit code: 0 when every row of this library is right, 1 when one is not, 2 when it cannot run.
    """
    end_on_signals()
    source = f"the first of {events.name}" if events else f"the first of a generated shop day, seed {SEED}"
    sizes = SMALL if small else Sizes()
    try:
        with new_engine() as engine:
            rows = list(measure(engine, shop_events(events), sizes))
            name = name_of(engine)
    except (BadEvents, EngineMissing) as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    publish(Run(date=today, engine=name, events=source, seeds=len(sizes.seeds), rows=rows), None if small else PAGE)


def publish(run: Run, path: Path | None) -> None:
    """Writes the page where nothing is wrong."""
    text = page(run)
    mistakes = [mistake for row in run.rows for mistake in row.mistakes]
    if mistakes:
        print("WRONG, so nothing was written:", *mistakes, sep="\n")
        raise SystemExit(1)
    if path:
        path.write_text(text)
        print(f"wrote {path}")


if __name__ == "__main__":
    typer.run(main)
