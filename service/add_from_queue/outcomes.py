"""What the queue of outcomes says of a change; the format is public: docs/producers.md."""

import json

from ledger import Change, Receipt
from ledger.client.message import NO_XML, time_text
from ledger.core.errors import LimitReached, PeriodOver
from ledger.lane.add import Outcome


def counters_of(change: Change) -> list[str]:
    return [change.counter] if change.then is None else [change.counter, change.then.counter]


def outcome_of(change: Change, outcome: Outcome, here: str = "") -> str | None:
    """The outcome as a message; None while nothing is decided.

    The longest has 7 KB, so ten fit one request. here: the Region of this service.
    """
    region = change.region or here
    match outcome:
        case Receipt(delta=delta):
            answer, region = "counted", delta.lane.region
        case PeriodOver() if change.then is not None:
            return None
        case LimitReached(delta=delta) | PeriodOver(delta=delta) if delta is not None:
            answer, region = "refused", delta.lane.region
        case LimitReached() | PeriodOver() if change.partial:  # whose errors have no delta
            answer = "refused"
        case _:
            return None
    assert change.at is not None
    said: dict[str, object] = {
        "counter": change.counter,
        "idempotency_key": change.idempotency_key,
        "at": time_text(change.at),
    }
    said |= {"region": region, "outcome": answer}
    if change.partial:
        counts = outcome.change if isinstance(outcome, Receipt) else 0
        said |= {"partial": True, "change": counts, "asked": change.change}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).translate(NO_XML)
