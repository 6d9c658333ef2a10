"""Changes on their way through SQS."""

from ledger.queue import ChangeQueue

__all__ = ["ChangeQueue"]
