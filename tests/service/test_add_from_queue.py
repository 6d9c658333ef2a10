"""The function `add_from_queue`: what is recorded, what comes again, what is poison, and what is an answer."""

import base64
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
from botocore.exceptions import EndpointConnectionError

from compactor import Compactor
from ledger import Ledger, Limit, Settings
from ledger.checks import to_datetime
from ledger.errors import (
    GateLost,
    GaveUp,
    LedgerError,
    LimitMismatch,
    NotAllowed,
    OutcomeUnknown,
    SettingsMismatch,
    Throttled,
    Unavailable,
)
from ledger.memory import MemoryTable
from ledger.message import time_of, time_text
from ledger.requests import PutMany, Request, Update
from ledger.values import Change
from reader import Reader
from service import observe
from service.add_from_queue.dead_letters import MESSAGE_BYTES_MAX
from service.add_from_queue.handler import AddFromQueue
from service.add_from_queue.outcomes import outcome_of
from service.add_from_queue.waits import wait_of
from service.observe import Watch
from service.sqs import ENTRIES_MAX, SqsQueue
from tests.service.http_client import Context
from tests.service.support import sqs

HERE, THERE = REGIONS = ("eu-west-1", "us-east-1")
COUNTER, SEATS = "stock:85123A", "seats:gig"
NOW_MS, AT = 1_291_200_000_000, "2010-12-01T08:26:00.000Z"
NUMBERS = itertools.count()  # a logger's name is for ever, an id() comes again


def message(n: int, change: Any = None, counter: Any = COUNTER, **more: Any) -> str:
    said = {"counter": counter, "change": 4**n if change is None else change, "idempotency_key": f"order/{n}", "at": AT}
    return json.dumps({name: value for name, value in (said | more).items() if value is not ...})


def many(*bodies: str) -> str:
    return f'{{"changes": [{", ".join(bodies)}]}}'


def ahead(ms: int) -> str:
    return time_text(to_datetime(NOW_MS + 300_000 + ms))


BAD = message(9, region="mars-north-1")


