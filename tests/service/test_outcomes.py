"""The queue of changes on limited counters: what is an answer, what comes again, what the queue of outcomes tells."""

import io
import itertools
import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from botocore.exceptions import EndpointConnectionError

from ledger import Ledger, Limit, Settings
from ledger.errors import GateLost, GaveUp, LimitMismatch, Throttled, Unavailable
from ledger.memory import MemoryTable
from ledger.message import time_of
from ledger.requests import Request, Update
from ledger.values import Change
from reader import Reader
from service import observe
from service.add_from_queue.handler import AddFromQueue
from service.add_from_queue.outcomes import ENTRIES_MAX, Outcomes, outcome_of
from service.observe import Watch
from tests.service.support import sqs

HERE, THERE = REGIONS = ("eu-west-1", "us-east-1")
LIMITS = {"seats:": Limit(ceiling=10, region=HERE)}
NOW_MS = 1_291_200_000_000
AT = "2010-12-01T08:26:00.000Z"
NUMBERS = itertools.count()


def message(n: int, change: int = 4, counter: str = "seats:gig", **more: Any) -> str:
    return json.dumps({"counter": counter, "change": change, "idempotency_key": f"order/{n}", "at": AT} | more)


def many(*bodies: str) -> str:
    return f'{{"changes": [{", ".join(bodies)}]}}'


def told(n: int, outcome: str, region: str = HERE, counter: str = "seats:gig") -> dict[str, str]:
    return {"counter": counter, "idempotency_key": f"order/{n}", "at": AT, "region": region, "outcome": outcome}


class Table(MemoryTable):
    """May answer every Update with an error."""

    error: Exception | None = None

    def answer(self, request: Request, /) -> Any:
        if self.error is not None and isinstance(request, Update):
            raise self.error
        return super().answer(request)


