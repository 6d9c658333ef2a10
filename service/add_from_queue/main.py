"""The entry point of the function: makes its objects once a process, from the environment."""

import os
from collections.abc import Mapping

from ledger import Ledger, Settings
from service.add_from_queue.handler import AddFromQueue
from service.observe import Handler, Watch


def make(environ: Mapping[str, str]) -> Handler:
    watch = Watch.of(environ)
    return watch.around(AddFromQueue(Ledger(Settings.from_env(environ)), watch))


handler = make(os.environ)
