"""What an update of the approaches does to an attribute.

Rules: each action has two meanings, side by side: DynamoDB's expression, and what becomes of the attribute; a test
holds them against each other on real engines. It looks at the item as it was before the update.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from lab.designs.attributes import Names, Value, number


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
