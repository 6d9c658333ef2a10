"""The Lambda function `compact`. Event source: the work queue, ReportBatchItemFailures."""

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ledger.settings import Settings
from service.compact.handler import Worker
from service.consumption import telling
from service.observe import Handler, Watch
from service.runtime import Runtime

STOP_MS = 10_000
"""A visit is stopped between two requests when less time than this is left."""

watch = Watch.of(os.environ)
settings = Settings.from_env()
worker = Worker(settings, Runtime.of(settings, os.environ), watch.logger, watch.metrics)


def work(event: dict[str, Any], context: LambdaContext) -> Any:
    return worker(event, lambda: context.get_remaining_time_in_millis() < STOP_MS)


handler: Handler = watch.around(telling(watch.metrics, work))
