"""Changes on their way through SQS."""

import ledger as _ledger  # noqa: F401  rule 3 of the door
from ledger.queue import ChangeQueue

__all__ = ["ChangeQueue"]
