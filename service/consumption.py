"""The capacity that a process has consumed, told as metrics; `ledger.consumed` adds it up.

Rule 1: A request that failed says nothing, so the sums are a little low.
"""

from aws_lambda_powertools.metrics import MetricUnit

from ledger.client import make_client
from ledger.consumed import Consumed
from ledger.settings import Settings
from service.observe import READ_UNITS, WRITE_UNITS, Metered


class Units(Consumed):
    """Adds up what the clients it is attached to consume, and tells it."""

    def tell(self, metrics: Metered) -> None:
        """What was consumed since it was told last."""
        consumed = self.take()
        metrics.add_metric(READ_UNITS, MetricUnit.Count, consumed.read_units)
        metrics.add_metric(WRITE_UNITS, MetricUnit.Count, consumed.write_units)


def units_of(settings: Settings) -> Units:
    """Attached to this process's client of every Region: clean asks the others."""
    units = Units()
    for region in settings.regions:
        units.attach(make_client(region, settings.endpoint_url))
    return units
