"""`python -m budgets_lab` (part of `make litellm`): prints what the budgets let through, beside a naive tracker."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer
from lab.histories.budget_judge import CAP, LINES

from budgets_lab.calls import ENDS, measure


def main(
    customers: Annotated[int, typer.Option(min=1, help="Each has twenty calls at once.")] = 250, seed: int = 0
) -> None:
    """Print what the budgets let through, beside a tracker that reads, compares, calls and adds; 1 if ours is wrong, if
    it decided too little, or if that tracker is right.
    """
    logging.getLogger("exact-counter.litellm").setLevel(logging.CRITICAL)
    figures = measure(customers, seed)
    of = f"{customers} customers, {len(ENDS)} calls of each at once, 2 Regions, {CAP:,} micro-dollars each"
    print(f"{of}; faults")
    print("calls: " + ", ".join(f"{count:,} {name}" for name, count in figures.outcomes.most_common()))
    naive, all = figures.naive.values(), customers * CAP
    print(f"{'':46} {'ours':>12} {'naive':>12}")
    print(f"{'micro-dollars spent':46} {figures.spent:>12,} {sum(naive):>12,}")
    print(f"{'% of all budgets':46} {100 * figures.spent // all:>12,} {100 * sum(naive) // all:>12,}")
    for name, line in LINES.items():
        theirs = f"{sum(spent > CAP for spent in naive):,}" if name == "passed" else "-"
        print(f"{line:46} {figures.wrong[name]:>12,} {theirs:>12}")
    if figures.is_undecided:
        print("Too few calls were answered, refused or decided at all: the rest proves nothing.")
    if figures.is_easy:
        print("The naive tracker was right of a customer: the calls did not try the budgets.")
    sys.exit(not figures.is_right)


if __name__ == "__main__":
    typer.run(main)
