"""The service without AWS: one Region's table, work queue, event bus, metrics and log lines, and
the functions on it.

service = Service(fold_min=3) service.put(delta(1)) service.before(Transact,
fail(Throttled("slow"))) # as of any Region of tests/world.py; its queue and bus, too assert
service.visit(Look(LANE)) == NOTHING assert service.taken() == [(Look(LANE, tries=1), 30)]
"""

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self
from urllib.parse import quote

from aws_lambda_powertools.metrics import MetricUnit
from botocore.exceptions import EndpointConnectionError

from ledger import Ledger
from ledger.core import items
from ledger.core.conditions import Absent
from ledger.core.errors import LedgerError, Unavailable
from ledger.core.requests import AlreadyThere, Item, Put, PutMany
from ledger.core.values import Delta, Lane
from ledger.tables.memory import MemoryTable
from reader import Reader
from service.add_from_queue.handler import AddFromQueue
from service.api.app import Api
from service.api.local import event_of, serve
from service.compact.serve import Worker
from service.job_queue import DeadLetter, Enqueue, Message
from service.jobs import Job
from service.loopback import HOST
from service.messages import message_of
from service.observe import Watch
from service.ring.ring import Ringer
from service.runtime import Runtime
from service.sqs import SqsQueue
from service.sweep.sweep import Sweeper, Swept
from service.thresholds.event_bus import Publish
from tests.world import COUNTER, NOW_MS, A, B, Region, fail, settings

NOTHING: dict[str, list[Any]] = {"batchItemFailures": []}
ULID, ULID_AT = "01JGGKGE064BG4X58772SZHBM0", "2025-01-01T09:35:20.070Z"


METRICS = {
    *(
        "DeltasRecorded",
        "DeltasReplayed",
        "DeltasAccepted",
        "DeltasRefused",
        "DeltasConflicting",
        "ChangesFailed",
    ),
    *(
        "LimitReached",
        "OutOfReach",
        "DeltasFolded",
        "StraysSettled",
        "DeltasCleaned",
        "TailDeltas",
        "LateDeltas",
    ),
    *(
        "LanesVisited",
        "LanesLooked",
        "LanesGaveUp",
        "LanesFailed",
        "LanesDamaged",
        "LanesUnread",
        "VerifiesDropped",
    ),
    *(
        "StoppedTries",
        "CleansPostponed",
        "WatermarkAheadMs",
        "VerifyDifferences",
        "LanesRung",
        "RingsSpared",
    ),
    *("LanesListed", "LanesSwept", "LanesForgotten", "SweepLagMs", "WorkInvalid", "CanaryLagMs"),
    *("CanaryWrong", "HoldsOverdue", "GateBytes", "CrossingsTold", "CrossingsUntold"),
}
"""All that the functions publish."""


def failed(*names: str) -> dict[str, list[Any]]:
    """A partial batch response."""
    return {"batchItemFailures": [{"itemIdentifier": name} for name in names]}


def never() -> bool:
    return False


