"""The Lambda function `plan`. Event source: a schedule, once a minute."""

from __future__ import annotations

import os
from typing import Any

from ledger.settings import Settings
from service.observe import observers
from service.plan.handler import Planner
from service.units import units_of
from service.world import World

STOP_MS = 5_000
"""Nothing new is claimed when less time than this is left."""

log, metrics = observers()
settings = Settings.from_env()
units = units_of(settings)
planner = Planner(settings, World.of(settings, os.environ["LEDGER_WORK_QUEUE_URL"]), log, metrics)


@log.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> None:
    try:
        planner(lambda: context.get_remaining_time_in_millis() < STOP_MS)
    finally:
        units.tell(metrics)
