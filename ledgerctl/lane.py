"""What one lane of the deployed service asks of DynamoDB at a steady rate of changes, in closed form.

Rule 1: There is one model of a lane: `ledgerctl cost` and docs/costs.md use it, and a test holds it within 5 % of what
the shipped programs are charged.
Rule 2: Sizes are those of real items (sizes.py), times those of `Settings` and of the service (visits.py). Assumed:

- Changes come at random (Poisson) at their rate, none late; a counter's name has 12 letters; `clean` is on.
- Plan runs every 60 s; the work queue, the functions and replication take no time worth counting.
- A visit cleans, folds, settles. It folds when `fold_min` changes are old enough. The next visit notes what was folded;
  while a note is being kept, the one that deletes does. A note is served by the first visit after `keep_ms`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ledger.entries import ENTRY
from ledger.settings import Settings
from ledger.values import PACK_SPAN_MS
from ledgerctl.bill import Usage
from ledgerctl.sizes import (
    CHECKPOINT_BYTES,
    MARK_BYTES,
    NOTE_BYTES,
    SEGMENT_BYTES,
    Range,
    Tail,
    commit_units,
    listed_units,
    segment_units,
    segments_of,
)
from ledgerctl.visits import VISIT_S, pending, touches, visited, visits_until

PARTITION_WRITE_UNITS, PARTITION_READ_UNITS = 1_000, 3_000
"""Of one partition, a second:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"""

WRITES = 2
"""Of each item in the partition of a lane's deltas: its put, and its delete."""

UNITS_OF_VISIT = 2
"""Write units of a visit's mark: its claim, and what the visit leaves."""


@dataclass(frozen=True, slots=True)
class Load:
    """A lane under a steady rate. Units are of a second; writes in every Region, reads where they are made.

    change_units: of puts, deletes, commits and clean notes. mark_units: of touches, claims, and what visits leave.
    visit_units: read units of the visits. visits: of a second. marked: the share of time in which the lane has a mark.
    fold_s, folded: between two folds, and how many deltas each takes. tail: deltas that a read sums, on average.
    tail_units: their read units, read strongly. held: deltas that wait for clean. segment: entries of a segment;
    0 when nothing is ever folded.
    """

    rate: float
    items: Tail
    change_units: float
    mark_units: float
    visit_units: float
    visits: float
    marked: float
    fold_s: float
    folded: float
    tail: float
    tail_units: float
    held: float
    segment: float

    @property
    def write_units(self) -> float:
        return self.change_units + self.mark_units

    @property
    def a_read(self) -> float:
        """The read units of a strongly consistent read of the lane: the checkpoint, then the tail."""
        return 1 + self.tail_units

    @property
    def usage(self) -> Usage:
        """Of a change, a read, and what a change leaves for good."""
        each = (ENTRY.size + SEGMENT_BYTES / self.segment, 1 / self.segment) if self.segment else self._of_a_change
        return Usage(
            write_units=self.write_units / self.rate,
            read_units=self.a_read,
            compaction_read_units=self.visit_units / self.rate,
            item_bytes=each[0],
            items=each[1],
        )

    @property
    def _of_a_change(self) -> tuple[float, float]:
        return self.items.bytes, 1 / self.items.pack

    @property
    def resident(self) -> tuple[float, float]:
        """(bytes, items) that are in the table beside what changes leave for good, on average."""
        if not self.segment:
            return MARK_BYTES * self.marked, self.marked
        size, number = ((self.tail + self.held) * each for each in self._of_a_change)
        return size + CHECKPOINT_BYTES + NOTE_BYTES + MARK_BYTES * self.marked, number + 2 + self.marked


def changes_max(settings: Settings, pack: int = 1) -> int:
    """Changes a second that a lane takes for good, `pack` of them in an item: what is less of what the partition of its
    deltas takes, put and deleted, and that of its segments.
    """
    folded = commit_units((settings.fold_max, settings.fold_max)) / settings.fold_max
    return int(PARTITION_WRITE_UNITS / max(WRITES * Tail(pack).put_units, folded))


def load(rate: float, settings: Settings, *, pack: int = 1, ever_folds: bool = True) -> Load:
    """Of a lane that stores `rate` changes a second, `pack` of them in an item; ever_folds: it has, or will soon have,
    `fold_min` changes.

    Raises ValueError for a rate of 0, and above `changes_max`, which cannot last.
    """
    if not 0 < rate <= changes_max(settings, pack):
        raise ValueError(f"{rate} changes a second")
    return _folding(rate, settings, Tail(pack)) if ever_folds else _unfolded(rate, settings, Tail(pack))


def _unfolded(rate: float, settings: Settings, items: Tail) -> Load:
    """Fewer than `fold_min` changes in all: each is put, and looked at."""
    due = visited(rate / items.pack, settings.allowed_lateness_ms / 1000)
    visits, tail = due / VISIT_S, settings.fold_min / 2
    tail_units = items.units(tail, tail)
    # The mark; clean's checkpoint; fold's checkpoint, segments and deltas; left's checkpoint and deltas.
    a_visit = 5 + 2 * tail_units
    return Load(
        rate=rate,
        items=items,
        change_units=rate * items.put_units,
        mark_units=touches(rate / items.pack) + UNITS_OF_VISIT * visits,
        visit_units=visits * a_visit,
        visits=visits,
        marked=pending(due),
        fold_s=math.inf,
        folded=0,
        tail=tail,
        tail_units=tail_units,
        held=0,
        segment=0,
    )


