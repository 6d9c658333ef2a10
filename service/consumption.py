"""The capacity that a function consumes, told as metrics when it ends, also when it fails."""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from ledger.cost import Meter
from service.observe import READ_UNITS, WRITE_UNITS, Handler, Metered


def telling(metrics: Metered, work: Callable[[Any, LambdaContext], Any]) -> Handler:
    """The handler that does this work, and tells what it consumed."""

    def handler(event: Any, context: LambdaContext) -> Any:
        with Meter() as meter:
            try:
                return work(event, context)
            finally:
                cost = meter.take()
                metrics.add_metric(READ_UNITS, MetricUnit.Count, cost.read_units)
                metrics.add_metric(WRITE_UNITS, MetricUnit.Count, cost.write_units)

    return handler
