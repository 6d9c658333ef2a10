"""The Lambda function `mark`. Event source: the table's stream, ReportBatchItemFailures."""

from __future__ import annotations

from typing import Any

from ledger.settings import Settings
from service.mark.handler import Marker
from service.observe import observers
from service.units import units_of
from service.world import World

log, metrics = observers()
settings = Settings.from_env()
units = units_of(settings)
marker = Marker(settings, World.of(settings), log, metrics)


@log.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    try:
        return marker(event)
    finally:
        units.tell(metrics)
