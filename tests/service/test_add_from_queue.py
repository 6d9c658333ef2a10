"""A batch of SQS messages: what is recorded, what is reported as failed, and what is told about it."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools.utilities.batch.exceptions import UnexpectedBatchTypeError

from ledger import Ledger, Settings
from ledger.errors import LedgerError, NotAllowed, OutcomeUnknown, Throttled
from ledger.memory import MemoryTable
from ledger.requests import PutMany, Request
from reader import Reader
from service import observe
from service.add_from_queue.handler import AddFromQueue
from service.observe import Watch
from tests.service.http_client import Context
from tests.service.support import sqs

SETTINGS = Settings(table="counters", region="eu-west-1", regions=("eu-west-1", "us-east-1"))
COUNTER = "stock:85123A"
NOW_MS = 1_291_200_000_000


def message(n: int, **changed: Any) -> str:
    said = {"counter": COUNTER, "change": 4**n, "idempotency_key": f"order/{n}", "at": "2010-12-01T08:26:00Z"}
    return json.dumps({name: value for name, value in (said | changed).items() if value is not ...})


class Table(MemoryTable):
    """Counts its requests; may fail some puts of a batch, or all of it."""

    def __init__(self, failing: Callable[[int], LedgerError | None] = lambda n: None) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.failing = failing

    def answer(self, request: Request, /) -> Any:
        self.requests.append(request)
        answers = super().answer(request)
        if isinstance(request, PutMany):
            return tuple(self.failing(n) or answer for n, answer in enumerate(answers))
        return answers


class World:
    def __init__(self, table: Table | None = None, level: str = "INFO") -> None:
        self.table = table or Table()
        self.lines = io.StringIO()
        self.watch = Watch.here(f"test-{id(self)}", self.lines, level)
        self.handler = AddFromQueue(Ledger(SETTINGS, table=self.table, clock=lambda: NOW_MS), self.watch)

    def add(self, *bodies: str) -> list[int]:
        """The numbers of the messages that are reported as failed, the first being 0."""
        failures = self.handler(sqs(*bodies), None)["batchItemFailures"]
        return sorted(int(str(each["itemIdentifier"]).removeprefix("m")) - 1 for each in failures)

    @property
    def value(self) -> int:
        return Reader(SETTINGS, table=self.table).read(COUNTER).value

    def counted(self, name: str) -> float:
        return float(sum(self.watch.metrics.metric_set.get(name, {"Value": []})["Value"]))

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines.getvalue().splitlines()]


def test_a_batch_is_one_request_and_a_message_that_comes_again_is_a_success() -> None:
    world = World()
    assert world.add(*(message(n) for n in range(10))) == []
    (batch,) = [request for request in world.table.requests if isinstance(request, PutMany)]
    assert world.table.requests[1] is batch  # behind the one look at the shape
    assert len(batch.items) == 10
    assert world.counted(observe.DELTAS_RECORDED) == 10
    assert world.add(message(0), message(1), message(10), message(10)) == []
    assert world.value == sum(4**n for n in range(11))
    assert world.counted(observe.DELTAS_REPLAYED) == 3


POISON = [
    *("", "not JSON", "[]", "{}"),
    *(message(0, **{missing: ...}) for missing in ("counter", "at", "idempotency_key")),
    *(message(0, change=change) for change in ("1", 1.5, True, 10**18 + 1, 10**37)),
    *(message(0, counter=counter) for counter in ("two words", "b\u00fc")),
    *(message(0, at=at) for at in ("yesterday", "2010-12-01T08:26:00", "2999-01-01T00:00:00Z")),
    message(0, note="unknown field"),
    message(0, region="mars-north-1"),
]


@pytest.mark.parametrize("poison", POISON)
def test_poison_is_reported_as_failed_and_its_neighbours_are_recorded(poison: str) -> None:
    world = World()
    assert world.add(message(1), poison, message(2)) == [1]
    assert world.value == 4 + 16
    assert world.counted(observe.DELTAS_REFUSED) == 1


def test_a_batch_of_nothing_but_poison_is_reported_whole_and_writes_nothing() -> None:
    world = World()
    assert world.add(*POISON) == list(range(len(POISON)))
    assert world.table.items == {}


def test_a_key_that_stands_for_another_change_is_reported_and_the_earlier_change_counts() -> None:
    world = World()
    world.add(message(0))
    assert world.add(message(0, change=7), message(1)) == [0]
    assert world.value == 1 + 4
    assert world.counted(observe.DELTAS_CONFLICTING) == 1
    (told,) = [line for line in world.logged() if line["level"] == "WARNING"]
    assert told["error"] == "TokenConflict"
    assert told["lane"] == f"eu-west-1#0#{COUNTER}"


@pytest.mark.parametrize("failure", [Throttled("no"), OutcomeUnknown("no"), NotAllowed("no")])
def test_what_the_table_did_not_take_is_reported_and_tried_again(failure: LedgerError) -> None:
    table = Table(lambda n: failure if n == 1 else None)
    world = World(table)
    assert world.add(message(0), message(1), message(2)) == [1]
    table.failing = lambda n: None
    assert world.add(message(1)) == []
    assert world.value == 1 + 4 + 16


def test_an_error_of_our_own_fails_the_function_so_that_every_message_comes_back() -> None:
    class Broken(Table):
        def answer(self, request: Request, /) -> Any:
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        World(Broken()).add(message(0))


@pytest.mark.parametrize("event", [{}, {"Records": []}, {"source": "aws.events"}])
def test_an_event_that_is_no_batch_fails_the_function(event: dict[str, Any]) -> None:
    with pytest.raises(UnexpectedBatchTypeError):
        World().handler(event)


def test_no_line_above_debug_names_an_amount_and_the_reason_is_told_at_debug() -> None:
    amount = 123_454_321
    bodies = [message(0, change=amount), message(0, change=amount + 1), message(1, change=f"{amount}")]
    bodies += [message(2, change=amount), message(3, change=amount)]
    for level, told in (("INFO", False), ("DEBUG", True)):
        world = World(Table(lambda n: OutcomeUnknown("no") if n == 3 else None), level)
        world.add(*bodies)
        assert world.logged()
        assert ("12345432" in world.lines.getvalue()) == told
        assert any(f"not '{amount}'" in line.get("why", "") for line in world.logged()) == told


def test_metrics_and_the_request_are_in_what_the_function_prints() -> None:
    """The entry point as Lambda starts it: from the environment alone, before the first event."""
    code = (
        "from service.add_from_queue.main import handler\n"
        "from tests.service.http_client import Context\n"
        "import json\n"
        "print(json.dumps(handler({'Records': [{'messageId': 'm', 'body': 'poison'}]}, Context())))"
    )
    environ = {
        "PATH": os.environ["PATH"],
        "LEDGER_TABLE": "counters",
        "AWS_REGION": "eu-west-1",
        "LEDGER_STAGE": "test",
    }
    environ |= {"POWERTOOLS_SERVICE_NAME": "add_from_queue", "POWERTOOLS_METRICS_NAMESPACE": "Ledger"}
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], env=environ, cwd=root, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    printed = [json.loads(line) for line in run.stdout.splitlines()]
    assert printed[-1] == {"batchItemFailures": [{"itemIdentifier": "m"}]}
    (metrics,) = [line for line in printed if "_aws" in line]
    assert metrics["DeltasRefused"] == [1.0]
    assert (metrics["stage"], metrics["service"]) == ("test", "add_from_queue")
    assert all(line["function_request_id"] == Context().aws_request_id for line in printed if "level" in line)
