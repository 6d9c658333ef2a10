"""The Lambda function `compact`. Event source: the work queue, ReportBatchItemFailures."""

from __future__ import annotations

from typing import Any

from ledger.settings import Settings
from service.compact.handler import Worker
from service.observe import observers
from service.units import units_of
from service.world import World

STOP_MS = 10_000
"""A visit is stopped between two requests when less time than this is left."""

log, metrics = observers()
settings = Settings.from_env()
units = units_of(settings)
worker = Worker(settings, World.of(settings), log, metrics)


@log.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> Any:
    try:
        return worker(event, lambda: context.get_remaining_time_in_millis() < STOP_MS)
    finally:
        units.tell(metrics)
