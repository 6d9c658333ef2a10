"""AWS's list prices, and what units and bytes of DynamoDB cost at them, in any number of Regions.

Rule 1: These are the only prices; docs/costs.md states the same, and a test holds the two together.
Rule 2: Every Region is billed at these prices. A write is charged again in every further Region, a failed one is not; a
read is charged where it is made. A GB is 10^9 bytes.
Rule 3: Free tiers, taxes and reserved capacity are left out.

BILLING https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/global-tables-billing.html
SIZES https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from dataclasses import dataclass

SECONDS = 730 * 3600
"""Of a month."""

ITEM_OVERHEAD_BYTES, REPLICA_OVERHEAD_BYTES = 100, 48
"""What storage is charged for an item beside its own bytes, and for one of a global table besides (SIZES)."""


@dataclass(frozen=True, slots=True)
class Prices:
    """On-demand prices of one Region in US dollars: a million units, a GB-month with point-in-time recovery."""

    region: str
    since: str
    page: str
    write: float
    replicated_write: float
    read: float
    storage: float


PRICES = Prices(
    region="us-east-1",
    since="1 November 2024",
    page="https://aws.amazon.com/dynamodb/pricing/on-demand/",
    write=0.625,
    replicated_write=0.625,
    read=0.125,
    storage=0.45,
)
LAMBDA_REQUEST, LAMBDA_GB_S = 0.20e-6, 0.0000133334  # https://aws.amazon.com/lambda/pricing/, arm64
SQS_REQUEST = 0.40e-6  # https://aws.amazon.com/sqs/pricing/
HTTP_REQUEST = 1.00e-6  # https://aws.amazon.com/api-gateway/pricing/
LOG_GB, METRIC, ALARM, DASHBOARD = 0.50, 0.30, 0.10, 3.00  # https://aws.amazon.com/cloudwatch/pricing/
TRAFFIC_GB = 0.02  # between Regions


@dataclass(frozen=True, slots=True)
class Usage:
    """What a design uses.

    write_units: a change's, in its own Region; replicated_units: those of it that replicate, all of them if not said.
    compaction_read_units: a change's share of what works on the table afterwards. read_units: a read's.
    item_bytes, items: what a change leaves in the table for good, both 0 when it leaves nothing of its own.
    """

    write_units: float
    read_units: float
    replicated_units: float | None = None
    compaction_read_units: float = 0.0
    item_bytes: float = 0.0
    items: float = 0.0


def million_changes(usage: Usage, regions: int) -> float:
    """Dollars for a million changes, in all Regions together."""
    replicated = usage.write_units if usage.replicated_units is None else usage.replicated_units
    return (
        usage.write_units * PRICES.write
        + (_regions(regions) - 1) * replicated * PRICES.replicated_write
        + usage.compaction_read_units * PRICES.read
    )


def million_reads(usage: Usage) -> float:
    """Dollars for a million reads; each is made in one Region."""
    return usage.read_units * PRICES.read


def storage_month(usage: Usage, changes: float, regions: int) -> float:
    """Dollars a month for what that many changes have left, in all Regions together; a year's changes after a year."""
    overhead = ITEM_OVERHEAD_BYTES + (REPLICA_OVERHEAD_BYTES if _regions(regions) > 1 else 0)
    return changes * (usage.item_bytes + usage.items * overhead) / 1e9 * regions * PRICES.storage


def _regions(regions: int) -> int:
    if regions < 1:
        raise ValueError(f"{regions} Regions")
    return regions
