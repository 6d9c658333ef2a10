"""What becomes of a token.

Rule 1: a token is decided once; its outcome is the change that counts, or one of three that count nothing.
"""

from ledger.checks import CHANGE_MAX

REFUSED, RELEASED, EXPIRED = -(2**63), -(2**63) + 1, -(2**63) + 2
"""Outcomes that are no changes: a limit was in the way; a hold was let go; a hold's time was over."""


def change_of(outcome: int) -> int:
    """What an outcome changes the value by."""
    return outcome if abs(outcome) <= CHANGE_MAX else 0


def counts(outcome: int) -> bool:
    """Whether an outcome is one of the changes that a counter's `count` is of."""
    return abs(outcome) <= CHANGE_MAX


def check_outcome(outcome: int) -> int:
    """`outcome` itself; raises ValueError for a number that is none."""
    if not counts(outcome) and outcome not in (REFUSED, RELEASED, EXPIRED):
        raise ValueError(f"{outcome} is no outcome")
    return outcome
