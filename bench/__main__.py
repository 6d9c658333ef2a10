"""`python -m bench` (`make bench`): prints the figures that stand in the README."""

from __future__ import annotations

from rich.console import Console

from bench.figures import FUNCTIONS, add_over_put, import_over_boto3_ms, lives
from demo.engine import Engine, end_on_signals


def main() -> None:
    """Measure, then print. Takes a few minutes; the engine is the demo's."""
    end_on_signals()
    progress = Console(stderr=True)
    if not progress.is_terminal:
        progress.print("measuring: a hot counter of 100,000 changes, then client CPU; a few minutes")
    with Engine() as engine, progress.status("measuring") as status:
        hot, cold, reads = lives(engine, lambda text: status.update(f"hot counter: {text}"))
        status.update("client CPU of an add")
        cpu = add_over_put(engine)
    boto3_ms, ledger_ms = import_over_boto3_ms()
    starts = {name: import_over_boto3_ms(f"service.{name}.main")[1] for name in FUNCTIONS}
    print(f"write units per change, whole life, hot counter ({hot.changes:,} changes)   {hot.write_units:8.3f}")
    print(f"write units per change, whole life, cold counter ({cold.changes} changes)       {cold.write_units:8.3f}")
    print(f"read units of the compactor per change, hot counter               {hot.read_units:8.3f}")
    print(f"deltas per merge transaction                                      {hot.deltas_per_commit:8,.0f}")
    for read in reads:
        print(
            f"read after {read.changes:>7,} changes                               "
            f"{read.requests:>3} round trips  {read.read_units:>4.1f} read units"
        )
    print(f"client CPU of add / bare boto3 put_item of the same item          {cpu:8.3f}")
    print(f"import ledger, over import boto3 alone ({boto3_ms:.0f} ms)                   {ledger_ms:8.1f} ms")
    for name, start_ms in starts.items():
        print(f"cold start of {name:<14}, over import boto3 alone               {start_ms:8.1f} ms")


if __name__ == "__main__":
    main()
