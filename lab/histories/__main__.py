"""`python -m lab.histories` (`make simulate`): seeded histories, judged; `--seed` shows one."""

import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Annotated

import typer
from rich.console import Console

from lab.histories.kinds import KINDS, lines
from simulator.choices import Drawn

LEAST = {
    "reads": 10,
    "deltas": 5,
    "cleaned": 1,
    "decided": 3,
    "parts": 0.5,
    "visits": 0.1,
    "late": 0.2,
    "crossings": 0.02,
}
LEAST |= {
    "charts": 2,
    "over": 0.3,
    "carried": 0.01,
    "moved": 1,
    "refunded": 0.1,
    "stuck": 0.003,
    "conflicts": 0.1,
}
"""So many of each there are for every seed, on average: a third or less of what there is."""

FLOORS_FROM = 100
"""Fewer seeds than these may have little of something by chance."""


def main(
    seeds: Annotated[int, typer.Option(min=1, help="How many histories to play.")] = 2_000,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    processes: Annotated[int, typer.Option(min=1, help="Processes to play them in.")] = 2,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Play one history, and print each of its requests.")
    ] = None,
    kind: Annotated[
        str, typer.Option(help=f"Which kind --seed plays, of {', '.join(KINDS)}.")
    ] = "lanes",
) -> None:
    """Play histories of the shipped code on a simulated table in two or three Regions, with its
    faults.

    Exit code: 0 when every history is right, 1 at the first that is wrong, and when too little
    happened in them.
    """
    console = Console(highlight=False, soft_wrap=True)
    if seed is not None:
        shown = lines(kind, seed)
        console.print(*shown, sep="\n", markup=False)
        raise typer.Exit(shown[-1].startswith("WRONG"))
    began, total = time.monotonic(), Counter[str]()
    with ProcessPoolExecutor(processes) as pool:
        for wrong, counts in pool.map(_play_all, range(first, first + seeds), chunksize=50):
            if wrong:
                pool.shutdown(cancel_futures=True)
                console.print(wrong)
                raise typer.Exit(1)
            total += counts
    console.print("histories of each kind: steps, and what happened in them")
    for name, played in KINDS.items():
        happened = "".join(f", {total[what]:,} {what}" for what in played.shows)
        console.print(f"{name:10} {total[name]:>7,}: {total[f'{name} steps']:,} steps{happened}")
    spent = f"in {time.monotonic() - began:.0f} s"
    console.print(
        f"{seeds:,} histories, seeds {first:,} to {first + seeds - 1:,}, 0 violations, {spent}"
    )
    if lacking := lacks(total):
        console.print(f"too little happened: {', '.join(lacking)}")
        raise typer.Exit(1)


def lacks(total: Counter[str]) -> list[str]:
    """What happened too seldom, so that no violation says nothing."""
    seeds = total["lanes"]
    return [
        name
        for name, least in LEAST.items()
        if seeds >= FLOORS_FROM and total[name] < int(least * seeds)
    ]


def _play_all(seed: int) -> tuple[str, Counter[str]]:
    """How a history of that seed goes wrong, of any kind that it has; and what was played."""
    total = Counter[str]()
    for name, kind in KINDS.items():
        if seed % kind.every != kind.at:
            continue
        played = kind.play(Drawn(seed))
        if played.violations:
            how = f"python -m lab.histories --seed {seed} --kind {name} shows it"
            return (
                f"seed {seed} goes wrong, a history of {name}: {played.violations[0]}\n{how}",
                total,
            )
        total += Counter({name: 1, f"{name} steps": played.steps}) + played.counts
    return "", total


if __name__ == "__main__":
    typer.run(main)
