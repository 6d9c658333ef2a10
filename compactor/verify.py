"""The program `verify` recounts a lane from its segments and deltas, and compares that with its
checkpoint.

Rule 1: It writes nothing, and reads at home and strongly.
Rule 2: Begin comes first, so that every segment up to the checkpoint's version can be seen.
Rule 3: The tail comes right after that, in a bounded time, so that nobody can have cleaned a folded
delta.
"""

from dataclasses import dataclass

from compactor.commit import begin
from compactor.gate_audit import audited
from compactor.inspection import error_of
from compactor.listing import Below, changed_by
from compactor.recount import Recount, recount
from ledger.core import tokens
from ledger.core.days import Days
from ledger.core.entries import TOKEN_BYTES
from ledger.core.errors import LaneDamaged, ReadTooSlow
from ledger.core.requests import Instant, Now, Program, in_time
from ledger.core.values import Checkpoint, Lane
from ledger.gate.gates import Gates
from ledger.lane.tail import TailSum


@dataclass(frozen=True, slots=True)
class LaneCheck:
    """A recounted lane. `strays` wait for the next settle; they are in `value` and are no
    difference.

    `value` is None when the lane is too damaged to say.
    """

    lane: Lane
    value: int | None
    pending: int
    strays: int
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """A recounted counter. `value`: the sum of every change in its lanes, strays included; None if
    a lane is too damaged to say.

    `unread`: lanes of the counter that hold something, and that no reader of the settings looks at.
    """

    counter: str
    lanes: tuple[LaneCheck, ...]
    unread: tuple[Lane, ...] = ()

    @property
    def value(self) -> int | None:
        values = [lane.value for lane in self.lanes if lane.value is not None]
        return sum(values) if len(values) == len(self.lanes) else None

    @property
    def strays(self) -> int:
        return sum(lane.strays for lane in self.lanes)

    @property
    def differences(self) -> tuple[str, ...]:
        found = [difference for lane in self.lanes for difference in lane.differences]
        return (*found, *(str(error_of(lane)) for lane in self.unread))

    @property
    def ok(self) -> bool:
        return not self.differences


def verify(lane: Lane, *, read_time_max_ms: int = 60_000) -> Program[LaneCheck]:
    """Recount one lane.

    Raises GaveUp (a commit is landing: call again), ReadTooSlow, DamagedItem, TableErrors.
    """
    try:
        began: Instant = yield Now()
        checkpoint = yield from begin(lane)
        tail = TailSum(lane, checkpoint.watermark if checkpoint else None, consistent=True)
        twice = yield from _read(tail)
        ended: Instant = yield Now()
        if not in_time(began, ended, read_time_max_ms):
            slow = (
                f"{lane}: reading the tail took longer than {read_time_max_ms} ms. Nothing "
                "was written."
            )
            raise ReadTooSlow(f"{slow} Let the compactor run, then verify again.")
        sums = (
            (yield from recount(lane, versions_upto=checkpoint.version))
            if checkpoint
            else Recount()
        )
    except LaneDamaged as damage:
        return LaneCheck(lane, None, 0, 0, (str(damage),))
    differences = [*(_differences(checkpoint, sums) if checkpoint else []), *twice]
    strays, stray_sum, conflicts = (
        (yield from _below(lane, checkpoint)) if checkpoint else (0, 0, [])
    )
    differences += conflicts
    return LaneCheck(
        lane, sums.total + stray_sum + tail.total, tail.count, strays, tuple(differences)
    )


def _read(tail: TailSum) -> Program[list[str]]:
    """Read all of a tail; a sentence for each token that it has with two changes."""
    counted: set[bytes] = set()
    while tail.more:
        counted.update(entry for entries in (yield from tail.read()) for entry in entries.apart)
    twice = sorted(
        {tokens.from_bytes(entry[:TOKEN_BYTES]) for entry in tail.again if entry not in counted}
    )
    return [
        f"{tail.lane}: the tail has delta {token} with two changes; the first one counts."
        for token in twice
    ]


def _differences(checkpoint: Checkpoint, sums: Recount) -> list[str]:
    compared = [
        ("total", checkpoint.total, sums.total),
        ("count", checkpoint.count, sums.count),
        ("watermark", checkpoint.watermark, sums.watermark),
    ]
    return [
        f"{checkpoint.lane}: the checkpoint's {name} is {held}, its segments give {counted}."
        for name, held, counted in [*compared, *_days_compared(checkpoint.days, sums)]
        if held != counted
    ]


def _days_compared(days: Days | None, sums: Recount) -> list[tuple[str, str, str]]:
    """The first bucket that differs from the segments' sum, in the checkpoint's buckets."""
    if days is None:
        return []
    both = days, Days.of(sums.by_day, days.froms)
    held, counted = (
        {day: f"{number} of {total}" for day, number, total in each.buckets} for each in both
    )
    wrong = sorted(day for day in held.keys() | counted.keys() if held.get(day) != counted.get(day))
    return [
        (f"sum from day {day} on", held.get(day, "none"), counted.get(day, "none"))
        for day in wrong[:1]
    ]


def _below(lane: Lane, checkpoint: Checkpoint) -> Program[tuple[int, int, list[str]]]:
    """The entries at or below the watermark: (strays, their sum, those listed with another
    change).
    """
    strays: dict[str, int] = {}
    conflicts: dict[str, str] = {}
    below = Below(lane, checkpoint.watermark, versions_upto=checkpoint.version)
    while below.more:
        found = yield from below.read()
        for entry in found.not_yet:  # also those that were settled since
            strays.setdefault(tokens.from_bytes(entry[:TOKEN_BYTES]), changed_by(entry))
        listed = {entry[:TOKEN_BYTES]: entry for entry in found.as_listed}
        for entry in {entry for _, held in below.page for entry in held.apart} - found.as_listed:
            if (as_listed := listed.get(entry[:TOKEN_BYTES])) is not None:
                token, changes = (
                    tokens.from_bytes(entry[:TOKEN_BYTES]),
                    (changed_by(entry), changed_by(as_listed)),
                )
                conflicts[token] = (
                    f"{lane}: delta {token} says {changes[0]}, its segment says {changes[1]}."
                )
    return len(strays), sum(strays.values()), list(conflicts.values())


def verify_gates(gates: Gates) -> Program[tuple[LaneCheck, ...]]:
    """Recount a limited counter from all that its gates decided, each lane at its home.

    Raises GaveUp (others kept writing: call again), LimitMismatch, DamagedItem and the TableErrors.
    """
    found = yield from audited(gates)
    return tuple(
        LaneCheck(
            lane,
            gate.value if gate else 0,
            0,
            0,
            tuple(f"{lane}: {difference}." for difference in wrong),
        )
        for lane, (gate, wrong) in sorted(found.items())
    )
