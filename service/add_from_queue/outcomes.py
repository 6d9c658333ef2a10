"""The outcome of a change of a limited counter: the message that says whether it counts.

Rule 1: What is decided is queued, and what may still be decided is not. An answer is for ever, so one that is queued
again, because its message came again, is the same.
Rule 2: An outcome names its change as its message did, and no amount.
The format is public: docs/producers.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ledger import Receipt
from ledger.errors import LimitReached
from ledger.message import NO_XML, time_text

if TYPE_CHECKING:
    from ledger import Change
    from service.observe import Outcome


def outcome_of(change: Change, outcome: Outcome) -> str | None:
    """None while nothing is decided. The change has its key and `at`. The longest has 7 KB: ten fit one request."""
    match outcome:
        case Receipt(delta=delta):
            answer = "counted"
        case LimitReached(delta=delta) if delta is not None:
            answer = "refused"
        case _:
            return None
    assert change.at is not None
    named = {"counter": change.counter, "idempotency_key": change.idempotency_key, "at": time_text(change.at)}
    said = named | {"region": delta.lane.region, "outcome": answer}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).translate(NO_XML)
