"""The program `open_holds`: the holds of a counter that go on, or whose time is over and that nobody has ended yet.

Rule 1: each lane is asked strongly at its home: its gate, then the notes of filed holds.
Rule 2: a note is no hold: its token is looked up, because the note of a decided one may stay.
"""

from ledger.gate import items
from ledger.gate.gates import Gates
from ledger.gate.past import look_up
from ledger.lane.tail import Pages
from ledger.requests import Get, Item, Page, Program, Query
from ledger.values import Delta, Lane


def open_holds(gates: Gates) -> Program[list[Delta]]:
    """What each set aside, those that end first, first. Raises LimitMismatch, DamagedItem and the TableErrors."""
    found: list[Delta] = []
    for lane in gates.lanes:
        found += yield from _of_lane(gates, lane)
    return sorted(found, key=lambda held: (items.hold_key(held.lane, held.token).sk, held.lane))


def _of_lane(gates: Gates, lane: Lane) -> Program[list[Delta]]:
    item: Item | None = yield gates.at(lane, Get(items.gate_key(lane)))
    if item is None:
        return []
    gate = gates.gate(lane, item)
    found = dict(gate.held)
    pages = Pages(Query(items.hold_pk(lane)))
    while pages.more:
        page: Page = yield from gates.home(lane, pages.read())
        for token, amount in (items.hold_of(lane, each) for each in page.items):
            if token in gate.recent or token in found:
                continue
            known = yield from look_up(gates, lane, token)
            if known is not None and known.outcome is None:
                found[token] = amount
    return [Delta(lane, token, amount) for token, amount in found.items()]
