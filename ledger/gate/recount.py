"""The programs that read limited lanes whole: their standing, all that they decided, and a recount
of that, `audited`.

Rule 1: a counter's value is the sum of its gates' values. A read takes copies of other Regions'
gates, each of its own moment, so it may have a sale without the rights that came for it. It is
*closed* when it has every amount that was
taken over as given, too: then it is certainly within the limit.
Rule 2: a history has what the gate has not filed, and what segments and late entries of its version
or older list. It must have as many changes as the gate counts, else it is read again, because a
roll came between.
Rule 3: an audit writes nothing. It reads each lane strongly at its home, and again if its gate
changed meanwhile.
Rule 4: every token has one outcome, however many copies list it. Those that are listed up to the
gate's version, and are not in the gate, give its `total` and `count`. Those above that version are
in the gate, with the same outcome.
Rule 5: the rights of a gate are its first ones, its value and what it got, less what it gave and
what its holds keep. An audit reads a lane that got rights before it reads the giver again, which
can only have given more since.
Rule 6: an audit misses a gate by the same traces that forbid making it anew (gates.py): what its
lane filed, and what another gate has from it or for it. Somebody may have made it meanwhile, so the
audit reads it once more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ledger.core.errors import GaveUp, NotYetReplicated
from ledger.core.limit import DOWN, UP
from ledger.core.requests import Get, GetMany, Item, Program
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.gate import Gate, change_of, counts, name_of, shares
from ledger.gate.gates import Gates
from ledger.gate.items import Filed
from ledger.lane.tail import every_item

TRIES_MAX = 5
GONE = "its gate is gone"

Listed = tuple[int, str, int]
"""(version, token, outcome), once for each time that it is listed."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The gates of a counter as one Region has them; a missing gate has decided nothing."""

    gates: tuple[Gate, ...]

    @classmethod
    def of(cls, gates: Gates, found: Sequence[Item | None]) -> "Standing":
        """The standing in the items of the gates, in the order of the lanes.

        Raises DamagedItem and LimitMismatch.
        """
        there = zip(gates.lanes, found, strict=True)
        return cls(tuple(gates.gate(lane, item) for lane, item in there if item is not None))

    def has_opened(self, gates: Gates) -> bool:
        """Whether it has the gate with the first rights, and so the limit as it is set."""
        return any(gates.limit.opens(gate.lane.region, gate.lane.shard) for gate in self.gates)

    @property
    def value(self) -> int:
        return sum(gate.value for gate in self.gates)

    @property
    def count(self) -> int:
        return sum(gate.number for gate in self.gates)

    @property
    def is_closed(self) -> bool:
        """Whether it has, for every lane that got rights, the giver with at least as much given."""
        known = {name_of(gate.lane): gate for gate in self.gates}
        return all(
            name in known and known[name].given.get((name_of(gate.lane), side), 0) >= got
            for gate in self.gates
            for (name, side), got in gate.got.items()
        )


def standings(counters: Sequence[Gates], *, consistent: bool) -> Program[list[Standing]]:
    """The standing of counters in this Region, by one request.

    Raises DamagedItem, LimitMismatch and TableErrors.
    """
    keys = tuple(items.gate_key(lane) for gates in counters for lane in gates.lanes)
    found = iter((yield GetMany(keys, consistent)))
    return [Standing.of(gates, [next(found) for _ in gates.lanes]) for gates in counters]


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
        left = filed_by(gate, [*late, *_entries_of(segments)])
        if sum(map(counts, left.values())) == gate.count:
            return dict(sorted((left | dict(gate.recent)).items()))
    raise NotYetReplicated(
        f"{lane}: not all that its gate counts is here yet. Nothing was written. Call again later."
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


def _entries_of(segments: Iterable[Filed]) -> list[Listed]:
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


Audited = dict[Lane, tuple[Gate | None, list[str]]]


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
        return [*self.late, *_entries_of(self.segments)]

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
    """The gate of each lane, None where there is none, and what is wrong with it. Raises GaveUp,
    DamagedItem, LimitMismatch and the TableErrors."""
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
    missed = {name for gate in known.values() for name in gate.others}
    for lane, (gate, wrong) in answer.items():
        if gate is None and not wrong and name_of(lane) in missed:
            again: Item | None = yield gates.at(lane, Get(items.gate_key(lane)))
            wrong += [GONE] if again is None else []
    for gate in known.values():
        for (name, side), got in gate.got.items():
            giver, to = known.get(name), (name_of(gate.lane), side)
            given = giver.given.get(to, 0) if giver else 0
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


def rights_due(gate: Gate, held: Mapping[str, int]) -> dict[str, int]:
    """The rights that follow from its limit, if it had the first ones, and what it decided,
    holds, gave and got.
    """
    down, up = shares(held.values())
    return {
        side: toward * (gate.value - (gate.bounds[side] or 0)) - kept + gate.received(side)
        for side, toward, kept in ((DOWN, 1, down), (UP, -1, up))
    }
