"""`python -m lab.budgets` (`make budgets`): prints what the budgets let through, beside a naive tracker."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from lab.budgets.calls import ENDS, measure
from lab.budgets.caps import CAP, REGIONS
from lab.budgets.verdict import Figures


def main(
    customers: Annotated[int, typer.Option(min=1, help="Each has twenty calls at once.")] = 250,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Print what the budgets let through, beside a tracker that reads, compares, calls and adds; 1 if ours is wrong, if
    it decided too little, or if that tracker is right.
    """
    logging.getLogger("exact-counter.litellm").setLevel(logging.CRITICAL)
    figures = measure(customers, seed)
    of = f"{customers} customers, {len(ENDS)} calls of each at once, {len(REGIONS)} Regions, {CAP:,} micro-dollars each"
    print(f"{of}; faults")
    print("calls: " + ", ".join(f"{count:,} {name}" for name, count in figures.outcomes.most_common()))
    for name, ours, theirs in [("", "ours", "naive"), *rows(figures, customers * CAP)]:
        print(f"{name:46} {_shown(ours):>12} {_shown(theirs):>12}")
    if figures.undecided:
        print("Too few calls were answered, refused or decided at all: the rest proves nothing.")
    if figures.is_easy:
        print("The naive tracker was right of a customer: the calls did not try the budgets.")
    sys.exit(not figures.is_right)


def rows(figures: Figures, all: int) -> list[tuple[str, int, int | str]]:
    naive = figures.naive.values()
    return [
        ("budgets that were passed", figures.over, sum(spent > CAP for spent in naive)),
        ("micro-dollars spent", figures.spent, sum(naive)),
        ("% of all budgets", 100 * figures.spent // all, 100 * sum(naive) // all),
        ("budgets that miss what was answered", figures.uncounted, "-"),
        ("budgets that count what was not answered", figures.doubled, "-"),
        ("budgets that hold what no call is to give back", figures.stuck, "-"),
        ("budgets with something held at the end", figures.held, "-"),
        ("budgets with room after a cost that fills them", figures.unfilled, "-"),
        ("budgets that refused what had room", figures.starved, "-"),
    ]


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    typer.run(main)
