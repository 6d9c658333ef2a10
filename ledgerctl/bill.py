"""AWS's list prices, and what changes, reads and bytes of DynamoDB cost at them, in any number of Regions.

Rule 1: These are the only prices; docs/costs.md states the same, and a test holds the two together.
Rule 2: Every Region is billed at these prices. A write is charged again in every further Region; a read is charged
where it is made. A GB is 10^9 bytes. Free tiers, taxes and reserved capacity are left out.

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

    region: str = "us-east-1"
    since: str = "1 November 2024"
    page: str = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
    write: float = 0.625
    replicated_write: float = 0.625
    read: float = 0.125
    storage: float = 0.45


PRICES = Prices()
LAMBDA_REQUEST, LAMBDA_GB_S = 0.20e-6, 0.0000133334  # https://aws.amazon.com/lambda/pricing/, arm64
SQS_REQUEST = 0.40e-6  # https://aws.amazon.com/sqs/pricing/
HTTP_REQUEST = 1.00e-6  # https://aws.amazon.com/api-gateway/pricing/
LOG_GB, METRIC, ALARM, DASHBOARD = 0.50, 0.30, 0.10, 3.00  # https://aws.amazon.com/cloudwatch/pricing/
TRAFFIC_GB = 0.02  # between Regions


def written(units: float, regions: int) -> float:
    """Dollars for write units that are written in one Region and replicated to the others."""
    return units * (PRICES.write + (regions - 1) * PRICES.replicated_write) / 1e6


def read(units: float) -> float:
    return units * PRICES.read / 1e6


def stored(item_bytes: float, items: float, regions: int) -> float:
    """Dollars a month for so many items of so many bytes in all, in each Region."""
    overhead = ITEM_OVERHEAD_BYTES + (REPLICA_OVERHEAD_BYTES if regions > 1 else 0)
    return (item_bytes + items * overhead) / 1e9 * regions * PRICES.storage
