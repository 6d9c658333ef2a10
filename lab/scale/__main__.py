"""`python -m lab.scale` (`make scale`): what finding work takes at a million lanes, beside the goals; docs/costs.md.

Rule 1: It ends with 1 when a goal is missed, also because hardly anything was done.
Rule 2: Units, requests, visits, messages and tails follow from seeds, so every run prints the same; what is of a CPU is
of this computer at that time, and no goal rests on it.
"""

import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console

from lab.scale import lines, lives, loads
from lab.scale.client_cpu import cpu_s
from lab.scale.dollars import finding
from lab.scale.lived import Lived
from lab.scale.million import Million, played
from lab.scale.model import Told
from lab.scale.months import every_month
from lab.scale.peaks import compact_peaks_mb, ring_peaks_mb

RATE, RARE = 0.01, 1e-5
HALVES = 2
"""The million is played in so many parts, side by side: each has shards of the stream of its own."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is played: lanes at once, and for how many seconds after each changed once, from how many histories;
    lanes of a life and its days; lanes that hardly change, and their days; minutes of a busy lane; items of a load, and
    seconds of a busy one."""

    lanes: int = 1_000_000
    then_s: float = 10
    patterns: int = 200
    lived: int = 100
    days: float = 1.5
    rare: int = 200
    rare_days: float = 200
    hot_minutes: float = 50
    items: int = 200_000
    busy_s: float = 900
    ring_lanes: tuple[int, ...] = (100_000, 200_000, 300_000)
    compact_deltas: int = 5_000


SMALL = Sizes(4_000, 20, 20, 20, 0.4, 5, 20, 25, 2_000, 90, (1_000, 2_000), 100)


def a_part(sizes: Sizes, part: int) -> Million:
    pattern, _ = lives.cold(sizes.patterns, RATE, days=0.25, measured=0.01, seed=10 + part)
    return played(pattern, sizes.patterns, sizes.lanes // HALVES, RATE, sizes.then_s, seed=20 + part)


def of_cold(sizes: Sizes) -> Lived:
    return lives.cold(sizes.lived, RATE, days=sizes.days, measured=sizes.days * 2 / 3)[1]


def of_kept(sizes: Sizes) -> Lived:
    days = 2 * sizes.days
    return lives.cold(sizes.lived // 2, RATE, days=days, measured=days / 2, settings=lives.KEPT)[1]


def of_rare(sizes: Sizes) -> Lived:
    return lives.cold(sizes.rare, RARE, days=sizes.rare_days, measured=sizes.rare_days / 2)[1]


def of_hot(sizes: Sizes) -> Lived:
    return lives.hot(1_000, 100, minutes=sizes.hot_minutes, measured=sizes.hot_minutes * 0.6)


def of_loads(sizes: Sizes) -> list[tuple[loads.Load, Told]]:
    every = (*loads.RINGS, *loads.MORE)
    return [(load, load.told(max(sizes.items, int(load.rate * sizes.busy_s)))) for load in every]


def main(small: Annotated[bool, typer.Option("--small", help="Little of all, to see that it works.")] = False) -> None:
    """Play, then print. Takes some minutes."""
    sizes = SMALL if small else Sizes()
    Console(stderr=True).print(f"playing {sizes.lanes:,} lanes; some minutes")
    with ProcessPoolExecutor(HALVES) as pool:
        parts = [pool.submit(a_part, sizes, part) for part in range(HALVES)]
        named = {"cold": of_cold, "kept": of_kept, "rare": of_rare, "hot": of_hot}
        played_lives = {name: pool.submit(life, sizes) for name, life in named.items()}
        of_model, client = pool.submit(of_loads, sizes), pool.submit(cpu_s)
        million = parts[0].result() + parts[1].result()
        cold, kept, rare, hot = (life.result() for life in played_lives.values())
        client_s = client.result()
        rows = pool.submit(every_month, sizes.items, sizes.busy_s, million.then, client_s)
        model, by_month = of_model.result(), rows.result()
    ring_mb = list(zip(sizes.ring_lanes, ring_peaks_mb(sizes.ring_lanes), strict=True))
    (compact_mb,) = compact_peaks_mb(8, sizes.compact_deltas)
    found = finding(million.then, client_s)
    told_of = {"0.01/s": cold, "0.01/s, clean=False": kept, "1e-05/s": rare, "1,000/s, packs of 100": hot}
    show(lines.million(million, client_s, ring_mb, compact_mb))
    show(lines.lives(told_of))
    show(lines.finding_of(million, rare, client_s))
    show(lines.ceilings(million, client_s))
    show(lines.loads(model))
    show(lines.months(by_month))
    show(lines.keeping())
    goals = lines.goals(cold, kept, hot, found, small=small)
    show(["GOALS", *map(str, goals)])
    sys.exit(0 if all(goal.is_met for goal in goals) else 1)


def show(lines: Iterable[str]) -> None:
    print(*lines, sep="\n", end="\n\n")


if __name__ == "__main__":
    typer.run(main)
