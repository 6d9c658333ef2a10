"""The Lambda function `ring`. Event source: the table's stream, ReportBatchItemFailures."""

import os

from ledger.core.settings import Settings
from service.observe import Handler, Watch
from service.ring.ring import EVERY_S, Ringer
from service.runtime import Runtime

watch = Watch.of(os.environ)
settings = Settings.from_env()
every_s = int(os.environ.get("LEDGER_RING_EVERY_S", EVERY_S))
ringer = Ringer(settings, Runtime.of(settings, os.environ), watch, every_s)
handler: Handler = watch.around(lambda event, _: ringer(event))
