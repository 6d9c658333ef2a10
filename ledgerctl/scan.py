"""The lanes of a table, found by a scan of its keys, with a progress bar."""

from compactor.lanes import every_lane
from ledger.values import Lane
from ledgerctl import show
from ledgerctl.call import Call


def lanes(call: Call, prefix: str = "") -> dict[Lane, int]:
    """Each lane of the counters that begin with `prefix`, and how many deltas it holds as items, in order.

    Says on standard error what the scan cost.
    """
    with show.bar(call.err, "scanning", None, count=False) as bar:
        found = call.run(every_lane(lambda lane: lane.counter.startswith(prefix), bar.advance))
    call.note(f"scanned the table for names: {show.cost(call.consumed.take())}")
    return {lane: holding.deltas for lane, holding in found.items()}


def counters_of(found: dict[Lane, int]) -> list[str]:
    return sorted({lane.counter for lane in found})
