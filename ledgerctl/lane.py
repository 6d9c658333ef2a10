"""What one lane of the deployed service asks of DynamoDB at a steady rate of changes, in closed form.

Rule 1: There is one model of a lane: `ledgerctl cost` and docs/costs.md use it.
Rule 2: Sizes are those of real items (sizes.py), times those of `Settings` and of the service (finding.py). Assumed:

- Changes come at random (Poisson) at their rate, none late; a counter's name has 12 letters.
- The work queue, the functions and replication take no time worth counting.
- A visit that folds cleans first: it deletes what was noted, once `keep_ms` are over, and notes what was folded since.
  Nothing else asks for a clean, so what a lane folded last waits for the next two folds.
"""

import math
from dataclasses import dataclass

from ledger.cost import READ_UNIT_BYTES, TRANSACTIONAL, WRITE_UNIT_BYTES
from ledger.entries import ENTRY
from ledger.settings import Settings
from ledger.values import PACK_SPAN_MS
from ledgerctl import finding
from ledgerctl.bill import Usage
from ledgerctl.finding import LOOK_UNITS, SWEEP_S, SWEEP_UNITS, VERIFY_ONE_IN, Rounds
from ledgerctl.sizes import (
    CHECKPOINT_BYTES,
    DIRECTORY_BYTES,
    NOTE_BYTES,
    SEGMENT_BYTES,
    Range,
    Tail,
    above,
    commit_units,
    listed_units,
    segment_units,
)

PARTITION_WRITE_UNITS, PARTITION_READ_UNITS = 1_000, 3_000
"""Of one partition, a second:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"""


@dataclass(frozen=True, slots=True)
class Load:
    """A lane under a steady rate. Units are of a second; writes in every Region, reads where they are made.

    put_units, delete_units: of its items. commit_units: of commits and clean notes. messages: of the work queue.
    look_units: read units of its looks and of the sweep. visit_units: of visits that fold. fold_s, folded: between two
    folds, and how many deltas each takes. tail: deltas that a read sums, on average. tail_units: their read units, read
    strongly. held: deltas that wait for clean. segment: entries of a segment; 0 when nothing is ever folded.
    """

    rate: float
    items: Tail
    clean: bool
    put_units: float
    delete_units: float
    commit_units: float
    messages: float
    look_units: float
    visit_units: float
    fold_s: float
    folded: float
    tail: float
    tail_units: float
    held: float
    segment: float

    @property
    def write_units(self) -> float:
        return self.put_units + self.delete_units + self.commit_units

    @property
    def a_read(self) -> float:
        """The read units of a strongly consistent read of the lane: the checkpoint, then the tail."""
        return 1 + self.tail_units

    @property
    def usage(self) -> Usage:
        """Of a change, a read, and what a change leaves for good."""
        size, number = (ENTRY.size + SEGMENT_BYTES / self.segment, 1 / self.segment) if self.segment else (0.0, 0.0)
        if not (self.clean and self.segment):
            size, number = size + self._of_a_change[0], number + self._of_a_change[1]
        return Usage(
            write_units=self.write_units / self.rate,
            read_units=self.a_read,
            compaction_read_units=(self.look_units + self.visit_units) / self.rate,
            item_bytes=size,
            items=number,
        )

    @property
    def _of_a_change(self) -> tuple[float, float]:
        return self.items.bytes, 1 / self.items.pack

    @property
    def resident(self) -> tuple[float, float]:
        """(bytes, items) that are in the table beside what changes leave for good, on average."""
        if not self.segment:
            return DIRECTORY_BYTES, 1
        passing = self.tail + self.held if self.clean else 0.0
        size, number = (passing * each for each in self._of_a_change)
        return size + CHECKPOINT_BYTES + NOTE_BYTES + DIRECTORY_BYTES, number + 3


def changes_max(settings: Settings, pack: int = 1) -> int:
    """Changes a second that a lane takes for good, `pack` of them in an item: what is less of what the partition of its
    deltas takes, put and, where they are cleaned, deleted, and that of its segments.
    """
    folded = commit_units((settings.fold_max, settings.fold_max)) / settings.fold_max
    writes = 2 if settings.clean else 1
    return int(PARTITION_WRITE_UNITS / max(writes * Tail(pack).put_units, folded))


def load(rate: float, settings: Settings, *, pack: int = 1, ever_folds: bool = True) -> Load:
    """Of a lane that stores `rate` changes a second, `pack` of them in an item; ever_folds: it has, or will soon have,
    `fold_min` changes.

    Raises ValueError for a rate of 0, and above `changes_max`, which cannot last.
    """
    if not 0 < rate <= changes_max(settings, pack):
        raise ValueError(f"{rate} changes a second")
    return _folding(rate, settings, Tail(pack)) if ever_folds else _unfolded(rate, settings, Tail(pack))


