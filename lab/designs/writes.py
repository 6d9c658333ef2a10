"""What the approaches ask of a table beyond ledger.requests: conditional updates, deletes and transactions of them.

Rules: requests are frozen, and say all that their answer depends on; each knows its arguments for boto3 and its effect
on an item, for the simulator. No two actions of an update name one attribute.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from lab.designs.actions import Action
from lab.designs.attributes import Names, keyed
from lab.designs.conditions import Condition
from ledger.errors import TableError
from ledger.items import key_of
from ledger.requests import Item, Key, Request
from ledger.units import item_bytes

ITEM_BYTES_MAX = 400 * 1024
DOUBLINGS_MAX = 5
"""No pause is longer than 32 times the first: 1.6 seconds."""


class ItemTooLarge(TableError):
    """The item would have more than 400 KB. Nothing was written, and no retry helps."""


Answer = Item | None
"""Of one write: None when written; else the item that was there ({}: none), and nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    condition: Condition | None = None
    table: str = ""
    """Which of the approach's tables; "" is the one that its counters are in."""

    def holds(self, there: Item | None) -> bool:
        return self.condition is None or self.condition.holds(there or {})

    def _condition(self, names: Names) -> dict[str, Any]:
        condition = {} if self.condition is None else {"ConditionExpression": self.condition.expression(names)}
        return condition | names.arguments()


@dataclass(frozen=True, slots=True)
class UpdateItem(_Write):
    kind: ClassVar[str] = "Update"
    key: Key
    actions: Sequence[Action]

    def arguments(self) -> dict[str, Any]:
        names = Names()
        clauses: dict[str, list[str]] = {}
        for action in self.actions:
            clauses.setdefault(action.clause, []).append(action.expression(names))
        expression = " ".join(f"{clause} {', '.join(parts)}" for clause, parts in clauses.items())
        return {"Key": keyed(self.key), "UpdateExpression": expression, **self._condition(names)}

    def becomes(self, there: Item | None) -> Item:
        before = there or keyed(self.key)
        after = {action.name: action.after(before.get(action.name)) for action in self.actions}
        return _fitting({name: value for name, value in {**before, **after}.items() if value is not None})


@dataclass(frozen=True, slots=True)
class PutItem(_Write):
    kind: ClassVar[str] = "Put"
    item: Item

    @property
    def key(self) -> Key:
        return key_of(self.item)

    def arguments(self) -> dict[str, Any]:
        return {"Item": self.item, **self._condition(Names())}

    def becomes(self, there: Item | None) -> Item:
        return _fitting(self.item)


@dataclass(frozen=True, slots=True)
class DeleteItem(_Write):
    kind: ClassVar[str] = "Delete"
    key: Key

    def arguments(self) -> dict[str, Any]:
        return {"Key": keyed(self.key), **self._condition(Names())}

    def becomes(self, there: Item | None) -> None:
        return None


def _fitting(item: Item) -> Item:
    if item_bytes(item) > ITEM_BYTES_MAX:
        raise ItemTooLarge(f"{key_of(item)} would have {item_bytes(item):,} bytes. Nothing was written.")
    return item


Write = UpdateItem | PutItem | DeleteItem


@dataclass(frozen=True, slots=True)
class Transaction:
    """TransactWriteItems. Answer: None when all were written; else for each write its Answer, None when it could be.

    The simulator looks no further than the first write that cannot be, so a program tells them apart in their order.
    `token`: any text, from which the ClientRequestToken is made; with another transaction it raises TokenConflict.
    """

    writes: Sequence[Write]
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait after the failed try `attempt` (from 0 on): up to twice as long each time, with jitter. Answer: None."""

    attempt: int

    @property
    def doublings(self) -> int:
        return min(self.attempt, DOUBLINGS_MAX)


Ask = Request | Write | Transaction | Pause
Result = TypeVar("Result")
Program = Generator[Ask, Any, Result]
