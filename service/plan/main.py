"""The Lambda function `plan`. Event source: a schedule, once a minute."""

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ledger.settings import Settings
from service.consumption import units_of
from service.observe import Handler, Watch
from service.plan.handler import Planner
from service.runtime import Runtime

STOP_MS = 5_000
"""Nothing new is claimed when less time than this is left."""

watch = Watch.of(os.environ)
settings = Settings.from_env()
units = units_of(settings)
planner = Planner(settings, Runtime.of(settings, os.environ["LEDGER_WORK_QUEUE_URL"]), watch.logger, watch.metrics)


def told(event: dict[str, Any], context: LambdaContext) -> None:
    try:
        planner(lambda: context.get_remaining_time_in_millis() < STOP_MS)
    finally:
        units.tell(watch.metrics)


handler: Handler = watch.around(told)
