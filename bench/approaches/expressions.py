"""What the approaches ask of a table beyond ledger.requests: conditional updates, deletes and transactions of them.

Rules: every condition and action has two meanings, side by side: DynamoDB's expression, and its effect on an item; a
test holds them against each other on a real engine. Actions look at the item as it was before the update, and no two
of an update name one attribute. Requests are frozen, and say all that their answer depends on.
Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html and
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from bench.units import item_bytes
from ledger.errors import TableError
from ledger.items import key_of
from ledger.requests import Item, Key, Request

ITEM_BYTES_MAX = 400 * 1024
Value = Mapping[str, Any]
"""An attribute's value in DynamoDB's own spelling: {"N": "-6"}."""


class ItemTooLarge(TableError):
    """The item would have more than 400 KB. Nothing was written, and no retry helps."""


def number(value: int) -> Value:
    return {"N": str(value)}


def text(value: str) -> Value:
    return {"S": value}


def keyed(key: Key, **attributes: Value) -> Item:
    return {"pk": text(key.pk), "sk": text(key.sk), **attributes}


def integer(item: Item | None, name: str) -> int:
    """The number that an item has under this name; 0 where it has none."""
    return int((item or {}).get(name, number(0))["N"])


def said(item: Item | None, name: str) -> str | None:
    """The text that an item has under this name; None where it has none."""
    value = (item or {}).get(name)
    return None if value is None else str(value["S"])


class Names:
    """The placeholders of one request: no attribute and no value is spelled in an expression."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Value] = {}

    def name(self, attribute: str) -> str:
        self.names[f"#{attribute}"] = attribute
        return f"#{attribute}"

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def arguments(self) -> dict[str, Any]:
        given = {"ExpressionAttributeNames": self.names, "ExpressionAttributeValues": self.values}
        return {argument: placeholders for argument, placeholders in given.items() if placeholders}


# -- conditions --------------------------------------------------------------------------------------------------------


class Condition(Protocol):
    def expression(self, names: Names, /) -> str: ...

    def holds(self, item: Item, /) -> bool:
        """Whether it holds of the item that is there; {} when there is none."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The item has no such attribute. Of `pk`: there is no item."""

    name: str = "pk"

    def expression(self, names: Names) -> str:
        return f"attribute_not_exists({names.name(self.name)})"

    def holds(self, item: Item) -> bool:
        return self.name not in item


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {"=": operator.eq, "<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class Compare:
    """The attribute is there, of the value's type, and compares so."""

    name: str
    operator: Literal["=", "<=", ">="]
    value: Value

    def expression(self, names: Names) -> str:
        return f"{names.name(self.name)} {self.operator} {names.value(self.value)}"

    def holds(self, item: Item) -> bool:
        there = item.get(self.name)
        same_type = there is not None and there.keys() == self.value.keys()
        return same_type and _OPERATORS[self.operator](_plain(there or {}), _plain(self.value))


@dataclass(frozen=True, slots=True)
class Contains:
    """The attribute is a set of texts with this element."""

    name: str
    element: str

    def expression(self, names: Names) -> str:
        return f"contains({names.name(self.name)}, {names.value(text(self.element))})"

    def holds(self, item: Item) -> bool:
        return self.element in item.get(self.name, {}).get("SS", ())


@dataclass(frozen=True, slots=True)
class SizeBelow:
    """The attribute is a set with fewer elements than this."""

    name: str
    most: int

    def expression(self, names: Names) -> str:
        return f"size({names.name(self.name)}) < {names.value(number(self.most))}"

    def holds(self, item: Item) -> bool:
        return self.name in item and len(item[self.name]["SS"]) < self.most


@dataclass(frozen=True, slots=True)
class Not:
    condition: Condition

    def expression(self, names: Names) -> str:
        return f"NOT ({self.condition.expression(names)})"

    def holds(self, item: Item) -> bool:
        return not self.condition.holds(item)


@dataclass(frozen=True, slots=True)
class Both:
    one: Condition
    other: Condition

    def expression(self, names: Names) -> str:
        return f"({self.one.expression(names)}) AND ({self.other.expression(names)})"

    def holds(self, item: Item) -> bool:
        return self.one.holds(item) and self.other.holds(item)


@dataclass(frozen=True, slots=True)
class Either:
    one: Condition
    other: Condition

    def expression(self, names: Names) -> str:
        return f"({self.one.expression(names)}) OR ({self.other.expression(names)})"

    def holds(self, item: Item) -> bool:
        return self.one.holds(item) or self.other.holds(item)


def _plain(value: Value) -> Any:
    ((kind, content),) = value.items()
    return Decimal(content) if kind == "N" else content


# -- actions -----------------------------------------------------------------------------------------------------------


class Action(Protocol):
    @property
    def clause(self) -> Literal["SET", "ADD", "DELETE"]: ...

    @property
    def name(self) -> str: ...

    def expression(self, names: Names, /) -> str: ...

    def after(self, there: Value | None, /) -> Value | None:
        """What becomes of the attribute that was so before; None: there is none."""


@dataclass(frozen=True, slots=True)
class Add:
    """Add to a number; one that is not there counts as 0."""

    clause: ClassVar[Literal["ADD"]] = "ADD"
    name: str
    change: int

    def expression(self, names: Names) -> str:
        return f"{names.name(self.name)} {names.value(number(self.change))}"

    def after(self, there: Value | None) -> Value:
        return number(int((there or number(0))["N"]) + self.change)


@dataclass(frozen=True, slots=True)
class SetSum:
    """The same as Add, spelled as a SET."""

    clause: ClassVar[Literal["SET"]] = "SET"
    name: str
    change: int

    def expression(self, names: Names) -> str:
        name, zero, change = names.name(self.name), names.value(number(0)), names.value(number(self.change))
        return f"{name} = if_not_exists({name}, {zero}) + {change}"

    def after(self, there: Value | None) -> Value:
        return Add(self.name, self.change).after(there)


@dataclass(frozen=True, slots=True)
class Set:
    clause: ClassVar[Literal["SET"]] = "SET"
    name: str
    value: Value

    def expression(self, names: Names) -> str:
        return f"{names.name(self.name)} = {names.value(self.value)}"

    def after(self, there: Value | None) -> Value:
        return self.value


@dataclass(frozen=True, slots=True)
class Include:
    """Put an element into a set of texts."""

    clause: ClassVar[Literal["ADD"]] = "ADD"
    name: str
    element: str

    def expression(self, names: Names) -> str:
        return f"{names.name(self.name)} {names.value({'SS': [self.element]})}"

    def after(self, there: Value | None) -> Value:
        return {"SS": sorted({*(there or {"SS": ()})["SS"], self.element})}


@dataclass(frozen=True, slots=True)
class Exclude:
    """Take an element out of a set of texts; an empty set is no attribute."""

    clause: ClassVar[Literal["DELETE"]] = "DELETE"
    name: str
    element: str

    def expression(self, names: Names) -> str:
        return f"{names.name(self.name)} {names.value({'SS': [self.element]})}"

    def after(self, there: Value | None) -> Value | None:
        left = sorted({*(there or {"SS": ()})["SS"]} - {self.element})
        return {"SS": left} if left else None


# -- requests ----------------------------------------------------------------------------------------------------------

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
    """Wait before try `attempt` + 2: twice as long each time, with jitter. Answer: None."""

    attempt: int


Ask = Request | Write | Transaction | Pause
Result = TypeVar("Result")
Program = Generator[Ask, Any, Result]
