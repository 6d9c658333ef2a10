"""The steps of a transfer, as changes: debit, credit and refund, whose keys follow from the transfer's key.

Rule 1: the key of each step follows from the transfer's key, and its lane from the Region where the transfer was first
requested. So any process that finishes it, in any Region, repeats the same steps.
Rule 2: the key of a transfer leaves room for what a step adds to it, so that no key is too long after a debit.
"""

from datetime import datetime

from ledger.checks import KEY_BYTES_MAX, check_change, check_counter, check_key
from ledger.errors import InvalidChange, InvalidInput, InvalidKey, shown
from ledger.values import Change, Then

LONGEST = "/back/999999"
"""The longest text that a step adds to the transfer's key."""


def transfer_of(
    source: str, target: str, amount: int, idempotency_key: str, at: datetime, region: str | None = None
) -> Change:
    """A transfer, as the change of its source and the one that follows. Raises InvalidInput."""
    number = check_change(amount)
    if number < 1:
        raise InvalidChange(f"A transfer is of 1 to 10**18, from the source to the target, not of {shown(amount)}.")
    return checked(Change(source, -number, check_key(idempotency_key), at, region, Then(target, number)))


def checked(change: Change) -> Change:
    """`change` itself, if it and the change that follows it are a transfer. Raises InvalidInput."""
    then: object = change.then
    if not isinstance(then, Then):
        raise InvalidInput(f"What follows a change is Then(counter, change), not {shown(then)}.")
    if check_change(change.change) >= 0 or check_change(then.change) != -change.change:
        changes = f"{shown(change.change)}, then {shown(then.change)}"
        raise InvalidChange(f"A transfer is of a change below 0, then of the same above 0, not of {changes}.")
    if check_counter(then.counter) == check_counter(change.counter):
        raise InvalidInput(f"A transfer has two counters, and source and target are {shown(change.counter, 80)}.")
    key = check_key(change.idempotency_key)
    if len(f"{key}{LONGEST}".encode()) > KEY_BYTES_MAX:
        most = KEY_BYTES_MAX - len(LONGEST)
        raise InvalidKey(f"The key of a transfer has at most {most:,} bytes, so that those of its steps have room.")
    return change


def debit(of: Change) -> Change:
    """The first step of a transfer."""
    return Change(of.counter, of.change, f"{of.idempotency_key}/from", of.at, of.region)


def credit(of: Change, region: str) -> Change:
    """The second step. region: that of the debit's lane."""
    assert of.then is not None
    return Change(of.then.counter, of.then.change, f"{of.idempotency_key}/to", of.at, region)


def refund(of: Change, region: str, number: int) -> Change:
    """The last step, where the credit was refused: the refund after `number` others."""
    key = f"{of.idempotency_key}/back" + (f"/{number}" if number else "")
    return Change(of.counter, -of.change, key, of.at, region)
