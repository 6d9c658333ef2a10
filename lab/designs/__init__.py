"""Every published way of counting in DynamoDB, behind one interface; `every` lists them as they are
compared.

Rule 1: A file is one design, written as its author would defend it, with its promises, its limits
and its source.
Rule 2: On the simulator `simulated.py` runs its programs, on an engine `trial.py`. To read:
`design.py`, `atomic.py`, `transactions.py`, then any.
"""

from lab.designs.atomic import Atomic
from lab.designs.design import Claims, Design, Memory, Outcome
from lab.designs.gap_free import GapFree
from lab.designs.hybrid import Hybrid
from lab.designs.item_collection import ItemCollection, NaiveMerge, Ours, Packed
from lab.designs.optimistic import EntityTag, OnValue, OptimisticHistory
from lab.designs.powertools import Powertools
from lab.designs.sharded import Sharded
from lab.designs.string_set import StringSet
from lab.designs.transactions import TransactionMarker, TransactionToken
from lab.designs.with_limit import Limited
from ledger.core.settings import Settings

__all__ = ["Claims", "Design", "Memory", "Outcome", "every"]

DAY_MS = 86_400_000


def every(settings: Settings) -> tuple[Design, ...]:
    """All of them. `settings`: those of this library, whose Region is where its lane is."""
    return (
        Atomic(name="atomic ADD"),
        Atomic(name="atomic ADD, no retries", sdk_attempts=1),
        EntityTag(),
        OnValue(),
        OptimisticHistory(),
        TransactionToken(),
        TransactionMarker(),
        TransactionMarker(name="transaction, marker with TTL", keep_ms=7 * DAY_MS),
        Powertools(),
        ItemCollection(settings=settings),
        NaiveMerge(settings=settings),
        StringSet(),
        Sharded(name="sharded atomic ADD", inner=Atomic()),
        Sharded(name="sharded transaction, marker", inner=TransactionMarker()),
        GapFree(),
        Hybrid(),
        Ours(settings=settings),
        Packed(settings=settings),
        Packed(name="this library, group commit", settings=settings, together=1, gathers=True),
        Limited(settings=settings),
        Limited(name="this library, a limit, group commit", settings=settings, gathers=True),
    )
