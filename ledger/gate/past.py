"""`look_up`, `look_up_all`, `outcomes_of` and `find` find the outcomes of tokens that left the
gate.

Rule 1: a look-up comes after a read of the gate, strongly, at the lane's home; a program acts on
its answer IF the gate's `version` is still the one that it read. Everything that was filed up to
that version had been put before.
Rule 2: a look-up reads segments upwards from the first whose `hi` is not below the token, until one
lists it, or one has `low` at or above it: a segment that lists the token comes before that one,
because `hi` never falls with the version. Copies of rolls that lost list only decided tokens, so
they answer as well as any.
Rule 3: many tokens are looked up by the same Queries, which skip a long stretch between two of
them. The tokens of a group may have one time, with thousands of others between them, so their late
entries and notes are read by key.
"""

from ledger.core.requests import Get, GetMany, Page, Program, Query, Together
from ledger.core.running import answered
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.answer import Decision, known_in
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.lane.tail import Pages

SEGMENTS_OF_PAGE = 4
LATE_OF_PAGE = 50


def look_up(gates: Gates, lane: Lane, token: str) -> Program[Decision | None]:
    """The decision of a token that the gate does not know.

    None: it was never decided, and is no hold.
    """
    pages = Pages(
        Query(
            items.past_pk(lane), items.segments_from(token), items.SEGMENTS_UPTO, SEGMENTS_OF_PAGE
        )
    )
    notes = Get(items.late_key(lane, token)), Get(items.hold_key(lane, token))
    late, hold, page = answered((yield gates.at(lane, Together((*notes, pages.next)))))
    pages.take(page)
    if late is not None:
        return Decision(items.late_of(lane, late)[1])
    listed = yield from gates.home(lane, _listed(lane, [token], pages, page))
    if token in listed:
        return Decision(listed[token])
    return Decision(held=items.hold_of(lane, hold)[1]) if hold is not None else None


def look_up_all(gates: Gates, lane: Lane, names: list[str]) -> Program[dict[str, Decision]]:
    """The decisions of tokens that the gate does not know, which come in order, 100 at most. It
    leaves out those that were never decided, and are no holds."""
    size = SEGMENTS_OF_PAGE + len(names)
    pages = Pages(
        Query(items.past_pk(lane), items.segments_from(names[0]), items.SEGMENTS_UPTO, size)
    )
    notes = [
        GetMany(tuple(key(lane, token) for token in names))
        for key in (items.late_key, items.hold_key)
    ]
    lates, holds, page = answered((yield gates.at(lane, Together((*notes, pages.next)))))
    pages.take(page)
    found = {
        token: Decision(items.late_of(lane, item)[1])
        for token, item in zip(names, lates, strict=True)
        if item
    }
    missing = [token for token in names if token not in found]
    listed = (yield from gates.home(lane, _listed(lane, missing, pages, page))) if missing else {}
    found |= {token: Decision(outcome) for token, outcome in listed.items()}
    for token, item in zip(names, holds, strict=True):
        if item and token not in found:
            found[token] = Decision(held=items.hold_of(lane, item)[1])
    return found


def find(gates: Gates, lane: Lane, token: str) -> Program[tuple[Decision | None, int | None]]:
    """The decision of a token, and the gate's version at which it was found filed (None: the
    gate knows it).
    """
    missed = -1
    for _ in range(TRIES_MAX):
        gate = yield from gates.read(lane)
        if (known := known_in(gate, token)) is not None:
            return known, None
        known = yield from look_up(gates, lane, token)
        if known is not None or missed == gate.version:
            return known, gate.version
        missed = gate.version  # it may have ended and been filed meanwhile: read the gate once more
    raise gave_up(lane)


def outcomes_of(lane: Lane, names: list[str]) -> Program[dict[str, int]]:
    """The outcomes of tokens that the gate does not know, which come in order.

    It runs at the lane's home.
    """
    found: dict[str, int] = {}
    missing = names
    while missing:
        upto = items.late_key(lane, names[-1]).sk
        page: Page = yield Query(
            items.past_pk(lane), items.late_from(missing[0]), upto, LATE_OF_PAGE
        )
        late = {
            token: outcome
            for token, outcome, _ in (items.late_of(lane, item) for item in page.items)
        }
        found |= {token: late[token] for token in missing if token in late}
        missing = [
            token
            for token in missing
            if page.last is not None and items.late_key(lane, token).sk > page.last
        ]
    if missing := [token for token in names if token not in found]:
        size = SEGMENTS_OF_PAGE + len(missing)
        pages = Pages(
            Query(items.past_pk(lane), items.segments_from(missing[0]), items.SEGMENTS_UPTO, size)
        )
        found |= yield from _listed(lane, missing, pages, (yield from pages.read()))
    return found


def _listed(
    lane: Lane, missing: list[str], pages: Pages[Query], page: Page
) -> Program[dict[str, int]]:
    """The outcomes that segments list, of tokens that come in order.

    page: the first, which the caller has read.
    """
    found: dict[str, int] = {}
    while True:
        for item in page.items:
            filed = items.filed_of(lane, item)
            found |= {token: filed.outcomes[token] for token in missing if token in filed.outcomes}
            missing = [token for token in missing if token not in found and token > filed.low]
        if not missing or not pages.more:
            return found
        pages.next = pages.next._replace(
            after=max(pages.next.after or "", items.segments_from(missing[0]))
        )
        page = yield from pages.read()
