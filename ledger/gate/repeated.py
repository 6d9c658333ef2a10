"""`shown_now` says what is left now beside a refusal that was decided before the call.

Rule 1: a refusal is final, so this decides nothing: it reads the gates once, in the process's own
Region, for the person who gets to see the refusal. A read that fails hides no refusal.
"""

from collections.abc import Mapping
from dataclasses import replace

from ledger.core.errors import LedgerError
from ledger.core.limit import DOWN, SIDES, UP
from ledger.core.requests import Instant, Now, Program
from ledger.core.values import Delta
from ledger.gate.answer import Decision
from ledger.gate.copies import read_copies
from ledger.gate.gate import Gate, shares
from ledger.gate.gates import Gates
from ledger.gate.left import Left, resets_at

LANES_MAX = 100
"""Lanes that one request reads; of a counter with more a repeated refusal says nothing."""

Decisions = dict[str, Decision | LedgerError]


def shown_now(gates: Gates, delta: Delta, decision: Decision) -> Program[Decision]:
    """The decision of a change; a refusal of before with what is left now."""
    if not decision.is_repeated:
        return decision
    return replace(decision, left=(yield from _left_now(gates))[_side(delta.change)])


def all_shown_now(
    gates: Gates, decided: Decisions, changes: Mapping[str, int]
) -> Program[Decisions]:
    """The decisions of several changes by token, as `shown_now`, by one request for all.

    changes: by token, too.
    """
    repeated = {
        token: decision
        for token, decision in decided.items()
        if isinstance(decision, Decision) and decision.is_repeated
    }
    left = (yield from _left_now(gates)) if repeated else {}
    return decided | {
        token: replace(decision, left=left[_side(changes[token])])
        for token, decision in repeated.items()
    }


def _side(change: int) -> str:
    return DOWN if change < 0 else UP


def _left_now(gates: Gates) -> Program[Mapping[str, Left]]:
    """By side.

    What holds that are over had set aside is left, because a call that is short of it ends them.
    """
    now: Instant = yield Now()
    unread = dict.fromkeys(SIDES, Left(resets_at=resets_at(gates.lanes[0], now)))
    if len(gates.lanes) > LANES_MAX:
        return unread
    try:
        (copies,) = yield from read_copies([gates], consistent=True)
    except LedgerError:
        return unread
    there = {gate.lane: gate for gate in copies.gates}
    seen = [there.get(lane) or Gate.new(lane, gates.limit) for lane in gates.lanes]
    left = {side: sum(gate.own(side) for gate in seen) for side in SIDES}
    for gate in seen:
        for side, amount in zip(SIDES, shares(gate.over(now.wall_ms).values()), strict=True):
            left[side] += amount
    return {
        side: unread[side]._replace(
            limit=gates.bound(side, copies.gates), available=max(0, left[side])
        )
        for side in SIDES
    }
