"""The function `add_from_queue`: what is recorded, what comes again, what is poison, and what is
an answer.
"""

import base64
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from ledger import Ledger, Limit, Settings
from ledger.client.message import time_of, time_text
from ledger.core import errors, tokens
from ledger.core.checks import to_datetime
from ledger.core.requests import Put, PutMany, Update
from ledger.core.values import Change
from ledger.tables.memory import MemoryTable
from service.add_from_queue.outcomes import outcome_of
from service.add_from_queue.record import MESSAGE_BYTES_MAX, wait_of
from service.canary.handler import COUNTER as CANARY
from service.sqs import ENTRIES_MAX
from tests.service.support import Service
from tests.world import COUNTER, A, B, fail

SEATS = "seats:gig"
AT_MS, AT = 1_291_200_000_000, "2010-12-01T08:26:00.000Z"


def message(n: int, change: Any = None, counter: Any = COUNTER, **more: Any) -> str:
    said = {
        "counter": counter,
        "change": 4**n if change is None else change,
        "idempotency_key": f"order/{n}",
        "at": AT,
    }
    return json.dumps({name: value for name, value in (said | more).items() if value is not ...})


def many(*bodies: str) -> str:
    return f'{{"changes": [{", ".join(bodies)}]}}'


def ahead(ms: int) -> str:
    return time_text(to_datetime(AT_MS + 300_000 + ms))


def adding(region: str = A, **started: Any) -> Service:
    limits = {"seats:": Limit(ceiling=10, region=A)}
    return Service(region, now_ms=AT_MS, fold_min=32, limits=limits).start(**started)


def waits(service: Service) -> dict[str, int]:
    return {
        each["ReceiptHandle"]: each["VisibilityTimeout"]
        for each in service.sqs.taken.get("changes", ())
    }


def puts(*changes: int) -> Callable[[Any], bool]:
    """Whether a request puts one of these."""
    return lambda request: (
        isinstance(request, Put) and int(request.item.get("change", {"N": "0"})["N"]) in changes
    )


BAD = message(9, region="mars-north-1")


def test_a_batch_is_one_request_and_a_repeat_counts_once() -> None:
    service = adding()
    assert service.adds(*(message(n) for n in range(8)), many(message(8), message(9))) == []
    (batch,) = [request for request in service.asked if isinstance(request, PutMany)]
    assert (len(batch.items), service.counted("DeltasRecorded")) == (10, 10)
    assert service.adds(message(0), many(message(1), message(10)), message(10)) == []
    assert (service.value(), service.counted("DeltasReplayed")) == (sum(4**n for n in range(11)), 3)
    counts = {"messages": 3, "changes": 4, "buried": 0, "failed": 0}
    assert service.lines()[-1] == ("info", "added a batch", counts)


def test_a_message_without_at_has_the_time_in_its_key() -> None:
    service, key = adding(), tokens.make(AT_MS - 1, bytes(10))
    left_out = message(0, idempotency_key=key, at=...)
    moved = message(
        0, change=-1, idempotency_key=key, at=..., then={"counter": "b", "change": 1}, counter="a"
    )
    assert service.adds(left_out, moved, message(1, at=...)) == []
    given = message(0, idempotency_key=key, at=time_text(to_datetime(AT_MS - 1)))
    assert service.adds(left_out, given, moved) == []
    assert (service.value(), service.value("a"), service.value("b")) == (1, -1, 1)
    assert [why for _, why in service.dead_letters()] == ["InvalidMessage"]


