"""Mistakes planted in the library while a run goes on: `--mistake NAME` must end it with 1 and the reason.

Rule 1: a mistake replaces one function, in every process of the run.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import compactor.commit
import compactor.fold
import compactor.visit
from ledger import Change, Ledger, Receipt, items, tokens
from ledger.entries import Entries
from ledger.errors import LedgerError
from ledger.requests import DeleteMany, Program
from ledger.values import Delta, Lane
from reader import Balance, Reader


def _settle_nothing() -> None:
    def settle(*_: Any, **__: Any) -> Program[None]:
        yield from ()

    setattr(compactor.visit, "settle", settle)


def _delete_at_fold() -> None:
    commit = compactor.commit.commit

    def commit_and_delete(lane: Lane, checkpoint: Any, entries: Entries, **given: Any) -> Program[None]:
        yield from commit(lane, checkpoint, entries, **given)
        yield DeleteMany(tuple(items.delta_item(Delta(lane, tokens.from_bytes(t), change)) for t, change in entries))

    setattr(compactor.fold, "commit", commit_and_delete)


def _answer_nought() -> None:
    """Every other read of one counter while the run goes on, not those at its end, which are of many counters."""
    read, made = Reader.read, itertools.count()

    def read_wrong(self: Reader, counter: str, max_age: float = 0) -> Balance:
        balance = read(self, counter, max_age)
        return replace(balance, value=0, count=0) if next(made) % 2 else balance

    Reader.read = read_wrong  # type: ignore[assignment,method-assign]


def _accept_what_is_not_put() -> None:
    """The first change of each pack."""
    add_many = Ledger.add_many

    def add_all_but_one(self: Ledger, changes: Iterable[Change], *, pack: bool = False) -> list[Receipt | LedgerError]:
        changes = list(changes)
        if not pack:
            return add_many(self, changes)
        first = changes[0]
        delta = self.prepare(
            first.counter, first.change, idempotency_key=first.idempotency_key, at=first.at, region=first.region
        )
        return [Receipt("accepted", delta), *add_many(self, changes[1:], pack=True)]

    Ledger.add_many = add_all_but_one  # type: ignore[method-assign]


MISTAKES: dict[str, Callable[[], None]] = {
    "settle nothing": _settle_nothing,
    "delete at fold": _delete_at_fold,
    "answer nought": _answer_nought,
    "accept what is not put": _accept_what_is_not_put,
}


def plant(mistake: str) -> None:
    """Plants one of MISTAKES, if one is named."""
    if mistake:
        MISTAKES[mistake]()
