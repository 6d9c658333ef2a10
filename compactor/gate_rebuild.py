"""The program `rebuild` writes the gates of a counter anew from what they filed, after a restore or
damage.

Rule 1: it is an operator's tool, while nobody writes the counter's gates. It writes a gate IF it is
as it was read.
Rule 2: a listed token is decided for ever, whatever its version: in the table's truth, or in a
future that a restore undid. A gate keeps the tokens that it has and nothing lists.
Rule 3: rights follow from what all gates together decided, hold and moved. The rights that all
lanes together lack stay below 0: every Update has the rights that it takes as its condition, so the
value goes no further beyond its limit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from compactor.gate_audit import Books, books
from ledger.core import tokens
from ledger.core.conditions import Absent, has
from ledger.core.errors import DamagedItem, GaveUp, LaneDamaged
from ledger.core.ranges import CHANGE_MAX
from ledger.core.requests import Item, Program, Put
from ledger.gate import items
from ledger.gate.gate import Gate, change_of, counts, name_of, rights_due
from ledger.gate.gates import Gates
from ledger.gate.history import filed_by

Way = tuple[str, str, str]
"""(giver, taker, side)"""


def settle(found: Sequence[Books], seen: Sequence[Gate]) -> list[Gate]:
    """The gates, in the order of the books of their lanes, with the rights and the cells that
    follow from all books.
    """
    kept = [
        (gate, {**gate.held, **read.open(gate)}) for read, gate in zip(found, seen, strict=True)
    ]
    # Rights on their way between two lanes have arrived.
    sent = _sent(seen)
    due = [_due(gate, held, sent) for gate, held in kept]
    # Then rights move until no lane is below 0 while others have some.
    for way, amount in list(_moves(due)):
        sent[way] = sent.get(way, 0) + amount
    return [_due(gate, held, sent) for gate, held in kept]


def _sent(seen: Iterable[Gate]) -> dict[Way, int]:
    """The rights that went from lane to lane, ever: the higher sum of what giver and taker know."""
    sent: dict[Way, int] = {}
    for gate in seen:
        name = name_of(gate.lane)
        cells = [((name, to, side), n) for (to, side), n in gate.given.items()]
        cells += [((giver, name, side), n) for (giver, side), n in gate.got.items()]
        for way, amount in cells:
            sent[way] = max(sent.get(way, 0), amount)
    return sent


def _due(gate: Gate, held: Mapping[str, int], sent: Mapping[Way, int]) -> Gate:
    """The gate with all rights that went from it and to it, and the rights that follow."""
    name = name_of(gate.lane)
    given = {(taker, side): n for (giver, taker, side), n in sent.items() if giver == name}
    got = {(giver, side): n for (giver, taker, side), n in sent.items() if taker == name}
    settled = replace(gate, given=given, got=got)
    due = rights_due(settled, held)
    return replace(settled, rights={side: due[side] for side in gate.rights})


def _moves(due: Sequence[Gate]) -> Iterator[tuple[Way, int]]:
    """Yield the rights that go from lanes that have some to lanes below 0."""
    for side in due[0].rights:
        left = {name_of(gate.lane): gate.rights[side] for gate in due}
        for taker in left:
            for giver in left:
                amount = min(left[giver], -left[taker])
                if amount > 0:
                    left[giver], left[taker] = left[giver] - amount, left[taker] + amount
                    yield (giver, taker, side), amount


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A lane after its rebuild. gate: as it was written.

    was: as it was read; None where it was missing or damaged: then what it had not filed is lost,
    and a limit that was set in it is unknown. lost: changes that it counted and nothing lists;
    lost_sum: their sum, which is in the value; below 0: so many more are listed than it counted,
    and they count. twice: tokens that it had decided otherwise than the list, which counts. late:
    the entries that were added.
    """

    gate: Gate
    was: Gate | None
    lost: int
    lost_sum: int
    twice: tuple[str, ...]
    late: Mapping[str, int]

    @property
    def told(self) -> list[str]:
        """Sentences that an operator must know."""
        lane = self.gate.lane
        sentences = []
        if self.was is None:
            sentences.append(
                "its gate could not be read: if there was one, what it had not filed is lost."
            )
        if self.lost > 0:
            sentences.append(
                f"{self.lost} changes of sum {self.lost_sum} are in the value and their tokens "
                "are lost: a retry of one of these counts again."
            )
        elif self.lost < 0:
            sentences.append(
                f"{-self.lost} listed changes of sum {-self.lost_sum} count now that its gate did "
                "not count."
            )
        if self.twice:
            sentences.append(
                "its gate had other outcomes for these tokens than the list, which counts: "
                f"{', '.join(self.twice)}."
            )
        sentences += [
            f"it lacks {-n} of {side}: the value is beyond the limit, and can go no further that "
            "way. When changes have brought the value back, rebuild once more."
            for side, n in self.gate.rights.items()
            if n < 0
        ]
        return [f"{lane}: {sentence}" for sentence in sentences]


