"""What speaks against FastClient, by name: settings that it would ignore, and code that listens to
botocore, because a FastClient's requests do not pass there.

Rule 1: A setting of botocore's is followed or refused, before the first request.
Rule 2: What cannot be seen, because a newer botocore keeps its handlers elsewhere, is refused too.
"""

from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any
from urllib.parse import urlsplit

import botocore
from botocore.client import BaseClient
from botocore.endpoint import Endpoint
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from ledger.core.errors import InvalidSettings

OURS = __name__.removesuffix("tables.fast_checks")  # in the wheel it begins with "exact_counter."
OWN = ("botocore.", OURS, "aws_lambda_powertools.shared.user_agent.")
"""Whose handlers may be registered: FastClient follows botocore's rules, and emits our events. That
of Powertools adds its name to the User-Agent header, and sees nothing.
"""
EVENTS = (
    "provide-client-params",
    "before-parameter-build",
    "before-endpoint-resolution",
    "before-call",
    "request-created",
    "choose-signer",
    "before-sign",
    "before-send",
    "response-received",
    "before-parse",
    "needs-retry",
    "after-call",
    "after-call-error",
)
"""Those of a call, in botocore's order."""
WAY = {
    BaseClient: ("_make_api_call", "_make_request"),
    Endpoint: ("make_request", "_send_request", "_get_response", "_send"),
    URLLib3Session: ("send",),
}
"""The functions that a request of boto3's client passes, which tracers replace."""


def check_settings_of(meta: Any) -> None:
    """Raises InvalidSettings where a client's settings ask for what FastClient does not do."""
    config = meta.config
    account = getattr(config, "account_id_endpoint_mode", None)  # older botocores have none
    refused = {
        "client certificates (client_cert)": config.client_cert,
        f"signature_version={config.signature_version}": config.signature_version != "v4",
        "account_id_endpoint_mode=required": account == "required",
    }
    _refuse(refused, meta.endpoint_url)


def check_endpoint(endpoint_url: str, config: Any) -> None:
    """Raises InvalidSettings where FastClient cannot reach an endpoint."""
    url = urlsplit(endpoint_url)
    proxies = get_environ_proxies(endpoint_url) if config.proxies is None else config.proxies
    refused = {
        "a path in an endpoint": url.path not in ("", "/") or url.query,
        "proxies": proxies.get(url.scheme),
    }
    _refuse(refused, endpoint_url)


def _refuse(refused: dict[str, Any], endpoint_url: str) -> None:
    for what in (what for what, is_set in refused.items() if is_set):
        raise InvalidSettings(
            f"FastClient does not support {what} ({endpoint_url}). Nothing was written. Use a "
            "boto3 client."
        )


def check_unobserved(events: Any) -> None:
    """Raises InvalidSettings where anything but botocore would see a request of boto3's client.

    events: of a client of boto3's.
    """
    found = sorted({*_replaced(), *_registered(events)})
    if found:
        raise InvalidSettings(
            f"FastClient's requests do not pass botocore, where {' and '.join(found)} would see "
            'them. Nothing was written. Use client="boto3", the default; or, if they need not be '
            "seen there, pass client=FastClient(region)."
        )


def is_answered_here(events: Any) -> bool:
    """Whether something in this process answers a client in AWS's place, as moto and botocore's
    Stubber do.
    """
    try:
        handlers = _handlers(events, ("before-call", "before-send"))
    except AttributeError:  # a botocore that does not show them
        return True
    return any(
        # moto's hook is there as soon as moto is imported, and enabled inside a mock
        (_is_foreign(handler) and getattr(handler, "enabled", True))
        or _named(handler).__module__ == "botocore.stub"
        for handler in handlers
    )


def _replaced() -> Iterator[str]:
    for kind, names in WAY.items():
        for name in names:
            function = vars(kind).get(name)
            if not _is_botocores(function):
                yield f"what replaced {kind.__name__}.{name}"


def _is_botocores(function: object) -> bool:
    # of a wrapper, its own code counts: what it says of its module is that of what it wraps
    code = getattr(function, "__code__", None) if isinstance(function, FunctionType) else None
    return code is not None and code.co_filename.startswith(botocore.__path__[0])


def _registered(events: Any) -> Iterator[str]:
    try:
        handlers = _handlers(events, EVENTS)
    except AttributeError:
        yield "hooks that this botocore does not show"
        return
    for named in map(_named, filter(_is_foreign, handlers)):
        yield f"the hook {named.__module__}.{named.__qualname__}"


def _handlers(events: Any, names: Iterable[str]) -> list[Any]:
    """Who handles these events; raises AttributeError where botocore keeps that elsewhere."""
    registered = getattr(events, "_emitter", events)._handlers
    return [
        handler
        for name in names
        for handler in registered.prefix_search(f"{name}.dynamodb.PutItem")
    ]


def _is_foreign(handler: Any) -> bool:
    return not f"{_named(handler).__module__}.".startswith(OWN)


def _named(handler: Any) -> Any:
    """What has the handler's module and name."""
    function = getattr(handler, "func", handler)  # of a partial
    return function if hasattr(function, "__qualname__") else type(function)
