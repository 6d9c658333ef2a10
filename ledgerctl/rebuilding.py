"""Rebuilds of lanes and gates for `rebuild` and `restore`, and what a rebuild would write.

Rule 1: A plan comes from the program that writes, on a table that takes no write and answers every
one as if it did.
Rule 2: A failure for one counter stops no other.
Rule 3: A rebuild always begins at the beginning, because nobody knows what happened to the table
since a run was cut off.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compactor.gate_rebuild import rebuild as rebuilding_gates
from compactor.rebuild import rebuild as rebuilding
from ledger.core import items
from ledger.core.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError
from ledger.core.requests import (
    AlreadyThere,
    At,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Put,
    PutMany,
    Request,
    Table,
    Transact,
)
from ledger.core.requests import key_of as key_of_put
from ledger.core.values import Checkpoint, Lane
from ledger.gate.gates import Gates
from ledgerctl.call import Call
from ledgerctl.lanes import each_of


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A table for reads alone: it answers a write as if it was made."""

    table: Table

    def answer(self, request: Request, /) -> Any:
        match request:
            case Put() | At(_, Put()) | Transact():
                return None
            case DeleteMany(deleted):
                return (None,) * len(deleted)
            case PutMany(puts):
                there = self.table.answer(GetMany(tuple(map(key_of_put, puts))))
                return tuple(None if item is None else AlreadyThere(item) for item in there)
        return self.table.answer(request)


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for a lane.

    now: what stands there. would: what a rebuild would do: write, delete, nothing or fail.
    """

    lane: Lane
    now: str
    would: str
    why: str
    checkpoint: Checkpoint | None = None
    error: LedgerError | None = None

    def fields(self) -> dict[str, object]:
        fields: dict[str, object] = {"lane": str(self.lane), "now": self.now, "would": self.would}
        if self.checkpoint is not None:
            fields |= {"total": self.checkpoint.total, "count": self.checkpoint.count}
        return fields if self.error is None else fields | {"error": str(self.error)}


def plan(call: Call, lane: Lane) -> Plan:
    """What a rebuild of the lane would do. Raises TableError."""
    item: Item | None = call.table.answer(Get(items.checkpoint_key(lane)))
    try:
        there = items.checkpoint_of(lane, item) if item is not None else None
        now = f"version {there.version:,}, {_sums(there)}" if there is not None else "no checkpoint"
    except DamagedItem as damage:
        now = f"damaged: {damage.why}"
    try:
        checkpoint = call.on_table(rebuilding(lane), Unwritten(call.table))
    except (GaveUp, LaneDamaged, DamagedItem) as error:
        return Plan(lane, now, "fail", f"it cannot be rebuilt: {error}", error=error)
    if checkpoint is not None:
        return Plan(
            lane,
            now,
            "write",
            f"its segments give a checkpoint with {_sums(checkpoint)}",
            checkpoint,
        )
    if item is not None:
        return Plan(
            lane,
            now,
            "delete",
            "it has no segments: a rebuild deletes this checkpoint, and keeps its deltas",
        )
    return Plan(lane, now, "nothing", "it has no segments, and so no checkpoint")


def _sums(checkpoint: Checkpoint) -> str:
    return f"total {checkpoint.total:,}, count {checkpoint.count:,}"


def rebuild_all(
    call: Call, lanes: Iterable[Lane]
) -> tuple[dict[str, list[str]], dict[str, LedgerError]]:
    """Rebuild those of `lanes` that are of --region, and the gates of limited counters. Returns by
    counter what its rebuild reports as lost, in sentences; and the error of each that failed.
    Raises the error if all fail."""
    lanes_of: defaultdict[str, set[Lane]] = defaultdict(set)
    for lane in lanes:
        if lane.region == call.settings.region or call.settings.limit_of(lane.counter) is not None:
            lanes_of[lane.counter].add(lane)
    outcomes = each_of(
        call, "counters", sorted(lanes_of), lambda name: _rebuilt(call, name, lanes_of[name])
    )
    done = {name: outcome for name, outcome in outcomes if not isinstance(outcome, LedgerError)}
    return done, {name: outcome for name, outcome in outcomes if isinstance(outcome, LedgerError)}


def _rebuilt(call: Call, name: str, lanes: set[Lane]) -> list[str]:
    """Rebuild a counter's lanes of this Region, or its gates.

    Returns what is lost. Raises LedgerError.
    """
    gates = Gates.of(call.settings, name)
    if gates is not None:
        return [lost for gate in call.on_table(rebuilding_gates(gates)) for lost in gate.told]
    failed: list[LedgerError] = []
    for lane in sorted({*lanes, *call.settings.lanes_of(name, call.settings.region)}):
        try:
            call.run(rebuilding(call.settings.known(lane)))
        except LedgerError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    return []
