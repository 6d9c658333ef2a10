"""What a rebuild of a lane would write, found out by the program that writes; and the question before it does.

Rule 1: A table that lets nothing be written answers every write as one that was made.
Rule 2: Where nobody can answer, nothing is done.
"""

from dataclasses import dataclass, field
from typing import Any

import typer

from compactor.rebuild import rebuild as rebuilding
from ledger import items
from ledger.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError
from ledger.requests import AlreadyThere, At, DeleteMany, Get, GetMany, Item, Put, PutMany, Request, Table, Transact
from ledger.requests import key_of as key_of_put
from ledger.values import Checkpoint, Lane
from ledgerctl.call import Call
from ledgerctl.failures import Wrong


@dataclass(slots=True)
class Unwritten:
    """A table that is read and never written; `writes` are the requests that would have been."""

    table: Table
    writes: list[Request] = field(default_factory=list)

    def answer(self, request: Request, /) -> Any:
        match request:
            case Put() | At(_, Put()) | Transact():
                answer: Any = None
            case DeleteMany(deleted):
                answer = (None,) * len(deleted)
            case PutMany(puts):
                there = self.table.answer(GetMany(tuple(map(key_of_put, puts))))
                answer = tuple(None if item is None else AlreadyThere(item) for item in there)
            case _:
                return self.table.answer(request)
        self.writes.append(request)
        return answer


@dataclass(frozen=True, slots=True)
class Plan:
    """A lane: what stands there `now`, what a rebuild `would` do: write, delete, nothing or fail; and `why`."""

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
    """What a rebuild of the lane would do, by doing it without writing. Raises TableError."""
    item: Item | None = call.table.answer(Get(items.checkpoint_key(lane)))
    try:
        there = items.checkpoint_of(lane, item) if item is not None else None
        now = f"version {there.version:,}, {sums(there)}" if there is not None else "no checkpoint"
    except DamagedItem as damage:
        now = f"damaged: {damage.why}"
    table = Unwritten(call.table)
    try:
        checkpoint = call.on_table(rebuilding(lane), table)
    except (GaveUp, LaneDamaged, DamagedItem) as error:
        return Plan(lane, now, "fail", f"it cannot be rebuilt: {error}", error=error)
    if checkpoint is not None:
        return Plan(lane, now, "write", f"its segments give a checkpoint with {sums(checkpoint)}", checkpoint)
    if table.writes:
        return Plan(lane, now, "delete", "it has no segments: this checkpoint is deleted, and its deltas are the tail")
    return Plan(lane, now, "nothing", "its segments give no checkpoint: there are none")


def sums(checkpoint: Checkpoint) -> str:
    return f"total {checkpoint.total:,}, count {checkpoint.count:,}"


def agree(call: Call, warning: str, question: str) -> None:
    """Ask, after a warning. Raises Wrong unless the answer is yes."""
    call.note(warning, "yellow")
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        agreed = False
    if not agreed:
        raise Wrong("NotConfirmed", "Nothing was rebuilt.", "Answer y, or say --yes where nobody can answer.")
