"""Design 7: counting with a set, one item that holds the id of everything that is counted.

Promises: an id counts once while it is in the set; the set has at most `ceiling` ids, and "full"
and "duplicate" are told apart, because the failed condition shows the item; one read lists who is
in.
An id can be taken out again, in one request, too.
Limits: every change and every read costs the units of the whole set, and at 400 KB it ends: some
10,000 ids of 36 characters (ItemTooLarge). It counts things, not amounts. Regions overwrite each
other's set. Nothing remembers an id that was taken out: a late retry puts it in again.
Source: https://aws.amazon.com/blogs/database/implement-resource-counters-with-amazon-dynamodb/
"""

from dataclasses import dataclass
from typing import ClassVar

from lab.designs.design import FOR_EVER, Claims, Outcome, SingleItem, check_unit, text
from ledger.core.conditions import Absent, All, Condition, Contains, Either, Item, Names, Not, Value
from ledger.core.decoding import number
from ledger.core.requests import Program, Update

IDS = "ids"


@dataclass(frozen=True, slots=True)
class OfSet:
    """An action on one element of a set of texts."""

    clause: ClassVar[str]
    path: str
    element: str

    def expression(self, names: Names) -> tuple[str, str]:
        return self.clause, f"{names.path(self.path)} {names.value({'SS': [self.element]})}"


class Include(OfSet):
    """Put an element into a set of texts."""

    clause = "ADD"

    def after(self, there: Value | None) -> Value | None:
        return {"SS": sorted({*(there or {"SS": ()})["SS"], self.element})}


class Exclude(OfSet):
    """Take an element out of a set of texts; the last one takes the set with it."""

    clause = "DELETE"

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


@dataclass(frozen=True, kw_only=True)
class StringSet(SingleItem):
    """The key of a change is the id."""

    name: str = "set of ids"
    claims: ClassVar = Claims(memory=FOR_EVER, limit="hard", history=True, units=True)

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        check_unit(change)
        room: Condition = Not(Contains(IDS, text(key)))
        if self.ceiling is not None:
            room = All((room, Either((Absent(IDS), SizeBelow(IDS, self.ceiling)))))
        there: Item | None = yield Update(
            self.item_key(counter, shard), (Include(IDS, key),), condition=room
        )
        if there is None:
            return "recorded"
        return "replayed" if Contains(IDS, text(key)).holds(there) else "refused"

    def remove(self, counter: str, key: str, shard: int = 0) -> Program[Outcome]:
        """Take an id out; "replayed": it is not in."""
        there: Item | None = yield Update(
            self.item_key(counter, shard),
            (Exclude(IDS, key),),
            condition=Contains(IDS, text(key)),
        )
        return "recorded" if there is None else "replayed"

    def history(self, counter: str) -> Program[list[int]]:
        return [1] * (yield from self.value(counter))

    @staticmethod
    def amount(item: Item | None) -> int:
        return len((item or {}).get(IDS, {"SS": ()})["SS"])
