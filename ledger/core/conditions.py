"""The conditions of a write, each with its two meanings side by side: DynamoDB's expression, and
whether it holds.

Rule 1: the two meanings agree; the contract (tests/contract) holds them against each other on every
table.
Rule 2: an attribute that an item lacks neither equals nor compares nor contains; only `Absent` and
`Not` hold for it.
Rule 3: nothing here names an attribute of ours; the file that knows an item's format does.
Source:
docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
"""

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, Protocol, TypeAlias

Item: TypeAlias = Mapping[str, Mapping[str, Any]]
"""An item in DynamoDB's own spelling: {"change": {"N": "-6"}}."""

Value: TypeAlias = Mapping[str, Any]
"""An attribute's value in that spelling: {"N": "-6"}."""

Path: TypeAlias = str | tuple[str, ...]
"""An attribute's name, or the names that lead to an entry of a map: ("held", token)."""


class Names:
    """The placeholders of one request: no expression spells an attribute or a value."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Value] = {}

    def path(self, path: Path) -> str:
        return ".".join(
            [self._names.setdefault(name, f"#{len(self._names)}") for name in steps_of(path)]
        )

    def value(self, value: Value) -> str:
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def arguments(self) -> dict[str, Any]:
        names = {placeholder: name for name, placeholder in self._names.items()}
        given = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": self._values}
        return {argument: placeholders for argument, placeholders in given.items() if placeholders}


class Condition(Protocol):
    def expression(self, names: Names, /) -> str: ...

    def holds(self, item: Item, /) -> bool:
        """Whether the condition holds for the item that is there; {} when there is none."""


class Absent(NamedTuple):
    """The item has no such attribute, or no such entry in a map. By default: there is no item."""

    path: Path = "pk"

    def expression(self, names: Names) -> str:
        return f"attribute_not_exists({names.path(self.path)})"

    def holds(self, item: Item) -> bool:
        return value_at(item, self.path) is None


class _Compares(NamedTuple):
    path: Path
    value: Value

    def expression(self, names: Names) -> str:
        sign, _ = _SIGNS[type(self)]
        return f"{names.path(self.path)} {sign} {names.value(self.value)}"

    def holds(self, item: Item) -> bool:
        (_, compares), there = _SIGNS[type(self)], value_at(item, self.path)
        return (
            there is not None
            and there.keys() == self.value.keys()
            and compares(_plain(there), _plain(self.value))
        )


class Equals(_Compares):
    """The attribute is there, and has this type and value."""


class AtLeast(_Compares):
    """The attribute is there, is of the value's type (a number, a text or bytes), and not below
    it.
    """


class AtMost(_Compares):
    """The attribute is there, is of the value's type (a number, a text or bytes), and not above
    it.
    """


_SIGNS: dict[type[_Compares], tuple[str, Callable[[Any, Any], bool]]] = {
    Equals: ("=", operator.eq),
    AtLeast: (">=", operator.ge),
    AtMost: ("<=", operator.le),
}


class Contains(NamedTuple):
    """The attribute is a set, and this text, number or binary is one of its elements."""

    path: Path
    element: Value

    def expression(self, names: Names) -> str:
        return f"contains({names.path(self.path)}, {names.value(self.element)})"

    def holds(self, item: Item) -> bool:
        ((kind, element),) = self.element.items()
        return element in (value_at(item, self.path) or {}).get(f"{kind}S", ())


class Not(NamedTuple):
    condition: Condition

    def expression(self, names: Names) -> str:
        return f"NOT {_apart(self.condition, names)}"

    def holds(self, item: Item) -> bool:
        return not self.condition.holds(item)


class _Several(tuple[Condition, ...]):
    """At least one condition, in parentheses where others stand beside it. A single one gets none,
    because an expression has 4 KB, and DynamoDB refuses parentheses without a meaning."""

    __slots__ = ()
    word = ""

    def expression(self, names: Names) -> str:
        return self.word.join(
            [part.expression(names) if len(self) == 1 else _apart(part, names) for part in self]
        )


class All(_Several):
    """Every one of them holds: All((Equals(...), Absent(...))). At least one."""

    __slots__ = ()
    word = " AND "

    def holds(self, item: Item) -> bool:
        return all(part.holds(item) for part in self)


class Either(_Several):
    """One of them holds, at least: Either((AtLeast(...), Absent(...))). At least one."""

    __slots__ = ()
    word = " OR "

    def holds(self, item: Item) -> bool:
        return any(part.holds(item) for part in self)


def has(item: Item) -> Condition | None:
    """The condition that the item under this key has its other attributes; None where it has
    none.
    """
    equal = [Equals(name, value) for name, value in item.items() if name not in ("pk", "sk")]
    return All(equal) if equal else None


def steps_of(path: Path) -> tuple[str, ...]:
    return (path,) if isinstance(path, str) else path


def value_at(item: Item, path: Path) -> Value | None:
    """The value at a path; None when there is none, or when something on the way to it is no
    map.
    """
    first, *rest = steps_of(path)
    there = item.get(first)
    for name in rest:
        there = (there or {}).get("M", {}).get(name)
    return there


def _apart(condition: Condition, names: Names) -> str:
    if not isinstance(condition, _Several):
        return condition.expression(names)
    if len(condition) == 1:
        return _apart(condition[0], names)
    return f"({condition.expression(names)})"


def _plain(value: Value) -> Any:
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return Decimal(content)
        case "B":
            return bytes(content)
        case "SS" | "NS" | "BS":
            return frozenset(content)
        case _:
            return content