def stored(
    item: Item, event: str = "INSERT", sequence: int = 1, made_ms: int | None = None
) -> dict[str, Any]:
    """A stream record about an item.

    As Lambda gives it: bytes in base64, times in seconds, rounded down.
    """
    change: dict[str, Any] = {
        "Keys": {"pk": item["pk"], "sk": item["sk"]},
        "SequenceNumber": str(sequence),
    }
    image = {
        name: {"B": b64encode(held["B"]).decode()} if "B" in held else held
        for name, held in item.items()
    }
    change |= {"NewImage": image} if event != "REMOVE" else {"OldImage": image}
    change |= (
        {"ApproximateCreationDateTime": float(made_ms // 1_000)} if made_ms is not None else {}
    )
    return {"eventID": "1", "eventName": event, "eventSource": "aws:dynamodb", "dynamodb": change}


def stream(
    *came: Delta | Item, made_ms: int | None = None, event: str = "INSERT"
) -> dict[str, Any]:
    """A stream event of some items, numbered from 1."""
    every = (items.delta_item(each) if isinstance(each, Delta) else each for each in came)
    return {"Records": [stored(each, event, n, made_ms) for n, each in enumerate(every, start=1)]}


def sqs(*bodies: str, **more: Any) -> dict[str, Any]:
    """An SQS event with these message bodies, named m1, m2 and so on; its fields are those that
    AWS documents.
    """
    source = {
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:ledger-dev-work",
    }
    other: dict[str, Any] = {"messageAttributes": {}, "md5OfBody": "", "awsRegion": "eu-west-1"}
    other |= {
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183"},
        **source,
        **more,
    }
    return {
        "Records": [
            {"messageId": f"m{n}", "receiptHandle": f"r{n}", "body": body, **other}
            for n, body in enumerate(bodies, start=1)
        ]
    }


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
        assert ("Retry-After" in self.headers) == (status in (429, 503, 504) or "resets_at" in said)
        return said


class Notes:
    """Metrics and log lines, as the functions gave them."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.lines: list[tuple[str, str, Mapping[str, Any]]] = []

    def add_metric(self, name: str, unit: MetricUnit, value: float) -> None:
        """Fails where a name says another unit, and for one that alarms and costs do not know."""
        assert name in METRICS
        units = {"Ms": MetricUnit.Milliseconds, "Bytes": MetricUnit.Bytes}
        assert unit is next(
            (unit for end, unit in units.items() if name.endswith(end)), MetricUnit.Count
        ), name
        self.metrics[name] = self.metrics.get(name, 0) + value

    def __getattr__(self, level: str) -> Any:
        if level not in ("debug", "info", "warning", "error", "exception"):
            raise AttributeError(level)
        return lambda text, extra=None: self.lines.append((level, text, extra or {}))


class Sqs:
    """An SQS client of all queues. It keeps by the queue's URL what it confirmed: all but what
    holds `refuses`; nothing while it is `down`. It does not say what it confirmed where it is
    `silent`."""

    def __init__(
        self, refuses: str = "nothing", *, silent: bool = False, down: bool = False
    ) -> None:
        self.refuses, self.silent, self.down = refuses, silent, down
        self.taken: dict[str, list[Any]] = {}
        self.sizes: list[int] = []  # of the batches

    def send_message_batch(self, *, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:
        if self.down:
            raise EndpointConnectionError(endpoint_url=QueueUrl)
        self.sizes.append(len(Entries))
        assert len({entry["Id"] for entry in Entries}) == len(Entries)
        done = [entry for entry in Entries if self.refuses not in str(entry)]
        self.taken.setdefault(QueueUrl, []).extend(done)
        lost = [
            {"Id": entry["Id"], "Code": "InternalError"} for entry in Entries if entry not in done
        ]
        return {} if self.silent else {"Successful": done, "Failed": lost}

    change_message_visibility_batch = send_message_batch


class Queues(MemoryTable):
    """Answers what the work queue, its DLQ and the event bus answer. What they did not confirm,
    they have not: jobs in the lanes in `refused`, all while `queue_down`, crossings while
    `bus_down`. A PutMany fails item by item."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.sent: list[tuple[Job, int]] = []
        self.dead: list[str] = []
        self.details: list[dict[str, Any]] = []
        self.refused: set[Lane] = set()
        self.queue_down = self.bus_down = False

    def answer(self, request: Any, /) -> Any:
        match request:
            case Enqueue(messages):
                return tuple(map(self._put, messages))
            case DeadLetter(body):
                if self.queue_down:
                    raise Unavailable("the DLQ does not answer")
                return self.dead.append(body)
            case Publish():
                if self.bus_down:
                    raise Unavailable("the bus does not answer")
                return self.details.append(request.detail)
            case PutMany(puts):
                return tuple(map(self._put_item, puts))
        return super().answer(request)

    def _put_item(self, item: Item) -> AlreadyThere | LedgerError | None:
        try:
            there = self.answer(Put(item, Absent()))
        except LedgerError as error:
            return error
        return None if there is None else AlreadyThere(there)

    def _put(self, message: Message) -> LedgerError | None:
        if self.queue_down or message.job.lane in self.refused:
            return Unavailable("the queue does not answer")
        self.sent.append((message.job, message.delay_s))
        return None


class Service(Region, Queues):
    """A Region with its functions, and another Region `away` beside it."""

    def __init__(
        self, region: str = A, *, now_ms: int = NOW_MS, page_size: int = 1_000, **changed: Any
    ) -> None:
        super().__init__(page_size=page_size)
        self.now_ms = self.steady_ms = now_ms
        self.away = Region()
        self.tables = {region: self, {A: B, B: A}[region]: self.away}
        self.peers = self.away.peers = self.tables
        self.settings = settings(region, **changed)
        self.notes, self.sqs = Notes(), Sqs()
        self.watch = Watch(self.notes, self.notes)  # type: ignore[arg-type]
        self.runtime = Runtime(self, self, self, workers=1)
        self.runtime.now = self.now
        self.start()

    def start(
        self,
        *,
        every_s: int = 60,
        hours: float = 24,
        verify_one_in: int = 0,
        draw: float = 0.0,
        pack: bool = False,
        queues: tuple[str, ...] = ("outcomes", "dead_letters", "changes"),
        prefixes: tuple[str, ...] = (),
    ) -> Self:
        """Make its functions anew, as a new process of each."""
        known = self.settings, self.runtime, self.watch
        self.ringer, self.worker = Ringer(*known, every_s), Worker(*known)
        self.sweeper = Sweeper(*known, verify_one_in=verify_one_in, draw=lambda: draw, hours=hours)
        own: Any = {name: SqsQueue(name, lambda: self.sqs) for name in queues}
        ledger = Ledger(self.settings, tables=self.tables, clock=self.clock)
        more: Any = {"clock": self.clock, "jitter": lambda: 0.0, "prefixes": prefixes}
        self.adder = AddFromQueue(ledger, self.watch, pack=pack, **more, **own)
        self.prefixes = prefixes
        self.__dict__.pop("api", None)
        return self

    def dead_letters(self) -> list[tuple[str, str]]:
        """The bodies that `add_from_queue` put on its DLQ, each with its error."""
        copies = self.sqs.taken.get("dead_letters", ())
        return [
            (copy["MessageBody"], copy["MessageAttributes"]["LedgerError"]["StringValue"])
            for copy in copies
        ]

    def outcomes(self) -> list[dict[str, str]]:
        """What it put on the queue of outcomes."""
        return [json.loads(each["MessageBody"]) for each in self.sqs.taken.get("outcomes", ())]

    @cached_property
    def api(self) -> Callable[..., dict[str, Any]]:
        return Api(self.settings, self.watch, table=self, clock=self.clock, prefixes=self.prefixes)

    def clock(self) -> int:
        return self.now_ms

    def time_goes(self, wall_ms: int, steady_ms: int | None = None) -> None:
        self.now_ms += wall_ms
        self.steady_ms += wall_ms if steady_ms is None else steady_ms

    def rings(
        self, *came: Delta | Item, made_ms: int | None = NOW_MS, event: str = "INSERT"
    ) -> Any:
        """Of a batch with these new items; each record is of now, unless it says else."""
        return self.ringer(stream(*came, made_ms=made_ms, event=event))

    def visit(self, *jobs: str | Job, stop: Callable[[], bool] = never) -> Any:
        return self.worker(
            sqs(*(job if isinstance(job, str) else message_of(job) for job in jobs)), stop
        )

    def rung(
        self, *came: Delta | Item, made_ms: int | None = NOW_MS, event: str = "INSERT"
    ) -> list[tuple[Job, int]]:
        """The jobs that it sends because of them, with their delays; no record comes again."""
        assert self.rings(*came, made_ms=made_ms, event=event) == NOTHING
        return self.taken()

    def visited(self, *jobs: str | Job, stop: Callable[[], bool] = never) -> list[tuple[Job, int]]:
        """The jobs that it sends because of them; no message stays."""
        assert self.visit(*jobs, stop=stop) == NOTHING
        return self.taken()

    def sweep(self, stop: Callable[[], bool] = never) -> Swept:
        return self.sweeper(stop)

    def adds(self, *bodies: str, receives: int = 1, **more: Any) -> list[int]:
        """The numbers of the messages that are reported as failed, the first being 0."""
        event = sqs(*bodies, **{"attributes": {"ApproximateReceiveCount": str(receives)}} | more)
        names = (each["itemIdentifier"] for each in self.adder(event)["batchItemFailures"])
        return [int(name.removeprefix("m")) - 1 for name in names]

    def taken(self) -> list[tuple[Job, int]]:
        """The jobs that were sent since, with their delays."""
        sent, self.sent = self.sent, []
        return sent

    def counted(self, *names: str) -> Any:
        """The sum of a metric; of several, of each."""
        sums = tuple(self.notes.metrics.get(name, 0) for name in names)
        assert {*names} <= METRICS
        return sums if len(sums) > 1 else sums[0]

    def forget(self) -> Self:
        """What it was asked and noted."""
        self.asked.clear()
        self.notes.metrics.clear()
        self.notes.lines.clear()
        return self

    def lines(self, *levels: str) -> list[tuple[str, str, Mapping[str, Any]]]:
        """All above debug, or those of some levels."""
        return [
            line
            for line in self.notes.lines
            if line[0] in (levels or ("info", "warning", "error", "exception"))
        ]

    def value(self, counter: str = COUNTER) -> int:
        return Reader(self.settings, table=self, clock=self.clock).read(counter).value

    def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """body: bytes and texts as they are, anything else as JSON."""
        if not isinstance(body, str | bytes | None):
            body = json.dumps(body)
        data = body.encode() if isinstance(body, str) else body
        said = {name.lower(): value for name, value in (headers or {}).items()}
        if data:
            said = {"content-type": "application/json", **said}
        return self.send(event_of(method, target, said, data))

    def send(self, event: dict[str, Any]) -> Answer:
        answer = self.api(event)
        assert isinstance(answer["body"], str), "a gateway need not take a body that is null"
        assert answer["isBase64Encoded"] is False
        return Answer(answer["statusCode"], answer["headers"], answer["body"])

    def post(self, path: str, said: Mapping[str, Any], key: str | None = ULID) -> Answer:
        """Of a path behind /counters/<the counter of the body>."""
        target = f"/counters/{quote(said['counter'], safe='')}/{path}"
        return self.ask("POST", target, said, {} if key is None else {"Idempotency-Key": key})

    def add(
        self, change: object, key: str | None = ULID, counter: str = COUNTER, **more: object
    ) -> Answer:
        return self.post("deltas", {"counter": counter, "change": change, **more}, key)

    def read(self, counter: str = COUNTER, query: str = "") -> Answer:
        return self.ask("GET", f"/counters?counter={quote(counter, safe='')}{query}")

    def history(self, counter: str = COUNTER, query: str = "") -> Answer:
        return self.ask("GET", f"/history?counter={quote(counter, safe='')}{query}")

    def fails(self, error: Exception | None, *kinds: type) -> None:
        """Its table answers requests of these kinds so; None: as ever again."""
        self._before.clear()
        self._after.clear()
        if error is not None:
            self.before(kinds, fail(error))


def web(region: str = A, **changed: Any) -> Service:
    """The API, at the time of the keys that tests of holds send: 2025-01-01T09:50:00Z."""
    return Service(region, now_ms=1_735_725_000_000, **changed)


def two_webs(**changed: Any) -> tuple[Service, Service]:
    """The API of two Regions, each on a table of its own; they do not replicate."""
    here, there = web(**changed), web(B, **changed)
    here.tables[B] = there.tables[B] = here.away = there
    here.tables[A] = there.tables[A] = there.away = here
    return here.start(), there.start()


@contextmanager
def served(api: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[int]:
    """The port of a real server on loopback that asks `api`."""
    server = serve(api, port=0)
    assert server.server_address[0] == HOST == "127.0.0.1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
