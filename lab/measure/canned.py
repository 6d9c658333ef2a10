"""Clients for what a call takes by itself: botocore's with canned answers, without a socket; and
ledgers and readers on them.

Rule 1: The answers are those of lab/engines/null.py, which keeps nothing: nobody learns here
whether a change counts.
"""

import io
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from botocore import xform_name
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.session import Session

from lab.engines.null import REQUEST_ID, TABLE, answer
from ledger import Ledger, Limit, Settings

REGION = "eu-west-1"
LIMIT = Limit(ceiling=10**9, region=REGION)
SETTINGS = Settings(table=TABLE, region=REGION, limits={"seats:": LIMIT}, unshared_limits=True)
PLAIN, LIMITED = "stock:85123A", "seats:gala"
Request = tuple[str, dict[str, Any]]
"""A method of a client, and its arguments."""


class _Raw(io.BytesIO):
    """What botocore reads an answer's body from."""

    def stream(self, **_: object) -> Any:
        yield self.getvalue()


def session() -> Session:
    made = Session()
    made.set_credentials("canned", "canned")
    return made


@cache
def client(config: Config | None) -> Any:
    """botocore's, whose requests are signed and then answered in this process."""
    made = session().create_client(
        "dynamodb", region_name=REGION, endpoint_url="http://127.0.0.1:1", config=config
    )
    made.meta.events.register("before-send.dynamodb", cast(Any, _answered))
    return made


def _answered(request: Any, **_: object) -> AWSResponse:
    target = request.headers["X-Amz-Target"]
    name = (target if isinstance(target, str) else target.decode()).rpartition(".")[2]
    content = answer(name, request.body)
    headers = {
        "x-amzn-requestid": REQUEST_ID.decode(),
        "content-type": "application/x-amz-json-1.0",
        "x-amz-crc32": str(zlib.crc32(content)),
        "content-length": str(len(content)),
    }
    return AWSResponse(request.url, 200, cast(Any, headers), _Raw(content))


def asked(call: Callable[[Ledger, Any], object], times: int) -> list[list[Request]]:
    """What a call asks of a client, each time: its requests."""
    from reader import Reader

    ours, found = client(None), list[list[Request]]()
    ledger, reader = Ledger(SETTINGS, client=ours), Reader(SETTINGS, client=ours)

    def note(params: dict[str, Any], model: Any, **_: object) -> None:
        found[-1].append((xform_name(model.name), dict(params)))

    call(ledger, reader)  # what a process asks once
    ours.meta.events.register("provide-client-params.dynamodb", note)
    for _ in range(times):
        found.append([])
        call(ledger, reader)
    ours.meta.events.unregister("provide-client-params.dynamodb", note)
    return found


def showing(requests: list[list[Request]]) -> list[list[Request]]:
    """The same, each update with the item that it made: so whoever has no ledger learns what a
    limit has left."""
    return [
        [
            (name, given | {"ReturnValues": "ALL_NEW"} if name == "update_item" else given)
            for name, given in each
        ]
        for each in requests
    ]


def replay(made: Any, requests: list[Request], _: object = None) -> None:
    """The same requests by a client alone."""
    for name, arguments in requests:
        getattr(made, name)(**arguments)
