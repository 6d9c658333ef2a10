"""Answers of the API, a server of it, and the context in which Lambda calls a function."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from service.api.local import HOST, serve


@dataclass
class Answer:
    """Of the HTTP API."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def said(self) -> Any:
        return json.loads(self.body)

    def refused(self, status: int, problem: str) -> Any:
        """What a problem says, after a look at all that every problem must have."""
        said = self.said
        assert (self.status, said["type"]) == (status, f"urn:ledger:problem:{problem}"), self
        assert self.headers["Content-Type"] == "application/problem+json"
        assert (said["status"], bool(said["title"] and said["detail"])) == (status, True)
        assert ("Retry-After" in self.headers) == (status in (429, 503, 504))
        return said


@dataclass
class Context:
    """What Lambda gives a function, as far as Powertools reads it."""

    function_name: str = "function"
    memory_limit_in_mb: int = 128
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:111122223333:function:function"
    aws_request_id: str = "52fdfc07-2182-154f-163f-5f0f9a621d72"
    log_group_name: str = "/aws/lambda/function"
    log_stream_name: str = "stream"
    tenant_id: str | None = None

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


@contextmanager
def served(api: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[int]:
    """The port of a real server on loopback that asks `api`."""
    server = serve(api, port=0)
    assert server.server_address[0] == HOST == "127.0.0.1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()
