"""The Lambda function `canary`. Event source: a schedule, every 5 minutes; `infra.deploy` calls it too."""

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ledger.settings import Settings
from ledger.table import DynamoTable
from service.canary.handler import Canary
from service.consumption import telling
from service.observe import Handler, Watch

watch = Watch.of(os.environ)
settings = Settings.from_env()
canary = Canary(settings, DynamoTable.of(settings), watch)


def work(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return canary()


handler: Handler = watch.around(telling(watch.metrics, work))
