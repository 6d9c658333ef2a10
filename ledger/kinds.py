"""Named tuples that are values of their own kind: two of the same contents and another kind are not the same.

Rule 1: what is asked of a table is a tuple, because sixteen data classes were 4 ms of every cold start.
Rule 2: a tuple equals any tuple of its contents, is false when it is empty, and has an order; none of these is meant,
so each kind gets the operators that a data class would have.
"""

from collections.abc import Callable
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=tuple[Any, ...])


def of_its_kind(kind: type[Kind]) -> type[Kind]:
    """Makes a named tuple true, equal to its own kind alone, and without an order: as a data class would be."""

    def equals(self: Any, other: object) -> bool:
        return type(other) is kind and tuple.__eq__(self, other)

    def has_no_order(self: object, other: object) -> bool:
        raise TypeError(f"{kind.__name__} has no order")

    operators: dict[str, Callable[..., Any]] = dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__"), has_no_order)
    operators |= {
        "__eq__": equals,
        "__ne__": lambda self, other: not equals(self, other),
        "__bool__": lambda self: True,
    }
    for name, operator in operators.items():
        setattr(kind, name, operator)
    return kind
