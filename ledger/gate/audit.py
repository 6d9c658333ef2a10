"""The program `audit`: what a counter's gates hold, recounted from all that they ever filed. It writes nothing.

Rule 1: each lane is read strongly at its home, and again if its gate was written meanwhile.
Rule 2: every outcome is listed once, whatever copies there are; what is listed up to the gate's version, and is not in
the gate, is what its `total` and `count` say. What is listed above it is in the gate, with the same outcome.
Rule 3: the rights of a gate are its first ones, its value, what it got, less what it gave and what holds keep. What a
lane got is read before the lane that gave it, which can only have given more since.
Rule 4: a gate is missed by the very traces by which nobody makes it anew (gates.py): what its lane filed, and what
another gate has from it or for it. It may have been made meanwhile, so it is asked for once more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ledger.errors import GaveUp
from ledger.gate import items
from ledger.gate.filed import Filed
from ledger.gate.gate import Gate, name_of, shares
from ledger.gate.gates import Gates
from ledger.gate.outcome import change_of, counts
from ledger.gate.standing import Listed, entries_of, filed_by, past_in
from ledger.limit import DOWN, UP
from ledger.paging import Pages
from ledger.requests import Get, Item, Page, Program, Query
from ledger.values import Lane

TRIES_MAX = 5
GONE = "its gate is gone"


Audited = dict[Lane, tuple[Gate | None, list[str]]]


@dataclass(frozen=True, slots=True)
class Books:
    """All that stands at a lane's home. notes: of filed holds."""

    lane: Lane
    item: Item | None
    segments: Sequence[Filed]
    late: Sequence[Listed]
    notes: dict[str, int]

    @property
    def listed(self) -> list[Listed]:
        return [*self.late, *entries_of(self.segments)]

    @property
    def outcomes(self) -> dict[str, int]:
        """What is listed, whatever its version."""
        return {token: outcome for _, token, outcome in self.listed}

    def open(self, gate: Gate) -> dict[str, int]:
        """The filed holds that go on: their tokens are decided nowhere."""
        known = gate.recent.keys() | gate.held.keys() | self.outcomes.keys()
        return {token: amount for token, amount in self.notes.items() if token not in known}


def books(gates: Gates, lane: Lane) -> Program[Books]:
    """Raises DamagedItem and the TableErrors."""
    return gates.home(lane, _books(lane))


def _books(lane: Lane) -> Program[Books]:
    item: Item | None = yield Get(items.gate_key(lane))
    segments, late = yield from past_in(lane, consistent=True)
    notes: dict[str, int] = {}
    pages = Pages(Query(items.hold_pk(lane)))
    while pages.more:
        page: Page = yield from pages.read()
        notes |= dict(items.hold_of(lane, each) for each in page.items)
    return Books(lane, item, segments, late, notes)


def audit(gates: Gates) -> Program[list[str]]:
    """What is wrong, in sentences. Raises what `audited` does."""
    found = yield from audited(gates)
    return [f"{lane}: {each}" for lane, (_, wrong) in found.items() for each in wrong]


def audited(gates: Gates) -> Program[Audited]:
    """The gate of each lane, None where there is none, and what is wrong with it.

    Raises GaveUp, DamagedItem, LimitMismatch and the TableErrors.
    """
    answer: Audited = {}
    known: dict[str, Gate] = {}
    for lane in gates.lanes:
        found, gate = yield from _at_rest(gates, lane)
        if gate is None:
            answer[lane] = (None, [GONE] if found.listed or found.notes else [])
            continue
        known[name_of(lane)] = gate
        answer[lane] = (gate, [*_listed(found, gate), *_rights(found, gate)])
    missed = {name for gate in known.values() for name in gate.others}
    for lane, (gate, wrong) in answer.items():
        if gate is None and not wrong and name_of(lane) in missed:
            again: Item | None = yield gates.at(lane, Get(items.gate_key(lane)))
            wrong += [GONE] if again is None else []
    for gate in list(known.values()):
        for (name, side), got in gate.got.items():
            giver = known.get(name)
            given = giver.given.get((name_of(gate.lane), side), 0) if giver else 0
            if giver and given < got:
                giver = yield from gates.read(giver.lane)
                given = giver.given.get((name_of(gate.lane), side), 0)
            if given < got:
                answer[gate.lane][1].append(f"it got {got} of {side} from {name}, which gave {given}")
    return answer


def _at_rest(gates: Gates, lane: Lane) -> Program[tuple[Books, Gate | None]]:
    for _ in range(TRIES_MAX):
        found = yield from books(gates, lane)
        again: Item | None = yield gates.at(lane, Get(items.gate_key(lane)))
        if again == found.item:
            return found, gates.gate(lane, again) if again is not None else None
    raise GaveUp(f"{lane}: its gate was written {TRIES_MAX} times while it was recounted. Nothing was written.")


def _listed(found: Books, gate: Gate) -> list[str]:
    wrong = []
    told: dict[str, int] = {}
    for version, token, outcome in found.listed:
        if told.setdefault(token, outcome) != outcome:
            wrong.append(f"{token} is listed with two outcomes")
        known = gate.recent.get(token, outcome)
        if known != outcome:
            wrong.append(f"{token} is listed with another outcome than the gate has")
        if version > gate.version and token not in gate.recent:
            wrong.append(f"{token} is listed and was never decided")
        if token in gate.held:
            wrong.append(f"{token} is listed and held")
    filed = filed_by(gate, found.listed)
    total, count = sum(map(change_of, filed.values())), sum(map(counts, filed.values()))
    if (total, count) != (gate.total, gate.count):
        wrong.append(f"{count} changes of {total} are listed, and its gate says {gate.count} of {gate.total}")
    return wrong


def _rights(found: Books, gate: Gate) -> list[str]:
    due = rights_due(gate, {**gate.held, **found.open(gate)})
    return [
        f"its rights {side} are {gate.rights[side]}, and should be {due[side]}"
        for side in gate.rights
        if gate.rights[side] != due[side]
    ]


def rights_due(gate: Gate, held: Mapping[str, int]) -> dict[str, int]:
    """The rights that follow from its limit, if it had the first ones, and what it decided, holds, gave and got."""
    kept_down, kept_up = shares(held.values())
    due = {}
    for side, toward, kept in ((DOWN, 1, kept_down), (UP, -1, kept_up)):
        first = -toward * (gate.bounds[side] or 0)
        due[side] = first + toward * gate.value - kept + gate.received(side)
    return due
