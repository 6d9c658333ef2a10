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
    parts: dict[str, list[LaneSum]] = {}
    began_ms, is_closed = dict.fromkeys(counters, 0), dict.fromkeys(counters, True)
    if limited:
        began, seen = yield from read_gates([*limited.values()], consistent=consistent)
        for counter, copies in zip(limited, seen, strict=True):
            parts[counter] = [LaneSum(gate.lane, gate.value, gate.number) for gate in copies.gates]
            began_ms[counter], is_closed[counter] = began.wall_ms, copies.is_closed
    if plain:
        lanes = [lane for counter in plain for lane in settings.lanes_of(counter)]
        limit_ms = settings.read_time_max_ms
        began, lane_sums = yield from read(lanes, consistent=consistent, read_time_max_ms=limit_ms, behind_ms=behind_ms)
        began_ms |= dict.fromkeys(plain, began.wall_ms)
        for part in lane_sums:
            parts.setdefault(part.lane.counter, []).append(part)
    found: dict[str, Balance] = {}
    for counter, sums in parts.items():
        by_region = dict.fromkeys(settings.regions, 0)
        for part in sums:
            by_region[part.lane.region] += part.value
        oldest_ms = min((part.oldest_ms for part in sums if part.oldest_ms is not None), default=None)
        found[counter] = Balance(
            value=sum(by_region.values()),
            count=sum(part.count for part in sums),
            as_of=to_datetime(min([began_ms[counter], *(p.until_ms for p in sums if p.until_ms is not None)])),
            pending=sum(part.pending for part in sums),
            by_region=by_region,
            oldest_pending=None if oldest_ms is None else to_datetime(oldest_ms),
            closed=is_closed[counter],
        )
    return found
