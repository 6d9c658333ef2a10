"""Design 10: a best-effort counter at once, and an exact one that the table's stream feeds.

Promises: who creates or deletes a thing writes the thing alone, so nothing contends there; the stream's consumer counts
it in one transaction with a flag on the thing, so it counts once, however often a record comes. What is deleted is
first marked, and removed by the consumer as it counts. A record that fails goes to a dead-letter queue, which is tried
again, and then to a second one, for a hand. A limit looks at the larger of the two. When the exact counter comes back
to 0, the other is set to 0 too, so what it lost does not stay.
Limits: the exact value is late by the stream; between the look at the limit and the write others pass it too; the
best-effort counter loses what got no answer (the SDK does not retry, so that nothing raises it twice), and stays wrong
until all are gone. Six write units to create a thing and six to delete it, and two items that all write. It counts
things, not amounts. Each Region's consumer would count again what another has counted.
Source: https://www.jawaadahmar.com/projects/distributed-counter
"""

import contextlib
from dataclasses import dataclass
from typing import ClassVar

from lab.designs.design import FOR_EVER, VALUE, Claims, Contended, Design, Outcome, check_unit, integer
from ledger.actions import Add, Set
from ledger.conditions import Absent, All, Equals, Not, Value
from ledger.decoding import number
from ledger.errors import TableError
from ledger.lane.tail import every_item
from ledger.requests import Delete, Get, GetMany, Item, Key, Program, Put, Transact, Update, keyed

YES: Value = {"BOOL": True}
NO: Value = {"BOOL": False}
COUNTED, DELETED, THING = "counted", "deleted", "thing#"
_IS_DELETED = Not(Absent(DELETED))


@dataclass(frozen=True, kw_only=True)
class Hybrid(Design):
    """The key of a change names the thing: 1 creates it, -1 deletes it."""

    name: str = "hybrid, best effort and stream"
    sdk_attempts: int = 1
    ceiling: int | None = None
    claims: ClassVar = Claims(memory=FOR_EVER, limit="soft", units=True)

    def add(self, counter: str, change: int, key: str, at_ms: int) -> Program[Outcome]:
        check_unit(change, 1, -1)
        thing = Key(f"{THING}{counter}", key)
        if change == 1:
            if self.ceiling is not None and (yield from self.at_most(counter)) >= self.ceiling:
                return "replayed" if (yield Get(thing)) else "refused"
            there = yield Put(keyed(thing, counted=NO), condition=Absent())
            if there and DELETED in there:
                raise Contended(f"{key} is being deleted. Nothing was written.")
        else:
            standing = All((Not(Absent()), Absent(DELETED)))
            there = yield Update(thing, (Set(DELETED, YES),), condition=standing)
        if there is not None:
            return "replayed"
        with contextlib.suppress(TableError):  # best effort
            yield Update(_best(counter), (Add(VALUE, change),))
        return "recorded"

    def at_most(self, counter: str) -> Program[int]:
        """The larger of the two counters."""
        found: tuple[Item | None, ...] = yield GetMany((_best(counter), _exact(counter)))
        return max(integer(item, VALUE) for item in found)

    def value(self, counter: str, *, consistent: bool = True) -> Program[int]:
        there: Item | None = yield Get(_exact(counter), consistent)
        return integer(there, VALUE)

    def consume(self, image: Item) -> Program[None]:
        """Count or remove what a record of the stream is about, as it stands now. Raises Contended to be sent again."""
        thing = Key(image["pk"]["S"], image["sk"]["S"])
        counter = thing.pk.removeprefix(THING)
        now: Item | None = yield Get(thing)
        if now is None:
            return (yield from self._heal(counter))
        if now[COUNTED] == YES and DELETED not in now:
            return
        was = Equals(COUNTED, now[COUNTED])
        if now[COUNTED] == NO:
            flag = Update(thing, (Set(COUNTED, YES),), condition=was)
            refused = yield Transact((flag, Update(_exact(counter), (Add(VALUE, 1),))))
        else:
            removal = Delete(thing, condition=All((was, _IS_DELETED)))
            refused = yield Transact((removal, Update(_exact(counter), (Add(VALUE, -1),))))
            yield from self._heal(counter)
        if refused is not None:
            raise Contended(f"{thing} changed at the same time. Nothing was written.")

    def _heal(self, counter: str) -> Program[None]:
        if (yield from self.value(counter)) == 0:
            yield Update(_best(counter), (Set(VALUE, number(0)),))

    def housekeep(self, counter: str, region: str) -> Program[None]:
        """What the stream would bring: whatever is not yet counted, or not yet removed."""
        for image in (yield from every_item(f"{THING}{counter}", None, None, consistent=True)):
            yield from self.consume(image)


def _best(counter: str) -> Key:
    return Key(f"best#{counter}", "counter")


def _exact(counter: str) -> Key:
    return Key(f"exact#{counter}", "counter")