def rebuild(gates: Gates) -> Program[list[Rebuilt]]:
    """Write each gate of a counter anew, while nobody writes any of them; also those that are
    missing or damaged.

    Where the gate that had the first rights is gone, the limit is that of the settings: call
    `set_limit` again where it had set another. Changes in the other direction bring back rights
    that are below 0. Until a rebuild after them, a lane that is not below 0 may take what came back
    to it.
    Raises GaveUp (somebody wrote a gate: stop that, then rebuild again before anybody writes),
    LaneDamaged (a token is listed with two outcomes: nothing was written), DamagedItem (of an item
    that is no gate: nothing was written), LimitMismatch and the TableErrors.
    """
    found: list[Books] = []
    for lane in gates.lanes:
        found.append((yield from gates.home(lane, books(lane))))
    alone = [_recounted(gates, read) for read in found]
    settled = settle(found, [made.gate for made in alone])
    rebuilt = [replace(made, gate=gate) for made, gate in zip(alone, settled, strict=True)]
    for made in rebuilt:
        for token, outcome in made.late.items():
            yield gates.at(
                made.gate.lane,
                Put(items.late_item(made.gate.lane, token, outcome, made.gate.version)),
            )
    for before, made in zip(found, rebuilt, strict=True):
        item = items.gate_item(made.gate)
        unchanged = has(before.item) if before.item is not None else Absent()
        answer: Item | None = yield gates.at(before.lane, Put(item, unchanged))
        if answer is not None and answer != item:
            raise GaveUp(
                f"{before.lane}: its gate changed meanwhile. It was not written; other gates may "
                "have been. Stop all processes that write it, then rebuild again."
            )
    return rebuilt


def _recounted(gates: Gates, found: Books) -> Rebuilt:
    """The gate that follows from the lists; its rights and cells are as they were."""
    lane, was = found.lane, None
    with suppress(DamagedItem):
        was = gates.gate(lane, found.item) if found.item is not None else None
    gate = was or Gate.new(lane, gates.limit)
    known = filed_by(gate, found.listed).values()
    lost, lost_sum = gate.count - sum(map(counts, known)), gate.total - sum(map(change_of, known))
    # Changes that the gate counts and nothing lists stay in its value, as one change with their
    # sum.
    late = (_correction(gate, lost, lost_sum) if lost > 0 else {}) | _missed(found)
    listed = _listed_once(found) | late
    recent = {token: outcome for token, outcome in gate.recent.items() if token not in listed}
    # `low` and `top` are at or above all known tokens and names of segments, so each known token is
    # looked up.
    highest = max(
        (
            gate.low,
            gate.top,
            *gate.recent,
            *gate.held,
            *listed,
            *found.notes,
            *(filed.hi for filed in found.segments),
        )
    )
    after = replace(
        gate,
        recent=recent,
        held={token: amount for token, amount in gate.held.items() if token not in listed},
        total=sum(map(change_of, listed.values())),
        count=sum(map(counts, listed.values())),
        version=max(gate.version, *(version for version, _, _ in found.listed), 0) + 1,
        low=highest,
        top=highest,
        moved=frozenset(),
    )
    twice = tuple(
        token for token, outcome in gate.recent.items() if listed.get(token, outcome) != outcome
    )
    return Rebuilt(after, was, lost, lost_sum, twice, late)


def _listed_once(found: Books) -> dict[str, int]:
    listed: dict[str, int] = {}
    for _, token, outcome in found.listed:
        if listed.setdefault(token, outcome) != outcome:
            raise LaneDamaged(
                f"{found.lane}: {token} is listed as {listed[token]} and as {outcome}. Nothing "
                "was written. Only a person can say which of them counts: correct the other."
            )
    return listed


def _correction(gate: Gate, lost: int, lost_sum: int) -> dict[str, int]:
    """Entries that keep a sum in the value.

    The same loss gives the same ones, so that a second run adds nothing.
    """
    entries: dict[str, int] = {}
    while lost_sum:
        part = max(-CHANGE_MAX, min(CHANGE_MAX, lost_sum))
        name = f"lost: {gate.lane} {gate.version} {lost} {lost_sum}"
        entries[tokens.keyed(gate.lane.counter, name, tokens.time_ms(gate.top))] = part
        lost_sum -= part
    return entries


def _missed(found: Books) -> dict[str, int]:
    """The entries that a look-up does not reach, because a lower segment ends it: somebody went on
    before the rebuild. They are put once more, as late entries, which each look-up reads.
    """
    missed: dict[str, int] = {}
    known = {token for _, token, _ in found.late}
    low = ""
    for filed in found.segments:
        missed |= {
            token: outcome
            for token, outcome in filed.outcomes.items()
            if token <= low and token not in known
        }
        known.update(filed.outcomes)
        low = max(low, filed.low)
    return missed
