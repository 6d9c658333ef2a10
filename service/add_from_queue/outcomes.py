"""What the queue of outcomes says of a change; the format is public: docs/producers.md."""

import json

from ledger import Change, Receipt
from ledger.client.message import NO_XML, time_text
from ledger.core.errors import LimitReached, PeriodOver
from ledger.lane.add import Outcome


def counters_of(change: Change) -> list[str]:
    return [change.counter] if change.then is None else [change.counter, change.then.counter]


def outcome_of(change: Change, outcome: Outcome) -> str | None:
    """The outcome as a message; None while nothing is decided.

    The longest has 7 KB, so ten fit one request.
    """
    match outcome:
        case Receipt(delta=delta):
            answer = "counted"
        case PeriodOver() if change.then is not None:
            return None
        case LimitReached(delta=delta) | PeriodOver(delta=delta) if delta is not None:
            answer = "refused"
        case _:
            return None
    assert change.at is not None
    named = {
        "counter": change.counter,
        "idempotency_key": change.idempotency_key,
        "at": time_text(change.at),
    }
    said = named | {"region": delta.lane.region, "outcome": answer}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).translate(NO_XML)
