"""What a token stands for, and what its caller is answered: pure.

Rule 1: who asks for something else under a token that is taken gets a TokenConflict, or how the hold ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from ledger.errors import HoldEnded, LimitReached, TokenConflict
from ledger.gate.gate import EXPIRED, REFUSED, RELEASED, change_of
from ledger.gate.gates import Left
from ledger.gate.past import Known
from ledger.values import Delta, Receipt

STATES: Mapping[int | None, str] = {RELEASED: "released", EXPIRED: "expired"}


@dataclass(frozen=True, slots=True)
class Decision:
    """What a token stands for. before: it was decided before this call. left: what was seen, of a refusal."""

    known: Known
    before: bool
    left: Left = field(default=Left(), compare=False)


def receipt(delta: Delta, decision: Decision) -> Receipt:
    known = decision.known
    if known.outcome == REFUSED:
        _refused(delta, decision)
    if known.held is not None:
        _conflict(delta, f"a hold of {known.held}")
    if known.outcome in STATES:
        _conflict(delta, f"a hold that was {STATES[known.outcome]}")
    if known.outcome != delta.change:
        _conflict(delta, f"a change of {known.outcome}")
    return Receipt("replayed" if decision.before else "recorded", delta)


def check_granted(delta: Delta, decision: Decision) -> None:
    """Raises HoldEnded, LimitReached and TokenConflict, where its token does not stand for this hold."""
    known = decision.known
    if known.held not in (None, delta.change):
        _conflict(delta, f"a hold of {known.held}")
    if known.outcome == REFUSED:
        _refused(delta, decision)
    if known.outcome is not None:
        raise ended(delta, known.outcome)


def ended(held: Delta, outcome: int | None) -> HoldEnded:
    state, actual = STATES.get(outcome, "captured"), change_of(outcome or 0)
    what = f"captured: {actual} of {held.change} counts" if state == "captured" else f"{state}: nothing of it counts"
    return HoldEnded(f"{held.lane.counter}: the hold {held.token} was {what}. Nothing was written.", state, actual)


def _refused(delta: Delta, decision: Decision) -> NoReturn:
    limit, available, remembered = decision.left
    detail = f" of {limit}; all Regions together had {available} left" if limit is not None else ""
    detail += " up to a second ago" if remembered else ""
    raise LimitReached(
        f"{delta.lane.counter}: {delta.change} would pass the limit{detail}. Nothing counts, and "
        "that is final for this token: a new attempt needs a new idempotency key.",
        **decision.left._asdict(),
    )


def _conflict(delta: Delta, what: str) -> NoReturn:
    raise TokenConflict(
        f"{delta.lane.counter}: the token {delta.token} already stands for {what}, not for {delta.change}. Nothing was "
        "written; what it stands for counts. A new change needs a new idempotency key."
    )
