"""The size of an item and the request units it costs, by AWS's published rules; nothing here does I/O.

Rule 1: Sizes are bytes, a KB is 1,024; items are in the low-level format: `{"pk": {"S": "a"}, "change": {"N": "-6"}}`.
Rule 2: Round up before anything else: a unit is never split, except that an eventually consistent read is half of one.
Rule 3: A rule that is not on one of these pages of AWS's developer guide does not belong here: SIZES
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html UNITS
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

Item = Mapping[str, Mapping[str, Any]]

WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096
TRANSACTIONAL = 2  # a transaction prepares, then commits: every unit twice (page UNITS)


def item_bytes(item: Item) -> int:
    """The bytes of an item: attribute names and values, not the storage overhead, which no request pays (SIZES)."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def value_bytes(value: Mapping[str, Any]) -> int:
    """The bytes of a value without its name (SIZES; for sets, which the page leaves out, the sum of the elements)."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return number_bytes(content)
        case "B":
            return len(bytes(content))
        case "BOOL" | "NULL":
            return 1
        case "L":
            return 3 + sum(1 + value_bytes(element) for element in content)
        case "M":
            return 3 + item_bytes(content) + len(content)
        case "SS" | "NS" | "BS":
            return sum(value_bytes({kind[0]: element}) for element in content)
    raise ValueError(f"no such attribute type: {kind}")


def number_bytes(number: str) -> int:
    """The bytes of a number, about: 1, 1 for every two significant digits, 1 for a minus; at most 21 (SIZES)."""
    sign, digits, _ = Decimal(number).as_tuple()
    significant = len("".join(map(str, digits)).strip("0"))
    return 1 + (significant + 1) // 2 + (1 if sign and significant else 0)


def write_units(size: int, *, transactional: bool = False) -> int:
    """The write units of one item of this many bytes: 1 for each KB begun, at least 1, twice in a transaction (UNITS).

    A Put or an Update costs the larger of the item before and after, a Delete the item deleted, a failed condition
    the larger of the item that is there and the one asked for. Each further Region costs the same again in replicated
    write units: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/global-tables-billing.html
    """
    units = max(1, -(-size // WRITE_UNIT_BYTES))
    return units * TRANSACTIONAL if transactional else units


def read_units(size: int, *, consistent: bool, transactional: bool = False) -> float:
    """The read units of this many bytes: 1 for each 4 KB begun, at least 1, half if eventually consistent (UNITS).

    `size` is one item for a GetItem, each item by itself in a batch, and the sum of all items read by one page of a
    Query or Scan. An item that is not there and an empty page cost the least there is.
    """
    units = max(1, -(-size // READ_UNIT_BYTES))
    if transactional:
        return float(units * TRANSACTIONAL)
    return float(units) if consistent else units / 2
