"""The conditions that the approaches set.

Rules: each has two meanings, side by side: DynamoDB's expression, and whether it holds of an item; a test holds them
against each other on real engines. What an item lacks neither compares nor contains.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol

from lab.designs.attributes import Names, Value, number, text
from ledger.requests import Item

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {"=": operator.eq, "<=": operator.le, ">=": operator.ge}


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
        return same_type and OPERATORS[self.operator](plain(there or {}), plain(self.value))


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


def plain(value: Value) -> Any:
    ((kind, content),) = value.items()
    return Decimal(content) if kind == "N" else content
