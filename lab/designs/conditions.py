"""The condition that only a set of ids needs."""

from __future__ import annotations

from dataclasses import dataclass

from lab.designs.attributes import number
from ledger.conditions import Item, Names


@dataclass(frozen=True, slots=True)
class SizeBelow:
    """The attribute is a set with fewer elements than this."""

    name: str
    most: int

    def expression(self, names: Names) -> str:
        return f"size({names.path(self.name)}) < {names.value(number(self.most))}"

    def holds(self, item: Item) -> bool:
        return self.name in item and len(item[self.name]["SS"]) < self.most
