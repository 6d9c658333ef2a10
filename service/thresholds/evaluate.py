"""The program `evaluate`: compare a counter's value with its thresholds, keep each crossing, and
publish it.

Rule 1: `evaluate` publishes a crossing that was kept and not published before anything else, so
there is one at most,
and no crash loses one: the next evaluation publishes it, under the same id.
Rule 2: `evaluate` reads the value after the crossings, strongly, in the one Region that publishes
them. What a strong read of a Region has seen of a lane, each later one sees too (but for a stray,
which leaves the value until it is settled). So who keeps a crossing has read later than who kept
the one before it, and an older view never follows a newer one.
Rule 5: A value may change between its read and the write of the crossing. So the item of a crossing
requests an evaluation, too (service/ring).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ledger.core.checks import to_ms
from ledger.core.errors import GaveUp, LedgerError
from ledger.core.limit import OUT
from ledger.core.requests import GetMany, Item
from ledger.core.settings import Settings
from reader.crossed import measure
from service.thresholds import crossings
from service.thresholds.crossings import Crossing
from service.thresholds.event_bus import Evaluated, Publish

TRIES_MAX = 10
"""How often `evaluate` begins anew where others keep crossings of the same thresholds."""


def evaluate(counter: str, settings: Settings, done: Evaluated) -> Generator[Any, Any, None]:
    """Evaluate the thresholds of a counter that this Region publishes: a read of the crossings, and
    one of the value.

    Raises GaveUp, DamagedItem, the errors of a read of the value, the TableErrors and the errors of
    Publish: the same call again goes on.
    """
    thresholds = settings.told_here(counter)
    if not thresholds:
        return
    region = settings.region
    keys = tuple(
        crossings.crossing_key(region, counter, threshold.name) for threshold in thresholds
    )
    for _ in range(TRIES_MAX):
        found: tuple[Item | None, ...] = yield GetMany(keys)
        kept = [
            None if item is None else crossings.crossing_of(region, counter, key.sk, item)
            for key, item in zip(keys, found, strict=True)
        ]
        for crossing in kept:
            if crossing is not None and not crossing.is_told:
                yield from _publish(crossing, settings.table, done)
        seen = yield from measure(counter, thresholds, settings)
        # Rule 4: the limit of a threshold is the one that is set when the value is read. Whoever
        # sets it anew writes a gate, which requests an evaluation.
        overtaken = False
        for threshold, before in zip(seen.thresholds, kept, strict=True):
            if threshold is None or threshold.side_of(seen.value) == (
                before.side if before is not None else OUT
            ):
                continue
            crossing = Crossing.after(
                before, region, counter, threshold, seen.value, to_ms(seen.as_of)
            )
            # Rule 3: `evaluate` keeps a crossing IF the last one is as it saw it, publishes it,
            # then notes it as published. Between any two of these steps it may crash, be repeated,
            # or arrive long after: the item decides.
            if (yield crossings.cross(before, crossing, settings.retires_s(counter))) is None:
                yield from _publish(crossing, settings.table, done)
            else:
                overtaken = True
        if not overtaken:
            return
    why = (
        f"{counter}: others kept crossings of its thresholds {TRIES_MAX} times in a row. Nothing "
        "was published twice."
    )
    raise GaveUp(f"{why} The next evaluation goes on.")


def _publish(crossing: Crossing, table: str, done: Evaluated) -> Generator[Any, Any, None]:
    try:
        yield Publish(crossing, table)
    except LedgerError:
        done.unconfirmed += 1
        raise
    done.published += 1
    yield crossings.note_told(crossing)
