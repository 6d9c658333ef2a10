"""Design 8: write sharding, the same counter in several items, and a value that is their sum.

Promises: as many times the throughput of one item as there are shards; a change finds its shard by
its key, so a retry finds it again; a limit is dealt out among the shards and is never passed.
Limits: a read asks for every shard, and is no snapshot of them. With a limit a change that its
shard refuses tries the others; one that is larger than what any single shard has left is refused,
though all together had room. What an inner design remembers in its item is then remembered in
another shard than a retry looks in first: of them only the marker stays exact.
Source:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-sharding.html
"""

import zlib
from dataclasses import dataclass, replace

from lab.designs.design import Claims, Design, Outcome, SingleItem
from ledger.core.requests import GetMany, Item, Program


@dataclass(frozen=True, kw_only=True)
class Sharded(Design):
    """`ceiling`: of all shards together; each shard of the inner design is given its part."""

    inner: SingleItem
    shards: int = 8
    ceiling: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sdk_attempts", self.inner.sdk_attempts)

    @property
    def claims(self) -> Claims:
        return replace(self.inner.claims, history=False)

    def add(self, counter: str, change: int, key: str, at_ms: int) -> Program[Outcome]:
        first = zlib.crc32(key.encode())
        for step in range(self.shards):
            shard = (first + step) % self.shards
            part = replace(self.inner, ceiling=self._part(self.ceiling, shard))
            outcome = yield from part.add(counter, change, key, at_ms, shard)
            if outcome != "refused":
                return outcome
        return "refused"

    def value(self, counter: str, *, consistent: bool = True) -> Program[int]:
        keys = tuple(self.inner.item_key(counter, shard) for shard in range(self.shards))
        found: tuple[Item | None, ...] = yield GetMany(keys, consistent)
        return sum(map(self.inner.amount, found))

    def housekeep(self, counter: str, region: str) -> Program[None]:
        return self.inner.housekeep(counter, region)

    def _part(self, limit: int | None, shard: int) -> int | None:
        return None if limit is None else limit // self.shards + (shard < limit % self.shards)
