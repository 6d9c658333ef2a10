"""What a request consumed, by its answer: pure, for every way of sending.

Rule 1: DynamoDB's own number counts; every request asks for it.
Rule 2: An answer without a number costs what AWS's rules say: a refused condition something,
another error nothing.
Rule 3: Counting the cost fails no call: what cannot be read has an unknown cost.
Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
and https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

import re
from collections.abc import Mapping
from typing import Any

from ledger.core.cost import Cost, item_bytes, value_bytes, write_units
from ledger.tables import failures, refusals

ASK = {"ReturnConsumedCapacity": "TOTAL"}
_REFUSED = {"ConditionalCheckFailedException", "TransactionCanceledException", *refusals.DUPLICATE}
_PUT_BY_STATEMENT = re.compile(r"'([^']+)': \?")

Arguments = Mapping[str, Any]


def of_answer(answer: Arguments, *, writes: bool) -> Cost:
    # A batch has one number for all its statements. A transaction under a token that was there
    # already has one of reads.
    attempts = failures.attempts_of(answer)
    try:
        consumed: Any = answer["ConsumedCapacity"] or [{}]
        read = write = 0.0
        for part in consumed if isinstance(consumed, list) else (consumed,):
            units = float(part["CapacityUnits"])
            reads = float(part.get("ReadCapacityUnits", 0)) if writes else units
            read, write = read + reads, write + units - reads
    except Exception:
        return Cost(1, attempts, untold=1)
    return Cost(1, attempts, read, write)


def of_failure(arguments: Arguments, answer: Arguments | None, attempts: int) -> Cost:
    """The cost of a request that failed. answer: the error's; None: no answer came."""
    sent = min(attempts, 1)
    if answer is None:
        return Cost(sent, attempts, untold=sent)
    try:
        return Cost(1, attempts, 0, _refused(arguments, answer))
    except Exception:
        return Cost(1, attempts, untold=1)


def _refused(arguments: Arguments, answer: Arguments) -> int:
    """The write units of a refused condition: those of the larger of the item that is there, which
    the answer shows, and the one to be written (for an Update: the former); twice for each item of
    a cancelled transaction.
    """
    if answer["Error"].get("Code") not in _REFUSED:
        return 0
    if "TransactItems" not in arguments:
        return write_units(_bytes(arguments, answer))
    actions = [action for write in arguments["TransactItems"] for action in write.values()]
    reasons = answer.get("CancellationReasons") or [{}] * len(actions)
    sizes = [_bytes(action, reason) for action, reason in zip(actions, reasons, strict=False)]
    return sum(write_units(size, transactional=True) for size in sizes)


def _bytes(action: Arguments, reason: Arguments) -> int:
    """The larger size of the item in a write and the one that is there."""
    if "Statement" in action:
        names = _PUT_BY_STATEMENT.findall(action["Statement"])
        size = sum(len(name.encode()) for name in names) + sum(
            map(value_bytes, action["Parameters"])
        )
    else:
        size = item_bytes(action.get("Item") or action["Key"])
    return max(size, item_bytes(reason.get("Item") or {}))
