"""The one interface of a judge: it looks at each write, at each answer, and at the end.

Several judges may look at one stage; each knows what it promises, and of the answers those that
are its own.
"""

from collections.abc import Iterable
from typing import Any

from ledger.core.errors import LedgerError
from ledger.core.requests import Item, Key


class Judge:
    wrong: list[str]
    """What it has found."""

    def at_write(self, region: str, key: Key, item: Item | None) -> None:
        """An item is written, or deleted (None), in a Region, before any replication."""

    def at_answer(self, answer: Any) -> None:
        """A process was told something. Each judge says which types it knows."""

    def at_end(self) -> None:
        """Nothing goes on any more, and no fault is left."""

    def known(self) -> object:
        """What decides its judgement, besides the world: states of a cast differ in it."""
        return self.wrong


def found(judges: Iterable[Judge]) -> list[str]:
    """What is wrong so far."""
    return next((judge.wrong for judge in judges if judge.wrong), [])


def ended(judges: Iterable[Judge]) -> list[str]:
    """What is wrong at the end, up to the first judge that finds something."""
    judges = list(judges)
    if wrong := found(judges):
        return wrong
    for judge in judges:
        try:
            judge.at_end()
        except LedgerError as error:  # with no fault left, nothing may fail
            judge.wrong.append(f"at the end: {type(error).__name__}: {error}")
        if wrong := found(judges):
            return wrong
    return []