def test_a_copy_names_what_was_wrong_and_the_line_the_change() -> None:
    service = adding()
    service.adds(message(0))
    conflict, mixed = message(0, change=7), many(message(1), BAD, message(2))
    place = many(message(3), message(4, at="yesterday"))
    assert service.adds("not JSON", conflict, mixed, place, message(5, at=ahead(900_001))) == []
    assert [why for _, why in service.dead_letters()] == [
        *("InvalidMessage", "TokenConflict", "InvalidInput", "InvalidMessage", "InvalidTime")
    ]
    assert service.lines()[-1][2]["buried"] == 5
    assert service.adds(many(message(1), message(2))) == []
    assert service.value() == 1 + 4 + 16  # a message's good changes count, and once after a redrive
    assert service.counted("DeltasConflicting") == 1
    lines = {
        line["message_id"]: line
        for _, text, line in service.lines("warning")
        if not text.startswith("moved")
    }
    assert (lines["m2"]["lane"], lines["m2"]["error"]) == (f"{A}#0#{COUNTER}", "TokenConflict")
    assert (lines["m3"]["index"], lines["m4"]["field"]) == (1, "changes[1].at")
    service.sqs.down = True
    # a copy that is not confirmed stays, and comes again
    assert service.adds("not JSON", message(1)) == [0]
    ((_, _, line),) = service.lines("error")
    assert (line["message_id"], "did not answer" in line["why"]) == ("m1", True)
    _, text, line = service.lines("warning")[-1]
    assert ("SQS did not set a wait" in text, "did not answer" in line["why"]) == (True, True)


def test_a_copy_has_the_messages_attributes_and_the_error() -> None:
    service = adding()
    text = {
        "dataType": "String",
        "stringValue": "abc",
        "stringListValues": [],
        "binaryListValues": [],
    }
    raw = {"dataType": "Binary", "binaryValue": base64.b64encode(b"\0\1").decode()}
    service.adds(
        "poison", messageAttributes={"text": text, "raw": raw, "none": {"dataType": "Binary"}}
    )
    service.adds("poison", messageAttributes={f"a{n}": text for n in range(10)})
    service.adds("x" * MESSAGE_BYTES_MAX)
    first, *others = [copy["MessageAttributes"] for copy in service.sqs.taken["dead_letters"]]
    why = {"LedgerError": {"DataType": "String", "StringValue": "InvalidMessage"}}
    binary = {"DataType": "Binary", "BinaryValue": b"\0\1"}
    none = binary | {"BinaryValue": b""}
    assert (
        first
        == {"text": {"DataType": "String", "StringValue": "abc"}, "raw": binary, "none": none} | why
    )
    assert all("LedgerError" not in attributes for attributes in others)


def test_a_copy_is_of_the_messages_group_if_it_has_one() -> None:
    for group in (None, "tenant-7"):
        service = adding()
        named = {} if group is None else {"MessageGroupId": group}
        service.adds("poison", attributes={"ApproximateReceiveCount": "1", **named})
        (copy,) = service.sqs.taken["dead_letters"]
        assert copy.get("MessageGroupId") == group


def test_a_change_of_a_name_not_written_here_is_a_dead_letter() -> None:
    service = adding(prefixes=("stock:", "seats:"), pack=True)
    mixed = many(message(1), message(2, counter=CANARY), message(3))
    other = message(4, counter="other")
    assert service.adds(mixed, other, message(5)) == []
    assert service.dead_letters() == [(mixed, "InvalidCounter"), (other, "InvalidCounter")]
    assert (service.value(), service.counted("DeltasRefused")) == (4 + 64 + 4**5, 2)
    assert {key.pk.rpartition("#")[2] for key in service.items} == {COUNTER}


def test_table_trouble_of_15_minutes_loses_no_good_change() -> None:
    for failure in (
        errors.Throttled("no"),
        errors.OutcomeUnknown("no"),
        errors.NotAllowed("no"),
        errors.SettingsMismatch("no"),
        errors.GateLost("no"),
    ):
        service = adding()
        service.before(puts(1, 4), fail(failure))
        mixed = many(message(1), BAD), many(BAD, message(1))  # whichever of the two comes first
        for receives in range(1, 6):
            service.sqs.taken.clear()
            assert service.adds(message(0), mixed[0], message(2), mixed[1], receives=receives) == [
                0,
                1,
                3,
            ]
            assert waits(service) == dict.fromkeys(
                ("r1", "r2", "r4"), min(900, 30 * 2 ** (receives - 1))
            )
            assert service.dead_letters() == []
        assert service.counted("ChangesFailed") == 3 * 5
        service.fails(None)
        assert service.adds(message(0), *mixed) == []
        assert [why for _, why in service.dead_letters()] == ["InvalidInput", "InvalidInput"]
        assert service.value() == 1 + 4 + 16


