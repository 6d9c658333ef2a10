"""The deployed service on an engine, in one Region: how it is broken, mended, fed and asked.

Rule 1: The drill's clock runs FASTER times as fast as the template's. Schedules are the drill's own calls then,
because the engine's have minutes: their rules are disabled.
Rule 2: Each function reaches the table by a place of its own in the proxy, so that the proxy can be one function's
wrong role. The engine does not ask IAM.
Rule 3: One canary at a time, as its concurrency says.
Rule 4: Only the API reads a counter at the end, and only the queue takes changes: as a user's.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import Any

from lab.drill.measured import Meter
from lab.drill.watched import Template
from lab.e2e import deployed
from lab.e2e.deployed import TABLE
from lab.e2e.queues import Queues, until_empty
from lab.e2e.user import User
from ledger.message import dumps
from ledger.values import Change

FASTER = 25
REGION = deployed.REGIONS[0]
CANARY_EVERY_S, SWEEP_EVERY_S = 300 / FASTER, 900 / FASTER
NOT_OURS = {"limits", "thresholds", "outcomes", "sweepHours"}
PARAMS = {name: value for name, value in deployed.PARAMS.items() if name not in NOT_OURS} | {
    "ringEverySeconds": "1",
    "allowedLatenessMs": "2000",  # a ring is 8 s under way: less than a canary's threshold, so much faster
}
FUNCTIONS = ("add-from-queue", "ring", "compact", "sweep", "canary")
COUNTERS = tuple(f"stock:{number}" for number in range(4))
RECORDED_MAX_S = 300

Say = Callable[[str], None]


class Ground:
    """`told`: what the proxy in front of the table is told through; `table_endpoint`: where it is."""

    def __init__(self, endpoint_url: str, table_endpoint: str, told: Connection, say: Say) -> None:
        self._endpoint_url, self._told = endpoint_url, told
        services = {REGION: deployed.service(REGION, endpoint_url)}
        self._urls = services[REGION].queues
        self._sqs, self._lambda = self._client("sqs"), self._client("lambda")
        self._queues = Queues(services, {REGION: self._sqs})
        self._user = User(services, self._queues, say)
        self.meter = Meter(endpoint_url, REGION, self._client("logs"))
        self._truth: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self._pool = ThreadPoolExecutor(2)
        self._canary: Future[Any] | None = None
        self._next_canary = self._next_sweep = 0.0
        self._take_over(table_endpoint)

    def _client(self, name: str) -> Any:
        return deployed.client(name, REGION, self._endpoint_url)

    def _take_over(self, table_endpoint: str) -> None:
        events = self._client("events")
        for rule in ("sweep", "canary"):
            events.disable_rule(Name=f"{TABLE}-{rule}")
        for function in FUNCTIONS:
            name = f"{TABLE}-{function}"
            has = self._lambda.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
            variables = has | {"LEDGER_ENDPOINT_URL": f"{table_endpoint}/{function}"}
            self._lambda.update_function_configuration(FunctionName=name, Environment={"Variables": variables})

    def template(self) -> Template:
        """What was deployed."""
        found = self._client("cloudformation").get_template(StackName=TABLE)["TemplateBody"]
        template: Template = json.loads(found) if isinstance(found, str) else found
        return template

    def turn(self) -> None:
        """Call what the schedules would call, and measure."""
        now = time.monotonic()
        if self._next_canary <= now and (self._canary is None or self._canary.done()):
            self._next_canary = now + CANARY_EVERY_S
            # A canary that fails is told by the function's own lines; nobody asks for the answer.
            self._canary = self._pool.submit(self._lambda.invoke, FunctionName=f"{TABLE}-canary", Payload=b"{}")
        if self._next_sweep <= now:
            self._next_sweep = now + SWEEP_EVERY_S
            self._lambda.invoke(FunctionName=f"{TABLE}-sweep", InvocationType="Event", Payload=b"{}")
        self.meter.measure()

    def add(self, why: str, changes: int = 12) -> None:
        """Queue some changes, of now."""
        bodies = []
        for number in range(changes):
            counter, change = COUNTERS[number % len(COUNTERS)], number + 1
            key = f"{why}-{self._numbers.total()}"
            bodies.append(dumps(Change(counter, change, key, datetime.now(UTC), REGION)))
            self._truth[counter] += change
            self._numbers[counter] += 1
        self._queues.send(REGION, bodies)

    def send(self, queue: str, body: str) -> None:
        self._sqs.send_message(QueueUrl=self._urls[queue], MessageBody=body)

    def drain(self, queue: str) -> int:
        """How many messages there were."""
        return self._queues.drain(REGION, queue).total()

    def switch(self, function: str, on: bool) -> None:
        """The event source of a function."""
        found = self._lambda.list_event_source_mappings(FunctionName=f"{TABLE}-{function}")["EventSourceMappings"]
        (mapping,) = found
        self._lambda.update_event_source_mapping(UUID=mapping["UUID"], Enabled=on)

    def refuse(self, answer: str, function: str = "") -> None:
        """What the table answers to a function, or to everybody; "": its own answers."""
        self._told.send(("refuse", answer, function))

    def wrong(self) -> Iterator[str]:
        """What is not as it was sent, when all is recorded."""
        if found := until_empty(lambda: self._queues.waiting("changes"), RECORDED_MAX_S):
            yield f"after {RECORDED_MAX_S} s changes still wait: {found}"
        truth = {counter: (value, self._numbers[counter]) for counter, value in self._truth.items()}
        yield from self._user.wrong_balances(truth)
        for queue in ("changes-dlq", "work-dlq", "failed"):
            if there := self.drain(queue):
                yield f"{there} messages are on {queue}"

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
