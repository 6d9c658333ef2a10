"""Design 3: optimistic concurrency control with the keys of the last writers in the item.

Promises: what design 2 promises, and that a writer without an answer, or a change that is delivered
again, finds its own key in the item and counts once, as long as no more than `keep` others have
written since.
Limits: two requests a change, contention as in design 2, and an item that is larger by `keep` keys
at every write and read. A change that comes back after `keep` others counts twice. What the key
stood for is not kept. Regions overwrite each other, their lists too.
Source: https://aws.amazon.com/blogs/database/implement-resource-counters-with-amazon-dynamodb/
"""

from dataclasses import dataclass

from lab.designs.design import (
    TRIES_MAX,
    VALUE,
    Claims,
    Contended,
    Memory,
    Outcome,
    SingleItem,
    integer,
    pause,
    text,
)
from ledger.core.actions import Add, Set
from ledger.core.conditions import Absent, Equals
from ledger.core.decoding import number
from ledger.core.errors import OutcomeUnknown
from ledger.core.requests import Get, Item, Program, Update

RECENT, VERSION = "recent", "version"


@dataclass(frozen=True, kw_only=True)
class OptimisticHistory(SingleItem):
    name: str = "optimistic with history"
    keep: int = 100

    @property
    def claims(self) -> Claims:
        return Claims(memory=Memory(writes=self.keep - 1), limit="hard")

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        unknown: OutcomeUnknown | None = None
        for attempt in range(TRIES_MAX):
            item: Item | None = yield Get(self.item_key(counter, shard))
            recent = (item or {}).get(RECENT, {"L": []})["L"]
            if text(key) in recent:
                return "recorded" if attempt else "replayed"
            if not self.fits(integer(item, VALUE), change):
                return "refused"
            version = integer(item, VERSION)
            update = (
                Add(VALUE, change),
                Set(RECENT, {"L": [*recent, text(key)][-self.keep :]}),
                Set(VERSION, number(version + 1)),
            )
            same = Equals(VERSION, number(version)) if version else Absent(VERSION)
            try:
                refused: Item | None = yield Update(
                    self.item_key(counter, shard), update, condition=same
                )
                if refused is None:
                    return "recorded"
            except OutcomeUnknown as error:
                # the next look finds the key, or the same version and then one of the two writes
                # fails
                unknown = error
            yield pause(attempt)
        raise unknown or Contended(
            f"{counter} had changed at each of {TRIES_MAX} tries. Nothing was written."
        )
