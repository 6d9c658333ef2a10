"""The program `audited` counts the gates of a counter anew, from what they filed, and says what is
wrong with each.

Rule 1: an audit writes nothing. It reads each lane strongly at its home, and again if its gate
changed meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.core.errors import GaveUp
from ledger.core.requests import Get, Item, Program
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.gate import Gate, change_of, counts, name_of, rights_due
from ledger.gate.gates import Gates
from ledger.gate.history import TRIES_MAX, Listed, entries_of, filed_by, past_in
from ledger.gate.items import Filed
from ledger.lane.tail import every_item

GONE = "its gate is gone"

Audited = dict[Lane, tuple[Gate | None, list[str]]]
"""The gate of each lane, None where there is none, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Books:
    """All items at a lane's home. notes: of filed holds."""

    lane: Lane
    item: Item | None
    segments: Sequence[Filed]
    late: Sequence[Listed]
    notes: dict[str, int]

    @property
    def listed(self) -> list[Listed]:
        return [*self.late, *entries_of(self.segments)]

    def open(self, gate: Gate) -> dict[str, int]:
        """The filed holds that are still open: their tokens are decided nowhere."""
        known = gate.recent.keys() | gate.held.keys() | {token for _, token, _ in self.listed}
        return {token: amount for token, amount in self.notes.items() if token not in known}


def books(lane: Lane) -> Program[Books]:
    """Read the books of a lane; run it at the lane's home."""
    item: Item | None = yield Get(items.gate_key(lane))
    segments, late = yield from past_in(lane, consistent=True)
    notes = yield from every_item(items.hold_pk(lane), None, None, consistent=True)
    return Books(lane, item, segments, late, dict(items.hold_of(lane, note) for note in notes))


def audited(gates: Gates) -> Program[Audited]:
    """Raises GaveUp, DamagedItem, LimitMismatch and the TableErrors."""
    answer: Audited = {}
    known: dict[str, Gate] = {}
    for lane in gates.lanes:
        found, gate = yield from _at_rest(gates, lane)
        if gate is None:
            answer[lane] = (None, [GONE] if found.listed or found.notes else [])
            continue
        known[name_of(lane)] = gate
        due = rights_due(gate, {**gate.held, **found.open(gate)})
        off = [
            f"its rights {of} are {n}, and should be {due[of]}"
            for of, n in gate.rights.items()
            if n != due[of]
        ]
        answer[lane] = (gate, [*_listed(found, gate), *off])
    # A gate is gone where its lane filed something, or where another gate has rights from it or for
    # it: the traces that forbid making it anew (Gates.create). Somebody may have made it meanwhile,
    # so the audit reads it once more.
    missed = {name for gate in known.values() for name in gate.others}
    for lane, (gate, wrong) in answer.items():
        if gate is None and not wrong and name_of(lane) in missed:
            again: Item | None = yield gates.at(lane, Get(items.gate_key(lane)))
            wrong += [GONE] if again is None else []
    for gate in known.values():
        for (name, side), got in gate.got.items():
            giver, to = known.get(name), (name_of(gate.lane), side)
            given = giver.given.get(to, 0) if giver else 0
            # The giver is read again after the lane that got rights: it can only have given more.
            if giver and given < got:
                given = (yield from gates.read(giver.lane)).given.get(to, 0)
            if given < got:
                answer[gate.lane][1].append(
                    f"it got {got} of {side} from {name}, which gave {given}"
                )
    return answer


def _at_rest(gates: Gates, lane: Lane) -> Program[tuple[Books, Gate | None]]:
    for _ in range(TRIES_MAX):
        found = yield from gates.home(lane, books(lane))
        again: Item | None = yield gates.at(lane, Get(items.gate_key(lane)))
        if again == found.item:
            return found, gates.gate(lane, again) if again is not None else None
    raise GaveUp(
        f"{lane}: others wrote its gate during each of {TRIES_MAX} recounts. Nothing was written. "
        "Call again."
    )


def _listed(found: Books, gate: Gate) -> list[str]:
    """What is wrong with the lists of a lane.

    Every token has one outcome, however many copies list it. Those that are listed up to the gate's
    version, and are not in the gate, give its `total` and `count`. Those above that version are in
    the gate, with the same outcome.
    """
    wrong = []
    first: dict[str, int] = {}
    for version, token, outcome in found.listed:
        if first.setdefault(token, outcome) != outcome:
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
        wrong.append(
            f"{count} changes of {total} are listed, and its gate says {gate.count} of {gate.total}"
        )
    return wrong
