"""The programs `decided` and `decided_page` read the changes that a lane's gate decided, all of
them or a page.

Rule 1: read the gate first (version v): all that is filed up to v was put before, and the rest is
in the gate.
Rule 2: segments come in the order of `hi` and may interleave; after one whose `low` is at or above
a token, none lists that token (ledger/gate/past.py). So a page reads on until such a segment.
Rule 3: an outcome that counts nothing, a refusal or a released hold, is no entry.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ledger.core import tokens
from ledger.core.requests import Get, Page, Program, Query
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.gate import Gate, counts
from ledger.gate.history import outcomes
from ledger.lane.tail import Pages
from reader.balance import Change, Entry, entries_of

SEGMENTS_AT_ONCE = 16


class Wanted(NamedTuple):
    """The entries of a page: the first `most` above `above`, at or below `upto`."""

    above: str | None
    upto: str | None
    most: int

    def has(self, token: str, outcome: int) -> bool:
        return (
            counts(outcome)
            and (self.above is None or token > self.above)
            and (self.upto is None or token <= self.upto)
        )


def decided(lane: Lane, *, consistent: bool) -> Program[list[Change]]:
    """Raises NotYetReplicated, DamagedItem and the TableErrors."""
    return _changes(lane, (yield from outcomes(lane, consistent=consistent)).items())


def decided_page(
    lane: Lane, above: str | None, upto: str | None, most: int, *, consistent: bool
) -> Program[list[Entry]]:
    """The first `most` entries above `above`, at or below `upto`.

    Raises DamagedItem and the TableErrors.
    """
    item = yield Get(items.gate_key(lane), consistent)
    if item is None:
        return []
    gate = items.gate_of(lane, item)
    wanted = Wanted(above, upto, most)
    found = {token: n for token, n in gate.recent.items() if wanted.has(token, n)}
    yield from _late(lane, gate, found, wanted, consistent)
    yield from _filed(lane, gate, found, wanted, consistent)
    return list(entries_of(_changes(lane, sorted(found.items())[:most])))


def _late(
    lane: Lane, gate: Gate, found: dict[str, int], wanted: Wanted, consistent: bool
) -> Program[None]:
    """Add late entries.

    They stand in the order of their tokens, so the lowest `most` are enough.
    """
    kept = 0
    after = f"{items.LATE_FROM}{wanted.above or ''}"
    pages = Pages(Query(items.past_pk(lane), after, items.LATE_UPTO, wanted.most, consistent))
    while pages.more and kept < wanted.most:
        page: Page = yield from pages.read()
        for item in page.items:
            token, outcome, version = items.late_of(lane, item)
            if wanted.upto is not None and token > wanted.upto:
                return
            if version <= gate.version and wanted.has(token, outcome):
                found.setdefault(token, outcome)
                kept += 1


def _filed(
    lane: Lane, gate: Gate, found: dict[str, int], wanted: Wanted, consistent: bool
) -> Program[None]:
    after = items.segments_from(wanted.above) if wanted.above else items.SEGMENTS_FROM
    pages = Pages(
        Query(items.past_pk(lane), after, items.SEGMENTS_UPTO, SEGMENTS_AT_ONCE, consistent)
    )
    while pages.more:
        page: Page = yield from pages.read()
        for item in page.items:
            filed = items.filed_of(lane, item)
            if filed.version <= gate.version:
                found |= {token: n for token, n in filed.outcomes.items() if wanted.has(token, n)}
            full = sorted(found)[wanted.most - 1] if len(found) >= wanted.most else wanted.upto
            if full is not None and filed.low >= full:
                return


def _changes(lane: Lane, decided: Iterable[tuple[str, int]]) -> list[Change]:
    return [(tokens.to_bytes(token), n, lane.region) for token, n in decided if counts(n)]
