"""What a request consumed, as its answer says: pure, for every way of sending.

Rule 1: DynamoDB's own word counts, and it is asked for with every request. Of a batch it is of all its statements, of a
transaction under a token that was there already it is of reads.
Rule 2: A refused condition tells nothing. It costs the larger of the item that is there, which was asked for too, and
the one to be written (of an Update: the one that is there); a cancelled transaction costs that twice for each item.
Rule 3: No other error costs anything: AWS names no units for it.
Rule 4: Reckoning fails no call: an answer or an error that cannot be read told nothing.
Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

import re
from collections.abc import Mapping
from typing import Any

from ledger.cost import Cost, item_bytes, value_bytes, write_units
from ledger.dynamo import failures

ASK = {"ReturnConsumedCapacity": "TOTAL"}
_REFUSED = {"ConditionalCheckFailedException", "TransactionCanceledException", *failures.DUPLICATE}
_PUT_BY_STATEMENT = re.compile(r"'([^']+)': \?")

Arguments = Mapping[str, Any]


def of_answer(answer: Arguments, *, writes: bool) -> Cost:
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
    """answer: that of an error; None: none came."""
    sent = min(attempts, 1)
    if answer is None:
        return Cost(sent, attempts, untold=sent)
    try:
        return Cost(1, attempts, 0, _refused(arguments, answer))
    except Exception:
        return Cost(1, attempts, untold=1)


def _refused(arguments: Arguments, answer: Arguments) -> int:
    if answer["Error"].get("Code") not in _REFUSED:
        return 0
    if "TransactItems" not in arguments:
        return write_units(_bytes(arguments, answer))
    actions = [action for each in arguments["TransactItems"] for action in each.values()]
    reasons = answer.get("CancellationReasons") or [{}] * len(actions)
    sizes = [_bytes(action, reason) for action, reason in zip(actions, reasons, strict=False)]
    return sum(write_units(size, transactional=True) for size in sizes)


def _bytes(action: Arguments, reason: Arguments) -> int:
    """The larger of the item that a write asks for and the one that is there."""
    if "Statement" in action:
        names = _PUT_BY_STATEMENT.findall(action["Statement"])
        asked = sum(len(name.encode()) for name in names) + sum(map(value_bytes, action["Parameters"]))
    else:
        asked = item_bytes(action.get("Item") or action["Key"])
    return max(asked, item_bytes(reason.get("Item") or {}))
