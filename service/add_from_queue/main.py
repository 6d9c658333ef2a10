"""The entry point of the function: makes its objects once a process, from the environment.

Rule 1: The function queues outcomes only where LEDGER_OUTCOMES_URL names a queue.
Rule 2: Poison goes to LEDGER_CHANGES_DLQ_URL, and LEDGER_CHANGES_QUEUE_URL is the queue of the
messages: a record's ARN says neither a queue's endpoint nor its dead-letter queue. Without these
two the function sends nothing there.
"""

import os
from functools import partial

from ledger import Ledger, Settings
from ledger.tables.boto import client_of
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
