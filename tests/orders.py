"""Programs that stop wherever a process may crash."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ledger.lane.tail import through
from ledger.requests import DeleteMany, Now, Program, Put, Request, Result, Transact, refusals
from tests.world import Region

Process = Generator[str, None, Result]


def steps(program: Program[Result], table: Region) -> Process[Result]:
    """A program that stops before each request; a transaction lands, and deletes happen, one item at a time."""

    def step(request: Request) -> Process[Any]:
        if not isinstance(request, Now):
            yield "before a request"
        return (yield from _item_by_item(request, table))

    return through(program, step)


def _item_by_item(request: Request, table: Region) -> Process[Any]:
    match request:
        case Now():
            return table.now()
        case Transact():
            decided = refusals([(write, table.items.get(write.key)) for write in request.writes])
            table.landing += [write.item for write in request.writes if decided is None and isinstance(write, Put)]
            while table.landing:
                table.store([table.landing.pop(0)])
                yield "landed"
            return decided
        case DeleteMany(deleted):
            answers: list[Any] = []
            for item in deleted:
                answers += table.answer(DeleteMany((item,)))
                yield "deleted"
            return tuple(answers)
        case _:
            return table.answer(request)
