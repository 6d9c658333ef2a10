"""What is sent: events of a shop, each by HTTP or through SQS, in a message of one change or of
many, in one of the Regions, some again, and poison between them.

Rule 1: Everything follows from the events and the seed.
Rule 2: A change that is sent again names the Region where it was first asked for, whatever way it
takes.
Rule 3: Poison is what no retry can make right.
Rule 4: The shop's day passes in seconds, so that changes of a lane lie near enough for a pack.
"""

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from lab.e2e.deployed import REGIONS
from lab.events import Event, truth_of
from ledger.core.values import Change

WAYS = ("http", "one", "many")
AGAIN, AGAIN_ELSEWHERE = 0.2, 0.5
ALL_WITHIN = timedelta(seconds=20)
POISON_EVERY = 40
POISONED = "stock:poison"  # has no change at the end


@dataclass(frozen=True, slots=True)
class Sending:
    """One change on its way to one Region, in one of WAYS."""

    event: Event
    home: str
    region: str
    way: str

    @property
    def change(self) -> Change:
        event = self.event
        return Change(event.counter, event.change, event.key, event.at, self.home)


def hurried(events: Sequence[Event]) -> list[Event]:
    """The same events in the same order, all within ALL_WITHIN."""
    first, last = min(event.at for event in events), max(event.at for event in events)
    share = ALL_WITHIN / max(last - first, ALL_WITHIN)
    return [replace(event, at=first + (event.at - first) * share) for event in events]


def sendings(events: Iterable[Event], rng: random.Random) -> Iterator[Sending]:
    """Every event once, and some of them again, soon or much later, there or elsewhere."""
    later: list[Sending] = []
    for event in events:
        home = rng.choice(REGIONS)
        yield Sending(event, home, home, rng.choice(WAYS))
        if rng.random() < AGAIN:
            region = rng.choice(REGIONS) if rng.random() < AGAIN_ELSEWHERE else home
            later.append(Sending(event, home, region, rng.choice(WAYS)))
        if later and rng.random() < AGAIN:
            yield later.pop(rng.randrange(len(later)))
    yield from later


def poison(number: int) -> str:
    """A message that nobody can add; each number gives another text."""
    key, at = f"poison-{number}", "2010-12-01T08:26:00Z"
    said = {"counter": POISONED, "change": 1, "idempotency_key": key, "at": at}
    bad = [
        f"poison {number}: no JSON",
        json.dumps({name: value for name, value in said.items() if name != "at"}),
        json.dumps(said | {"change": "1"}),
        json.dumps(said | {"change": 10**38}),
        json.dumps(said | {"counter": "stöck"}),
        json.dumps(said | {"unknown": number}),
        json.dumps({"changes": [said, said | {"change": 0.5}]}),
    ]
    return bad[number % len(bad)]


def truth(events: Sequence[Event]) -> dict[str, tuple[int, int]]:
    """Counter -> (value, number of changes), from the events alone."""
    numbers = Counter(event.counter for event in events)
    return {counter: (value, numbers[counter]) for counter, value in truth_of(events).items()}
