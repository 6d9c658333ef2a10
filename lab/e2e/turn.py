"""Which month turns in a run, when it closes, which answers about that instant are wrong, and when
items retire. Pure.

Rule 1: `late` is chosen when the service is deployed, so that the older month closes some minutes
later. Nobody knows how long a deployment takes, so there are prefixes that close one after the
other, and the next one is played.
Rule 2: An answer on the wrong side of the instant is wrong. Of what is under way then, either
answer is right.
Rule 3: A run shows too little if a way in a Region had not both answers of the older month.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lab.e2e.deployed import CALLS, QUOTA, REGIONS, SKEW_MS, NotDeployed
from ledger.core.values import Change

WEST, CARRY, KEEP_S = timedelta(hours=12), 4, 100 * 86_400
CLOSES_S = (240, 300, 360, 420, 500, 640, 900, 1_400, 2_400)  # after the deployment began
AHEAD_S = 60
MINUTE, CLOCKS = timedelta(minutes=1), timedelta(days=30)
OF_A_MONTH = re.compile(rf"((?:{CALLS}|{QUOTA})\d+:)[^#]*@(\d{{4}}-\d\d)")
WAYS = HTTP, QUEUE = "http", "queue"
COUNTED, REFUSED = "counted", "refused"


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
    at, keeps = last_turn(began), kept(began)
    for number in range(len(CLOSES_S)):
        closes = at + WEST + timedelta(seconds=keeps[f"{CALLS}{number}:"]["late_s"])
        if closes >= now + timedelta(seconds=AHEAD_S):
            return Turn(number, at, closes)
    raise NotDeployed(
        f"The deployment took {now - began}, so the months that should turn are over. Run it again."
    )


@dataclass(frozen=True, slots=True)
class Attempt:
    """A change on its way, and how it was answered: one that is queued may have several answers,
    and has none yet. Times are milliseconds.
    """

    change: Change
    way: str
    region: str
    began_ms: int
    ended_ms: int
    answers: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        return str(self.change.idempotency_key)

    def answered(self, outcomes: Mapping[str, set[str]]) -> Attempt:
        """With its outcomes, if it was queued. Of a counter without a limit no outcome is queued
        but that its period is over.
        """
        if self.way != QUEUE:
            return self
        without = COUNTED if self.change.counter.startswith(CALLS) else "no outcome"
        return replace(self, answers=frozenset(outcomes.get(self.key, {without})))

    def allowed(self, turn: Turn) -> set[str]:
        closes_ms = ms_of(turn.closes)
        if not self.change.counter.endswith(turn.over):
            return {COUNTED}
        if self.began_ms >= closes_ms + SKEW_MS:
            return {REFUSED}
        is_early = self.way != QUEUE and self.ended_ms < closes_ms - SKEW_MS
        return {COUNTED} if is_early else {COUNTED, REFUSED}


def wrong_answers(attempts: Sequence[Attempt], turn: Turn) -> Iterator[str]:
    shown = set()
    for attempt in attempts:
        if not attempt.answers <= attempt.allowed(turn):
            after_ms = attempt.began_ms - ms_of(turn.closes)
            yield (
                f"{attempt.change.counter}: {attempt.key} by {attempt.way} in {attempt.region} at "
                f"{after_ms:+} ms: {set(attempt.answers)}"
            )
        if attempt.change.counter.endswith(turn.over):
            shown |= {(attempt.way, attempt.region, answer) for answer in attempt.answers}
    for missing in sorted({*itertools.product(WAYS, REGIONS, (COUNTED, REFUSED))} - shown):
        yield f"the run shows nothing about the end of {turn.over} for {' '.join(missing)}"


def retires(pk: str, sk: str, periods: Mapping[str, Mapping[str, int]], turn: Turn) -> int | None:
    """When an item of the two months retires, in seconds, by a calendar of its own."""
    of = OF_A_MONTH.search(f"{pk}#{sk}")
    end = {turn.over: turn.at, turn.opened: turn.next}.get(of[2] if of else "")
    if of is None or end is None:
        return None
    return int((end + WEST + timedelta(seconds=periods[of[1]]["keep_s"]) + CLOCKS).timestamp())


def kind_of(pk: str, sk: str) -> str:
    """What an item is."""
    kind, (first, is_below, _) = pk.partition("#")[0], sk.partition("#")
    if kind == "fold":
        return first
    return "pack" if kind == "delta" and is_below else kind


def ms_of(at: datetime) -> int:
    return int(at.timestamp() * 1_000)
