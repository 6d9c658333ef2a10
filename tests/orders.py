"""Programs one request at a time, in every order: what a test of two processes at once needs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from ledger.errors import LedgerError
from ledger.lane.tail import through
from ledger.requests import DeleteMany, Now, Program, Request, Result, Transact
from tests.world import Region

Process = Generator[object, None, Result]


def steps(
    program: Program[Result], table: Region, *, checkpoint_first: bool = True, time_goes: bool = False
) -> Process[Result]:
    """A program that stops before each request; a transaction lands, and deletes happen, one item at a time.

    Where `time_goes` in the same test, it stops before it asks for the time too.
    It yields what it was told since its last stop: a program that was told the same is in the same state.
    """
    told: list[object] = []

    def step(request: Request) -> Process[Any]:
        if time_goes or not isinstance(request, Now):
            yield hash(repr(told))
            told.clear()
        try:
            told.append((yield from _item_by_item(request, table, checkpoint_first)))
        except LedgerError as failure:
            told.append(failure)
            raise
        return told[-1]

    return through(program, step)


def _item_by_item(request: Request, table: Region, checkpoint_first: bool) -> Process[Any]:
    match request:
        case Now():
            return table.now()
        case Transact():
            decided = table.decide(request, checkpoint_first)
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


Scene = tuple[Sequence[Region], Sequence[Iterator[object]], Callable[[], None]]


def every_order(make: Callable[[], Scene]) -> int:
    """Take the steps of some processes in every order, and `check` the world in every state that can be reached.

    make() returns Regions, processes, and a check, which may wreck its world: every order starts from a new one. That
    processes stop for ever is such a state too, so a check that compacts and reads is a test of every crash.
    Returns the number of states.
    """
    seen: set[object] = set()
    orders: list[tuple[int, ...]] = [()]
    while orders:
        order = orders.pop()
        regions, processes, check = make()
        told: list[tuple[object, ...]] = [() for _ in processes]
        try:
            for i in order:
                told[i] += (next(processes[i], StopIteration),)
            world = tuple(_state(region) for region in regions)
            state = (world, tuple(told))
            if state not in seen:
                orders += [(*order, i) for i, answers in enumerate(told) if StopIteration not in answers]
            if not seen.issuperset((world, state)):
                check()
            seen |= {world, state}
        except Exception as failure:
            failure.add_note(f"in the order {order}; asked: {[region.asked for region in regions]}")
            raise
    return len(seen)


def _state(region: Region) -> object:
    return region.now_ms, repr(region.landing), tuple(sorted((key, repr(item)) for key, item in region.items.items()))
