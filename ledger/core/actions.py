"""The actions of an Update, each with its two meanings side by side: DynamoDB's expression, and its
effect.

Rule 1: the two meanings agree; the contract (tests/contract) holds them against each other on every
table.
Rule 2: every action looks at the item as it was before the update, and no two actions of an update
name one path.
Rule 3: an entry of a map can be written only where the map is; `Add` is for attributes of the item
itself.
Source:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html
"""

from collections.abc import Iterable
from decimal import Context, Decimal
from typing import Any, NamedTuple, Protocol

from ledger.core.conditions import Item, Names, Path, Value, steps_of, value_at
from ledger.core.errors import TableMismatch

DIGITS_MAX = 38
"""A number in DynamoDB has no more significant digits."""

_EXACT = Context(prec=1_000)


class Action(Protocol):
    @property
    def path(self) -> Path: ...

    def expression(self, names: Names, /) -> tuple[str, str]:
        """The clause that the action belongs to (SET, ADD, REMOVE or DELETE), and its part of
        it.
        """

    def after(self, there: Value | None, /) -> Value | None:
        """The value at the path after the action; None: nothing stands there."""


class Set(NamedTuple):
    """Write a value in the place of whatever was there."""

    path: Path
    value: Value

    def expression(self, names: Names) -> tuple[str, str]:
        return "SET", f"{names.path(self.path)} = {names.value(self.value)}"

    def after(self, there: Value | None) -> Value:
        return self.value


class Add(NamedTuple):
    """Add a whole number to a number; a missing one counts as 0."""

    # Rule 4: an SDK sends an update without an answer again by itself, so an `Add` stands behind a
    # condition that its own effect breaks, or in a transaction with a token. Else it may add twice.

    path: str
    change: int

    def expression(self, names: Names) -> tuple[str, str]:
        return "ADD", f"{names.path(self.path)} {names.value({'N': str(self.change)})}"

    def after(self, there: Value | None) -> Value:
        if there is not None and "N" not in there:
            raise TableMismatch(f"{self.path} is no number. Nothing was written.")
        total = _EXACT.add(Decimal((there or {"N": "0"})["N"]), self.change)
        if len(total.normalize(_EXACT).as_tuple().digits) > DIGITS_MAX:
            raise TableMismatch(
                f"{self.path} would have more than {DIGITS_MAX} digits. Nothing was written."
            )
        return {"N": f"{total:f}"}


class Remove(NamedTuple):
    """Remove an attribute, or an entry of a map, if it is there."""

    path: Path

    def expression(self, names: Names) -> tuple[str, str]:
        return "REMOVE", names.path(self.path)

    def after(self, there: Value | None) -> None:
        return None


def update_expression(actions: Iterable[Action], names: Names) -> str:
    clauses: dict[str, list[str]] = {}
    for action in actions:
        clause, part = action.expression(names)
        clauses.setdefault(clause, []).append(part)
    return " ".join(f"{clause} {', '.join(parts)}" for clause, parts in clauses.items())


def updated(before: Item, actions: Iterable[Action]) -> Item:
    """The item after an update.

    Raises TableMismatch where DynamoDB refuses one: an entry of what is no map.
    """
    after = before
    for action in actions:
        after = _written(after, steps_of(action.path), action.after(value_at(before, action.path)))
    return after


def _written(within: Any, path: tuple[str, ...], value: Value | None) -> dict[str, Any]:
    first, *rest = path
    if rest:
        if "M" not in within.get(first, {}):
            raise TableMismatch(
                f"{first} is no map, so nothing can stand in it. Nothing was written."
            )
        value = {"M": _written(within[first]["M"], tuple(rest), value)}
    others = {name: there for name, there in within.items() if name != first}
    return others if value is None else {**others, first: value}
