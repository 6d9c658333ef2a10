"""`decide_change` and `decide_hold` at a gate: one conditional Update decides, and a refusal is a decision, too.

Rule 1: a token is decided once. The Update asks that it is open; where it is not certain from the gate alone that it is
new, it is looked up first, and the Update asks that nothing was filed since.
Rule 2: where the rights are too few, the other lanes are asked for theirs. Refused is only what all lanes together
cannot take, and only while the rights here are still too few.
Rule 3: where a lane could not be asked nothing is decided (OutOfReach).
Rule 4: what the process remembers to be sold out is refused at once, if the rights here are still too few.
"""

from dataclasses import dataclass, field

from ledger import tokens
from ledger.gate import updates
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.look_up import Known, known_in, look_up
from ledger.gate.obtain import obtain
from ledger.gate.outcome import REFUSED
from ledger.gate.roll import perhaps_roll, write
from ledger.gate.sold_out import Left
from ledger.limit import DOWN, UP
from ledger.requests import Instant, Now, Program, Update, Written
from ledger.values import Delta

PAUSE_MS = 200
"""Whoever is short waits up to so long, two round trips across Regions, and looks again before it asks elsewhere: of
many who are short at once, the first to ask brings enough for all."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a token stands for. before: it was decided before this call. left: of a refusal, what was seen to be left;
    remembered: by an earlier call of this process."""

    known: Known
    before: bool
    left: Left = field(default=Left(), compare=False)
    remembered: bool = field(default=False, compare=False)


def decide_change(gates: Gates, delta: Delta) -> Program[Decision]:
    """Decide a change. Raises OutOfReach, GateLost, LimitMismatch, GaveUp, DamagedItem and the TableErrors."""
    return _decide(gates, delta, hold=False)


def decide_hold(gates: Gates, delta: Delta) -> Program[Decision]:
    """Decide a hold; its token says until when. Raises what `add` does."""
    return _decide(gates, delta, hold=True)


def _decide(gates: Gates, delta: Delta, *, hold: bool) -> Program[Decision]:
    lane, token, limit = delta.lane, delta.token, gates.limit
    seen: int | None = None
    slack_ms: int | None = None
    side, need, short = DOWN if delta.change < 0 else UP, abs(delta.change), False
    remembered = False
    for _ in range(TRIES_MAX):
        began: Instant = yield Now()
        if not short:
            short = remembered = gates.sold_out.knows(lane.counter, side, need, began)
        answer = yield from write(gates, lane, _asked(gates, delta, hold, short, seen, slack_ms))
        if isinstance(answer, Written):
            if not short:
                gates.sold_out.changed(lane.counter, delta.change)
            yield from perhaps_roll(gates, lane, answer.item, token)
            granted = Known(held=delta.change) if hold else Known(delta.change)
            if not short:
                return Decision(granted, before=False)
            left = gates.sold_out.left(lane.counter, side)
            return Decision(Known(REFUSED), before=False, left=left, remembered=remembered)
        if not answer:
            yield from gates.create(lane)
            continue
        gate = gates.gate(lane, answer)
        if (known := known_in(gate, token)) is not None:
            return Decision(known, before=True)
        if not gate.is_fresh(token) and gate.version != seen:
            known = yield from look_up(gates, lane, token)
            if known is not None:
                return Decision(known, before=True)
            seen, slack_ms = gate.version, gate.slack_after(token, gates.filing)
            continue
        if need == 0 or not limit.has(side) or gate.rights[side] >= need:
            gates.sold_out.forget(lane.counter, side)  # it came meanwhile
            short = False
        elif not short and not (yield from obtain(gates, lane, side, need, tokens.draw(token, PAUSE_MS))):
            gates.sold_out.note(lane.counter, side, need, began)
            short = True
    raise gave_up(lane)


def _asked(gates: Gates, delta: Delta, hold: bool, short: bool, seen: int | None, slack_ms: int | None) -> Update:
    if short:
        return updates.refuse(delta.lane, gates.limit, delta.token, delta.change, seen)
    if hold:
        return updates.hold(delta.lane, gates.limit, delta.token, delta.change, seen)
    return updates.decide(delta.lane, gates.limit, {delta.token: delta.change}, seen, slack_ms)
