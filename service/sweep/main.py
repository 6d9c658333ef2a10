"""The Lambda function `sweep`. Event source: a schedule, every 15 minutes."""

import os
import random
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ledger.core.settings import Settings
from service.observe import Handler, Watch
from service.runtime import Runtime, nearly_up
from service.sweep.sweep import HOURS, Sweeper

VERIFY_ONE_IN = 100

watch = Watch.of(os.environ)
settings = Settings.from_env()
sweeper = Sweeper(
    settings,
    Runtime.of(settings, os.environ),
    watch,
    verify_one_in=VERIFY_ONE_IN,
    draw=random.random,
    hours=float(os.environ.get("LEDGER_SWEEP_HOURS", HOURS)),
)


def work(event: dict[str, Any], context: LambdaContext) -> None:
    sweeper(nearly_up(context))


handler: Handler = watch.around(work)
