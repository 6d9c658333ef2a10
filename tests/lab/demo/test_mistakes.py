"""Mistakes planted in the library while the demo runs it on the embedded engine: it must say why and exit with 1."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import compactor.commit
import compactor.fold
import compactor.visit
import ledger.calls
from compactor.report import Tally
from ledger import items, tokens
from ledger.entries import Entries
from ledger.lane.add import Outcome, add_packed
from ledger.requests import DeleteMany, Program
from ledger.values import Delta, Lane, Receipt
from reader import Balance, Reader
from tests.lab.demo.small import small_demo


def settle_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def settle(lane: Lane, tally: Tally, watermark: str, **_: Any) -> Program[None]:
        yield from ()

    monkeypatch.setattr(compactor.visit, "settle", settle)


def delete_at_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = compactor.commit.commit

    def commit_and_delete(lane: Lane, checkpoint: Any, entries: Entries, **given: Any) -> Program[None]:
        yield from commit(lane, checkpoint, entries, **given)
        yield DeleteMany(tuple(items.delta_item(Delta(lane, tokens.from_bytes(t), change)) for t, change in entries))

    monkeypatch.setattr(compactor.fold, "commit", commit_and_delete)


def answer_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other read of one counter while the run goes on, not those at its end, which are of many counters."""
    read, made = Reader.read, itertools.count()

    def read_wrong(self: Reader, counter: str, max_age: float = 0) -> Balance:
        balance = read(self, counter, max_age)
        return replace(balance, value=0, count=0) if next(made) % 2 else balance

    monkeypatch.setattr(Reader, "read", read_wrong)


def accept_what_is_not_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first change of each batch of a queue."""

    def add_all_but_one(deltas: list[Delta]) -> Program[list[Outcome]]:
        return [Receipt("accepted", deltas[0]), *(yield from add_packed(deltas[1:]))]

    monkeypatch.setattr(ledger.calls, "add_packed", add_all_but_one)


LACKED = "- reads of ours that lacked a change their Region had acknowledged"
WRONG = "- values of ours that are wrong at the end"
Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    ("plants", "reasons"),  # two mistakes in one run of the demo, which takes a minute
    [
        ((settle_nothing, delete_at_fold), [WRONG, "- no stray was settled", LACKED]),
        ((accept_what_is_not_put, answer_nought), [WRONG, LACKED]),
    ],
)
def test_mistakes_in_the_library_end_the_demo_with_1_and_the_reasons(
    monkeypatch: pytest.MonkeyPatch, plants: tuple[Plant, ...], reasons: list[str]
) -> None:
    for plant in plants:
        plant(monkeypatch)
    result, _ = small_demo(monkeypatch)
    assert [reason for reason in reasons if reason not in result.output] == [], result.output
    assert result.exit_code == 1
    assert "Every number of ours is right" not in result.output