def test_a_change_ahead_of_the_clock_comes_again_in_time() -> None:
    """And is counted as no failure.

    SQS leaves what was received three times out of the age of the oldest message.
    """
    for ms, wait_s in ((1, 1), (1_001, 2), (900_000, 900)):
        service = adding()
        early = many(message(0, at=ahead(ms)), message(1))
        assert service.adds(early, message(2, at=ahead(0))) == [0]
        assert (waits(service), service.dead_letters(), service.value()) == (
            {"r1": wait_s},
            [],
            4 + 16,
        )
        assert service.counted("ChangesFailed") == 0
    for receives, jitter, wait_s in (
        (1, 0.0, 30),
        (2, 0.0, 60),
        (599, 0.0, 900),
        (599, 0.5, 787),
        (599, 0.999, 675),
    ):
        assert wait_of({"attributes": {"ApproximateReceiveCount": str(receives)}}, jitter) == wait_s


def test_many_failures_of_a_message_are_one_line() -> None:
    amount = 123_454_321
    service = adding()
    service.before(puts(8), fail(errors.OutcomeUnknown(f"no: 8 of {amount}")))
    bodies = [
        message(0, amount),
        message(0, amount + 1),
        message(1, f"{amount}"),
        many(message(2, 8), message(3, 8)),
    ]
    assert service.adds(*bodies) == [3]
    unknown = [
        line for _, _, line in service.lines("warning") if line.get("error") == "OutcomeUnknown"
    ]
    assert [(line["message_id"], line["index"]) for line in unknown] == [("m4", 0)]
    assert ("12345432" in repr(service.lines()), "12345432" in repr(service.lines("debug"))) == (
        False,
        True,
    )


def test_a_defect_fails_the_function_and_every_message_returns() -> None:
    service = adding()
    service.fails(ZeroDivisionError(), object)
    with pytest.raises(ZeroDivisionError):
        service.adds(message(0))
    with pytest.raises(KeyError):
        service.adder({})


def seat(n: int, change: int = 4) -> str:
    return message(n, change, SEATS)


def said(n: int, outcome: str) -> dict[str, str]:
    return {
        "counter": SEATS,
        "idempotency_key": f"order/{n}",
        "at": AT,
        "region": A,
        "outcome": outcome,
    }


def test_a_refusal_is_an_answer_and_a_repeat_gets_the_same() -> None:
    for pack, queues in itertools.product((False, True), ((), ("outcomes",))):
        service = adding(pack=pack, queues=queues)
        bodies = [seat(0), seat(1), many(seat(2), seat(3, 1)), message(4)]
        assert service.adds(*bodies) == []
        assert (service.value(SEATS), service.counted("LimitReached")) == (9, 1)
        (line,) = [line for _, _, line in service.lines("info") if "error" in line]
        assert (line["error"], line["message_id"], line["index"]) == ("LimitReached", "m3", 0)
        assert service.lines("warning", "error") == []
        answers = [said(0, "counted"), said(1, "counted"), said(2, "refused"), said(3, "counted")]
        assert service.outcomes() == (answers if queues else [])
        assert service.adds(seat(5, -9)) == []
        assert service.adds(*bodies) == []
        assert service.outcomes()[5:] == (answers if queues else [])


