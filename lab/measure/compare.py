"""`python -m lab.measure.compare` (`make compare`): measures every design and writes docs/comparison.md.

Rule 1: All is simulated, by a seed: each run prints the same.
Rule 2: A row of this library that lost or doubled ends it with 1, and nothing is written.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from lab.designs import every
from lab.measure.cost import DESIGNS, shop_events, spend
from lab.measure.one_counter import EU, accuracy
from lab.measure.page import Row, filled
from ledger.settings import Settings

FOLDED = Settings(table="counters", region=EU, fold_min=1, fold_max=8)
"""Our defaults for every time; folded at once and in several commits, so that few events do meet all of it."""

SEEDS = 20
WRITTEN = Path(__file__).parents[2] / "docs" / "comparison.md"


def measure(seeds: int) -> Iterator[Row]:
    """A row for each design."""
    for design, folded in zip(DESIGNS, every(FOLDED), strict=True):
        found, spent = accuracy(folded, range(seeds)), spend(shop_events(), design)
        lost, doubled = sum(of.lost for of in found.values()), sum(of.doubled for of in found.values())
        print(f"{design.name:<40}{lost} lost, {doubled} doubled, {spent.write_units:.2f} write units", flush=True)
        yield Row(design, found, spent)


def main(
    small: Annotated[bool, typer.Option("--small", help="By one seed; judges, and writes nothing.")] = False,
) -> None:
    """Measure every design, in some minutes, and write docs/comparison.md.

    Exit code: 0 when every row of this library is right, 1 when one is not.
    """
    seeds = 1 if small else SEEDS
    publish(list(measure(seeds)), None if small else WRITTEN, seeds, f"{datetime.now(UTC):%Y-%m-%d}")


def publish(rows: Sequence[Row], path: Path | None, seeds: int, date: str) -> None:
    """Writes the page where nothing is wrong."""
    text = filled(rows, seeds, date)
    mistakes = [mistake for row in rows for mistake in row.mistakes()]
    if mistakes:
        print("WRONG, so nothing was written:", *mistakes, sep="\n")
        raise SystemExit(1)
    if path:
        path.write_text(text)
        print(f"wrote {path}")


if __name__ == "__main__":
    typer.run(main)
