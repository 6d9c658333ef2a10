"""The Lambda function `compact`. Event source: the work queue, ReportBatchItemFailures."""

import os

from ledger.core.settings import Settings
from service.compact.serve import Worker
from service.observe import Handler, Watch
from service.runtime import Runtime, nearly_up

watch = Watch.of(os.environ)
settings = Settings.from_env()
worker = Worker(settings, Runtime.of(settings, os.environ), watch)
handler: Handler = watch.around(lambda event, context: worker(event, nearly_up(context)))
