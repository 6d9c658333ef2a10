"""`python -m lab.histories` (`make simulate`): seeded histories, judged; `--seed` shows one, shortened."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from lab.histories import limited_restores, served
from lab.histories.history import play
from lab.histories.shrink import shrink, told
from simulator.choices import Drawn

CHUNK = 50
LIMITED = 5
"""One of so many seeds has a history of a limited counter, too."""

SERVED = 10
"""One of so many seeds has a history of the deployed service, too."""

FLOORS = {
    "reads": (10, "seeds"),
    "deltas": (5, "seeds"),
    "cleaned": (1, "seeds"),
    "decided": (15, "limited"),
    "visits": (1, "served"),
    "late": (2, "served"),
    "crossings": (0.2, "thresholds"),
}
"""The least of each that so many histories of a kind have, on average: a third or less of what they do have."""

FLOORS_FROM = 100
"""Fewer histories than these may have little of something by chance."""

OF_LIMITED, OF_SERVICE = "its limited counter: ", "its service: "


def main(
    seeds: Annotated[int, typer.Option(min=1, help="How many histories to play.")] = 2_000,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    processes: Annotated[int, typer.Option(min=1, help="Processes to play them in.")] = 2,
    seed: Annotated[int | None, typer.Option(min=0, help="Show this one history, shortened if it goes wrong.")] = None,
) -> None:
    """Play histories of the shipped code on a simulated table in two or three Regions, with its faults.

    Exit code: 0 when every history is right, 1 at the first that is wrong, and when too little happened in them.
    """
    console = Console(highlight=False, soft_wrap=True)
    if seed is not None:
        raise typer.Exit(_show(console, seed))
    began, total = time.monotonic(), Counter[str]()
    chunks = [range(start, min(start + CHUNK, first + seeds)) for start in range(first, first + seeds, CHUNK)]
    with multiprocessing.Pool(processes) as pool:
        results = pool.imap(_play_some, chunks)
        shown = track(results, "playing", len(chunks), console=console, disable=not console.is_terminal)
        for number, (wrong, counts) in enumerate(shown):
            if wrong is not None:
                pool.terminate()
                played = wrong[0] - first + 1
                console.print(f"seed {wrong[0]} goes wrong, after {played:,} histories: {wrong[1]}")
                if not wrong[1].startswith((OF_LIMITED, OF_SERVICE)):
                    console.print(f"python -m lab.histories --seed {wrong[0]} shows it")
                raise typer.Exit(1)
            total += counts
            if not console.is_terminal and (number + 1) % 100 == 0:
                console.print(f"{(number + 1) * CHUNK:,} histories", style="dim")
    console.print(
        f"{seeds:,} histories, seeds {first:,} to {first + seeds - 1:,}: {total['steps']:,} steps, "
        f"{total['deltas']:,} deltas, {total['packs']:,} packs, {total['reads']:,} reads, "
        f"{total['cleaned']:,} cleaned; "
        f"{total['limited']:,} of limited counters: {total['limited steps']:,} steps, {total['decided']:,} decided; "
        f"{total['served']:,} of the service: {total['rings']:,} messages, {total['visits']:,} visits, "
        f"{total['late']:,} late; {total['thresholds']:,} of thresholds: {total['crossings']:,} crossings; "
        f"0 violations, in {time.monotonic() - began:.0f} s"
    )
    if too_little := lacks(total + Counter(seeds=seeds)):
        console.print(*too_little, sep="\n")
        raise typer.Exit(1)


def lacks(total: Counter[str]) -> list[str]:
    """What happened too seldom, so that no violation says nothing."""
    if total["seeds"] < FLOORS_FROM:
        return []
    floors = {name: int(each * total[of]) for name, (each, of) in FLOORS.items()}
    return [
        f"too little happened: {name} {total[name]:,}, and such histories have at least {least:,}"
        for name, least in floors.items()
        if total[name] < least
    ]


def _play_some(seeds: Iterable[int]) -> tuple[tuple[int, str] | None, Counter[str]]:
    """The first seed that goes wrong and how; and what was played."""
    counts = Counter[str]()
    for seed in seeds:
        played = play(Drawn(seed))
        if played.violations:
            return (seed, played.violations[0]), counts
        counts += Counter(steps=played.steps, deltas=played.deltas, packs=played.packs, reads=played.reads)
        counts["cleaned"] += played.cleaned
        if seed % LIMITED == 0:
            of_limits = limited_restores.play(Drawn(seed))
            if of_limits.violations:
                return (seed, f"{OF_LIMITED}{of_limits.violations[0]}"), counts
            counts += Counter(limited=1, decided=of_limits.decided) + Counter({"limited steps": of_limits.steps})
        if seed % SERVED == 0:
            service = served.play(Drawn(seed))
            if service.violations:
                return (seed, f"{OF_SERVICE}{service.violations[0]}"), counts
            counts += Counter(served=1, rings=service.rings, visits=service.visits, late=service.late)
        if seed % SERVED == SERVED // 2:
            crossed = served.play(Drawn(seed), thresholds=True)
            if crossed.violations:
                return (seed, f"{OF_SERVICE}{crossed.violations[0]}"), counts
            counts += Counter(thresholds=1, crossings=crossed.crossings)
    return None, counts


def _show(console: Console, seed: int) -> int:
    choices = Drawn(seed)
    violations = play(choices).violations
    picks = choices.picks
    if violations:
        console.print(f"seed {seed} goes wrong: {violations[0]}\nshortening it ...")
        picks = shrink(picks)
    for line in told(picks):
        console.print(line, markup=False)
    return 1 if violations else 0


if __name__ == "__main__":
    typer.run(main)
