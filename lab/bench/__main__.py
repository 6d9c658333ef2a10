"""`python -m lab.bench` (`make bench`): prints the figures that stand in docs/costs.md."""

from typing import Annotated

import typer
from rich.console import Console

from lab.bench import limit_figures, sale_figures
from lab.bench.add_speed import add_over_put, adds_over_others, gathered_over_others
from lab.bench.async_speed import IN_FLIGHT, async_add_over_put
from lab.bench.compactor_speed import fold_peak_mb, speed
from lab.bench.figure import Figure
from lab.bench.figures import FUNCTIONS, import_over_boto3_ms, lives
from lab.bench.limit_speed import add_over_update
from lab.bench.pack_figures import MESSAGES, QUEUED_PER_S, SIZES, queued_units, tail_read, write_units
from lab.engines.ministack import Engine, end_on_signals

BACKLOGS = (100_000, 1_000_000)
COMPACTED = {1: 24_000} | dict.fromkeys(SIZES[1:], 96_000)
"""Changes that are compacted, by how many are in an item."""

TARGETS = (100, 1_000, 10_000, 100_000)


def main(small: Annotated[bool, typer.Option("--small", help="Little of all, to see that it works.")] = False) -> None:
    """Measure, then print. Takes a few minutes; the engine is the demo's."""
    end_on_signals()
    progress = Console(stderr=True)
    if not progress.is_terminal:
        progress.print("measuring: a hot counter of 100,000 changes, then speed and memory; some minutes")
    less, few, runs = (100, {"rounds": 1}, 1) if small else (1, {}, 9)
    with Engine() as engine, progress.status("measuring") as status:
        hot, cold, reads = lives(engine, lambda text: status.update(f"hot counter: {text}"), TARGETS[: 4 // less or 2])
        status.update("client CPU of an add")
        over_put, over_tuned_put = add_over_put(engine, **few)
        status.update("client CPU of an awaited add")
        over_async_put, over_tuned_async_put = async_add_over_put(engine, IN_FLIGHT // less, **few)
        status.update("adds of 32 threads")
        adds = adds_over_others(engine, **few)
        gathered = gathered_over_others(engine, **few)
        status.update("packs")
        packs = {each: write_units(engine, each, 20_000 // less) for each in SIZES}
        queued = {each: queued_units(engine, each, 120 // less) for each in MESSAGES}
        tail = tail_read(engine, 100_000 // less, **few)
        status.update("limits")
        of_limits = [
            *limit_figures.figures(),
            *(() if small else sale_figures.figures()),
            Figure("limited: client CPU of an add / bare update_item", add_over_update(engine, **few), 1.1),
        ]
        status.update("compaction")
        speeds = {each: speed(engine, changes // less, each) for each, changes in COMPACTED.items()}
        status.update("memory of a fold of a million deltas")
        peaks_mb = {deltas: fold_peak_mb(deltas) for deltas in (each // less for each in BACKLOGS)}
    boto3_ms, ledger_ms = import_over_boto3_ms("ledger", runs)
    starts = {name: import_over_boto3_ms(f"service.{name}.main", runs)[1] for name in FUNCTIONS}
    print(f"write units per change, whole life, hot counter ({hot.changes:,} changes)   {hot.write_units:8.3f}")
    print(f"write units per change, whole life, cold counter ({cold.changes} changes)       {cold.write_units:8.3f}")
    for each, units in packs.items():
        print(f"write units per change, whole life, in packs of {each:>3}               {units:8.3f}")
    for each, units in queued.items():
        print(f"the same through SQS at {QUEUED_PER_S:,}/s, {each:>3} in a message               {units:8.3f}")
    print(f"read units of the compactor per change, hot counter               {hot.read_units:8.3f}")
    print(f"deltas per merge transaction                                      {hot.deltas_per_commit:8,.0f}")
    for read in reads:
        print(
            f"read after {read.changes:>7,} changes                               "
            f"{read.requests:>3} round trips  {read.read_units:>4.1f} read units"
        )
    print(f"client CPU of add / bare boto3 put_item of the same item          {over_put:8.3f}")
    print(f"client CPU of add / the same, boto3 with this library's Config    {over_tuned_put:8.3f}")
    awaited = f"client CPU of an add, {IN_FLIGHT:,} in flight / bare aiobotocore put_item"
    print(Figure(awaited, over_async_put, 1.1))
    print(f"client CPU of the same / aiobotocore with this library's Config    {over_tuned_async_put:8.3f}")
    print(f"adds/s of 32 threads, one counter / plain ADD as boto3 comes      {adds['plain']:8.2f}")
    print(f"adds/s of 32 threads / plain ADD with this library's Config       {adds['tuned']:8.2f}")
    print(f"adds/s of 32 threads / optimistic locking, same Config            {adds['optimistic']:8.2f}")
    print(f"adds/s of 32 threads, group commit / plain ADD with our Config    {gathered.rate:8.2f}")
    print(f"client CPU of an add in group commit / bare boto3 put_item        {gathered.cpu:8.3f}")
    about = f"a tail of {tail.changes:,} changes in packs"
    print(f"read of {about}: {tail.requests} requests, {tail.read_units:.0f} read units")
    print(f"read with behind= of {about}: {tail.behind_requests} request, {tail.behind_units:.0f} read unit")
    print(f"CPU of a read of {about} / bare Query  {tail.cpu:8.2f}")
    for figure in of_limits:
        print(figure)
    print("changes per second of the compactor's CPU         folded   and settled   and deleted")
    for each, (folded, settled, deleted) in speeds.items():
        what = "deltas" if each == 1 else f"packs of {each}"
        print(f"  {what:<46}{folded:8,.0f}   {settled:11,.0f}   {deleted:11,.0f}")
    for deltas, peak_mb in peaks_mb.items():
        print(f"peak memory of a fold of {deltas:>9,} deltas                      {peak_mb:8.1f} MB")
    print(f"import ledger, CPU over import boto3 alone ({boto3_ms:.0f} ms)             {ledger_ms:8.1f} ms")
    for name, start_ms in starts.items():
        print(f"cold start of {name:<14}, CPU over import boto3 alone       {start_ms:8.1f} ms")


if __name__ == "__main__":
    typer.run(main)
