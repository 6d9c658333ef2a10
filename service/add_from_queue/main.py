"""The entry point of the function: makes its objects once a process, from the environment.

Rule 1: Outcomes are queued only where LEDGER_OUTCOMES_URL names a queue.
"""

import os

import boto3

from ledger import Ledger, Settings
from ledger.client import CONFIG
from service.add_from_queue.handler import AddFromQueue
from service.add_from_queue.outcomes import Outcomes
from service.observe import Handler, Watch

watch = Watch.of(os.environ)
pack = {"true": True, "false": False}[os.environ.get("LEDGER_PACK", "true")]
settings = Settings.from_env()
url = os.environ.get("LEDGER_OUTCOMES_URL")
outcomes = Outcomes(url, boto3.client("sqs", settings.region, config=CONFIG)) if url else None
handler: Handler = watch.around(AddFromQueue(Ledger(settings), watch, pack=pack, outcomes=outcomes))
