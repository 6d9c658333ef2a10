"""The Lambda function `ring`. Event source: the table's stream, ReportBatchItemFailures."""

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ledger.settings import Settings
from service.consumption import telling
from service.observe import Handler, Watch
from service.ring.handler import Ringer
from service.ring.ring import EVERY_S
from service.runtime import Runtime

watch = Watch.of(os.environ)
settings = Settings.from_env()
every_s = int(os.environ.get("LEDGER_RING_EVERY_S", EVERY_S))
ringer = Ringer(settings, Runtime.of(settings, os.environ), watch.logger, watch.metrics, every_s)


def work(event: dict[str, Any], context: LambdaContext) -> Any:
    return ringer(event)


handler: Handler = watch.around(telling(watch.metrics, work))
