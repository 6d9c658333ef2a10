"""A batch of SQS messages: what is recorded, what is reported as failed, and what is told about it."""

import io
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools.utilities.batch.exceptions import UnexpectedBatchTypeError

from compactor import Compactor
from ledger import Ledger, Settings
from ledger.errors import LedgerError, NotAllowed, OutcomeUnknown, Throttled
from ledger.memory import MemoryTable
from ledger.requests import PutMany, Request, Together
from reader import Reader
from service import observe
from service.add_from_queue.handler import AddFromQueue
from service.observe import Watch
from tests.service.http_client import Context
from tests.service.support import sqs

SETTINGS = Settings(table="counters", region="eu-west-1", regions=("eu-west-1", "us-east-1"))
COUNTER = "stock:85123A"
NOW_MS = 1_291_200_000_000
NUMBERS = itertools.count()  # a logger's name is for ever, an id() comes again


def message(n: int, **changed: Any) -> str:
    said = {"counter": COUNTER, "change": 4**n, "idempotency_key": f"order/{n}", "at": "2010-12-01T08:26:00Z"}
    return json.dumps({name: value for name, value in (said | changed).items() if value is not ...})


def many(*bodies: str) -> str:
    return f'{{"changes": [{", ".join(bodies)}]}}'


class Table(MemoryTable):
    """Counts its requests; may fail some puts of a batch, or all of it."""

    def __init__(self, failing: Callable[[int], LedgerError | None] = lambda n: None) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.failing = failing

    def answer(self, request: Request, /) -> Any:
        self.requests.append(request)
        answers = super().answer(request)
        if isinstance(request, PutMany | Together):
            return tuple(self.failing(n) or answer for n, answer in enumerate(answers))
        return answers


class World:
    def __init__(self, table: Table | None = None, level: str = "INFO", pack: bool = False) -> None:
        self.table = table or Table()
        self.lines = io.StringIO()
        self.watch = Watch.here(f"test-{next(NUMBERS)}", self.lines, level)
        ledger = Ledger(SETTINGS, table=self.table, clock=lambda: NOW_MS)
        self.handler = AddFromQueue(ledger, self.watch, pack=pack, clock=lambda: NOW_MS)

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
    *('{"changes": []}', '{"changes": {}}', many(message(0, at=...)), many(many(message(0)))),
]


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("poison", POISON)
def test_poison_is_reported_as_failed_and_its_neighbours_are_recorded(poison: str, pack: bool) -> None:
    world = World(pack=pack)
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


def test_messages_that_fail_are_counted_and_poison_that_was_copied_or_waits_for_its_time_is_not() -> None:
    """SQS leaves a message that was received three times out of the age of the oldest: nothing else counts these."""
    soon = message(3, at="2010-12-01T10:46:00Z")  # six minutes ahead of the clock
    world = World(Table(lambda n: NotAllowed("no")))
    assert world.add(many(message(0), message(1)), message(2), soon) == [0, 1, 2]
    assert world.counted(observe.CHANGES_FAILED) == 2
    sound = World()
    assert sound.add(message(0), soon) == [1]
    assert sound.counted(observe.CHANGES_FAILED) == 0


@pytest.mark.parametrize("failure", [Throttled("no"), OutcomeUnknown("no"), NotAllowed("no")])
def test_what_the_table_did_not_take_is_reported_and_tried_again(failure: LedgerError) -> None:
    table = Table(lambda n: failure if n == 1 else None)
    world = World(table)
    assert world.add(message(0), message(1), message(2)) == [1]
    table.failing = lambda n: None
    assert world.add(message(1)) == []
    assert world.value == 1 + 4 + 16


# -- messages of many changes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [False, True])
def test_messages_of_one_and_of_many_are_one_add_and_those_that_come_again_count_once(pack: bool) -> None:
    world = World(pack=pack)
    elsewhere = message(9, counter="seats")
    assert world.add(many(message(0), message(1), elsewhere), message(2), many(message(3))) == []
    assert world.add(many(message(3), message(1)), many(message(4), message(5), message(6))) == []
    assert world.value == sum(4**n for n in range(7))
    assert Reader(SETTINGS, table=world.table).read("seats").value == 4**9


def test_of_a_message_with_a_change_that_is_not_as_described_nothing_is_added_and_the_line_names_its_place() -> None:
    world = World()
    assert world.add(many(message(0), message(1, at="yesterday")), message(2)) == [0]
    assert world.value == 16
    (told,) = [line for line in world.logged() if line["level"] == "WARNING"]
    assert (told["message_id"], told["field"]) == ("m1", "changes[1].at")
    assert world.counted(observe.DELTAS_REFUSED) == 1


@pytest.mark.parametrize(
    ("bad", "metric"),
    [(message(1, region="mars-north-1"), observe.DELTAS_REFUSED), (message(9, change=7), observe.DELTAS_CONFLICTING)],
)
def test_a_message_stays_in_the_queue_until_the_last_of_its_changes_is_added(bad: str, metric: str) -> None:
    world = World()
    world.add(message(9))
    assert world.add(many(message(2), bad, message(3)), message(4)) == [0]
    assert world.value == 4**9 + 16 + 64 + 256
    assert world.counted(metric) == 1
    (told,) = [line for line in world.logged() if line["level"] == "WARNING"]
    assert (told["message_id"], told["index"]) == ("m1", 1)


# -- packs -------------------------------------------------------------------------------------------------------------


def test_changes_of_a_lane_stand_in_one_item_and_are_told_as_accepted_in_one_number() -> None:
    world = World(pack=True)
    assert world.add(many(*(message(n) for n in range(10))), message(10), message(0, counter="seats")) == []
    assert len(world.table.items) == 2
    assert world.value == sum(4**n for n in range(11))
    assert world.watch.metrics.metric_set[observe.DELTAS_ACCEPTED]["Value"] == [11]
    assert world.counted(observe.DELTAS_RECORDED) == 1  # of a lane for itself


def test_a_pack_that_failed_keeps_each_of_its_messages_in_one_line_each_and_no_other() -> None:
    def seats(n: int) -> str:
        return message(n, counter="seats")

    table = Table(lambda n: OutcomeUnknown("no") if n == 1 else None)  # packs go by the name of their counter
    world = World(table, pack=True)
    bodies = [many(message(0), message(1), message(2)), message(3), many(seats(0), seats(1))]
    assert world.add(*bodies) == [0, 1]
    told = [line for line in world.logged() if line["level"] == "WARNING"]
    assert [(line["message_id"], line["index"], line["error"]) for line in told] == [
        ("m1", 0, "OutcomeUnknown"),
        ("m2", 0, "OutcomeUnknown"),
    ]
    table.failing = lambda n: None
    assert world.add(*bodies[:2]) == []
    assert world.value == 1 + 4 + 16 + 64


def test_a_key_with_another_change_in_a_pack_leaves_the_queue_counts_once_and_is_found_by_verify() -> None:
    world = World(pack=True)
    assert world.add(message(0), message(1)) == []
    assert world.add(many(message(0, change=7), message(2))) == []
    assert world.value in (1 + 4 + 16, 7 + 4 + 16)
    tables = dict.fromkeys(SETTINGS.regions, world.table)
    (difference,) = Compactor(SETTINGS, tables=tables).verify(COUNTER).differences
    assert "with two changes; the first one counts" in difference


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
