"""`python -m lab.measure.compare [EVENTS.csv]` (`make compare`): measures every design, writes
docs/comparison.md and docs/comparison.txt.

Rule 1: One run, one engine.
Rule 2: If a row of this library lost, doubled or did nothing, it writes nothing and ends with 1. A
rival that fails has a line that says so, and everything else goes on.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from lab.designs import every
from lab.designs.trial import DESIGNS
from lab.engines.dynamodb_local import DynamoDBLocal, installed
from lab.engines.ministack import Engine, EngineMissing, end_on_signals
from lab.events import BadEvents, Event
from lab.measure.cost import (
    COUNTERS,
    ONE,
    ROUNDS,
    SEED,
    SHOP,
    SLICE_S,
    THREADS,
    measure_pace,
    on_one_counter,
    shop_events,
    spend,
)
from lab.measure.one_counter import EU, accuracy
from lab.measure.page import PAGE, TABLES, Row, filled
from lab.measure.rivals import Rival, measure_rivals
from ledger.core.settings import Settings

FOLDED = Settings(table="counters", region=EU, fold_min=1, fold_max=8)
"""Our defaults for every time; folded at once and in several commits, so that few events do meet
all of it.
"""

WRITTEN = Path(__file__).parents[2] / "docs" / "comparison.md"


class Sizes(NamedTuple):
    """How much is measured: seeds of the accuracy, changes of the bill on many counters and on one;
    of speed the numbers of counters, the rounds, their length and the threads; rounds of the CPU of
    the rivals."""

    seeds: Sequence[int]
    shop: int
    one: int
    counters: Sequence[int]
    pace: tuple[int, float, int]
    rounds: int


FULL = Sizes(range(20), SHOP, ONE, COUNTERS, (ROUNDS, SLICE_S, THREADS), 12)
SMALL = Sizes(range(1), 20, 20, COUNTERS[:1], (1, 0.01, 4), 1)


def measure(events: Sequence[Event], sizes: Sizes, engine: Engine) -> Iterator[Row]:
    """A row for each design; the changes of the bill are these events."""
    shop, one = events[: sizes.shop], on_one_counter(events[: sizes.one])
    for design, folded in zip(DESIGNS, every(FOLDED), strict=True):
        found = accuracy(folded, sizes.seeds)
        on_shop, on_one = spend(shop, design), spend(one, design)
        paces = [measure_pace(engine, design, counters, *sizes.pace) for counters in sizes.counters]
        lost = sum(counted.lost for counted in found.values())
        doubled = sum(counted.doubled for counted in found.values())
        rates = ", ".join(
            f"{pace.rate:.2f} of ADD's rate, {pace.given_up} given up" for pace in paces
        )
        wrong = f"{lost} lost, {doubled} doubled, {on_one.write_units:.2f} write units"
        print(f"{design.name:<40}{wrong}; {rates}", flush=True)
        yield Row(design, found, on_shop, on_one, paces)


def main(
    events: Annotated[
        Path | None, typer.Argument(help="A CSV file; else a generated shop day.")
    ] = None,
    small: Annotated[
        bool, typer.Option("--small", help="Measure a little of everything, and write no page.")
    ] = False,
) -> None:
    """Measure every design, in ten to twenty minutes, and write docs/comparison.md.

    Exit code: 0 if every row of this library is right, 1 if one is not, 2 if it cannot run.
    """
    end_on_signals()
    source = (
        f"the first of {events.name}"
        if events
        else f"the first of a generated shop day, seed {SEED}"
    )
    sizes = SMALL if small else FULL
    is_local = installed() and not small  # it takes longer to start
    try:
        with DynamoDBLocal() if is_local else Engine() as engine:
            rows = list(measure(shop_events(events), sizes, engine))
            rivals = list(printed(measure_rivals(engine, sizes.rounds)))
    except (BadEvents, EngineMissing) as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    facts = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "engine": engine.name,
        "events": source,
    }
    publish(rows, rivals, None if small else WRITTEN, len(sizes.seeds), **facts)


def printed(rivals: Iterable[Rival]) -> Iterator[Rival]:
    for rival in rivals:
        print(rival, flush=True)
        yield rival


def publish(
    rows: Sequence[Row], rivals: Sequence[Rival], path: Path | None, seeds: int, **facts: str
) -> None:
    """Write the page, and its tables beside it, if nothing is wrong."""
    texts = [filled(text, rows, rivals, seeds, **facts) for text in (PAGE, TABLES)]
    mistakes = [mistake for row in rows for mistake in row.mistakes()]
    mistakes += [mistake for rival in rivals for mistake in rival.mistakes()]
    if mistakes:
        print("These rows are wrong, so no page was written:", *mistakes, sep="\n")
        raise SystemExit(1)
    if path:
        for file, text in zip((path, path.with_suffix(".txt")), texts, strict=True):
            file.write_text(text)
            print(f"wrote {file}")


if __name__ == "__main__":
    typer.run(main)
