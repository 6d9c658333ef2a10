"""What the shipped functions did and were charged while a Region was played, and what of it is a change's share.

Rule 1: A life is measured between two moments of a Region that has been at work for a while: what was charged over what
was put. So what is still to be done for the last changes is paid by what was left of the first.
Rule 2: What `sweep` is charged itself does not grow with lanes as few as are played here, and is not in it; a pass over
a million lanes is (million.py). What its messages lead to is in it.
"""

from collections import Counter
from dataclasses import dataclass, field

from lab.meters.charge import Charge
from lab.scale.lean import Paid
from lab.scale.region import Region
from lab.scale.tails import Tails
from ledger import items
from ledger.values import Lane
from service import observe


@dataclass(slots=True)
class Lived:
    """requests: of SQS, by operation. cpu_s, calls: by function. tails: of lanes, looked at now and then."""

    changes: int = 0
    costs: dict[Paid, Charge] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    metrics: Counter[str] = field(default_factory=Counter)
    cpu_s: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    tails: Tails = field(default_factory=Tails)

    def __add__(self, other: "Lived") -> "Lived":
        """What other lanes lived in the same time."""
        costs = {
            paid: self.costs.get(paid, Charge()) + other.costs.get(paid, Charge())
            for paid in {**self.costs, **other.costs}
        }
        return Lived(
            self.changes + other.changes,
            costs,
            self.requests + other.requests,
            self.messages + other.messages,
            self.metrics + other.metrics,
            self.cpu_s + other.cpu_s,
            self.calls + other.calls,
            self.tails + other.tails,
        )

    def cost(self, *payers: str, kind: str | None = None, operation: str | None = None) -> Charge:
        """What these were charged, or all but `sweep`; of a kind and an operation, where they are given."""
        found = Charge()
        for (payer, what, how), cost in self.costs.items():
            paid = payer in payers if payers else payer != "sweep"
            if paid and kind in (None, what) and operation in (None, how):
                found += cost
        return found

    @property
    def write_units(self) -> float:
        """Of a change over its whole life, in its Region."""
        return self.cost().write_units / self.changes

    @property
    def visits(self) -> int:
        return self.metrics[observe.LANES_VISITED]

    @property
    def looks(self) -> int:
        """Messages that needed no visit."""
        return self.metrics[observe.LANES_LOOKED]

    @property
    def sqs_requests(self) -> int:
        return sum(self.requests.values())


def so_far(region: Region) -> Lived:
    return Lived(
        region.changes,
        region.table.costs,
        Counter(region.sqs.requests),
        region.sqs.sent,
        Counter(region.metrics.sums),
        Counter(region.cpu_s),
        Counter(region.calls),
    )


def between(before: Lived, after: Lived, tails: Tails) -> Lived:
    costs = {paid: cost - before.costs.get(paid, Charge()) for paid, cost in after.costs.items()}
    return Lived(
        after.changes - before.changes,
        costs,
        after.requests - before.requests,
        after.messages - before.messages,
        after.metrics - before.metrics,
        after.cpu_s - before.cpu_s,
        after.calls - before.calls,
        tails,
    )


def tail_of(region: Region, lane: Lane) -> int:
    """The items above a lane's watermark, looked up without a charge."""
    item = region.table.item(items.checkpoint_key(lane))
    watermark = items.checkpoint_of(lane, item).watermark if item is not None else None
    start, end = region.table.partition(items.delta_pk(lane)).between(items.tail_after(watermark), None)
    return end - start
