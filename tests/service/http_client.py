"""Requests to the API as API Gateway's HTTP API hands them over (payload format 2.0)."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics

from ledger import Ledger, Settings
from ledger.memory import MemoryTable
from ledger.requests import Table
from reader import Reader
from service.api.app import Api
from service.api.local import event_of
from service.observe import Watch

NOW_MS = 1_735_725_000_000
SETTINGS = Settings(table="counters", region="eu-west-1", regions=("eu-west-1", "us-east-1"), fold_min=1)
ULID = "01JGGKGE064BG4X58772SZHBM0"
ULID_AT = "2025-01-01T09:35:20.070Z"


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
        self, table: Table | None = None, *, try_it: bool = False, origins: Sequence[str] = (), level: str = "INFO"
    ) -> None:
        self.table = MemoryTable()
        self.lines = io.StringIO()
        self.metrics = EphemeralMetrics(namespace="Ledger", service="test")
        self.now_ms = NOW_MS
        table = table or self.table
        watch = Watch(Logger(service=f"test-{id(self)}", stream=self.lines, level=level), self.metrics)
        self.api = Api(
            Ledger(SETTINGS, table=table, clock=self.clock),
            Reader(SETTINGS, table=table, clock=self.clock),
            Reader(SETTINGS, consistent=False, table=table, clock=self.clock),
            watch,
            try_it=try_it,
            origins=origins,
        )

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
        return Answer(answer["statusCode"], answer["headers"], answer.get("body") or "")

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
