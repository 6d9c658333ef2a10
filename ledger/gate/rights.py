"""The rights of a counter's gates, as they follow from what all of them decided, hold and moved. No request.

Rule 1: what was on its way between two lanes has arrived: what was given and what was got are the higher of both.
Rule 2: rights are moved, as given and got, until no lane owes some while another has some.
Rule 3: what all lanes together lack stays owed, as rights below 0. Every Update asks for the rights that it takes, so
the value goes no further beyond its limit than it is; and who owes and needs some is given them by the others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ledger.gate.audit import Books, rights_due
from ledger.gate.gate import Gate, name_of

Way = tuple[str, str, str]
"""(giver, taker, side)"""


def settle(found: Sequence[Books], seen: Sequence[Gate]) -> list[Gate]:
    """The gates, each beside the books of its lane, with the rights and the cells that are theirs."""
    kept = [(gate, {**gate.held, **each.open(gate)}) for each, gate in zip(found, seen, strict=True)]
    sent = _sent(seen)
    due = [_due(*each, sent) for each in kept]
    for way, amount in list(_moves(due)):
        sent[way] = sent.get(way, 0) + amount
    return [_due(*each, sent) for each in kept]


def _sent(seen: Iterable[Gate]) -> dict[Way, int]:
    """What went from lane to lane, ever, as the one or the other of them knows more of it."""
    sent: dict[Way, int] = {}
    for gate in seen:
        name = name_of(gate.lane)
        cells = [((name, to, side), n) for (to, side), n in gate.given.items()]
        cells += [((giver, name, side), n) for (giver, side), n in gate.got.items()]
        for way, amount in cells:
            sent[way] = max(sent.get(way, 0), amount)
    return sent


def _due(gate: Gate, held: Mapping[str, int], sent: Mapping[Way, int]) -> Gate:
    """The gate with all that was sent from it and to it, and the rights that follow."""
    name = name_of(gate.lane)
    given = {(taker, side): n for (giver, taker, side), n in sent.items() if giver == name}
    got = {(giver, side): n for (giver, taker, side), n in sent.items() if taker == name}
    settled = replace(gate, given=given, got=got)
    due = rights_due(settled, held)
    return replace(settled, rights={side: due[side] for side in gate.rights})


def _moves(due: Sequence[Gate]) -> Iterator[tuple[Way, int]]:
    """What goes from those that have some to those that owe some."""
    for side in due[0].rights:
        left = {name_of(gate.lane): gate.rights[side] for gate in due}
        for taker in left:
            for giver in left:
                amount = min(left[giver], -left[taker])
                if amount > 0:
                    left[giver], left[taker] = left[giver] - amount, left[taker] + amount
                    yield (giver, taker, side), amount
