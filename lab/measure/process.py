"""What the process of a user takes: the memory of a fold.

Rule 1: The backlog whose memory is measured makes its pages at each request and keeps none, so what
grows with it would be the fold's.
"""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from compactor.fold import fold
from compactor.report import Tally
from lab.measure.figure import Figure
from ledger import Delta, Lane, Settings
from ledger.core import tokens
from ledger.core.items import delta_item, fold_pk
from ledger.core.requests import Get, Instant, Item, Page, Put, Query, Request, Transact
from ledger.core.running import run

START_MS = 1_800_000_000_000
REGION, TABLE = "eu-west-1", "bench"
LANE = Lane(REGION, 0, "hot")
SETTINGS = Settings(table=TABLE, region=REGION)
PAGE_DELTAS = 8_000  # about a page of 1 MB


class Backlog:
    """A table whose lane has this many deltas. It keeps the last commit alone."""

    def __init__(self, deltas: int) -> None:
        self._deltas = deltas
        self._fold: dict[Any, Item] = {}

    def answer(self, request: Request, /) -> Any:
        match request:
            case Get(key):
                return self._fold.get(key)
            case Query(pk) if pk == fold_pk(LANE):
                return Page(tuple(self._fold.values()), None)
            case Query(_, after, _, limit):
                first = 0 if after is None else tokens.time_ms(after) - START_MS + 1
                last = min(first + (limit or PAGE_DELTAS), self._deltas)
                found = tuple(map(_delta, range(first, last)))
                return Page(found, found[-1]["sk"]["S"] if last < self._deltas else None)
            case Transact(writes):
                self._fold = {write.key: write.item for write in writes if isinstance(write, Put)}
                return None
            case Put():  # the lane's place in the directory
                return None
            case _:
                raise TypeError(f"no fold asks for {request!r}")


def _delta(number: int) -> Item:
    """The change of 1, that many milliseconds after the first."""
    return delta_item(Delta(LANE, tokens.make(START_MS + number, bytes(tokens.RANDOM_BYTES)), 1))


def fold_peak_mb(deltas: int) -> float:
    """The most megabytes of Python objects that were alive at once while a backlog of that many
    deltas was folded.
    """
    now = Instant(START_MS + deltas + SETTINGS.allowed_lateness_ms, 0)
    tally = Tally()
    tracemalloc.start()
    run(fold(LANE, tally, replace(SETTINGS, fold_min=1)), Backlog(deltas), lambda: now)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    if tally.folded != deltas:
        raise AssertionError(f"{tally.folded} of {deltas} deltas were folded")
    return peak / 1e6


def memory(small: bool) -> Iterator[Figure]:
    first, last = (18_000, 20_000) if small else (100_000, 500_000)
    peak_mb = fold_peak_mb(first)
    yield Figure(f"peak memory of a fold of {first:,} deltas, MB", peak_mb, 30, 1)
    yield Figure(
        f"peak memory of a fold of {last:,} deltas, MB",
        fold_peak_mb(last),
        round(1.1 * peak_mb, 1),
        1,
    )


PARTS = (memory,)
