"""The program `balances`: the balances of several counters, read together.

Rule 1: those without a limit are summed from checkpoints and tails (read.py), those with one from their gates, which
hold it all: one request for any number of them.
"""

from collections.abc import Sequence

from ledger.checks import to_datetime
from ledger.gate.gates import Gates
from ledger.requests import Program
from ledger.settings import Settings
from reader.balance import Balance
from reader.read import LaneSum, read
from reader.standing import read_gates


def balances(
    counters: Sequence[str], settings: Settings, *, consistent: bool, behind_ms: int = 0
) -> Program[dict[str, Balance]]:
    """Raises DamagedItem, LimitMismatch, ReadTooSlow, Unavailable and the other TableErrors."""
    limited = {counter: gates for counter in counters if (gates := Gates.of(settings, counter)) is not None}
    plain = [counter for counter in counters if counter not in limited]
    found: dict[str, Balance] = {}
    if limited:
        began, seen = yield from read_gates([*limited.values()], consistent=consistent)
        for counter, copies in zip(limited, seen, strict=True):
            sums = [LaneSum(gate.lane, gate.value, gate.number) for gate in copies.gates]
            found[counter] = _balance(sums, began.wall_ms, settings.regions, closed=copies.is_closed)
    if plain:
        lanes = [lane for counter in plain for lane in settings.lanes_of(counter)]
        limit_ms = settings.read_time_max_ms
        began, lane_sums = yield from read(lanes, consistent=consistent, read_time_max_ms=limit_ms, behind_ms=behind_ms)
        by_counter: dict[str, list[LaneSum]] = {counter: [] for counter in plain}
        for lane_sum in lane_sums:
            by_counter[lane_sum.lane.counter].append(lane_sum)
        for counter, sums in by_counter.items():
            found[counter] = _balance(sums, began.wall_ms, settings.regions, closed=True)
    return found


def _balance(sums: Sequence[LaneSum], began_ms: int, regions: Sequence[str], *, closed: bool) -> Balance:
    by_region = dict.fromkeys(regions, 0)
    for lane_sum in sums:
        by_region[lane_sum.lane.region] += lane_sum.value
    oldest_ms = min((s.oldest_ms for s in sums if s.oldest_ms is not None), default=None)
    return Balance(
        value=sum(by_region.values()),
        count=sum(s.count for s in sums),
        as_of=to_datetime(min([began_ms, *(s.until_ms for s in sums if s.until_ms is not None)])),
        pending=sum(s.pending for s in sums),
        by_region=by_region,
        oldest_pending=None if oldest_ms is None else to_datetime(oldest_ms),
        closed=closed,
    )
