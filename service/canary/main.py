"""The Lambda function `canary`.

Event source: a schedule, every 5 minutes; `infra.deploy` calls it, too.
"""

import os

from ledger.core.settings import Settings
from ledger.tables.dynamo import DynamoTable
from service.canary.handler import Canary
from service.observe import Handler, Watch

watch = Watch.of(os.environ)
settings = Settings.from_env()
canary = Canary(settings, DynamoTable.of(settings), watch)
handler: Handler = watch.around(lambda event, context: canary())