def _unfolded(rate: float, settings: Settings, items: Tail) -> Load:
    """Fewer than `fold_min` changes in all: each is put, and some ring."""
    tail = settings.fold_min / 2
    messages = rate / max(settings.fold_min, items.pack)
    return Load(
        rate=rate,
        items=items,
        clean=settings.clean,
        put_units=rate * items.put_units,
        delete_units=0.0,
        commit_units=0.0,
        messages=messages + 1 / SWEEP_S,
        look_units=messages * LOOK_UNITS + SWEEP_UNITS / SWEEP_S,
        visit_units=0.0,
        fold_s=math.inf,
        folded=0,
        tail=tail,
        tail_units=items.units(tail, tail),
        held=0,
        segment=0,
    )


def _folding(rate: float, settings: Settings, items: Tail) -> Load:
    rounds = finding.rounds(rate, settings.fold_min, items.pack)
    young = rate * settings.allowed_lateness_ms / 1000
    commits, count = _commits(rounds, settings.fold_max)
    keep_s = settings.keep_ms / 1000
    clean_s = rounds.fold_s * math.ceil(keep_s / rounds.fold_s)  # from a note to the fold that deletes
    held_s = (clean_s + rounds.fold_s) / 2 + clean_s if settings.clean else 0.0  # until the note of the round, and one
    segment = rounds.folded / count
    messages = rounds.looks / rounds.fold_s + 1 / SWEEP_S
    verify = (4 + segment_units((segment, segment))) / VERIFY_ONE_IN
    return Load(
        rate=rate,
        items=items,
        clean=settings.clean,
        put_units=items.put_units * rate,
        delete_units=items.put_units * rate if settings.clean else 0.0,
        commit_units=commits / rounds.fold_s + (1 / clean_s if settings.clean else 0.0),
        messages=messages,
        look_units=rounds.looks * LOOK_UNITS / rounds.fold_s + (SWEEP_UNITS + verify) / SWEEP_S,
        visit_units=_visit_units(rate, settings, rounds, items, clean_s, segment),
        fold_s=rounds.fold_s,
        folded=rounds.folded,
        tail=young + rounds.tail,
        tail_units=_tail_units(rounds, items, young),
        held=rate * held_s,
        segment=segment,
    )


def _commits(rounds: Rounds, fold_max: int) -> tuple[float, float]:
    """The write units of a fold, and how many segments it writes, on average."""
    whole, least = divmod(rounds.least, fold_max)
    if rounds.least + rounds.more > fold_max:  # many segments, the last of any size
        whole, rest = divmod(rounds.folded, fold_max)
        last: Range = (max(0.0, rest - rounds.more), min(rest + rounds.more, fold_max))
        return whole * commit_units((fold_max, fold_max)) + commit_units(last), whole + 1
    kilobytes = above((SEGMENT_BYTES + ENTRY.size * least) / WRITE_UNIT_BYTES, ENTRY.size * rounds.more / 1024, 1)
    return commit_units((0, 0)) + TRANSACTIONAL * kilobytes, 1


def _tail_units(rounds: Rounds, items: Tail, young: float) -> float:
    """Read units of a tail, read strongly: the mean over the time between two folds, of 4 KB each begun."""
    units, size = 1.0, READ_UNIT_BYTES / items.bytes
    for step in range(1, 1_000_000):
        over = step * size - young
        if over <= 0:
            share = 1.0
        elif over < rounds.least:
            share = 1 - over / rounds.folded
        else:
            share = rounds.more / rounds.folded * math.exp((rounds.least - over) / rounds.more)
        if share < 1e-6:
            break
        units += share
    return units


def _visit_units(rate: float, settings: Settings, rounds: Rounds, items: Tail, clean_s: float, segment: float) -> float:
    """A second's read units of the visits that fold: begin, the tail, and what clean reads to delete."""
    ahead = rate * min(settings.allowed_lateness_ms, PACK_SPAN_MS) / 1000  # packs may reach below the cutoff
    begin = 1 + segment_units((segment, segment))
    tail = items.units(rounds.folded + ahead, rounds.folded + ahead)
    a_fold = begin + tail + (2 if settings.clean else 0)
    cleans = listed_units(rate * clean_s, segment, items) + len(settings.regions) - 1 if settings.clean else 0.0
    return a_fold / rounds.fold_s + cleans / clean_s
