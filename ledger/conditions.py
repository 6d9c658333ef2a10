"""What a write may require of an item."""

from ledger.core.conditions import (
    Absent,
    All,
    AtLeast,
    AtMost,
    Condition,
    Contains,
    Either,
    Equals,
    Item,
    Names,
    Not,
    Path,
    Value,
    has,
    steps_of,
    value_at,
)

__all__ = [
    "Absent",
    "All",
    "AtLeast",
    "AtMost",
    "Condition",
    "Contains",
    "Either",
    "Equals",
    "Item",
    "Names",
    "Not",
    "Path",
    "Value",
    "has",
    "steps_of",
    "value_at",
]
