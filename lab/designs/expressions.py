"""Attributes in DynamoDB's own spelling (a number is a whole one); and the actions and the condition of sets of
texts, which only the other designs need."""

from dataclasses import dataclass
from typing import ClassVar

from ledger.conditions import Item, Names, Value


def number(value: int) -> Value:
    return {"N": str(value)}


def text(value: str) -> Value:
    return {"S": value}


def integer(item: Item | None, name: str) -> int:
    """The number that an item has under this name; 0 where it has none."""
    return int((item or {}).get(name, number(0))["N"])


def said(item: Item | None, name: str) -> str | None:
    """The text that an item has under this name; None where it has none."""
    value = (item or {}).get(name)
    return None if value is None else str(value["S"])


@dataclass(frozen=True, slots=True)
class Include:
    """Put an element into a set of texts."""

    clause: ClassVar[str] = "ADD"
    path: str
    element: str

    def expression(self, names: Names) -> tuple[str, str]:
        return self.clause, f"{names.path(self.path)} {names.value({'SS': [self.element]})}"

    def after(self, there: Value | None) -> Value | None:
        return {"SS": sorted({*(there or {"SS": ()})["SS"], self.element})}


@dataclass(frozen=True, slots=True)
class Exclude(Include):
    """Take an element out of a set of texts; an empty set is no attribute."""

    clause: ClassVar[str] = "DELETE"

    def after(self, there: Value | None) -> Value | None:
        left = sorted({*(there or {"SS": ()})["SS"]} - {self.element})
        return {"SS": left} if left else None


@dataclass(frozen=True, slots=True)
class SizeBelow:
    """The attribute is a set with fewer elements than this."""

    name: str
    most: int

    def expression(self, names: Names) -> str:
        return f"size({names.path(self.name)}) < {names.value(number(self.most))}"

    def holds(self, item: Item) -> bool:
        return self.name in item and len(item[self.name]["SS"]) < self.most
