"""What the fault proxy does to a request, decided by a seed: pure.

Rule 1: A fault is data: how long the request waits, how often the engine gets it, how long the
answer waits and which answer the caller gets. So every kind is a row, and the proxy knows none of
them.
Rule 2: Only what AWS may do: an error that says "nothing was written" is given only when the engine
did not get the request.
Rule 3: Each round draws its own mix (some kinds off, some frequent): all of them at once hide what
one alone would find.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Answer = Literal["engine", "error", "throttled", "conflict", "denied", "reset", "silence"]
MS_OF_GIVING_UP = 5_500  # a little more than the read time-out of the library's clients


@dataclass(frozen=True, slots=True)
class Fault:
    """wait_ms, then the engine gets it `times` times, then answer_wait_ms, then `answer`;
    again_ms later once more.
    """

    kind: str
    wait_ms: tuple[int, int] = (0, 0)
    times: int = 1
    answer_wait_ms: tuple[int, int] = (0, 0)
    answer: Answer = "engine"
    again_ms: tuple[int, int] | None = None


Mix = Mapping[Fault, float]  # each kind with the share of requests that it meets
FAULTS: Mix = {
    Fault("500 before", times=0, answer="error"): 0.012,
    Fault("500 after it applied", answer="error"): 0.016,
    Fault("throttled", times=0, answer="throttled"): 0.02,
    Fault("conflict", times=0, answer="conflict"): 0.02,
    Fault("reset before", times=0, answer="reset"): 0.01,
    Fault("answer dropped after it applied", answer="reset"): 0.024,
    Fault("no answer, though it applied", answer="silence"): 0.0004,
    Fault("request delayed", wait_ms=(20, 2_500)): 0.012,
    Fault("applied when the caller had given up", wait_ms=(MS_OF_GIVING_UP, 8_000)): 0.0004,
    Fault("answer delayed", answer_wait_ms=(20, 2_500)): 0.012,
    Fault("repeated", times=2): 0.016,
    Fault("repeated late", again_ms=(300, 12_000)): 0.012,
}
"""A middling mix."""

REFUSALS = {
    each: Fault(f"{each}, as arranged", times=0, answer=each) for each in ("throttled", "denied")
}
"""What the proxy answers to whom it has to refuse."""

MULTIPLIERS = (0.0, 0.5, 1.0, 1.0, 3.0)
TRANSACTION = "TransactWriteItems"
SINGLE_WRITES = ("PutItem", "DeleteItem", "UpdateItem")


def mix(seed: int) -> Mix:
    """The mix of one round."""
    rng = random.Random(f"{seed} faults")
    return {fault: share * rng.choice(MULTIPLIERS) for fault, share in FAULTS.items()}


def decide(rng: random.Random, mixed: Mix) -> Fault | None:
    """The fault that a request meets, if it meets one."""
    drawn = rng.random()
    for fault, share in mixed.items():
        drawn -= share
        if drawn < 0:
            return fault
    return None


def refusal(rng: random.Random, answer: Answer, operation: str) -> tuple[int, bytes]:
    """Status and body of an error as DynamoDB spells it."""
    conflict = "Transaction is ongoing for the item"
    match answer:
        case "conflict" if operation == TRANSACTION:
            return 400, _cancelled("TransactionConflict", conflict)
        case "conflict" if operation in SINGLE_WRITES:
            return 400, _body("TransactionConflictException", conflict)
        case "throttled" if operation == TRANSACTION and rng.random() < 0.5:
            return 400, _cancelled("ThrottlingError", "Throughput exceeds")
        case "throttled" | "conflict":
            kinds = (
                "ProvisionedThroughputExceededException",
                "ThrottlingException",
                "RequestLimitExceeded",
            )
            return 400, _body(rng.choice(kinds), "Too many requests, says the fault proxy")
        case "denied":
            return 400, _body("AccessDeniedException", "Not authorized, says the fault proxy")
    return 500, _body("InternalServerError", "An error, says the fault proxy")


def _cancelled(code: str, message: str) -> bytes:
    reasons = [{"Code": code, "Message": message}, {"Code": "None"}]
    return _body(
        "TransactionCanceledException", "Transaction cancelled", CancellationReasons=reasons
    )


def _body(code: str, message: str, **more: object) -> bytes:
    spelled = {
        "__type": f"com.amazonaws.dynamodb.v20120810#{code}",
        "message": message,
        "Message": message,
        **more,
    }
    return json.dumps(spelled).encode()
