"""The entry point of the function: makes its objects once a process, from the environment."""

import os

from aws_lambda_powertools.logging import correlation_paths

from ledger import Settings
from service.api.app import Api
from service.observe import Handler, Watch
from service.writable import prefixes_of

watch = Watch.of(os.environ)
api = Api(Settings.from_env(), watch, prefixes=prefixes_of(os.environ))
handler: Handler = watch.around(api, correlation_paths.API_GATEWAY_HTTP)
