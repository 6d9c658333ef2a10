"""What a gate decides: a change, a group of changes, a hold and the end of a hold.

Rule 1: a token is decided once, by one conditional Update, and a refusal is a decision, too; a second call is answered
as the first one was, for ever. The Update asks that the token is open; where it is not certain from the gate alone that
it is new, it is looked up first, and the Update asks that nothing was filed since.
Rule 2: where the rights are too few, the other lanes are asked for theirs. Refused is only what all lanes together
cannot take, and only while the rights here are still too few.
Rule 3: where a lane could not be asked nothing is decided (OutOfReach).
Rule 4: what the process remembers to be sold out is refused at once, if the rights here are still too few.
Rule 5: a group asks what each of its tokens would ask, and the rights that they need together. What is decided already
is answered, what may have been filed is looked up, and the rest travels again. Where the rights do not suffice for all,
each is decided alone: one refusal does not fail the others.
Rule 6: a hold's own token decides its end: in the gate IF the hold is there as it was granted; of one that was filed as
any token that is looked up. What was not used goes back in the same Update, and the opposite right comes with what was.
The note of a filed hold is deleted after that; one that stays is harmless.
Rule 7: an error of a change carries its delta; one of a hold carries none, because to apply it would be an add.
"""

from collections.abc import Mapping, Sequence

from ledger import tokens
from ledger.errors import InvalidTime, LedgerError, NoSuchHold
from ledger.gate import updates
from ledger.gate.answers import Decision, check_granted, ended, receipt
from ledger.gate.gate import REFUSED, RELEASED
from ledger.gate.gates import TRIES_MAX, Gates, Left, gave_up
from ledger.gate.move import forget, obtain
from ledger.gate.past import Known, find, known_in, look_up, perhaps_roll, slack_after, write
from ledger.lane.add import Outcome, failed
from ledger.limit import DOWN, SIDES, UP
from ledger.requests import Instant, Now, Program, Written
from ledger.tokens import until_ms
from ledger.values import Delta, Lane, Receipt

PAUSE_MS = 200
"""Whoever is short waits up to so long, two round trips across Regions, and looks again before it asks elsewhere: of
many who are short at once, the first to ask brings enough for all."""


def decide_change(gates: Gates, delta: Delta, *, hold: bool = False) -> Program[Decision]:
    """Decide a change or a hold. Raises OutOfReach, GateLost, LimitMismatch, GaveUp, DamagedItem and TableErrors."""
    lane, token = delta.lane, delta.token
    side, need = DOWN if delta.change < 0 else UP, abs(delta.change)  # the right that it takes, and how much of it
    seen: int | None = None
    slack_ms: int | None = None
    left: Left | None = None  # which is too little: it is refused
    for _ in range(TRIES_MAX):
        began: Instant = yield Now()
        left = left or gates.sold_out.knows(lane.counter, side, need, began)
        if left is not None:
            update = updates.refuse(lane, gates.limit, token, delta.change, seen)
        elif hold:
            update = updates.hold(lane, gates.limit, token, delta.change, seen)
        else:
            update = updates.decide(lane, gates.limit, {token: delta.change}, seen, slack_ms)
        answer = yield from write(gates, lane, update)
        if isinstance(answer, Written):
            if left is None:
                gates.sold_out.changed(lane.counter, delta.change)
            yield from perhaps_roll(gates, lane, answer.item, token)
            if left is not None:
                return Decision(Known(REFUSED), before=False, left=left)
            return Decision(Known(held=delta.change) if hold else Known(delta.change), before=False)
        if not answer:
            yield from gates.create(lane)
            continue
        gate = gates.gate(lane, answer)
        if (known := known_in(gate, token)) is not None:
            return Decision(known, before=True)
        if not gate.is_fresh(token) and gate.version != seen:
            if (found := (yield from look_up(gates, lane, token))) is not None:
                return Decision(found, before=True)
            seen, slack_ms = gate.version, slack_after(gate, token)
        elif need == 0 or not gates.limit.has(side) or gate.rights[side] >= need:
            gates.sold_out.forget(lane.counter, side)  # it came meanwhile
            left = None
        elif left is None:
            left = yield from obtain(gates, lane, side, need, tokens.draw(token, PAUSE_MS))
            if left is not None:
                gates.sold_out.note(lane.counter, side, need, began, left)
    raise gave_up(lane)


