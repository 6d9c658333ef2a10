"""The entry point of the function: makes its objects once a process, from the environment.

Rule 1: The page to try the API is served only where LEDGER_STAGE names a stage that is not production.
"""

import os
from collections.abc import Mapping

from aws_lambda_powertools.logging import correlation_paths

from ledger import Ledger, Settings
from reader import Reader
from service.api.app import Api
from service.observe import Handler, Watch


def make(environ: Mapping[str, str]) -> Handler:
    settings, watch = Settings.from_env(environ), Watch.of(environ)
    stage = environ.get("LEDGER_STAGE", "production")
    api = Api(
        Ledger(settings),
        Reader(settings),
        Reader(settings, consistent=False),
        watch,
        try_it=not stage.startswith("prod"),
    )
    return watch.around(api, correlation_paths.API_GATEWAY_HTTP)


handler = make(os.environ)
