"""What comes to lanes, and when: drawn from a seed."""

from collections.abc import Iterator, Sequence
from random import Random

from lab.scale.region import Came
from ledger import tokens
from ledger.entries import ENTRY, TIME_BYTES, Entries
from ledger.values import Lane, Pack

REGION = "eu-west-1"
START_MS = 1_800_000_000_000


def lanes_of(number: int) -> list[Lane]:
    """Of counters with one shard and names of 12 letters."""
    return [Lane(REGION, 0, f"stock:{each:06}") for each in range(number)]


def singly(lanes: Sequence[Lane], rate: float, drawn: Random, from_ms: int = START_MS) -> Iterator[Came]:
    """Changes of any of the lanes at random, each lane's at `rate` a second, without an end."""
    at_ms = float(from_ms)
    while True:
        at_ms += drawn.expovariate(rate * len(lanes)) * 1_000
        yield int(at_ms), drawn.choice(lanes), tokens.make(int(at_ms), drawn.randbytes(tokens.RANDOM_BYTES))


def in_packs(lane: Lane, rate: int, each: int, drawn: Random, from_ms: int = START_MS) -> Iterator[Came]:
    """Packs of `each` changes of one lane, `rate` changes a second, put as soon as the last of each is there."""
    number = 0
    while True:
        times = [from_ms + (number + n) * 1_000 // rate for n in range(each)]
        number += each
        named = (ms.to_bytes(TIME_BYTES, "big") + drawn.randbytes(tokens.RANDOM_BYTES) for ms in times)
        yield times[-1], lane, Pack(lane, Entries.of(sorted(ENTRY.pack(token, 1) for token in named)))
