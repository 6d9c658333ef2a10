"""What a command would write, found out by the program that writes; and the question before it does.

Rule 1: A table that lets nothing be written answers every write as one that was made.
Rule 2: Where nobody can answer, nothing is done.
"""

from dataclasses import dataclass, field
from typing import Any

import typer

from ledger.requests import AlreadyThere, At, DeleteMany, GetMany, Put, PutMany, Request, Table, Transact, key_of
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
                self.writes.append(request)
                return None
            case DeleteMany(deleted):
                self.writes.append(request)
                return (None,) * len(deleted)
            case PutMany(puts):
                self.writes.append(request)
                there = self.table.answer(GetMany(tuple(map(key_of, puts))))
                return tuple(None if item is None else AlreadyThere(item) for item in there)
            case _:
                return self.table.answer(request)


def agree(call: Call, warning: str, question: str) -> None:
    """Ask, after a warning. Raises Wrong unless the answer is yes."""
    call.note(warning, "yellow")
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        agreed = False
    if not agreed:
        raise Wrong("NotConfirmed", "Nothing was rebuilt.", "Answer y, or say --yes where nobody can answer.")
