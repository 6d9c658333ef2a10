"""Design 9: ids 1, 2, 3, … without a gap: the last one is read, then a transaction takes the next
and puts the item.

Promises: every item has a number, no two the same, none is left out; an insert that fails (the item
is there already) uses no number up; an insert that is sent again finds its item. The count of items
is the last number.
Limits: a read and four write units for each; only one insert at a time can win, the others pause
and try again. Two Regions give the same numbers to different items.
Source: https://bitesizedserverless.com/bite/reliable-auto-increments-in-dynamodb/, and for numbers
that may have gaps
https://aws.amazon.com/blogs/database/implement-auto-increment-with-amazon-dynamodb/
"""

from dataclasses import dataclass
from typing import ClassVar

from lab.designs.design import (
    FOR_EVER,
    TRIES_MAX,
    Claims,
    Contended,
    Design,
    Outcome,
    check_unit,
    integer,
    pause,
)
from ledger.core.actions import Set
from ledger.core.conditions import Absent, Equals
from ledger.core.decoding import number
from ledger.core.requests import Get, Item, Key, Program, Put, Transact, Update, keyed
from ledger.lane.tail import every_item

LAST, NUMBER = "last", "number"


@dataclass(frozen=True, kw_only=True)
class GapFree(Design):
    """The key of a change names the item that gets the next number."""

    name: str = "gap-free ids"
    ceiling: int | None = None
    claims: ClassVar = Claims(memory=FOR_EVER, limit="hard", history=True, units=True)

    def add(self, counter: str, change: int, key: str, at_ms: int) -> Program[Outcome]:
        check_unit(change)
        item_key, last_key = Key(f"item#{counter}", key), Key(f"last#{counter}", LAST)
        for attempt in range(TRIES_MAX):
            there: Item | None = yield Get(last_key)
            last = integer(there, LAST)
            if self.ceiling is not None and last >= self.ceiling:
                return "replayed" if (yield Get(item_key)) else "refused"
            same = Absent(LAST) if there is None else Equals(LAST, number(last))
            item = Put(keyed(item_key, **{NUMBER: number(last + 1)}), condition=Absent())
            refused = yield Transact(
                (item, Update(last_key, (Set(LAST, number(last + 1)),), condition=same))
            )
            if refused is None:
                return "recorded"
            if refused[0] is not None:
                return "replayed"
            yield pause(attempt)
        raise Contended(
            f"Others took the number at each of {TRIES_MAX} tries. Nothing was written."
        )

    def value(self, counter: str, *, consistent: bool = True) -> Program[int]:
        there: Item | None = yield Get(Key(f"last#{counter}", LAST), consistent)
        return integer(there, LAST)

    def numbers(self, counter: str) -> Program[dict[str, int]]:
        """The number of each item."""
        found = yield from every_item(f"item#{counter}", None, None, consistent=True)
        return {item["sk"]["S"]: integer(item, NUMBER) for item in found}

    def history(self, counter: str) -> Program[list[int]]:
        return [1 for _ in (yield from self.numbers(counter))]
