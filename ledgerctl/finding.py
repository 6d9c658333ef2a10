"""How often a lane of the deployed service rings, is looked at and folded, when its changes come at random.

Rule 1: Changes are a Poisson process. An item of n changes rings with n / `fold_min`, at most 1; after a ring that is
sent, those of the next `ring_every` seconds are spared; what is sent is looked at once it is old enough, and folded if
`fold_min` changes are (docs/compaction.md).
Rule 2: So between two looks come the changes of `ring_every` and as many more as a ring takes, whose number is drawn as
waiting times are; and a fold takes the first look at which there are enough.
Rule 3: The constants are those of service/ and infra/, which are not installed with `ledgerctl`.
"""

import math
from dataclasses import dataclass

RING_EVERY_S, RING_SLACK_S = 60, 5
"""A lane rings once in so long, for each process that reads its stream; and beyond the lateness, so long is waited."""

SWEEP_S = 24 * 3600
"""A pass of the sweep: each lane is looked at, and what it holds below the watermark."""

VERIFY_ONE_IN = 100
"""Lanes that the sweep meets for one that is verified."""

LOOK_UNITS = 1.0
"""Read units of a look: the checkpoint, and the first `fold_min` of the tail, both eventually consistent."""

SWEEP_UNITS = 2.0
"""Of the sweep's look: the same, half of one below the watermark, and half of one for the lane's name and gate."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """looks: messages, and so looks, for one fold. least: changes that every fold takes; more: those that come by
    chance, on average. fold_s: between two folds."""

    looks: float
    least: float
    more: float
    fold_s: float

    @property
    def folded(self) -> float:
        """Changes of a fold, on average."""
        return self.least + self.more

    @property
    def tail(self) -> float:
        """What is left of a fold until the next one, on average over time, beside what is too young to fold."""
        return (self.folded**2 + self.more**2) / 2 / self.folded


def rounds(rate: float, fold_min: int, pack: int = 1) -> Rounds:
    """Of a lane with `rate` changes a second, `pack` of them in an item."""
    spared, ring = rate * RING_EVERY_S, float(max(fold_min, pack))
    looks = 1.0
    if pack < fold_min:
        for wasted in range(1, fold_min):
            left = (fold_min - 1 - wasted * spared) / ring
            if left <= 0 or (more := _at_least(wasted, left)) < 1e-9:
                break
            looks += more
    folded = looks * (spared + ring)
    return Rounds(looks, max(0.0, folded - ring), min(ring, folded), folded / rate)


def _at_least(times: int, mean: float) -> float:
    """The probability that a Poisson process comes so often where `mean` times are expected."""
    return 1 - math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(times))


# -- beside the table: prices of https://aws.amazon.com/lambda/pricing/ and https://aws.amazon.com/sqs/pricing/ --------

SQS_REQUEST = 0.40e-6
LAMBDA_REQUEST, LAMBDA_GB_S = 0.20e-6, 0.0000133334
REQUESTS_OF_MESSAGE = 0.3
"""Sent, received and deleted by the ten."""

IDLE_REQUESTS = 15 / 60
"""A second's, of a queue that a function waits at: five long polls of 20 s."""

RING_S, RING_GB, RING_RECORDS, RING_CALLS = 28e-6 / 0.289, 0.5, 500, 2
"""Of a record, as `make scale` measured it; records of a full batch; calls a second of a stream that is never empty."""

VISIT_S, VISIT_GB, WORK_BATCH = 0.023, 1.0, 50
"""Of a message, as `make scale` measured it: eight lanes side by side, folds and cleans in it; messages of a full
batch."""


def dollars(items: float, messages: float, seconds: float, regions: int) -> float:
    """Of the functions and the queue that find work: a time's items of all Regions, and messages."""
    rate = items / regions / seconds
    calls = regions * seconds * (RING_CALLS * -math.expm1(-rate / RING_CALLS) + rate / RING_RECORDS)
    ring = calls * LAMBDA_REQUEST + items * RING_S * RING_GB * LAMBDA_GB_S
    sqs = (messages * REQUESTS_OF_MESSAGE + regions * seconds * IDLE_REQUESTS) * SQS_REQUEST
    batches = messages / min(WORK_BATCH, max(1.0, messages / regions / seconds))
    return ring + sqs + batches * LAMBDA_REQUEST + messages * VISIT_S * VISIT_GB * LAMBDA_GB_S
