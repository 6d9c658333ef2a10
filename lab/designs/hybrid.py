"""Design 10: a best-effort counter at once, and an exact one that the table's stream feeds.

Promises: who creates a thing writes the thing alone, so nothing contends there; the stream's
consumer counts it in one transaction with a flag on the thing, so it counts once, however often a
record comes. A record that fails goes to a dead-letter queue, which is tried again, and then to a
second one, for a hand. A limit looks at the larger of the two. Who deletes a thing flags it; the
consumer takes it from the exact counter and deletes it, in one transaction. Where nothing is left
the best-effort counter, too, is set to 0.
Limits: the exact value is late by the stream; between the look at the limit and the write others
pass it too; the best-effort counter loses what got no answer (the SDK does not retry, so that
nothing raises it twice). Six write units to create a thing, and two items that all write. It counts
things, not amounts. Each Region's consumer would count again what another has counted. Nothing
remembers a thing that is gone: a late retry creates it again.
Source: https://www.jawaadahmar.com/projects/distributed-counter
"""

import contextlib
from dataclasses import dataclass
from typing import ClassVar

from lab.designs.design import (
    FOR_EVER,
    VALUE,
    Claims,
    Contended,
    Design,
    Outcome,
    check_unit,
    integer,
)
from ledger.core.actions import Add, Set
from ledger.core.conditions import Absent, All, Equals, Not, Value
from ledger.core.errors import TableError
from ledger.core.requests import (
    Delete,
    Get,
    GetMany,
    Item,
    Key,
    Program,
    Put,
    Transact,
    Update,
    keyed,
)
from ledger.lane.tail import every_item

YES: Value = {"BOOL": True}
NO: Value = {"BOOL": False}
COUNTED, DELETED, THING = "counted", "deleted", "thing#"


@dataclass(frozen=True, kw_only=True)
class Hybrid(Design):
    """The key of a change names the thing that it creates."""

    name: str = "hybrid, best effort and stream"
    sdk_attempts: int = 1
    ceiling: int | None = None
    claims: ClassVar = Claims(memory=FOR_EVER, limit="soft", units=True)

    def add(self, counter: str, change: int, key: str, at_ms: int) -> Program[Outcome]:
        check_unit(change)
        thing = Key(f"{THING}{counter}", key)
        if self.ceiling is not None and (yield from self.at_most(counter)) >= self.ceiling:
            return "replayed" if (yield Get(thing)) else "refused"
        if (yield Put(keyed(thing, counted=NO), condition=Absent())) is not None:
            return "replayed"
        with contextlib.suppress(TableError):  # best effort
            yield Update(_best(counter), (Add(VALUE, change),))
        return "recorded"

    def remove(self, counter: str, key: str) -> Program[Outcome]:
        """Flag a thing; "replayed": it is flagged, or not there."""
        there = All((Not(Absent()), Absent(DELETED)))
        flag = Update(Key(f"{THING}{counter}", key), (Set(DELETED, YES),), condition=there)
        return "recorded" if (yield flag) is None else "replayed"

    def at_most(self, counter: str) -> Program[int]:
        """The larger of the two counters."""
        found: tuple[Item | None, ...] = yield GetMany((_best(counter), _exact(counter)))
        return max(integer(item, VALUE) for item in found)

    def value(self, counter: str, *, consistent: bool = True) -> Program[int]:
        there: Item | None = yield Get(_exact(counter), consistent)
        return integer(there, VALUE)

    def consume(self, image: Item) -> Program[None]:
        """Count what a record of the stream is about, as it stands now.

        Raises Contended to be sent again.
        """
        thing = Key(image["pk"]["S"], image["sk"]["S"])
        now: Item | None = yield Get(thing)
        if now is not None and DELETED in now:
            yield from self._delete(thing, now)
        if now is None or DELETED in now or now[COUNTED] == YES:
            return
        flag = Update(thing, (Set(COUNTED, YES),), condition=Equals(COUNTED, NO))
        refused = yield Transact(
            (flag, Update(_exact(thing.pk.removeprefix(THING)), (Add(VALUE, 1),)))
        )
        if refused is not None:
            raise Contended(f"{thing} changed at the same time. Nothing was written.")

    def _delete(self, thing: Key, now: Item) -> Program[None]:
        counter = thing.pk.removeprefix(THING)
        writes: tuple[Delete | Update, ...] = (Delete(thing, Equals(COUNTED, now[COUNTED])),)
        if now[COUNTED] == YES:
            writes += (Update(_exact(counter), (Add(VALUE, -1),)),)
        if (yield Transact(writes)) is not None:
            raise Contended(f"{thing} changed at the same time. Nothing was written.")
        left = yield from self.value(counter)
        with contextlib.suppress(TableError):  # best effort
            less = Add(VALUE, -1) if left else Set(VALUE, {"N": "0"})
            yield Update(_best(counter), (less,))

    def housekeep(self, counter: str, region: str) -> Program[None]:
        """What the stream would bring: whatever is not yet counted."""
        for image in (yield from every_item(f"{THING}{counter}", None, None, consistent=True)):
            yield from self.consume(image)


def _best(counter: str) -> Key:
    return Key(f"best#{counter}", "counter")


def _exact(counter: str) -> Key:
    return Key(f"exact#{counter}", "counter")
