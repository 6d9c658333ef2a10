"""What is sent: events of a shop, each through SQS or HTTP in one of the Regions, some again, and poison between them.

Rule 1: Everything follows from the events and the seed.
Rule 2: A change that is sent again names the Region where it was first asked for, whatever way it takes.
Rule 3: Poison is what no retry can make right.
"""

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lab.e2e.deployed import REGIONS
from lab.events import Event
from ledger.message import dumps
from ledger.values import Change

BY_HTTP, AGAIN, AGAIN_ELSEWHERE = 0.4, 0.2, 0.5
POISON_EVERY = 40


@dataclass(frozen=True, slots=True)
class Sending:
    """One change on its way to one Region, by HTTP or through its queue."""

    event: Event
    home: str
    region: str
    by_http: bool
    again: bool

    @property
    def message(self) -> str:
        event = self.event
        return dumps(Change(event.counter, event.change, event.key, event.at, self.home))


def sendings(events: Iterable[Event], rng: random.Random) -> Iterator[Sending]:
    """Every event once, and some of them again, soon or much later, there or elsewhere."""
    later: list[Sending] = []
    for event in events:
        home = rng.choice(REGIONS)
        yield Sending(event, home, home, rng.random() < BY_HTTP, again=False)
        if rng.random() < AGAIN:
            region = rng.choice(REGIONS) if rng.random() < AGAIN_ELSEWHERE else home
            later.append(Sending(event, home, region, rng.random() < BY_HTTP, again=True))
        if later and rng.random() < AGAIN:
            yield later.pop(rng.randrange(len(later)))
    yield from later


def poison(number: int) -> str:
    """A message that nobody can add; each number gives another text."""
    key, at = f"poison-{number}", "2010-12-01T08:26:00Z"
    said = {"counter": "stock:poison", "change": 1, "idempotency_key": key, "at": at}
    bad = [
        f"poison {number}: no JSON",
        json.dumps({name: value for name, value in said.items() if name != "at"}),
        json.dumps(said | {"change": "1"}),
        json.dumps(said | {"change": 10**38}),
        json.dumps(said | {"counter": "stöck"}),
        json.dumps(said | {"unknown": number}),
    ]
    return bad[number % len(bad)]


def truth(events: Iterable[Event]) -> dict[str, tuple[int, int]]:
    """Counter -> (value, number of changes), from the events alone."""
    found: dict[str, tuple[int, int]] = {}
    for event in events:
        value, count = found.get(event.counter, (0, 0))
        found[event.counter] = value + event.change, count + 1
    return found
