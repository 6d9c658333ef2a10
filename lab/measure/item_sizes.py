"""The sizes of the items that passed by: what overwrites, deletes and projections cost is in no request or answer.

Rule 1: An item that was never seen is taken as absent: it costs the least there is.
Rule 2: Regions of a table share one memory, as their replicas come to hold the same items.
"""

from collections.abc import Mapping
from typing import Any

from ledger.cost import Item, item_bytes

Fields = Mapping[str, Any]


class ItemSizes:
    """What the meter remembers; `key` names the key attributes (a table may have only the first)."""

    def __init__(self, key: tuple[str, ...] = ("pk", "sk")) -> None:
        self._key = key
        self._sizes: dict[tuple[Any, ...], int] = {}
        self.tokens: set[str] = set()  # ClientRequestTokens of the transactions that were committed

    def put(self, table: str, item: Item) -> None:
        """Remember this whole item."""
        self.resize(table, item, item_bytes(item))

    def resize(self, table: str, key: Item, size: int) -> None:
        """Remember the item of this key as this many bytes; 0 is an absent item."""
        if size:
            self._sizes[self._id(table, key)] = size
        else:
            self._sizes.pop(self._id(table, key), None)

    def size(self, table: str, key: Item) -> int:
        """The bytes last seen of the item of this key (other attributes may be with it); 0 if it is absent."""
        return self._sizes.get(self._id(table, key), 0)

    def _id(self, table: str, item: Item) -> tuple[Any, ...]:
        return (table, *(value for name in self._key if name in item for value in item[name].values()))
