"""Designs 4 and 5: a transaction of the update with what names the change: a client request token,
or a marker.

The token. Promises: sent again within ten minutes a change is answered as the first time and counts
once, by the SDK, by the caller, after a lost answer and after a time-out; another change under the
token is refused; limits hold.
Limits: twice the write units. The token is forgotten ten minutes after the first request with it
was completed, so a redriven message or a replay a day later counts again, and it is known in its
own Region only. A transaction that was refused is not remembered.

The marker, an item named by the change and put only if it is absent. Promises: a change counts once
for as long as its marker stands, whoever sends it again; another change under the key is refused;
limits hold. The markers may have a time to live; without one they stay for ever. Limits: four write
units, and an item kept for every change. Some time after its time to live a marker is deleted, and
the change would count again. Two Regions can both put the marker of one change. A marker has no
shard in its name, so a sharded counter finds it too.

Limits of both: transactions on one item conflict with each other, and no SDK sends them again;
Regions overwrite each other's counter.
Sources (of the token, of the marker, of its time to live):
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html,
https://aws.amazon.com/blogs/database/implement-resource-counters-with-amazon-dynamodb/,
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
"""

from dataclasses import dataclass
from typing import ClassVar

from lab.designs.design import (
    FOR_EVER,
    VALUE,
    Claims,
    Memory,
    Outcome,
    SingleItem,
    expired,
    integer,
)
from ledger.core.actions import Add
from ledger.core.conditions import Absent
from ledger.core.decoding import number
from ledger.core.errors import TokenConflict
from ledger.core.requests import Instant, Item, Key, Now, Program, Put, Transact, Update, keyed

CHANGE, EXPIRES = "change", "expires"


@dataclass(frozen=True, kw_only=True)
class TransactionToken(SingleItem):
    name: str = "transaction, client token"
    claims: ClassVar = Claims(memory=Memory(ms=600_000), mismatch=True, limit="hard")

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        update = Update(
            self.item_key(counter, shard), (Add(VALUE, change),), condition=self.fitting(change)
        )
        refused = yield Transact((update,), token=f"{counter}\0{key}")
        return "recorded" if refused is None else "refused"


@dataclass(frozen=True, kw_only=True)
class TransactionMarker(SingleItem):
    """`keep_ms`: how long a marker stays; None: for ever."""

    name: str = "transaction, marker"
    keep_ms: int | None = None

    @property
    def claims(self) -> Claims:
        memory = FOR_EVER if self.keep_ms is None else Memory(ms=self.keep_ms)
        return Claims(memory=memory, mismatch=True, limit="hard")

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        marked = {CHANGE: number(change)}
        if self.keep_ms is not None:
            now: Instant = yield Now()
            marked[EXPIRES] = number((now.wall_ms + self.keep_ms) // 1_000)  # a TTL counts seconds
        marker = Put(keyed(Key(f"marker#{counter}#{key}", counter), **marked), condition=Absent())
        update = Update(
            self.item_key(counter, shard), (Add(VALUE, change),), condition=self.fitting(change)
        )
        refused: tuple[Item | None, ...] | None = yield Transact((marker, update))
        if refused is None:
            return "recorded"
        if refused[0] is None:
            return "refused"
        if integer(refused[0], CHANGE) != change:
            raise TokenConflict(
                f"{key} stands for a change of {integer(refused[0], CHANGE)}. Nothing was written."
            )
        return "replayed"

    def housekeep(self, counter: str, region: str) -> Program[None]:
        """What the table's TTL does by itself, and for nothing."""
        return expired(EXPIRES) if self.keep_ms is not None else super().housekeep(counter, region)
