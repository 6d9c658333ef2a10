"""Answers that httptools reads: whole and alone, or none, however the bytes come."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ledger.core.errors import InvalidSettings, OutcomeUnknown, Unavailable
from ledger.core.requests import Get
from ledger.tables import answers, connections
from ledger.tables.answers import BLANK_LINE, HEAD_MAX, Answer, Answers, NotWhole
from ledger.tables.dynamo import DynamoTable
from ledger.tables.fast import FastClient
from tests.ledger.scripted import HANG_S, OK, Line, Server, fast, http, refusal
from tests.ledger.test_table_errors import KEY, PUT
from tests.world import settings

BODY = b'{"ConsumedCapacity": {"CapacityUnits": 1.0}}'
WHOLE = http(body=BODY.decode())
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nx-amzn-RequestId: R1\r\n\r\n"
    b"5;a=b\r\n%s\r\n%x\r\n%s\r\n0\r\nx-amz-crc32: 1\r\n\r\n"
) % (BODY[:5], len(BODY) - 5, BODY[5:])
GOES_ON, EARLY = b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n"
LONG, MANY = "x" * HEAD_MAX, b"".join(b"\r\nx%d: y" % number for number in range(101))


def headed(name: str, value: object) -> bytes:
    named: dict[str, Any] = {name: value}
    return http(**named)


def read(*parts: bytes) -> tuple[Answer, bool]:
    """The answer that comes in these parts, before the connection ends."""
    left = iter(parts)
    return Answers(lambda most: next(left, b"")).next()


@pytest.mark.parametrize("sent", [WHOLE, CHUNKED, GOES_ON + EARLY + WHOLE])
def test_no_part_of_an_answer_is_one_however_it_comes(sent: bytes) -> None:
    answer, keeps = read(sent)
    assert (answer.status_code, answer.content, keeps) == (200, BODY, True)
    assert answer.headers["x-amzn-requestid"] == "R1"
    assert not answer.headers.keys() & {"x", "x-amz-crc32"}  # of an interim answer, or a trailer
    assert read(*(bytes([byte]) for byte in sent)) == (answer, keeps)
    for length in range(1, len(sent)):
        assert read(sent[:length], sent[length:]) == (answer, keeps)
        with pytest.raises(NotWhole):
            read(sent[:length])


def test_answers_that_follow_each_other_are_each_requests_own() -> None:
    left: Iterator[bytes] = iter([WHOLE, CHUNKED, GOES_ON, http(400, "[]"), WHOLE])
    one = Answers(lambda most: next(left))
    found = [one.next()[0] for _ in range(4)]
    assert [(answer.status_code, answer.content) for answer in found] == [
        (200, BODY),
        (200, BODY),
        (400, b"[]"),
        (200, BODY),
    ]
    assert one._content == []  # which would stay as long as the connection


def test_what_ends_with_its_connection_is_not_kept() -> None:
    for sent in (
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        http(body="{}", Connection="close"),
        http(body="{}").replace(b"HTTP/1.1", b"HTTP/1.0"),
    ):
        answer, keeps = read(sent)
        assert (answer.content, keeps) == (b"{}", False)


def test_no_callback_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """httptools takes what a signal raises in a function of Python for a malformed answer."""
    given: list[Any] = []
    monkeypatch.setattr(answers.httptools, "HttpResponseParser", given.append)
    Answers(lambda most: b"")
    (protocol,) = given
    assert not [call for call in vars(protocol).values() if hasattr(call, "__code__")]
    assert all(callable(call) for call in vars(protocol).values())


def test_an_answer_ends_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(1_000))
    monkeypatch.setattr(answers, "monotonic", lambda: next(seconds))
    with pytest.raises(TimeoutError, match="60 s"):
        Answers(lambda most: b"x").next()


def test_without_httptools_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "httptools", None)
    with pytest.raises(InvalidSettings, match=r'pip install "exact-counter\[fast\]"'):
        FastClient("eu-west-1")


# -- a nasty server, which may have applied what it answers so

NASTY = {
    "reset in the head": Line(WHOLE[:20], "reset"),
    "reset in the body": Line(WHOLE[:-9], "reset"),
    "half a head": Line(WHOLE[:20], "close"),
    "half a body": Line(WHOLE[:-9], "close"),
    "half a chunk": Line(CHUNKED[:-30], "close"),
    "no last chunk": Line(CHUNKED.partition(b"0\r\n")[0], "close"),
    "nothing": Line(b"", "close"),
    "nothing in time": Line(b"", "late"),
    "a head, and nothing in time": Line(WHOLE.partition(b"{")[0], "stall"),
    "a wrong checksum": Line(headed("x-amz-crc32", 1)),
    "a checksum that is none": Line(headed("x-amz-crc32", "x")),
    "interim answers alone": Line(GOES_ON + EARLY, "close"),
    "interim answers without end": Line(GOES_ON * (HEAD_MAX // 20), "close"),
    "another protocol": Line(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n" + WHOLE, "close"),
    "a line too long": Line(headed("x", LONG)),
    "headers too many": Line(WHOLE.replace(BLANK_LINE, MANY + BLANK_LINE)),
    "a head without end": Line(b"HTTP/1.1 200 OK\r\nx: " + LONG.encode(), "stall"),
    "two answers": Line(WHOLE + WHOLE),
    "garbage after it": Line(WHOLE + b"\x00\xff garbage"),
    "a length too long": Line(headed("Content-Length", 99), "close"),
    "a length too long, in time": Line(headed("Content-Length", 99), "stall"),
    "a length too short": Line(headed("Content-Length", 1)),
    "a length below 0": Line(headed("Content-Length", -2), "close"),
    "a length that is none": Line(headed("Content-Length", "2, 2"), "close"),
    "two lengths": Line(WHOLE.replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n"), "close"),
    "a length and chunks": Line(headed("Transfer-Encoding", "chunked"), "close"),
    "chunks too long": Line(CHUNKED.replace(b"5;", b"fffffffffffffffff;"), "close"),
    "no HTTP": Line(b"\x16\x03\x01\x02\x00", "close"),
    "a later HTTP": Line(WHOLE.replace(b"HTTP/1.1", b"HTTP/2.0"), "close"),
    "no status": Line(WHOLE.replace(b"200", b"000")),
    "no body": Line(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "compressed": Line(WHOLE.replace(b"{", b"\x1f\x8b")),
}
DENIED = refusal("AccessDeniedException")


@pytest.mark.parametrize("nasty", [pytest.param(line, id=name) for name, line in NASTY.items()])
def test_where_a_request_was_sent_its_doubt_stays(
    server: Server, monkeypatch: pytest.MonkeyPatch, nasty: Line
) -> None:
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 0.2)
    answered = Line(WHOLE)
    for request, script, end in (
        (PUT, [nasty], OutcomeUnknown),
        (PUT, [nasty, DENIED], OutcomeUnknown),
        (Get(KEY), [nasty], Unavailable),
        (PUT, [nasty, answered], None),
    ):
        client = fast(server)
        table = DynamoTable.of(settings(), {"eu-west-1": client})
        server.script = [*script]
        if end is None:
            assert table.answer(request) is None
        else:
            with pytest.raises(end):
                table.answer(request)
        server.script = []
        for number in range(3):  # whatever came, the next ones get their own answers
            item = {"n": {"N": str(number)}}
            assert client.put_item(Item=item)["Item"] == item


def test_a_late_answer_is_nobodys(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 0.2)
    client, late = fast(server), threading.Event()

    def line(asked: dict[str, Any]) -> Line:
        if "late" not in asked:
            return Line(http(body={"Item": asked["Item"]}))
        late.wait(HANG_S)
        return Line(http(body={"Item": "of a late answer"}))

    monkeypatch.setattr(server, "line", line)
    with pytest.raises(Exception, match="Read timeout"):
        client.put_item(late=True)
    late.set()
    assert [client.put_item(Item={"n": n})["Item"]["n"] for n in range(20)] == [*range(20)]


def test_what_closes_while_idle_costs_no_attempt(server: Server) -> None:
    client = fast(server)
    for _ in range(3):
        server.script = [Line(OK.sent, "close"), OK]
        for _ in range(2):
            answer = client.put_item()
            assert answer["ResponseMetadata"]["RetryAttempts"] == 0
            server.closed.wait(0.05)
