"""The entry point of the function: makes its objects once a process, from the environment."""

import os

from ledger import Ledger, Settings
from service.add_from_queue.handler import AddFromQueue
from service.observe import Handler, Watch

watch = Watch.of(os.environ)
pack = {"true": True, "false": False}[os.environ.get("LEDGER_PACK", "true")]
handler: Handler = watch.around(AddFromQueue(Ledger(Settings.from_env()), watch, pack=pack))
