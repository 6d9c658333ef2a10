"""Requests to the API as API Gateway's HTTP API hands them over (payload format 2.0)."""

import io
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ledger import Limit, Settings, requests
from ledger.memory import MemoryTable
from ledger.requests import GetMany, PutMany, Request
from reader import Reader
from service.api import cors
from service.api.app import Api
from service.api.local import HOST, event_of, serve
from service.observe import Watch
from service.writable import Names

NUMBERS = itertools.count()  # a logger's name is for ever, an id() comes again
NOW_MS = 1_735_725_000_000
HERE, THERE = REGIONS = ("eu-west-1", "us-east-1")
LIMITS = {"seats:": Limit(ceiling=10, region=HERE)}
SETTINGS = Settings(table="counters", region=HERE, regions=REGIONS, limits=LIMITS, fold_min=1)
ULID = "01JGGKGE064BG4X58772SZHBM0"
ULID_AT = "2025-01-01T09:35:20.070Z"


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


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: str

    @property
    def said(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The problem's name, after a look at all that every problem must have."""
        said = self.said
        assert self.headers["Content-Type"] == "application/problem+json"
        assert said["status"] == self.status
        assert said["title"]
        assert said["detail"]
        return str(said["type"]).removeprefix("urn:ledger:problem:")


class Client:
    """The API on a table in memory, or on a given one."""

    def __init__(
        self,
        table: requests.Table | None = None,
        *,
        settings: Settings = SETTINGS,
        try_it: bool = False,
        origins: Sequence[str] = (),
        level: str = "INFO",
        names: Names | None = None,
    ) -> None:
        self.table = MemoryTable()
        self.lines = io.StringIO()
        self.now_ms = NOW_MS
        watch = Watch.here(f"test-{next(NUMBERS)}", self.lines, level)
        self.metrics = watch.metrics
        api = Api(settings, watch, table=table or self.table, clock=self.clock, try_it=try_it, names=names)
        self.api = cors.allowing(origins, api)

    def clock(self) -> int:
        return self.now_ms

    def ask(self, method: str, target: str, body: object = None, headers: Mapping[str, str] | None = None) -> Answer:
        """body: bytes and texts as they are, anything else as JSON."""
        if not isinstance(body, str | bytes | None):
            body = json.dumps(body)
        data = body.encode() if isinstance(body, str) else body
        return self.send(event_of(method, target, headers or {}, data))

    def send(self, event: dict[str, Any]) -> Answer:
        answer = self.api(event)
        assert isinstance(answer["body"], str), "a gateway need not take a body that is null"
        return Answer(answer["statusCode"], answer["headers"], answer["body"])

    def add(self, change: object, key: str | None = ULID, counter: str = "stock:85123A", **more: object) -> Answer:
        headers = {} if key is None else {"Idempotency-Key": key}
        said = {"counter": counter, "change": change, **more}
        return self.ask("POST", f"/counters/{quote(counter, safe='')}/deltas", said, headers)

    def read(self, counter: str = "stock:85123A", query: str = "") -> Answer:
        return self.ask("GET", f"/counters?counter={quote(counter, safe='')}{query}")

    def history(self, counter: str = "stock:85123A", query: str = "") -> Answer:
        return self.ask("GET", f"/history?counter={quote(counter, safe='')}{query}")

    def value(self, counter: str = "stock:85123A") -> int:
        return Reader(SETTINGS, table=self.table).read(counter).value


class Table(MemoryTable):
    """Notes how strongly balances are read; answers requests of some kinds with an error, while there is one."""

    def __init__(self, error: Exception | None = None, *kinds: type) -> None:
        super().__init__()
        self.strong: list[bool] = []
        self.fail(error, *kinds)

    def fail(self, error: Exception | None, *kinds: type) -> None:
        self.error, self.kinds = error, kinds

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, GetMany):
            self.strong.append(request.consistent)
        if self.error is not None and isinstance(request, self.kinds):
            if isinstance(request, PutMany):
                return tuple(self.error for _ in request.items)
            raise self.error
        return super().answer(request)


def refused(answer: Answer, status: int, name: str) -> None:
    assert (answer.status, answer.problem) == (status, name)
    assert ("Retry-After" in answer.headers) == (status in (429, 503, 504))


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
