"""The program `end`: a hold is captured (all of it or a part) or released, once.

Rule 1: its own token decides it: in the gate IF the hold is there as it was granted; of one that was filed as any token
that is looked up. So it ends once, however many ask, and every later call is told how.
Rule 2: what was not used goes back in the same Update, and the opposite right comes with what was.
Rule 3: the note of a filed hold is deleted after that. One that stays is harmless.
"""

from ledger.errors import NoSuchHold
from ledger.gate import updates
from ledger.gate.decide import Decision
from ledger.gate.expire import forget
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.look_up import Known, find
from ledger.gate.outcome import REFUSED
from ledger.gate.roll import perhaps_roll, write
from ledger.limit import SIDES
from ledger.requests import Program, Written
from ledger.values import Delta


def end(gates: Gates, held: Delta, outcome: int) -> Program[Decision]:
    """End a hold of `held.change`, as it was granted, with what counts, RELEASED or EXPIRED; or tell how it had ended.

    Raises NoSuchHold, GaveUp, GateLost, LimitMismatch, DamagedItem and the TableErrors.
    """
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
        answer = yield from write(gates, lane, updates.end(lane, limit, token, amount, outcome, filed))
        if isinstance(answer, Written):
            gates.sold_out.forget(lane.counter, *SIDES)
            if filed is not None:
                yield from forget(gates, lane, {token: amount})
            yield from perhaps_roll(gates, lane, answer.item, token)
            return Decision(Known(outcome), before=False)
    raise gave_up(lane)
