"""The Lambda function `mark`. Event source: the table's stream, ReportBatchItemFailures."""

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ledger.settings import Settings
from service.consumption import units_of
from service.mark.handler import Marker
from service.observe import Handler, Watch
from service.runtime import Runtime

watch = Watch.of(os.environ)
settings = Settings.from_env()
units = units_of(settings)
marker = Marker(settings, Runtime.of(settings), watch.logger, watch.metrics)


def told(event: dict[str, Any], context: LambdaContext) -> Any:
    try:
        return marker(event)
    finally:
        units.tell(watch.metrics)


handler: Handler = watch.around(told)
