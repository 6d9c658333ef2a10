"""`python -m lab.torture` (`make torture`): rounds of faults on a real engine, each of them judged, and the figures.

Rule 1: The exit code is 0 only when every round was finished and judged without a violation, and the run did what was
asked: operations, reads that were owed something, cleans.
Rule 2: The history of a round that was not is kept, and its seed named.
"""

import os
import random
import shutil
import tempfile
import time
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from lab.engines.ministack import EngineMissing, end_on_signals
from lab.torture import record
from lab.torture.checker import explain
from lab.torture.plan import Plan
from lab.torture.round import Outcome, play

CHANGES_OF_ROUND = 20_000
OPERATIONS_OF_CHANGE = 1.3  # about: sends again and reads come on top of the changes
SAY_EVERY_S = 5.0
CREDENTIALS = {
    **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "embedded"),
    **dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull),
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
}
"""So that boto3 clients need no account, and find none."""


class EngineName(StrEnum):
    ministack = "ministack"
    local = "local"


def main(
    operations: Annotated[int, typer.Option(min=100, help="Adds and reads, about; in rounds.")] = 12_000,
    engine: Annotated[EngineName, typer.Option(help="MiniStack, or Amazon's DynamoDB Local.")] = EngineName.ministack,
    seed: Annotated[int | None, typer.Option(help="Decides what each process and the proxy draw.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Cut the run after so many, which ends with 1.")] = 86_400,
    history: Annotated[Path | None, typer.Option(help="A folder to keep the recorded histories in.")] = None,
) -> None:
    """Writers, readers and compactors on a real engine while everything fails; then every sum is judged.

    Exit code: 0 when no round has a violation, 1 when one has or too little was done, 2 when the engine cannot be had.
    """
    end_on_signals()
    os.environ.update(CREDENTIALS)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_PROFILE"):
        os.environ.pop(name, None)
    console = Console(highlight=False, soft_wrap=True)
    seed = random.randrange(10**6) if seed is None else seed
    began = time.monotonic()
    total = Outcome()
    rounds = 0
    while sum(total.operations.values()) < operations and time.monotonic() < began + seconds:
        left = operations - sum(total.operations.values())
        folder = _folder(history, seed + rounds)
        changes = min(CHANGES_OF_ROUND, max(100, round(left / OPERATIONS_OF_CHANGE)))
        try:
            outcome = _round(console, engine, Plan(seed + rounds, changes, str(folder)), began + seconds)
        except EngineMissing as error:
            console.print(f"[bold red]Torture cannot run:[/] {escape(str(error))}")
            raise typer.Exit(2) from None
        rounds += 1
        total += outcome
        if outcome.violations:
            console.print(escape(explain(outcome.violations, record.merged(folder.glob("*.jsonl")))))
            about = f"in the round of seed {seed + rounds - 1}. Its history: {folder}"
            console.print(f"[bold red]{len(outcome.violations)} violations[/] {about}")
            break
        if history is None:
            shutil.rmtree(folder, ignore_errors=True)
        if not outcome.operations:
            break  # nor would the next round do any
    console.print(_figures(total, rounds, seed, engine, time.monotonic() - began))
    lacks = total.lacks(operations)
    if lacks and time.monotonic() >= began + seconds:
        console.print(f"--seconds {seconds:g} cut the run.")
    for lack in () if total.violations else lacks:
        console.print(f"[bold red]Too little was done:[/] {lack}")
    if total.violations or lacks:
        raise typer.Exit(1)


def _round(console: Console, engine: EngineName, plan: Plan, deadline: float) -> Outcome:
    began = said = time.monotonic()

    def say(text: str) -> None:
        nonlocal said
        if time.monotonic() >= said + SAY_EVERY_S:
            said = time.monotonic()
            console.print(f"  {said - began:4.0f} s  {text}")

    console.print(f"round of seed {plan.seed}: {plan.changes:,} changes to {plan.counters:,} counters")
    return play(plan, engine is EngineName.local, deadline, say)


def _folder(history: Path | None, seed: int) -> Path:
    if history is None:
        return Path(tempfile.mkdtemp(prefix=f"torture-{seed}-"))
    folder = history / f"round-{seed}"
    folder.mkdir(parents=True)
    return folder


def _figures(total: Outcome, rounds: int, seed: int, engine: EngineName, seconds: float) -> str:
    def listed(counts: Counter[str]) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()) if name != "requests")

    faults = sum(count for name, count in total.faults.items() if name != "requests")
    return "\n".join(
        (
            f"{rounds} rounds on {engine.value}, seeds {seed} to {seed + rounds - 1}, {seconds:,.0f} s",
            f"operations  {sum(total.operations.values()):,}: {listed(total.operations)}",
            f"requests    {total.faults['requests']:,}, of which met a fault {faults:,}: {listed(total.faults)}",
            f"events      {listed(total.events)}",
            f"violations  {len(total.violations)}",
        )
    )


if __name__ == "__main__":
    typer.run(main)
