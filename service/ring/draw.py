"""Which items ring.

Rule 1: An item with n changes rings with the probability n / fold_min, so that a lane rings about once while its tail
grows by as much as is worth a fold, and nobody counts.
Rule 2: The draw is by a hash of the item's key: the same record rings whenever it is read. It is not by the token's own
bits, because those are the shard.
"""

import hashlib

from ledger.requests import Key

RANGE = 2**64


def rings(key: Key, changes: int, fold_min: int) -> bool:
    digest = hashlib.sha256(f"{key.pk}\0{key.sk}".encode()).digest()
    return int.from_bytes(digest[:8], "big") * fold_min < RANGE * changes
