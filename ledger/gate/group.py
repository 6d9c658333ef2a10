"""The program `add_group`: many changes of one lane are decided in one Update, or each by itself.

Rule 1: the group asks what each of its tokens would ask, and the rights that they need together.
Rule 2: what is decided already is answered; what may have been filed is looked up; the rest travels again.
Rule 3: where the rights do not suffice for all, each is decided alone: one refusal does not fail the others.
"""

from collections.abc import Mapping

from ledger.errors import LedgerError
from ledger.gate import updates
from ledger.gate.decide import Decision, decide_change
from ledger.gate.gates import Gates
from ledger.gate.look_up import Known, known_in, look_up
from ledger.gate.roll import perhaps_roll, write
from ledger.requests import Program, Written
from ledger.values import Delta, Lane

TRIES = 8
"""How often a group travels before each goes alone."""

Decisions = dict[str, Decision | LedgerError]


def add_group(gates: Gates, lane: Lane, changes: Mapping[str, int]) -> Program[Decisions]:
    """A decision or an error for each token. At most GROUP_MAX. Raises nothing of what `add` raises."""
    decided: Decisions = {}
    left = dict(changes)
    seen: int | None = None
    slack_ms: int | None = None
    for _ in range(TRIES):
        if len(left) < 2:
            break
        try:
            answer = yield from write(gates, lane, updates.decide(lane, gates.limit, left, seen, slack_ms))
            if isinstance(answer, Written):
                decided |= {token: Decision(Known(change), before=False) for token, change in left.items()}
                gates.sold_out.changed(lane.counter, sum(left.values()))
                yield from perhaps_roll(gates, lane, answer.item, max(left), len(left))
                return decided
            if not answer:
                yield from gates.create(lane)
                continue
            gate = gates.gate(lane, answer)
            there = {token: known for token in left if (known := known_in(gate, token)) is not None}
            unsure = [token for token in left if token not in there and not gate.is_fresh(token)]
            if not there and (not unsure or seen == gate.version):
                break  # the rights are too few
            for token in unsure:
                known = yield from look_up(gates, lane, token)
                if known is not None:
                    there[token] = known
        except LedgerError:
            break  # what became of it each learns alone
        decided |= {token: Decision(known, before=True) for token, known in there.items()}
        left = {token: change for token, change in left.items() if token not in there}
        seen = gate.version if len(unsure) > len(there.keys() & set(unsure)) else None
        late = [slack for token in unsure if (slack := gate.slack_after(token, gates.filing)) is not None]
        slack_ms = max(late, default=None)
    for token, change in left.items():
        try:
            decided[token] = yield from decide_change(gates, Delta(lane, token, change))
        except LedgerError as error:
            decided[token] = error
    return decided
