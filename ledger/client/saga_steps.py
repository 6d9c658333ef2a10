"""The steps of a transfer, as changes: debit, credit and refund, whose names follow from the whole
transfer.

Rule 1: the name of a step holds the transfer's key, source and target, and the lane follows from
the Region where the transfer was first requested. So any process that finishes it, in any Region,
repeats the same steps, and under the same key a transfer between two other counters has steps of
its own.
Rule 2: the amount is in no name. A transfer of another amount meets the steps of the first: a
TokenConflict.
Rule 3: these names are for ever, and public: docs/data-model.md.
"""

from datetime import datetime

from ledger.core import tokens
from ledger.core.checks import check_change, check_counter, check_key
from ledger.core.errors import InvalidChange, InvalidInput, InvalidKey, shown
from ledger.core.keys import at_of
from ledger.core.values import Change, Then

KEY_BYTES_MAX = 1_012
"""The longest key of a transfer, in bytes of UTF-8. It is part of the messages' format."""


def transfer_of(
    source: str,
    target: str,
    amount: int,
    idempotency_key: str,
    at: datetime | None,
    region: str | None = None,
) -> Change:
    """A transfer, as the change of its source and the one that follows. Raises InvalidInput."""
    number = check_change(amount)
    if number < 1:
        raise InvalidChange(
            f"A transfer is of 1 to 10**18, from the source to the target, not of {shown(amount)}."
        )
    source, target = check_counter(source), check_counter(target)
    key = check_key(idempotency_key)
    return checked(Change(source, -number, key, at_of(key, at), region, Then(target, number)))


def checked(change: Change) -> Change:
    """`change` itself, if it and the change that follows it are a transfer. Raises InvalidInput."""
    then: object = change.then
    if not isinstance(then, Then):
        raise InvalidInput(f"What follows a change is Then(counter, change), not {shown(then)}.")
    if check_change(change.change) >= 0 or check_change(then.change) != -change.change:
        changes = f"{shown(change.change)}, then {shown(then.change)}"
        raise InvalidChange(
            f"A transfer is a change below 0, then the same amount above 0, not {changes}."
        )
    if check_counter(then.counter) == check_counter(change.counter):
        raise InvalidInput(
            "A transfer has two counters, and both its source and its target are "
            f"{shown(change.counter, 80)}."
        )
    size_bytes = len(check_key(change.idempotency_key).encode())
    if size_bytes > KEY_BYTES_MAX:
        raise InvalidKey(
            f"The key of a transfer has at most {KEY_BYTES_MAX:,} bytes of UTF-8; this one has "
            f"{size_bytes:,}."
        )
    return change


def debit(of: Change) -> Change:
    """The first step of a transfer."""
    return Change(of.counter, of.change, _name("transfer/debit", of), of.at, of.region)


def credit(of: Change, region: str) -> Change:
    """The second step. region: that of the debit's lane."""
    assert of.then is not None
    return Change(of.then.counter, of.then.change, _name("transfer/credit", of), of.at, region)


def refund(of: Change, region: str, number: int) -> Change:
    """The last step, where the credit was refused: the refund after `number` others."""
    return Change(of.counter, -of.change, _name("transfer/refund", of, str(number)), of.at, region)


def _name(kind: str, of: Change, *more: str) -> tokens.Step:
    assert of.idempotency_key is not None
    assert of.then is not None
    return tokens.step(kind, of.idempotency_key, of.counter, of.then.counter, *more)
