"""The program `outcomes` reads all that a lane decided: what its gate has, and what that has filed.

Rule 1: a history has what the gate has not filed, and what segments and late entries of its version
or older list. It must have as many changes as the gate counts, else it is read again, because a
roll came between.
"""

from collections.abc import Iterable

from ledger.core.errors import NotYetReplicated
from ledger.core.requests import Get, Item, Program
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.gate import Gate, counts
from ledger.gate.items import Filed
from ledger.lane.tail import every_item

TRIES_MAX = 5

Listed = tuple[int, str, int]
"""(version, token, outcome), once for each time that it is listed."""


def outcomes(lane: Lane, *, consistent: bool) -> Program[dict[str, int]]:
    """Every token that the lane decided, in order, with its outcome.

    All changes are there. From copies, in a Region that lags, refusals and holds that ended without
    a change may be missing, because the gate does not count them. Raises NotYetReplicated,
    DamagedItem and the TableErrors.
    """
    for _ in range(TRIES_MAX):
        item: Item | None = yield Get(items.gate_key(lane), consistent)
        if item is None:
            return {}
        gate = items.gate_of(lane, item)
        segments, late = yield from past_in(lane, consistent=consistent)
        filed = filed_by(gate, [*late, *entries_of(segments)])
        if sum(map(counts, filed.values())) == gate.count:
            return dict(sorted((filed | dict(gate.recent)).items()))
    raise NotYetReplicated(
        f"{lane}: not all that its gate counts is in this Region yet. Nothing was written. Call "
        "again later."
    )


def filed_by(gate: Gate, listed: Iterable[Listed]) -> dict[str, int]:
    """The outcomes that the gate filed by its own count: listed up to its version, and no longer
    in it.
    """
    return {
        token: n
        for version, token, n in listed
        if version <= gate.version and token not in gate.recent
    }


def entries_of(segments: Iterable[Filed]) -> list[Listed]:
    return [
        (filed.version, token, outcome)
        for filed in segments
        for token, outcome in filed.outcomes.items()
    ]


def past_in(lane: Lane, *, consistent: bool) -> Program[tuple[list[Filed], list[Listed]]]:
    """The segments, in the order of their `hi`, and the late entries."""
    segments: list[Filed] = []
    late: list[Listed] = []
    for item in (yield from every_item(items.past_pk(lane), None, None, consistent=consistent)):
        if item["sk"]["S"].startswith(items.SEGMENTS_FROM):
            segments.append(items.filed_of(lane, item))
        else:
            token, outcome, version = items.late_of(lane, item)
            late.append((version, token, outcome))
    return segments, late