def test_what_is_not_decided_has_no_outcome_and_comes_again() -> None:
    for error in (
        errors.Unavailable("gone"),
        errors.Throttled("no"),
        errors.GaveUp("no"),
        errors.GateLost("no"),
        errors.LimitMismatch("no"),
    ):
        service = adding()
        service.fails(error, Update)
        assert service.adds(seat(0), many(seat(1), seat(2)), message(3)) == [0, 1]
        assert service.outcomes() == []
        service.fails(None)
        assert service.adds(seat(0), many(seat(1), seat(2))) == []
        assert [each["outcome"] for each in service.outcomes()] == ["counted", "counted", "refused"]
    there = adding(B)
    there.away.down = True
    assert there.adds(seat(0), many(seat(1), seat(2)), seat(3, -1)) == [0, 1]
    assert there.counted("OutOfReach") == 2, "once a message"


def test_a_part_counts_and_its_outcome_says_how_much() -> None:
    service = adding(pack=True)
    part = {"counter": SEATS, "partial": True}
    wanted = message(1, 9, **part), message(2, 9, **part)
    plain = message(3, 9, partial=True)
    assert service.adds(seat(0, 8), many(wanted[0], seat(4, -1)), wanted[1], plain) == []
    says = {"partial": True, "asked": 9}
    assert service.outcomes() == [
        said(0, "refused"),  # those of which a part may count come first
        said(1, "counted") | says | {"change": 9},
        said(4, "counted"),
        said(2, "counted") | says | {"change": 1},
    ]
    assert [why for _, why in service.dead_letters()] == ["InvalidInput"], "it has no limit"
    assert service.adds(*wanted, message(5, 9, **part), message(6, 9, **part)) == []
    assert service.outcomes()[-4:] == [
        said(1, "counted") | says | {"change": 9},
        said(2, "counted") | says | {"change": 1},
        said(5, "counted") | says | {"change": 1},
        said(6, "refused") | says | {"change": 0},
    ]
    assert (service.value(SEATS), service.counted("LimitReached")) == (10, 2)


def test_a_part_that_no_region_decides_comes_again() -> None:
    there = adding(B)
    there.away.down = True
    part = message(1, 9, counter=SEATS, partial=True)
    assert there.adds(part, message(0)) == [0]
    assert there.outcomes() == []
    there.away.down = False
    assert there.adds(part) == []
    outcome: Any = there.outcomes()[0]
    assert (outcome["change"], outcome["region"]) == (9, B)


def test_a_message_without_a_queued_outcome_comes_again() -> None:
    service = adding()
    service.sqs.refuses = "order/1"
    assert service.adds(seat(0, 8), many(seat(1, 8), seat(2, 1)), message(3)) == [1]
    ((_, _, line),) = service.lines("error")
    assert line["message_id"] == "m2"
    service.sqs.down = True
    assert service.adds(seat(4, 1), message(5)) == [0]
    service.sqs.down, service.sqs.refuses = False, "nothing"
    assert service.adds(many(seat(1, 8), seat(2, 1)), seat(4, 1)) == []
    assert service.outcomes()[-3:] == [said(1, "refused"), said(2, "counted"), said(4, "counted")]
    assert service.value(SEATS) == 10


def test_the_largest_batch_of_outcomes_is_one_that_sqs_takes() -> None:
    ledger = Ledger(Settings(table="counters", region=A), table=MemoryTable(), clock=lambda: AT_MS)
    change = Change("c" * 256, 1, "\x01" * 1_024, time_of(AT))
    receipt = ledger.add(change.counter, 1, idempotency_key=change.idempotency_key, at=change.at)
    text, strange = (
        outcome_of(change, receipt),
        outcome_of(Change("c", 1, "\ufffe", time_of(AT)), receipt),
    )
    assert text is not None
    assert strange is not None
    assert ENTRIES_MAX * len(text.encode()) < 262_144
    assert ("\ufffe" in strange, json.loads(strange)["idempotency_key"]) == (False, "\ufffe")
