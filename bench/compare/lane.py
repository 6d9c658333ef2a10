"""What one of our lanes asks of DynamoDB when that many changes a second reach it, in closed form.

Rules: nothing here is measured; sizes are those of real items, units by bench/units.py, times those of `Settings`; what
is assumed beyond that stands in bench/compare/partitions.py, once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.units import READ_UNIT_BYTES, item_bytes, write_units
from ledger import items
from ledger.settings import Settings
from ledger.values import ENTRY, Checkpoint, Delta, Lane, Segment

VISIT_S = 60
"""Between two visits of a lane that has something to do."""

VISIT_MAX_S = 120
"""A visit ends here, whatever is left; the time-out of the function `compact`."""

FOLD_DELTAS_PER_S = 20_000
"""What one core folds; a goal of the design."""

HOT_UNITS = 2
"""A change's write units in the partition of its lane's deltas: its put, and its delete."""

_LANE, _TOKEN = Lane("eu-west-1", 0, "stock:85123A"), "015JGGKGE064BG4X58772SZHBM"
DELTA_BYTES = item_bytes(items.delta_item(Delta(_LANE, _TOKEN, -6)))
SEGMENT_BYTES = item_bytes(items.segment_item(Segment(_LANE, _TOKEN, 1, b"")))
CHECKPOINT_BYTES = item_bytes(
    items.checkpoint_item(Checkpoint(_LANE, -6 * 10**9, 10**9, _TOKEN, version=10**6, last=_TOKEN, committed_ms=10**12))
)


@dataclass(frozen=True, slots=True)
class Load:
    """A lane under a steady rate.

    write_units, read_units: a second; writes in every Region, the compactor's reads in the lane's own.
    fold_s: between two folds. tail, tail_most: deltas that a read sums, on average and just before a fold.
    tail_units: the read units of the average tail, read strongly. held: deltas that wait for clean.
    clean_s: how long a clean deletes, with the partition full and some adds throttled; full: the share of all time.
    """

    write_units: float
    read_units: float
    fold_s: float
    tail: float
    tail_most: float
    tail_units: float
    held: float
    clean_s: float
    full: float

    @property
    def a_read(self) -> float:
        """The read units of a strongly consistent read: the checkpoint, then the tail."""
        return _units(CHECKPOINT_BYTES) + self.tail_units


def load(rate: float, settings: Settings, partition_units: float) -> Load:
    """Of a lane that stores `rate` changes a second; more than `partition_units` / HOT_UNITS cannot last."""
    if not 0 < rate <= partition_units / HOT_UNITS:
        raise ValueError(f"{rate} changes a second")
    lateness_s = settings.allowed_lateness_ms / 1000
    fold_s = max(VISIT_S, settings.fold_min / rate)
    folded = rate * fold_s
    clean_every_s = settings.keep_ms / 1000 + fold_s  # the first visit after keep_ms is at most that late
    noted = rate * clean_every_s
    clean_s = noted / (partition_units - rate)
    held = noted * 1.5  # folded on average half a round before the note, deleted a round after it
    tail = rate * (lateness_s + fold_s / 2)
    begins = math.ceil(folded / settings.fold_max) + 1
    last_segment = SEGMENT_BYTES + ENTRY.size * min(folded, settings.fold_max)
    reads_of_fold = begins * (_units(CHECKPOINT_BYTES) + _units(last_segment)) + _units(folded * DELTA_BYTES)
    reads_of_held = _units(held * (DELTA_BYTES + ENTRY.size)) / 2
    return Load(
        write_units=HOT_UNITS * rate + commit_units(folded, settings) / fold_s + 1 / clean_every_s,
        read_units=(reads_of_fold + reads_of_held) / fold_s + (reads_of_held + 2) / clean_every_s,
        fold_s=fold_s,
        tail=tail,
        tail_most=rate * (lateness_s + fold_s + min(clean_s, VISIT_MAX_S)),
        tail_units=_units(tail * DELTA_BYTES),
        held=held,
        clean_s=clean_s,
        full=clean_s / clean_every_s,
    )


def commit_units(deltas: float, settings: Settings) -> float:
    """The write units of the commits that fold that many deltas at once: a checkpoint and a segment each, twice."""
    whole, rest = divmod(deltas, settings.fold_max)
    return whole * _commit(settings.fold_max) + (_commit(rest) if rest else 0)


def fold_per_s(settings: Settings, partition_units: float) -> float:
    """Deltas a second that can be folded at most: by one core, and by the partition of the lane's segments."""
    return min(FOLD_DELTAS_PER_S, partition_units / _commit(settings.fold_max) * settings.fold_max)


def catch_up_s(backlog: float, rate: float, settings: Settings, partition_units: float) -> float:
    """How long a compactor that was away needs until it has folded a tail of `backlog` deltas, while more come."""
    spare = fold_per_s(settings, partition_units) - rate
    return backlog / spare if spare > 0 else math.inf


def _commit(deltas: float) -> int:
    segment = math.ceil(SEGMENT_BYTES + ENTRY.size * deltas)
    return write_units(math.ceil(CHECKPOINT_BYTES), transactional=True) + write_units(segment, transactional=True)


def _units(size: float) -> float:
    """Read units, not rounded up beyond the first, so that what costs more never seems to cost less."""
    return max(1.0, size / READ_UNIT_BYTES)
