"""`python -m lab.scale` (`make scale`): what finding work takes at a million lanes, beside the goals; docs/costs.md.

Rule 1: It ends with 1 when a goal is missed.
Rule 2: Units, requests, visits, messages and tails follow from seeds, so every run prints the same; what is of a CPU is
of this computer at that time.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console

from lab.scale import keeping, lives, loads, peaks
from lab.scale.client_cpu import cpu_s
from lab.scale.dollars import Finding, cpu_ms, finding
from lab.scale.goal import Goal
from lab.scale.lean import LOOK
from lab.scale.lived import Lived
from lab.scale.million import Million, joined, played
from lab.scale.model import Told
from lab.scale.months import Month, every_month

LANES, RATE, THEN_S, PATTERNS = 1_000_000, 0.01, 10.0, 100
RARE = 1e-5
HALVES = 2
PEAKS = (100_000, 200_000, 300_000)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is played: lanes at once, lanes of a life, days of it, items of a load, minutes of a hot lane."""

    lanes: int = LANES
    lived: int = 100
    days: float = 1.5
    rare: int = 50
    rare_days: float = 200
    items: int = 200_000
    hot_minutes: float = 50
    peaks: tuple[int, ...] = PEAKS


def a_part(sizes: Sizes, part: int) -> Million:
    pattern, _ = lives.cold(PATTERNS, RATE, days=0.3, measured=0.01, seed=10 + part)
    return played(pattern, PATTERNS, sizes.lanes // HALVES, RATE, THEN_S, seed=20 + part)


def of_cold(sizes: Sizes) -> Lived:
    return lives.cold(sizes.lived, RATE, days=sizes.days, measured=sizes.days * 2 / 3)[1]


def of_kept(sizes: Sizes) -> Lived:
    return lives.cold(sizes.lived // 2, RATE, days=2 * sizes.days, measured=sizes.days, settings=lives.KEPT)[1]


def of_rare(sizes: Sizes) -> Lived:
    return lives.cold(sizes.rare, RARE, days=sizes.rare_days, measured=sizes.rare_days / 2)[1]


def of_hot(sizes: Sizes) -> Lived:
    return lives.hot(1_000, 100, minutes=sizes.hot_minutes, measured=sizes.hot_minutes * 0.6)


def of_loads(sizes: Sizes) -> list[tuple[loads.Load, Told]]:
    every = (*loads.RINGS, *loads.MORE)
    return [(load, load.told(max(sizes.items, int(load.rate * 900)))) for load in every]


def main(
    lanes: Annotated[int, typer.Option(help="How many are at work at once.")] = LANES,
    small: Annotated[bool, typer.Option("--small", help="A hundredth of all, to see that it works.")] = False,
) -> None:
    """Play, then print. Takes some minutes."""
    sizes = Sizes(10_000, 20, 0.3, 10, 20, 10_000, 25, (1_000, 2_000)) if small else Sizes(lanes)
    Console(stderr=True).print(f"playing {sizes.lanes:,} lanes; some minutes")
    with ProcessPoolExecutor(HALVES) as pool:
        parts = [pool.submit(a_part, sizes, part) for part in range(HALVES)]
        cold, kept, rare, hot = (pool.submit(life, sizes) for life in (of_cold, of_kept, of_rare, of_hot))
        told = pool.submit(of_loads, sizes)
        million = joined([part.result() for part in parts])
        client_s = pool.submit(cpu_s).result()
        by_month = pool.submit(every_month, sizes.items, million.then, client_s)
        goals = print_all(million, cold.result(), kept.result(), rare.result(), hot.result(), client_s, sizes)
        print_loads(told.result())
        print_months(by_month.result())
    print_keeping()
    print("\nGOALS: a change over its whole life, by AWS's rules")
    for goal in goals:
        print(goal)
    sys.exit(any(not goal.is_met for goal in goals))


def print_all(
    million: Million, cold: Lived, kept: Lived, rare: Lived, hot: Lived, client_s: dict[str, float], sizes: Sizes
) -> list[Goal]:
    """Parts A and C; the goals."""
    then, found = million.then, finding(million.then, client_s)
    print(f"A MILLION LANES: {million.lanes:,}, each with a change every {1 / million.rate:,.0f} s")
    print(f"  first each once ({million.first.changes:,} changes), then any for {million.seconds:,.0f} s")
    print(f"  shards of the stream {million.shards}; lanes that one process of ring knew {million.known:,}")
    for name, lived in (("each once", million.first), ("then", then)):
        print(
            f"  {name:<10} messages a change {lived.messages / lived.changes:.4f}  looks that were enough "
            f"{lived.looks / (lived.looks + lived.visits):.1%}  visits {lived.visits:,}  SQS requests a change "
            f"{lived.sqs_requests / lived.changes:.4f}  most messages waiting {million.longest:,}"
        )
    for name, units in (("write", [then.write_units, million.first.cost("ring").write_units / million.first.changes]),):
        print(f"  {name} units a change {units[0]:.3f}; at first sight of a lane {units[1]:.3f} for the directory")
    look = then.cost("compact", kind=LOOK).read_units
    print(f"  read units a change {then.cost().read_units / then.changes:.3f}, looks {look / then.changes:.3f}")
    print(f"  tails: {million.tails}")
    print_cpu(then, client_s)
    for most, mb in zip(sizes.peaks, peaks.ring_peaks_mb(sizes.peaks), strict=True):
        print(f"  peak memory of ring's objects after {most:>9,} lanes in one process  {mb:6.1f} MB")
    for lanes, deltas in ((50, 40), (8, 5_000)):
        (mb,) = peaks.compact_peaks_mb(lanes, deltas)
        print(f"  peak memory of compact's objects, {lanes} lanes with {deltas:>6,} deltas each      {mb:6.1f} MB")
    print("\nLIVES, played from an empty table on")
    for name, lived in (("0.01/s, clean", cold), ("0.01/s, kept", kept), ("1e-05/s, clean", rare), ("1,000/s", hot)):
        print_life(name, lived)
    print_finding(found, rare, million, client_s)
    counted = found.units - _time(then, client_s) / 0.625
    return [
        Goal("cold (0.01/s): write units, clean", cold.write_units, 2.2),
        Goal("cold (0.01/s): write units, clean=False", kept.write_units, 1.2),
        Goal("cold (0.01/s): finding, in write units, of what is counted", counted, 0.03),
        Goal("1,000/s through the queue, in packs: write units", hot.write_units, 0.2),
    ]
