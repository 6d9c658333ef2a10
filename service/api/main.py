"""The entry point of the function: makes its objects once a process, from the environment.

Rule 1: The function serves the page to try the API only where LEDGER_STAGE names a stage that is
not production.
"""

import os

from aws_lambda_powertools.logging import correlation_paths

from ledger import Settings
from service.api.app import Api
from service.observe import Handler, Watch
from service.writable import prefixes_of

watch = Watch.of(os.environ)
try_it = not os.environ.get("LEDGER_STAGE", "production").startswith("prod")
api = Api(Settings.from_env(), watch, try_it=try_it, prefixes=prefixes_of(os.environ))
handler: Handler = watch.around(api, correlation_paths.API_GATEWAY_HTTP)
