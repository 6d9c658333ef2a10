"""The Lambda function `mark`. Event source: the table's stream, ReportBatchItemFailures."""

from __future__ import annotations

from typing import Any

from ledger.settings import Settings
from service.mark.handler import Marker
from service.observe import observers
from service.world import World

log, metrics = observers()
settings = Settings.from_env()
marker = Marker(settings, World.of(settings), log, metrics)


@log.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return marker(event)