TRIES = 8  # how often a group travels before each goes alone
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
        late = [slack for token in unsure if (slack := slack_after(gate, token)) is not None]
        slack_ms = max(late, default=None)
    for token, change in left.items():
        try:
            decided[token] = yield from decide_change(gates, Delta(lane, token, change))
        except LedgerError as error:
            decided[token] = error
    return decided


def end(gates: Gates, held: Delta, outcome: int) -> Program[Decision]:
    """End a hold of `held.change`, as it was granted, with what counts, RELEASED or EXPIRED; or say how it had ended.
    Raises NoSuchHold, and what `decide_change` does but OutOfReach."""
    lane, token, amount, limit = held.lane, held.token, held.change, gates.limit
    for _ in range(TRIES_MAX):
        known, filed = yield from find(gates, lane, token)
        if known is None or known.outcome == REFUSED:
            raise NoSuchHold(
                f"{lane}: there is no hold {token}: it was never granted, or its id is damaged or of another counter. "
                "Nothing was written. Use the id as `hold` gave it."
            )
        if known.held is None:
            return Decision(known, before=True)
        if known.held != amount:
            raise NoSuchHold(
                f"{lane}: the hold {token} is of {known.held}, not of {amount}: its id is damaged. Nothing was "
                "written. Use the id as `hold` gave it."
            )
        answer = yield from write(gates, lane, updates.end(lane, limit, {token: amount}, outcome, filed))
        if isinstance(answer, Written):
            gates.sold_out.forget(lane.counter, *SIDES)
            if filed is not None:
                yield from forget(gates, lane, {token: amount})
            yield from perhaps_roll(gates, lane, answer.item, token)
            return Decision(Known(outcome), before=False)
    raise gave_up(lane)


def add(gates: Gates, delta: Delta) -> Program[Receipt]:
    """Raises LimitReached, TokenConflict, and what `decide_change` does, each with `delta`."""
    try:
        return receipt(delta, (yield from decide_change(gates, delta)))
    except LedgerError as error:
        error.delta = delta
        raise


def add_many(gates: Gates, deltas: Sequence[Delta]) -> Program[list[Outcome]]:
    """An answer for each of some changes of one lane, in order; those of a token go together."""
    first: dict[str, Delta] = {}
    for delta in deltas:
        first.setdefault(delta.token, delta)
    todo = list(first.values())
    decided: Decisions = {}
    for start in range(0, len(todo), updates.GROUP_MAX):
        some = {delta.token: delta.change for delta in todo[start : start + updates.GROUP_MAX]}
        decided |= yield from add_group(gates, todo[0].lane, some)
    return [_answer(delta, decided, is_first=delta is first[delta.token]) for delta in deltas]


def _answer(delta: Delta, decided: Mapping[str, Decision | LedgerError], *, is_first: bool) -> Outcome:
    decision = decided[delta.token]
    try:
        if isinstance(decision, LedgerError):
            return failed(decision, delta)
        return receipt(delta, decision if is_first else Decision(decision.known, before=True))
    except LedgerError as error:
        error.delta = delta
        return error


def hold(gates: Gates, delta: Delta) -> Program[None]:
    """Returns when the hold is granted, now or before. Raises HoldEnded, and what `add` does, without a delta."""
    now: Instant = yield Now()
    if until_ms(delta.token) <= now.wall_ms:  # a retry is told what became of it; nothing new is granted
        found, _ = yield from find(gates, delta.lane, delta.token)
        if found is None:
            raise InvalidTime("The hold would be over already: `expires` counts from `at`.")
        decision = Decision(found, before=True)
    else:
        decision = yield from decide_change(gates, delta, hold=True)
    check_granted(delta, decision)


def capture(gates: Gates, held: Delta, amount: int) -> Program[Receipt]:
    """Raises HoldEnded, NoSuchHold and what `add` does, without a delta."""
    decision = yield from end(gates, held, amount)
    if decision.known.outcome != amount:
        raise ended(held, decision.known.outcome)
    return Receipt("replayed" if decision.before else "recorded", Delta(held.lane, held.token, amount))


def release(gates: Gates, held: Delta) -> Program[None]:
    """Raises as `capture`; nothing where it was released before."""
    decision = yield from end(gates, held, RELEASED)
    if decision.known.outcome != RELEASED:
        raise ended(held, decision.known.outcome)