class Queue:
    """An SQS client that confirms what it is not told to lose."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.lose: Callable[[str], bool] = lambda body: False
        self.is_down = False

    @property
    def said(self) -> list[dict[str, str]]:
        return [json.loads(body) for batch in self.batches for body in batch]

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:
        assert (QueueUrl, len({entry["Id"] for entry in Entries})) == ("url", len(Entries))
        if self.is_down:
            raise EndpointConnectionError(endpoint_url="url")
        lost = [entry for entry in Entries if self.lose(entry["MessageBody"])]
        sent = [entry for entry in Entries if entry not in lost]
        self.batches.append([entry["MessageBody"] for entry in sent])
        failed = [{"Id": entry["Id"], "Code": "InternalError", "SenderFault": False} for entry in lost]
        return {"Successful": [{"Id": entry["Id"], "MessageId": "m"} for entry in sent], "Failed": failed}


class World:
    """The functions of two Regions, each with its table; they do not replicate."""

    def __init__(self, pack: bool = True, outcomes: bool = True) -> None:
        self.tables = {region: Table() for region in REGIONS}
        self.queue, self.lines = Queue(), io.StringIO()
        self.watch = Watch.here(f"outcomes-{next(NUMBERS)}", self.lines)
        queue = Outcomes("url", cast(Any, self.queue)) if outcomes else None
        self.handlers = {
            region: AddFromQueue(
                Ledger(self.settings(region), tables=self.tables, clock=lambda: NOW_MS),
                self.watch,
                pack=pack,
                outcomes=queue,
            )
            for region in REGIONS
        }

    def settings(self, region: str = HERE) -> Settings:
        return Settings(table="counters", region=region, regions=REGIONS, limits=LIMITS)

    def add(self, *bodies: str, region: str = HERE) -> list[int]:
        """The numbers of the messages that are reported as failed, the first being 0."""
        failures = self.handlers[region](sqs(*bodies), None)["batchItemFailures"]
        return sorted(int(str(each["itemIdentifier"]).removeprefix("m")) - 1 for each in failures)

    @property
    def value(self) -> int:
        return Reader(self.settings(), table=self.tables[HERE]).read("seats:gig").value

    def counted(self, name: str) -> float:
        return float(sum(self.watch.metrics.metric_set.get(name, {"Value": []})["Value"]))

    def logged(self, *levels: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.lines.getvalue().splitlines()]
        return [line for line in lines if line["level"] in levels]


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("outcomes", [False, True])
def test_a_refusal_is_an_answer_and_its_message_is_deleted(pack: bool, outcomes: bool) -> None:
    world = World(pack, outcomes)
    assert world.add(message(0), message(1), many(message(2), message(3, 1)), message(4, counter="stock")) == []
    assert world.value == 9
    assert world.counted(observe.LIMIT_REACHED) == 1
    (line,) = [line for line in world.logged("INFO") if "error" in line]
    assert (line["error"], line["message_id"], line["index"]) == ("LimitReached", "m3", 0)
    assert not world.logged("WARNING", "ERROR")
    assert {"change", "amount", "why"}.isdisjoint(line)
    answers = ("counted", "counted", "refused", "counted")
    assert world.queue.said == ([told(n, said) for n, said in enumerate(answers)] if outcomes else [])


def test_a_message_that_comes_again_is_told_the_same_whatever_came_back_meanwhile() -> None:
    world = World()
    bodies = [message(0, 8), message(1, 8)]
    assert world.add(*bodies) == []
    assert world.add(message(2, -8)) == []
    assert world.add(*bodies) == []
    first, second = told(0, "counted"), told(1, "refused")
    assert world.queue.said == [first, second, told(2, "counted"), first, second]
    assert world.value == 0


def test_what_is_out_of_reach_is_told_nothing_and_comes_again_alone() -> None:
    world = World()
    world.tables[HERE].error = Unavailable("gone")
    assert world.add(message(0), many(message(1), message(2)), message(3, -1), region=THERE) == [0, 1]
    assert world.counted(observe.OUT_OF_REACH) == 2, "once a message"
    assert [(line["error"], line["message_id"]) for line in world.logged("WARNING")] == [
        ("OutOfReach", "m1"),
        ("OutOfReach", "m2"),
    ]
    assert world.queue.said == [told(3, "counted", THERE)]
    world.tables[HERE].error = None
    assert world.add(message(0), many(message(1), message(2)), region=THERE) == []
    assert world.queue.said[1:] == [told(0, "counted", THERE), told(1, "counted", THERE), told(2, "refused", THERE)]


def test_a_change_of_another_region_is_decided_at_its_home() -> None:
    world = World()
    assert world.add(message(0, 10), message(1, 1), region=HERE) == []
    assert world.add(message(1, 1, region=HERE), message(2, 1), region=THERE) == []
    assert world.queue.said[2:] == [told(1, "refused"), told(2, "refused", THERE)]


@pytest.mark.parametrize("error", [GateLost("no"), LimitMismatch("no"), GaveUp("no"), Throttled("no")])
def test_what_a_gate_could_not_decide_fails_with_one_line_a_message(error: Exception) -> None:
    world = World()
    world.tables[HERE].error = error
    assert world.add(many(message(0), message(1)), message(2), message(3, counter="stock")) == [0, 1]
    level = "ERROR" if isinstance(error, GateLost | LimitMismatch) else "WARNING"
    assert [line["message_id"] for line in world.logged(level)] == ["m1", "m2"]
    assert world.queue.said == []
    world.tables[HERE].error = None
    assert world.add(many(message(0), message(1)), message(2)) == []


def test_a_message_whose_outcome_was_not_queued_comes_again_and_the_others_do_not() -> None:
    world = World()
    world.queue.lose = lambda body: "order/1" in body
    assert world.add(message(0, 8), many(message(1, 8), message(2, 1)), message(3, 1, counter="stock")) == [1]
    (line,) = world.logged("ERROR")
    assert line["message_id"] == "m2"
    world.queue.is_down = True
    assert world.add(message(4, 1), message(5, counter="stock")) == [0]
    world.queue.is_down, world.queue.lose = False, lambda body: False
    assert world.add(many(message(1, 8), message(2, 1)), message(4, 1)) == []
    assert world.queue.said[-3:] == [told(1, "refused"), told(2, "counted"), told(4, "counted")]
    assert world.value == 10


def test_outcomes_travel_by_the_ten_and_each_is_told_of_its_own_message() -> None:
    world = World()
    lost = {"order/3", "order/17"}
    world.queue.lose = lambda body: json.loads(body)["idempotency_key"] in lost
    assert world.add(*(message(n, 0) for n in range(25))) == [3, 17]
    assert [len(batch) for batch in world.queue.batches] == [ENTRIES_MAX - 1, ENTRIES_MAX - 1, 5]


def test_an_entry_that_the_queue_does_not_name_is_not_queued() -> None:
    world = World()
    world.queue.send_message_batch = lambda **asked: {}  # type: ignore[method-assign]
    assert world.add(message(0)) == [0]


def test_the_largest_batch_of_outcomes_is_one_that_sqs_takes() -> None:
    change = Change("c" * 256, 1, "\x01" * 1_024, time_of(AT))
    receipt = Ledger(Settings(table="counters", region=HERE), table=MemoryTable(), clock=lambda: NOW_MS).add(
        change.counter, 1, idempotency_key=change.idempotency_key, at=change.at
    )
    text = outcome_of(change, receipt)
    assert text is not None
    assert ENTRIES_MAX * len(text.encode()) < 262_144
    strange = outcome_of(Change("c", 1, "\ufffe", time_of(AT)), receipt)
    assert strange is not None
    assert "\ufffe" not in strange
    assert json.loads(strange)["idempotency_key"] == "\ufffe"
