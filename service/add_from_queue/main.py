"""The entry point of the function: makes its objects once a process, from the environment.

Rule 1: Outcomes are queued only where LEDGER_OUTCOMES_URL names a queue.
Rule 2: LEDGER_CHANGES_DLQ_URL is where poison goes, LEDGER_CHANGES_QUEUE_URL the queue of the messages: a record's ARN
says neither at which endpoint a queue is nor which is its dead-letter queue. Without them it has nothing to send there.
"""

import os
from functools import partial

from ledger import Ledger, Settings
from ledger.dynamo.client import client_of
from service.add_from_queue.handler import AddFromQueue
from service.observe import Handler, Watch
from service.sqs import SqsQueue
from service.writable import prefixes_of

watch = Watch.of(os.environ)
pack = {"true": True, "false": False}[os.environ.get("LEDGER_PACK", "true")]
settings = Settings.from_env()
sqs = partial(client_of, "sqs", settings.region)
outcomes, dead_letters, changes = (
    SqsQueue(url, sqs) if (url := os.environ.get(f"LEDGER_{name}_URL")) else None
    for name in ("OUTCOMES", "CHANGES_DLQ", "CHANGES_QUEUE")
)
handler: Handler = watch.around(
    AddFromQueue(
        Ledger(settings),
        watch,
        pack=pack,
        prefixes=prefixes_of(os.environ),
        outcomes=outcomes,
        dead_letters=dead_letters,
        changes=changes,
    )
)
