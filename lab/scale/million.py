"""A million lanes that are at work at the same time, each with a history, through the shipped functions.

Rule 1: The history of each is that of a lane that the shipped programs played from an empty table on (lives.py): its
checkpoint, segments, clean note, deltas, and the messages that are on their way for it. A million lanes share those of
some hundred, under names of their own; what comes from now on is each lane's own.
Rule 2: First each lane changes once, in some order, then any at random, all at the same rate. So every process of
`ring` meets every lane of its shard as new, as it does after a deployment: what that takes is told apart.
Rule 3: The stream has as many shards as a table needs partitions for so many writes. Each has one process.
Rule 4: A lane that nobody looks at takes no more memory here than what came to it. The memory of the functions
themselves is measured in peaks.py.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from lab.scale.arrivals import lanes_of, singly
from lab.scale.lean import Before, LeanTable, Partition
from lab.scale.lived import Lived, between, so_far, tail_of
from lab.scale.region import Came, Region
from lab.scale.tails import Tails
from ledger import tokens
from ledger.values import Lane
from service.ring.handler import Ringer

PARTITION_UNITS, UNITS = 1_000, 2.2
"""Write units that a partition takes a second, and those of a change with its clean."""

SAMPLE = 5_000
"""Lanes whose tails are looked at in the end."""


@dataclass(slots=True)
class Million:
    """first: while each lane changed once. then: while they changed at random. longest: the most messages that waited.

    shards: of the stream. known: the most lanes that a process of `ring` remembered. swept: a bucket of the directory
    that `sweep` sent messages for. tails: of lanes at the end.
    """

    lanes: int
    rate: float
    shards: int
    first: Lived
    then: Lived
    longest: int
    known: int
    swept: Lived
    tails: Tails

    @property
    def seconds(self) -> float:
        return self.then.changes / self.lanes / self.rate

    def __add__(self, other: "Million") -> "Million":
        """Other lanes of the same Region, in other shards of its stream."""
        return Million(
            self.lanes + other.lanes,
            self.rate,
            self.shards + other.shards,
            self.first + other.first,
            self.then + other.then,
            self.longest + other.longest,
            max(self.known, other.known),
            self.swept + other.swept,
            self.tails + other.tails,
        )


def histories(table: LeanTable, patterns: int) -> Before:
    """What stood in the partitions of many lanes: copies of what stands in those of a few."""

    def of(pk: str) -> Partition | None:
        kind, _, text = pk.partition("#")
        if kind not in ("delta", "fold"):
            return None
        return table.partition(f"{kind}#{pattern_of(Lane.parse(text), patterns)}")

    return of


def pattern_of(lane: Lane, patterns: int) -> Lane:
    """The lane whose history this one has."""
    return replace(lane, counter=f"stock:{int(lane.counter.partition(':')[2]) % patterns:06}")


def played(pattern: Region, patterns: int, lanes: int, rate: float, seconds: float, seed: int = 2) -> Million:
    """Go on from the end of a Region that had `patterns` lanes, with `lanes`, each as busy as those were."""
    every, drawn = lanes_of(lanes), Random(seed)
    shards = max(1, round(lanes * rate * UNITS / PARTITION_UNITS))
    start_ms = pattern.now_ms
    table = LeanTable(histories(pattern.table, patterns))
    region = Region(pattern.settings, start_ms, shards=shards, table=table, sweeps=False)
    for visible_ms, body in pattern.sqs.waiting():
        said = json.loads(body)
        number = int(said["lane"].rpartition(":")[2])
        for lane in every[number::patterns]:
            region.sqs.put(json.dumps(said | {"lane": str(lane)}), visible_ms)
    first_ms = round(1_000 / rate)
    region.feed(_once_then_any(every, rate, start_ms, first_ms, drawn))
    began = so_far(region)
    region.run(start_ms + first_ms)
    each_once = so_far(region)
    region.run(start_ms + first_ms + int(seconds * 1_000))
    then = between(each_once, so_far(region), Tails())
    tails = Tails(tail_of(region, lane) for lane in drawn.sample(every, min(SAMPLE, lanes)))
    return Million(
        lanes=lanes,
        rate=rate,
        shards=shards,
        first=between(began, each_once, Tails()),
        then=then,
        longest=region.sqs.longest,
        known=max(map(lanes_known, region.ringers)),
        swept=a_bucket(region),
        tails=tails,
    )


def lanes_known(ringer: Ringer) -> int:
    return len(ringer._memory.listed)


def a_bucket(region: Region) -> Lived:
    """A first run of `sweep`: a bucket of 256. Nobody serves its messages."""
    before = so_far(region)
    region.call("sweep", region.sweeper, lambda: False)
    return between(before, so_far(region), Tails())


def _once_then_any(every: list[Lane], rate: float, start_ms: int, first_ms: int, drawn: Random) -> Iterator[Came]:
    order = list(every)
    drawn.shuffle(order)
    for n, lane in enumerate(order):
        at_ms = start_ms + n * first_ms // len(order)
        yield at_ms, lane, tokens.make(at_ms, drawn.randbytes(tokens.RANDOM_BYTES))
    yield from singly(every, rate, drawn, start_ms + first_ms)
