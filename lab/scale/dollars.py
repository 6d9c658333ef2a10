"""What finding work costs: units and requests that were counted, and CPU that was measured, become dollars.

Rule 1: Prices are those of `ledgerctl`.
Rule 2: *Finding* is all that a lane's work takes until it is known to be due: `ring` with what it reads and writes of
the directory, the messages, the looks, and the time of `ring` and of `compact`. What a visit reads and writes is the
fold's and the clean's. In write units it is dollars by the price of one.
Rule 3: A function's time is its CPU, and boto3's, at the share of a core that its memory has, and what it waits for
answers; `compact` waits for 8 lanes at once. All of a visit's time is told as finding.

CORE https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lab.scale.lean import LOOK
from lab.scale.lived import Lived
from ledgerctl.bill import LAMBDA_GB_S, LAMBDA_REQUEST, PRICES, SQS_REQUEST
from service.runtime import WORKERS

CORE_MB = 1_769
"""The memory that comes with a whole core (CORE)."""

GB = {"ring": 0.5, "compact": 1.0}
"""As in serverless.yml."""

WAIT_S = 0.005
"""For an answer of DynamoDB or SQS: assumed."""

AT_ONCE = {"ring": 1, "compact": WORKERS}


@dataclass(frozen=True, slots=True)
class Finding:
    """Dollars for a million changes. calls and time are of the functions."""

    directory: float
    sqs: float
    looks: float
    calls: Mapping[str, float]
    time: Mapping[str, float]

    @property
    def counted(self) -> float:
        """What follows from units and requests alone."""
        return self.directory + self.sqs + self.looks + sum(self.calls.values())

    @property
    def dollars(self) -> float:
        return self.counted + sum(self.time.values())


def as_units(dollars: float) -> float:
    """Dollars for a million changes as write units of each."""
    return dollars / PRICES.write


def cpu_ms(lived: Lived, function: str, client_s: Mapping[str, float]) -> float:
    """Of a change: the function's own CPU and boto3's."""
    own = lived.cpu_s[function]
    return 1_000 * (own + sum(client_s[how] * n for how, n in requests(lived, function).items())) / lived.changes


def requests(lived: Lived, function: str) -> dict[str, int]:
    """By operation; `ring` sends the messages."""
    found: dict[str, int] = {}
    for (payer, _, how), cost in lived.costs.items():
        if payer == function:
            found[how] = found.get(how, 0) + cost.requests
    return found | ({"SendMessageBatch": lived.requests["send"]} if function == "ring" else {})


def finding(lived: Lived, client_s: Mapping[str, float]) -> Finding:
    millions = lived.changes / 1e6
    directory = lived.cost("ring", kind="lane") + lived.cost("compact", kind="lane")
    return Finding(
        directory=_units(directory.write_units, directory.read_units) / millions,
        sqs=lived.sqs_requests * SQS_REQUEST / millions,
        looks=_units(0, lived.cost("compact", kind=LOOK).read_units) / millions,
        calls={name: lived.calls[name] * LAMBDA_REQUEST / millions for name in GB},
        time={name: _time(lived, name, client_s) / millions for name in GB},
    )


def _units(write: float, read: float) -> float:
    return (write * PRICES.write + read * PRICES.read) / 1e6


def _time(lived: Lived, function: str, client_s: Mapping[str, float]) -> float:
    gb = GB[function]
    busy_s = cpu_ms(lived, function, client_s) / 1_000 * lived.changes / (gb * 1_024 / CORE_MB)
    waits_s = sum(requests(lived, function).values()) * WAIT_S / AT_ONCE[function]
    return (busy_s + waits_s) * gb * LAMBDA_GB_S
