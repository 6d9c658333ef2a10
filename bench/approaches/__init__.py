"""Every published way of counting in DynamoDB, behind one interface; `every` lists them as they are compared.

Rules: a file is one approach, written as its author would defend it, with its promises, its limits and its source; on
the simulator `simulated.py` runs its programs, on an engine `table.py`. To read: `approach.py`, `atomic.py`,
`transaction_marker.py`, then any.
"""

from bench.approaches.actions import SetSum
from bench.approaches.approach import Approach, Claims, Memory, Outcome
from bench.approaches.atomic import Atomic
from bench.approaches.gap_free import GapFree
from bench.approaches.hybrid import Hybrid
from bench.approaches.item_collection import ItemCollection, NaiveMerge, Ours
from bench.approaches.optimistic import EntityTag, OnValue
from bench.approaches.optimistic_history import OptimisticHistory
from bench.approaches.sharded import Sharded
from bench.approaches.string_set import StringSet
from bench.approaches.transaction_marker import TransactionMarker
from bench.approaches.transaction_token import TransactionToken
from ledger.settings import Settings

__all__ = ["Approach", "Claims", "Memory", "Outcome", "every"]

DAY_MS = 86_400_000


def every(settings: Settings) -> tuple[Approach, ...]:
    """All of them. `settings`: those of this library, whose Region is where its lane is."""
    return (
        Atomic(name="atomic ADD"),
        Atomic(name="atomic ADD, no retries", sdk_attempts=1),
        Atomic(name="atomic SET if_not_exists", spelled_as=SetSum),
        EntityTag(),
        OnValue(),
        OptimisticHistory(),
        TransactionToken(),
        TransactionMarker(),
        TransactionMarker(name="transaction, marker with TTL", markers="markers", keep_ms=7 * DAY_MS),
        ItemCollection(settings=settings),
        NaiveMerge(settings=settings),
        StringSet(),
        Sharded(name="sharded atomic ADD", inner=Atomic()),
        Sharded(name="sharded transaction, marker", inner=TransactionMarker()),
        GapFree(),
        Hybrid(),
        Ours(settings=settings),
    )