def _folding(rate: float, settings: Settings, items: Tail) -> Load:
    rounds = _rounds(rate, settings, items.pack)
    lateness_s = settings.allowed_lateness_ms / 1000
    segments = segments_of(rounds.folded, rate * VISIT_S, settings.fold_max, items.pack)
    low, high = rate * lateness_s, rate * (lateness_s + rounds.fold_s)
    tail = (low + high) / 2 - (1 - VISIT_S / rounds.fold_s) / 2  # one by one up to `fold_min`, and not evenly
    commits = sum(map(commit_units, segments)) / rounds.fold_s
    seen = min(settings.fold_min * items.pack, tail)  # of the tail, by a look at what is left
    ahead = rate * min(lateness_s, PACK_SPAN_MS / 1000)  # above the cutoff, where packs may reach below it
    return Load(
        rate=rate,
        items=items,
        change_units=WRITES * items.put_units * rate + commits + 1 / rounds.clean_s,
        mark_units=touches(rate / items.pack) + UNITS_OF_VISIT * rounds.visits,
        visit_units=_visit_units(rounds, segments, items, seen, ahead) + (len(settings.regions) - 1) / rounds.clean_s,
        visits=rounds.visits,
        marked=1 - (1 - pending(rounds.due)) * (1 - min(1.0, rounds.held_s / rounds.fold_s)),
        fold_s=rounds.fold_s,
        folded=rounds.folded,
        tail=tail,
        tail_units=items.units(low, high),
        held=rate * rounds.held_s,
        segment=rounds.folded / len(segments),
    )


@dataclass(frozen=True, slots=True)
class _Rounds:
    """When things come round. due: the share of minutes with a visit that changes asked for. visits: all of a second.

    keep_s: from a clean note to the visit that deletes. clean_s: between two notes. held_s: from a fold to its deletes.
    holding: a second's visits of a lane that has deltas to clean.
    """

    rate: float
    due: float
    fold_s: float
    keep_s: float
    held_s: float
    visits: float
    holding: float

    @property
    def folded(self) -> float:
        return self.rate * self.fold_s

    @property
    def is_steady(self) -> bool:
        """Whether there is a fold in each round of clean, so that a note is always being kept."""
        return self.fold_s <= self.keep_s

    @property
    def clean_s(self) -> float:
        return max(self.fold_s, self.keep_s)


def _rounds(rate: float, settings: Settings, pack: int) -> _Rounds:
    due = visited(rate / pack, settings.allowed_lateness_ms / 1000)
    missed, of_changes = 1 - due, due / VISIT_S  # clean asks for visits of its own where changes ask for none
    fold_s = VISIT_S * visits_until(math.ceil(settings.fold_min / pack), rate / pack * VISIT_S)
    keep_s = VISIT_S * (settings.keep_ms / 1000 // VISIT_S + 1)
    if fold_s <= keep_s:
        held_s = (keep_s + VISIT_S) / 2 + keep_s  # until the note of the round, and a round
        visits = holding = of_changes + missed / keep_s
    else:
        unseen = missed ** (keep_s / VISIT_S)  # no change asks for a visit that would note: one after `keep_ms` does
        held_s = VISIT_S * (1 - unseen) / due + keep_s
        visits = of_changes + (missed + unseen) / fold_s
        holding = min(visits, of_changes * held_s / fold_s + (missed + unseen) / fold_s)
    return _Rounds(rate, due, fold_s, keep_s, held_s, visits, holding)


def _visit_units(rounds: _Rounds, segments: Sequence[Range], items: Tail, seen: float, ahead: float) -> float:
    """A second's read units of the visits. A look for deltas that finds none is half a unit."""
    entries = rounds.folded / len(segments)
    begins = [1 + segment_units(segment) for segment in segments]
    # The mark; clean's checkpoint and note; fold's begin; left's checkpoint, its look at the tail and at what is below.
    each = 3 + begins[-1] + 2 + items.units(seen, seen)
    low, high = (sum(bounds) + ahead for bounds in zip(*segments, strict=True))
    fold = 1 + sum(begins) + items.units(low, high)
    too_short = items.units(ahead, rounds.folded + ahead)
    held = rounds.rate * rounds.held_s if rounds.is_steady else rounds.folded
    nothing = items.units(ahead, ahead) / 2
    settles = rounds.holding * (1 + listed_units(held, entries, items, ahead))
    settles += (rounds.visits - rounds.holding) * nothing
    if rounds.is_steady:
        cleans = listed_units(2 * rounds.rate * rounds.keep_s, entries, items) / rounds.keep_s
    else:  # while the note is older than `keep_ms`, every visit looks for what it lists
        kept = rounds.due / VISIT_S * rounds.keep_s / rounds.fold_s
        idle = max(0.0, rounds.visits - kept - 2 / rounds.fold_s)
        cleans = 2 * listed_units(rounds.folded, entries, items) / rounds.fold_s + idle * 0.5
    others = max(0.0, rounds.visits - 1 / rounds.fold_s)  # visits that do not fold
    return rounds.visits * each + fold / rounds.fold_s + others * too_short + settles + cleans
