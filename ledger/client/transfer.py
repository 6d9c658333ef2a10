"""The program `transfer` moves an amount from one counter to another, exactly once, in at most
three steps.

Rule 1: the debit comes first, then the credit, then, only where the credit is refused, the refund.
In between the amount is missing, never there twice. No step is a hold: one that is over before its
capture could be neither taken nor paid back.
Rule 2: a step is decided once, and for ever; no call goes on before the step is decided.
Rule 3: the source has no room for a refund if others took the room that the debit made. Then the
refund stays undecided, and the call raises TransferStuck: it writes nothing that the next call has
to read. A refund that was refused all the same, because somebody applied it alone, is final; then
all calls try the next name, in the same order, each only after a refusal of the one before. So at
most one refund counts.
"""

from __future__ import annotations

from itertools import count

from ledger.client import preparing, programs
from ledger.client import saga_steps as steps
from ledger.client.preparing import Rules
from ledger.core.errors import LedgerError, LimitReached, PeriodOver, TransferStuck
from ledger.core.requests import Program
from ledger.core.values import Change, Delta, Receipt, Transfer


def transfer(rules: Rules, of: Change) -> Program[Transfer]:
    """Raises TransferStuck, and what `add` raises but LimitReached: then run it again.

    PeriodOver is final.
    """
    first = preparing.prepare(rules, steps.debit(of))
    second = preparing.prepare(rules, steps.credit(of, first.lane.region))
    # Rule 4: both counters must take changes before the debit is added, by the clock and by the
    # table's shape. A transfer that is half-way when a period and its `late` are over stays so,
    # because a slower credit may be on its way.
    for delta in (first, second):
        rules.check_takes(delta)
    if not rules.shape.is_known:
        yield from rules.shape.program(first.lane.counter, second.lane.counter)
    try:
        debit = yield from programs.add(rules, first)
    except LimitReached:
        return Transfer("refused")
    try:
        return (yield from _after(rules, of, debit, second))
    except TransferStuck:
        raise
    except LedgerError as error:
        ends = (
            "No call finishes the transfer"
            if isinstance(error, PeriodOver)
            else "Call again: that finishes it"
        )
        error.leaves(f"{of.counter}: {of.change} counts. {ends}.")
        raise


def _after(rules: Rules, of: Change, debit: Receipt, second: Delta) -> Program[Transfer]:
    """The credit, or the refund of a debit whose credit is refused."""
    try:
        credit = yield from programs.add(rules, second)
    except LimitReached as refused:
        if (yield from _refund(rules, of, second.lane.region)):
            return Transfer("refunded", debit)
        raise TransferStuck(
            f"{of.counter}: {of.change} counts, {of.counter} has no room to take it back, and the "
            f"target had none for it. Nothing is lost. Make room in {of.counter}, then call again."
        ) from refused
    return Transfer("moved", debit, credit)


def _refund(rules: Rules, of: Change, region: str) -> Program[bool]:
    """Whether a refund counts. Otherwise there is no room for one, and nothing was decided."""
    for number in count():
        refund = preparing.prepare(rules, steps.refund(of, region, number))
        try:
            return (yield from programs.add_if_room(rules, refund)) is not None
        except LimitReached:
            pass
    raise AssertionError("unreachable")