class Table(MemoryTable):
    """Fails the puts of changes in `failing`, and every Update by `error`; counts its requests."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.failing: dict[int, LedgerError] = {}
        self.error: Exception | None = None

    def answer(self, request: Request, /) -> Any:
        self.requests.append(request)
        if self.error is not None and isinstance(request, Update):
            raise self.error
        if isinstance(request, PutMany):
            changes = [int(item.get("change", {"N": "0"})["N"]) for item in request.items]
            return tuple(
                self.failing.get(change) or super(Table, self).answer(PutMany((item,)))[0]
                for change, item in zip(changes, request.items, strict=True)
            )
        return super().answer(request)


class Queues:
    """An SQS client of all its queues. It confirms what `lose` does not name, and nothing while it is down."""

    def __init__(self) -> None:
        self.copies: list[dict[str, Any]] = []
        self.waits: dict[str, int] = {}
        self.batches: list[list[str]] = []
        self.lose: Callable[[str], bool] = lambda body: False
        self.is_down = False

    def _up(self, url: str, expected: str) -> None:
        assert url == expected
        if self.is_down:
            raise EndpointConnectionError(endpoint_url=url)

    def send_message(self, *, QueueUrl: str, **asked: Any) -> dict[str, str]:
        self._up(QueueUrl, "dlq")
        self.copies.append(asked)
        return {"MessageId": "x"}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        self._up(QueueUrl, "changes")
        self.waits |= {entry["ReceiptHandle"]: entry["VisibilityTimeout"] for entry in Entries}
        return {"Successful": Entries, "Failed": []}

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:
        self._up(QueueUrl, "outcomes")
        sent = [entry for entry in Entries if not self.lose(entry["MessageBody"])]
        self.batches.append([entry["MessageBody"] for entry in sent])
        return {"Successful": sent, "Failed": []}

    @property
    def outcomes(self) -> list[dict[str, str]]:
        return [json.loads(body) for batch in self.batches for body in batch]


class Adding:
    """The functions of two Regions, each with its table; they do not replicate. bare: without queues of their own."""

    def __init__(self, *, pack: bool = False, bare: bool = False, level: str = "INFO") -> None:
        self.tables = {region: Table() for region in REGIONS}
        self.table = self.tables[HERE]
        self.queues, self.lines = Queues(), io.StringIO()
        self.watch = Watch.here(f"adding-{next(NUMBERS)}", self.lines, level)
        names = ("outcomes", "dead_letters", "changes")
        queues = {name: SqsQueue({"dead_letters": "dlq"}.get(name, name), self.queues) for name in names}
        self.handlers = {
            region: AddFromQueue(
                Ledger(self.settings(region), tables=self.tables, clock=lambda: NOW_MS),
                self.watch,
                pack=pack,
                clock=lambda: NOW_MS,
                jitter=lambda: 0.0,
                **({} if bare else queues),  # type: ignore[arg-type]
            )
            for region in REGIONS
        }

    def settings(self, region: str = HERE) -> Settings:
        limits = {"seats:": Limit(ceiling=10, region=HERE)}
        return Settings(table="counters", region=region, regions=REGIONS, limits=limits)

    def add(self, *bodies: str, region: str = HERE, receives: int = 1, **more: Any) -> list[int]:
        """The numbers of the messages that are reported as failed, the first being 0."""
        event = sqs(*bodies)
        for n, record in enumerate(event["Records"]):
            record |= {"receiptHandle": f"r{n}", "attributes": {"ApproximateReceiveCount": str(receives)}} | more
        failures = self.handlers[region](event)["batchItemFailures"]
        return [int(each["itemIdentifier"].removeprefix("m")) - 1 for each in failures]

    def value(self, counter: str = COUNTER) -> int:
        return Reader(self.settings(), table=self.table).read(counter).value

    def counted(self, name: str) -> float:
        return float(sum(self.watch.metrics.metric_set.get(name, {"Value": []})["Value"]))

    @property
    def copied(self) -> list[tuple[str, str]]:
        why = (copy["MessageAttributes"]["LedgerError"]["StringValue"] for copy in self.queues.copies)
        return list(zip((copy["MessageBody"] for copy in self.queues.copies), why, strict=True))

    def logged(self, *levels: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.lines.getvalue().splitlines()]
        return [line for line in lines if line["level"] in (levels or (line["level"],))]


def test_a_batch_is_one_request_and_a_message_that_comes_again_counts_once() -> None:
    adding = Adding()
    assert adding.add(*(message(n) for n in range(8)), many(message(8), message(9))) == []
    (batch,) = [request for request in adding.table.requests if isinstance(request, PutMany)]
    assert adding.table.requests[1] is batch  # behind the one look at the shape
    assert (len(batch.items), adding.counted(observe.DELTAS_RECORDED)) == (10, 10)
    assert adding.add(message(0), many(message(1), message(10)), message(10)) == []
    assert adding.value() == sum(4**n for n in range(11))
    assert adding.counted(observe.DELTAS_REPLAYED) == 3
    assert adding.logged("INFO")[-1]["changes"] == 4


def test_changes_of_a_lane_stand_in_one_item_and_are_counted_as_accepted_in_one_number() -> None:
    adding = Adding(pack=True)
    assert adding.add(many(*(message(n) for n in range(10))), message(10), message(0, counter="votes")) == []
    assert (len(adding.table.items), adding.value()) == (2, sum(4**n for n in range(11)))
    assert adding.watch.metrics.metric_set[observe.DELTAS_ACCEPTED]["Value"] == [11]
    assert adding.counted(observe.DELTAS_RECORDED) == 1  # of a lane for itself
    again = many(message(0), message(3)), many(message(11, 7), message(12))
    assert adding.add(*again) == []
    assert adding.add(many(message(11, 8), message(13))) == []  # its key stands for another change
    tables = dict.fromkeys(REGIONS, adding.table)
    (difference,) = Compactor(adding.settings(), tables=tables).verify(COUNTER).differences
    assert "with two changes; the first one counts" in difference


# -- poison ------------------------------------------------------------------------------------------------------------

POISON = [
    *("", "not JSON", "[]", "{}"),
    *(message(0, **{missing: ...}) for missing in ("at", "idempotency_key", "counter")),
    *(message(0, change) for change in ("1", 1.5, True, 10**18 + 1, 10**37)),
    *(message(0, counter=counter) for counter in ("two words", "b\u00fc")),
    *(message(0, at=at) for at in ("yesterday", "2010-12-01T08:26:00", "2999-01-01T00:00:00Z")),
    *(message(0, note="unknown field"), BAD),
    *('{"changes": []}', '{"changes": {}}', many(message(0, at=...)), many(many(message(0)))),
]


def test_poison_is_copied_at_once_and_acknowledged_and_its_neighbours_are_recorded() -> None:
    for pack in (False, True):
        adding = Adding(pack=pack)
        assert adding.add(message(1), *POISON, message(2)) == []
        assert [body for body, _ in adding.copied] == POISON
        assert (adding.value(), adding.counted(observe.DELTAS_REFUSED)) == (4 + 16, len(POISON))
        assert (adding.logged("INFO")[-1]["buried"], adding.counted(observe.CHANGES_FAILED)) == (len(POISON), 0)
    bare = Adding(bare=True)
    assert bare.add(message(1), POISON[0], message(2)) == [1]
    assert bare.counted(observe.CHANGES_FAILED) == 1


def test_a_copy_names_what_was_wrong_and_the_line_the_change() -> None:
    adding = Adding()
    adding.add(message(0))
    conflict, mixed = message(0, change=7), many(message(1), BAD, message(2))
    place = many(message(3), message(4, at="yesterday"))
    assert adding.add("not JSON", conflict, mixed, place, message(5, at=ahead(900_001))) == []
    assert [why for _, why in adding.copied] == [
        *("InvalidMessage", "TokenConflict", "InvalidInput", "InvalidMessage", "InvalidTime")
    ]
    assert adding.value() == 1 + 4 + 16  # a message's good changes count, and once after a redrive
    assert adding.add(many(message(1), message(2))) == []
    assert adding.value() == 1 + 4 + 16
    assert adding.counted(observe.DELTAS_CONFLICTING) == 1
    lines = {line["message_id"]: line for line in adding.logged("WARNING") if not line["message"].startswith("poison")}
    assert (lines["m2"]["lane"], lines["m2"]["error"]) == (f"{HERE}#0#{COUNTER}", "TokenConflict")
    assert (lines["m3"]["index"], lines["m4"]["field"]) == (1, "changes[1].at")


def test_poison_whose_copy_is_not_confirmed_stays_and_comes_again() -> None:
    adding = Adding()
    adding.queues.is_down = True
    assert adding.add("not JSON", message(1)) == [0]
    (line,) = adding.logged("ERROR")
    assert (line["message_id"], "SendMessage failed" in line["why"]) == ("m1", True)
    line = adding.logged("WARNING")[-1]
    assert ("a wait was not set" in line["message"], "did not answer" in line["why"]) == (True, True)
    adding.queues.is_down = False
    assert (adding.add("not JSON"), len(adding.copied)) == ([], 1)


def test_a_copy_has_the_messages_own_attributes_and_the_error_as_far_as_there_is_room() -> None:
    adding = Adding()
    text = {"dataType": "String", "stringValue": "abc", "stringListValues": [], "binaryListValues": []}
    raw = {"dataType": "Binary", "binaryValue": base64.b64encode(b"\0\1").decode()}
    adding.add("poison", messageAttributes={"text": text, "raw": raw})
    assert adding.queues.copies[0]["MessageAttributes"] == {
        "text": {"DataType": "String", "StringValue": "abc"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\0\1"},
        "LedgerError": {"DataType": "String", "StringValue": "InvalidMessage"},
    }
    adding.add("poison", messageAttributes={f"a{n}": text for n in range(10)})
    adding.add("x" * MESSAGE_BYTES_MAX)
    assert all("LedgerError" not in copy["MessageAttributes"] for copy in adding.queues.copies[1:])


# -- what comes again --------------------------------------------------------------------------------------------------

FAILURES = [Throttled("no"), OutcomeUnknown("no"), NotAllowed("no"), SettingsMismatch("no"), GateLost("no")]


def test_fifteen_minutes_of_table_trouble_lose_no_good_change_to_the_dlq() -> None:
    for failure in FAILURES:
        adding = Adding()
        adding.table.failing = {1: failure, 4: failure}
        waited_s, receives = 0, 0
        mixed = many(message(1), BAD), many(BAD, message(1))  # whichever of the two comes first
        while waited_s < 15 * 60:
            receives += 1
            assert adding.add(message(0), mixed[0], message(2), mixed[1], receives=receives) == [0, 1, 3]
            assert [adding.queues.waits[name] for name in ("r0", "r1", "r3")] == [
                min(900, 30 * 2 ** (receives - 1))
            ] * 3
            waited_s += adding.queues.waits["r0"]
        assert (receives, adding.copied) == (5, [])  # of 600
        assert adding.counted(observe.CHANGES_FAILED) == 3 * receives
        adding.table.failing.clear()
        assert adding.add(message(0), *mixed) == []
        assert [why for _, why in adding.copied] == ["InvalidInput", "InvalidInput"]
        assert adding.value() == 1 + 4 + 16


def test_a_change_a_little_ahead_of_the_clock_comes_again_when_its_time_is_there() -> None:
    """And is counted as no failure. SQS leaves what was received three times out of the age of the oldest message."""
    for ms, wait_s in ((1, 1), (1_001, 2), (900_000, 900)):
        adding = Adding()
        early = many(message(0, at=ahead(ms)), message(1))
        assert adding.add(early, message(2, at=ahead(0))) == [0]
        assert (adding.queues.waits, adding.copied, adding.value()) == ({"r0": wait_s}, [], 4 + 16)
        assert adding.counted(observe.CHANGES_FAILED) == 0


def test_a_wait_doubles_has_an_end_and_is_not_the_same_for_all() -> None:
    for receives, jitter, wait_s in ((1, 0.0, 30), (2, 0.0, 60), (599, 0.0, 900), (599, 0.5, 787), (599, 0.999, 675)):
        assert wait_of({"attributes": {"ApproximateReceiveCount": str(receives)}}, jitter) == wait_s


def test_what_failed_for_many_changes_of_a_message_has_one_line_and_no_line_above_debug_an_amount() -> None:
    amount = 123_454_321
    bodies = [message(0, amount), message(0, amount + 1), message(1, f"{amount}"), many(message(2, 8), message(3, 8))]
    for level, shown in (("INFO", False), ("DEBUG", True)):
        adding = Adding(level=level)
        adding.table.failing = {8: OutcomeUnknown(f"no: 8 of {amount}")}
        assert adding.add(*bodies) == [3]
        unknown = [line for line in adding.logged("WARNING") if line.get("error") == "OutcomeUnknown"]
        assert [(line["message_id"], line["index"]) for line in unknown] == [("m4", 0)]
        assert ("12345432" in adding.lines.getvalue()) == shown
        assert any(f"not '{amount}'" in line.get("why", "") for line in adding.logged()) == shown


def test_a_defect_fails_the_function_so_that_every_message_comes_back_and_so_does_an_event_without_records() -> None:
    adding = Adding()
    adding.table.answer = lambda request: 1 // 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        adding.add(message(0))
    with pytest.raises(KeyError):
        adding.handlers[HERE]({})


# -- limited counters --------------------------------------------------------------------------------------------------


def seat(n: int, change: int = 4) -> str:
    return message(n, change, SEATS)


def said(n: int, outcome: str, region: str = HERE) -> dict[str, str]:
    return {"counter": SEATS, "idempotency_key": f"order/{n}", "at": AT, "region": region, "outcome": outcome}


def test_a_refusal_is_an_answer_and_a_message_that_comes_again_is_answered_the_same() -> None:
    for pack, bare in itertools.product((False, True), repeat=2):
        adding = Adding(pack=pack, bare=bare)
        bodies = [seat(0), seat(1), many(seat(2), seat(3, 1)), message(4)]
        assert adding.add(*bodies) == []
        assert (adding.value(SEATS), adding.counted(observe.LIMIT_REACHED)) == (9, 1)
        (line,) = [line for line in adding.logged("INFO") if "error" in line]
        assert (line["error"], line["message_id"], line["index"]) == ("LimitReached", "m3", 0)
        assert not adding.logged("WARNING", "ERROR")
        answers = [said(0, "counted"), said(1, "counted"), said(2, "refused"), said(3, "counted")]
        assert adding.queues.outcomes == ([] if bare else answers)
        assert adding.add(seat(5, -9)) == []
        assert adding.add(*bodies) == []
        assert adding.queues.outcomes[5:] == ([] if bare else answers)


def test_what_is_not_decided_has_no_outcome_and_comes_again() -> None:
    for error in (Unavailable("gone"), Throttled("no"), GaveUp("no"), GateLost("no"), LimitMismatch("no")):
        adding = Adding()
        adding.table.error = error
        assert adding.add(seat(0), many(seat(1), seat(2)), message(3)) == [0, 1]
        assert adding.queues.outcomes == []
        adding.table.error = None
        assert adding.add(seat(0), many(seat(1), seat(2))) == []
        assert [each["outcome"] for each in adding.queues.outcomes] == ["counted", "counted", "refused"]
    adding = Adding()
    adding.table.error = Unavailable("gone")
    assert adding.add(seat(0), many(seat(1), seat(2)), seat(3, -1), region=THERE) == [0, 1]
    assert adding.counted(observe.OUT_OF_REACH) == 2, "once a message"


def test_a_message_whose_outcome_was_not_queued_comes_again_and_the_others_do_not() -> None:
    adding = Adding()
    adding.queues.lose = lambda body: "order/1" in body
    assert adding.add(seat(0, 8), many(seat(1, 8), seat(2, 1)), message(3)) == [1]
    (line,) = adding.logged("ERROR")
    assert line["message_id"] == "m2"
    adding.queues.is_down = True
    assert adding.add(seat(4, 1), message(5)) == [0]
    adding.queues.is_down, adding.queues.lose = False, lambda body: False
    assert adding.add(many(seat(1, 8), seat(2, 1)), seat(4, 1)) == []
    assert adding.queues.outcomes[-3:] == [said(1, "refused"), said(2, "counted"), said(4, "counted")]
    assert adding.value(SEATS) == 10


def test_the_largest_batch_of_outcomes_is_one_that_sqs_takes() -> None:
    ledger = Ledger(Settings(table="counters", region=HERE), table=MemoryTable(), clock=lambda: NOW_MS)
    change = Change("c" * 256, 1, "\x01" * 1_024, time_of(AT))
    receipt = ledger.add(change.counter, 1, idempotency_key=change.idempotency_key, at=change.at)
    text = outcome_of(change, receipt)
    strange = outcome_of(Change("c", 1, "\ufffe", time_of(AT)), receipt)
    assert text is not None
    assert strange is not None
    assert ENTRIES_MAX * len(text.encode()) < 262_144
    assert ("\ufffe" in strange, json.loads(strange)["idempotency_key"]) == (False, "\ufffe")


# -- as Lambda starts it -----------------------------------------------------------------------------------------------


def test_metrics_and_the_request_are_in_what_the_function_prints() -> None:
    """From the environment alone, before the first event."""
    code = (
        "from service.add_from_queue.main import handler\n"
        "from tests.service.http_client import Context\n"
        "import json\n"
        "print(json.dumps(handler({'Records': [{'messageId': 'm', 'body': 'poison'}]}, Context())))"
    )
    environ = {"PATH": os.environ["PATH"], "LEDGER_TABLE": "counters", "AWS_REGION": HERE, "LEDGER_STAGE": "test"}
    environ |= {"POWERTOOLS_SERVICE_NAME": "add_from_queue", "POWERTOOLS_METRICS_NAMESPACE": "Ledger"}
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", code], env=environ, cwd=root, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    printed = [json.loads(line) for line in ran.stdout.splitlines()]
    assert printed[-1] == {"batchItemFailures": [{"itemIdentifier": "m"}]}
    (metrics,) = [line for line in printed if "_aws" in line]
    assert (metrics["DeltasRefused"], metrics["stage"], metrics["service"]) == ([1.0], "test", "add_from_queue")
    assert all(line["function_request_id"] == Context().aws_request_id for line in printed if "level" in line)
