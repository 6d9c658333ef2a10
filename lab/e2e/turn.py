"""Which month turns in a run, when it closes, and which answers about that instant are wrong. Pure.

Rule 1: `late` is chosen when the service is deployed, so that the older month closes some minutes
later. Nobody knows how long a deployment takes, so there are prefixes that close one after the
other, and the next one is played.
Rule 2: An answer on the wrong side of the instant is wrong; of what is on its way then, either is
right, and so is one
of each: that a month is over is said of one attempt.
Rule 3: A run in which a way in a Region had not both answers of the older month, or in which
nothing was counted first and refused when it came again, shows too little.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from lab.e2e.deployed import CALLS, QUOTA, REGIONS, SKEW_MS, NotDeployed
from ledger.core.values import Change

WEST, CARRY, KEEP_S = timedelta(hours=12), 4, 100 * 86_400
CLOSES_S = (240, 300, 360, 420, 500, 640, 900, 1_400, 2_400)  # after the deployment began
AHEAD_S = 60
MINUTE = timedelta(minutes=1)
WAYS = ("http", "queue", "library")
COUNTED, REFUSED, QUEUED = "counted", "refused", "queued"


@dataclass(frozen=True, slots=True)
class Turn:
    """The months before and after `at`, of the prefixes with this number; the first one closes
    at `closes`.
    """

    number: int
    at: datetime
    closes: datetime

    @property
    def over(self) -> str:
        return f"{self.at - MINUTE:%Y-%m}"

    @property
    def opened(self) -> str:
        return f"{self.at:%Y-%m}"

    @property
    def next(self) -> datetime:
        """When the newer month ends, by UTC."""
        return (self.at + timedelta(days=32)).replace(day=1)

    def base(self, prefix: str, name: str) -> str:
        return f"{prefix}{self.number}:{name}"


def last_turn(now: datetime) -> datetime:
    """The last turn of a month that is over in every zone."""
    return (now - WEST).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def kept(now: datetime) -> dict[str, dict[str, int]]:
    """The parameter `periods` of a deployment that begins now."""
    passed_s = int((now - WEST - last_turn(now)).total_seconds())
    found: dict[str, dict[str, int]] = {}
    for number, after_s in enumerate(CLOSES_S):
        keep = {"late_s": passed_s + after_s, "keep_s": passed_s + after_s + KEEP_S}
        found |= {f"{CALLS}{number}:": keep, f"{QUOTA}{number}:": keep | {"carry": CARRY}}
    return found


def next_turn(began: datetime, now: datetime) -> Turn:
    """That of the first prefixes that are open long enough.

    `began`: when the deployment did. Raises NotDeployed.
    """
    at, late_s = (
        last_turn(began),
        [keep["late_s"] for name, keep in kept(began).items() if name.startswith(CALLS)],
    )
    closes = [at + WEST + timedelta(seconds=late) for late in late_s]
    for number, moment in enumerate(closes):
        if moment >= now + timedelta(seconds=AHEAD_S):
            return Turn(number, at, moment)
    raise NotDeployed(
        f"The deployment took {now - began}, so the months that should turn are over. Run it again."
    )


class Asked(NamedTuple):
    """An attempt, and its answer: what the queue's is, the outcomes say. Times are milliseconds."""

    change: Change
    way: str
    region: str
    began_ms: int
    ended_ms: int
    answer: str

    @property
    def key(self) -> str:
        return str(self.change.idempotency_key)

    def answers(self, outcomes: Mapping[str, set[str]]) -> set[str]:
        """Of a counter without a limit no outcome is queued but that its period is over."""
        if self.answer != QUEUED:
            return {self.answer}
        return outcomes.get(self.key) or {
            COUNTED if self.change.counter.startswith(CALLS) else "no outcome"
        }

    def allowed(self, turn: Turn) -> set[str]:
        if not self.change.counter.endswith(turn.over):
            return {COUNTED}
        closes_ms = ms_of(turn.closes)
        if self.began_ms >= closes_ms + SKEW_MS:
            return {REFUSED}
        return (
            {COUNTED}
            if self.ended_ms < closes_ms - SKEW_MS and self.answer != QUEUED
            else {COUNTED, REFUSED}
        )


def wrong_answers(
    attempts: Sequence[Asked], outcomes: Mapping[str, set[str]], turn: Turn
) -> Iterator[str]:
    seen = set()
    for each in attempts:
        found, allowed = each.answers(outcomes), each.allowed(turn)
        if not found <= allowed:
            after_ms = each.began_ms - ms_of(turn.closes)
            yield (
                f"{each.change.counter}: {each.key} by {each.way} in {each.region} at "
                f"{after_ms:+} ms: {found}"
            )
        if each.change.counter.endswith(turn.over):
            seen |= {(each.way, each.region, answer) for answer in found}
    for missing in sorted({*itertools.product(WAYS, REGIONS, (COUNTED, REFUSED))} - seen):
        yield f"the run shows nothing about the end of {turn.over} for {' '.join(missing)}"
    if not again(attempts, outcomes):
        yield "no change was counted and then sent again when its month was over"


def counted(attempts: Sequence[Asked], outcomes: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Counter -> the keys that were answered so at least once."""
    found: dict[str, set[str]] = {each.change.counter: set() for each in attempts}
    for each in attempts:
        if COUNTED in each.answers(outcomes):
            found[each.change.counter].add(each.key)
    return found


def again(attempts: Sequence[Asked], outcomes: Mapping[str, set[str]]) -> set[str]:
    """The keys that were counted, and refused as well."""
    answers: dict[str, set[str]] = {}
    for each in attempts:
        answers.setdefault(each.key, set()).update(each.answers(outcomes))
    return {key for key, found in answers.items() if {COUNTED, REFUSED} <= found}


def ms_of(at: datetime) -> int:
    return int(at.timestamp() * 1_000)
