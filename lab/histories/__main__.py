"""`python -m lab.histories` (`make simulate`): seeded histories, judged; `--seed` shows one, shortened."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console

from lab.histories.kinds import KINDS, lines, shrink
from simulator.choices import Drawn

CHUNK = 50
FLOORS = {
    "reads": (10, "lanes"),
    "deltas": (5, "lanes"),
    "cleaned": (1, "lanes"),
    "decided": (15, "limits"),
    "visits": (1, "service"),
    "late": (2, "service"),
    "crossings": (0.2, "thresholds"),
}
"""The least of each that so many histories of a kind have, on average: a third or less of what they do have."""

FLOORS_FROM = 100
"""Fewer histories than these may have little of something by chance."""


def main(
    seeds: Annotated[int, typer.Option(min=1, help="How many histories to play.")] = 2_000,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    processes: Annotated[int, typer.Option(min=1, help="Processes to play them in.")] = 2,
    seed: Annotated[int | None, typer.Option(min=0, help="Show this one history, shortened if it goes wrong.")] = None,
    kind: Annotated[str, typer.Option(help=f"Of the one that is shown: {', '.join(KINDS)}.")] = "lanes",
) -> None:
    """Play histories of the shipped code on a simulated table in two or three Regions, with its faults.

    Exit code: 0 when every history is right, 1 at the first that is wrong, and when too little happened in them.
    """
    console = Console(highlight=False, soft_wrap=True)
    if seed is not None:
        raise typer.Exit(_show(console, seed, kind))
    began, total = time.monotonic(), Counter[str]()
    chunks = [range(start, min(start + CHUNK, first + seeds)) for start in range(first, first + seeds, CHUNK)]
    with multiprocessing.Pool(processes) as pool:
        for number, (wrong, counts) in enumerate(pool.imap(_play_some, chunks)):
            if wrong:
                pool.terminate()
                console.print(wrong)
                raise typer.Exit(1)
            total += counts
            if (number + 1) % 100 == 0:
                console.print(f"{(number + 1) * CHUNK:,} histories", style="dim")
    console.print(
        f"{seeds:,} histories, seeds {first:,} to {first + seeds - 1:,}: {total['lanes steps']:,} steps, "
        f"{total['deltas']:,} deltas, {total['packs']:,} packs, {total['reads']:,} reads, "
        f"{total['cleaned']:,} cleaned; "
        f"{total['limits']:,} of limited counters: {total['limits steps']:,} steps, {total['decided']:,} decided; "
        f"{total['service']:,} of the service: {total['rings']:,} messages, {total['visits']:,} visits, "
        f"{total['late']:,} late; {total['thresholds']:,} of thresholds: {total['crossings']:,} crossings; "
        f"0 violations, in {time.monotonic() - began:.0f} s"
    )
    if too_little := lacks(total):
        console.print(*too_little, sep="\n")
        raise typer.Exit(1)


def lacks(total: Counter[str]) -> list[str]:
    """What happened too seldom, so that no violation says nothing."""
    if total["lanes"] < FLOORS_FROM:
        return []
    floors = {name: int(each * total[kind]) for name, (each, kind) in FLOORS.items()}
    return [
        f"too little happened: {name} {total[name]:,}, and such histories have at least {least:,}"
        for name, least in floors.items()
        if total[name] < least
    ]


def _play_some(seeds: Iterable[int]) -> tuple[str, Counter[str]]:
    """How the first history that goes wrong does; and what was played."""
    total = Counter[str]()
    for seed in seeds:
        for name, kind in KINDS.items():
            if seed % kind.every != kind.at:
                continue
            played = kind.play(Drawn(seed))
            if played.violations:
                how = f"python -m lab.histories --seed {seed} --kind {name} shows it"
                return f"seed {seed} goes wrong, a history of {name}: {played.violations[0]}\n{how}", total
            total += Counter({name: 1, f"{name} steps": played.steps}) + played.counts
    return "", total


def _show(console: Console, seed: int, kind: str) -> int:
    choices = Drawn(seed)
    violations = KINDS[kind].play(choices).violations
    picks = choices.picks
    if violations:
        console.print(f"seed {seed} goes wrong: {violations[0]}\nshortening it ...")
        picks = shrink(kind, picks)
    for line in lines(kind, picks):
        console.print(line, markup=False)
    return 1 if violations else 0


if __name__ == "__main__":
    typer.run(main)
