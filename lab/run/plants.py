"""Mistakes planted in the library while a run goes on: `--mistake NAME` must end it with 1 and the reason.

Rule 1: a mistake replaces one function, in every process of the run.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import StrEnum
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

_commit, _read, _add_many = compactor.commit.commit, Reader.read, Ledger.add_many
_reads = itertools.count()


def _nothing(*_: Any, **__: Any) -> Program[None]:
    yield from ()


def _commit_and_delete(lane: Lane, checkpoint: Any, entries: Entries, **given: Any) -> Program[Any]:
    checkpoint = yield from _commit(lane, checkpoint, entries, **given)
    yield DeleteMany(tuple(items.delta_item(Delta(lane, tokens.from_bytes(t), change)) for t, change in entries))
    return checkpoint


def _read_nought(self: Reader, counter: str, max_age: float = 0) -> Balance:
    """Every other read of one counter while the run goes on, not those at its end, which are of many counters."""
    balance = _read(self, counter, max_age)
    return replace(balance, value=0, count=0) if next(_reads) % 2 else balance


def _add_all_but_one(self: Ledger, changes: Iterable[Change], *, pack: bool = False) -> list[Receipt | LedgerError]:
    """The first change of each pack is acknowledged, and that is all."""
    first, *others = changes
    if not pack:
        return _add_many(self, [first, *others])
    key, at = first.idempotency_key, first.at
    delta = self.prepare(first.counter, first.change, idempotency_key=key, at=at, region=first.region)
    return [Receipt("accepted", delta), *_add_many(self, others, pack=True)]


class Mistake(StrEnum):
    settle_nothing = "settle nothing"
    delete_at_fold = "delete at fold"
    answer_nought = "answer nought"
    accept_what_is_not_put = "accept what is not put"


REPLACED: dict[Mistake, tuple[object, str, Callable[..., object]]] = {
    Mistake.settle_nothing: (compactor.visit, "settle", _nothing),
    Mistake.delete_at_fold: (compactor.fold, "commit", _commit_and_delete),
    Mistake.answer_nought: (Reader, "read", _read_nought),
    Mistake.accept_what_is_not_put: (Ledger, "add_many", _add_all_but_one),
}


def plant(mistake: Mistake | None) -> None:
    """Plants it, if one is named."""
    if mistake:
        setattr(*REPLACED[mistake])
