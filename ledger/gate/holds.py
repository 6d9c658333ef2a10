"""How a hold ends: by a capture, or by a release. (A process that is short ends a hold whose time
is over: move.py.)

Rule 1: a hold's own token decides its end: in the gate IF the hold is there as it was granted; a
filed hold is decided as any token that is looked up. The unused part goes back in the same Update,
and the used part brings the opposite right. Then the note of a filed hold is deleted; a note that
stays is harmless.
"""

from contextlib import suppress

from ledger.core.errors import LedgerError, NoSuchHold
from ledger.core.limit import SIDES
from ledger.core.requests import Program, Written
from ledger.core.running import Doubt
from ledger.core.values import Delta, Receipt
from ledger.gate import updates
from ledger.gate.answer import Decision, ended
from ledger.gate.filing import forget, perhaps_roll, write
from ledger.gate.gate import REFUSED, RELEASED
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.past import find


def end(gates: Gates, held: Delta, outcome: int) -> Program[Decision]:
    """End a hold of `held.change`, as it was granted, with a change that counts, RELEASED or
    EXPIRED; or find how it had ended. Raises NoSuchHold, and what `decide_change` raises but
    OutOfReach."""
    with Doubt() as doubt:
        return (yield from _ended(gates, held, outcome, doubt))


def _ended(gates: Gates, held: Delta, outcome: int, doubt: Doubt) -> Program[Decision]:
    lane, token, amount, limit = held.lane, held.token, held.change, gates.limit
    granted = gates.sold_out.is_in_gate(lane.counter, token)
    for _ in range(TRIES_MAX):
        known, filed = (
            (Decision(held=amount), None) if granted else (yield from find(gates, lane, token))
        )
        if known is None or known.outcome == REFUSED:
            raise NoSuchHold(
                f"{lane}: there is no hold {token}: nobody granted it, or its id is damaged or "
                "belongs to another counter. Nothing was written. Use the id of the hold as `hold` "
                "returned it."
            )
        if known.held is None:
            return known
        if known.held != amount:
            raise NoSuchHold(
                f"{lane}: the hold {token} is of {known.held}, not of {amount}: its id is "
                "damaged. Nothing was written. Use the id of the hold as `hold` returned it."
            )
        granted = False
        update = updates.end(lane, limit, {token: amount}, outcome, filed)
        answer = doubt.note((yield from write(gates, lane, update)))
        if isinstance(answer, Written):
            gates.sold_out.forget(lane.counter, *SIDES)
            gates.sold_out.ended(lane.counter, filed=filed is not None)
            if filed is not None:
                with suppress(LedgerError):  # the hold has ended, whatever becomes of its note
                    yield from forget(gates, lane, {token: amount})
            yield from perhaps_roll(gates, lane, answer.item, token)
            return Decision(outcome, before=False)
    raise gave_up(lane)


def capture(gates: Gates, held: Delta, amount: int) -> Program[Receipt]:
    """Count a part of a hold.

    Raises HoldEnded, NoSuchHold and what `add` raises, without a delta.
    """
    decision = yield from end(gates, held, amount)
    if decision.outcome != amount:
        raise ended(held, decision.outcome)
    return Receipt(
        "replayed" if decision.before else "recorded", Delta(held.lane, held.token, amount)
    )


def release(gates: Gates, held: Delta) -> Program[None]:
    """Let a hold go. Raises as `capture`, but nothing where it was released before."""
    decision = yield from end(gates, held, RELEASED)
    if decision.outcome != RELEASED:
        raise ended(held, decision.outcome)
