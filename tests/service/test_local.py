"""The API on this computer: real HTTP, and the events it makes of it."""

import contextlib
import http.client
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.api import openapi
from service.api.admission import BODY_BYTES_MAX
from service.api.local import HOST, event_of
from service.observe import Watch
from tests.service.http_client import ULID, served

ROOT = Path(__file__).parents[2]


@pytest.fixture
def port() -> Iterator[int]:
    with served(openapi.in_memory(watch=Watch.here("local", io.StringIO()))) as port:
        yield port


@pytest.fixture
def connection(port: int) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(HOST, port, timeout=120)
    yield connection
    connection.close()


def test_changes_are_added_and_read_over_http_each_connection_by_its_own(
    port: int, connection: http.client.HTTPConnection
) -> None:
    headers = {"Idempotency-Key": ULID, "Content-Type": "application/json"}
    for status in (201, 200):
        body = b'{"counter": "stock:85123A", "change": -6}'
        connection.request("POST", "/counters/stock%3A85123A/deltas", body, headers)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["counter"]) == (status, "stock:85123A")
    connection.request("GET", "/counters?counter=stock:85123A&max_age=0&consistent=true")
    assert json.loads(connection.getresponse().read())["value"] == -6

    def added(n: int) -> str:
        connection = http.client.HTTPConnection(HOST, port, timeout=120)
        body = json.dumps({"counter": f"c{n}", "change": n, "at": "2010-12-01T08:26:00Z"})
        connection.request("POST", f"/counters/c{n}/deltas", body, {"Idempotency-Key": "k"})
        with contextlib.closing(connection):
            return str(json.loads(connection.getresponse().read())["counter"])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(added, range(40))) == [f"c{n}" for n in range(40)]


def test_too_large_a_body_and_an_unknown_method_are_problems(connection: http.client.HTTPConnection) -> None:
    connection.request("POST", "/deltas", b" " * (BODY_BYTES_MAX + 1))
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Type"]) == (413, "application/problem+json")
    connection.close()
    connection.request("BREW", "/counters")
    assert connection.getresponse().status == 405


def test_an_idle_connection_keeps_nobody_waiting(port: int, connection: http.client.HTTPConnection) -> None:
    with socket.create_connection((HOST, port)), socket.create_connection((HOST, port)) as half:
        half.sendall(b"POST /deltas HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
        connection.timeout = 9  # the half one is given up after 10 s
        connection.request("GET", "/counters?counter=c")
        assert connection.getresponse().status == 200


POST = b"POST /deltas HTTP/1.1\r\n"
NO_REQUESTS = (
    POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    *(POST + b"Content-Length: " + length + b"\r\n\r\n{}" for length in (b"two", b"-1", b"\xb2", b"3", b"9" * 5_000)),
    POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    POST + b"no header\r\n\r\n",
    POST + b"A: " + b"b" * 70_000 + b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9.9\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
)


def test_what_is_no_whole_request_is_a_problem(port: int) -> None:
    for sent in NO_REQUESTS:
        with socket.create_connection((HOST, port), timeout=120) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            problem = json.loads(answer.read())
        assert (answer.status, answer.headers["Content-Type"]) == (problem["status"], "application/problem+json")
        assert problem["type"] == "urn:ledger:problem:malformed-request"


def test_head_and_options_have_no_body_and_no_length_of_one(connection: http.client.HTTPConnection) -> None:
    for method, status in (("HEAD", 200), ("OPTIONS", 204)):
        connection.request(method, "/history?counter=c")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Content-Length"], answer.read()) == (status, None, b"")


def test_the_event_is_that_of_api_gateway() -> None:
    event = event_of("GET", "/counters/a%2Fb%3Fc?x=1&x=2&y=%20", {"Accept": "*/*"}, None)
    assert event["rawPath"] == event["requestContext"]["http"]["path"] == "/counters/a/b"
    assert event_of("GET", "/x%2541%253Fy%23", {}, None)["rawPath"] == "/xA?y#"
    assert event["rawQueryString"] == "x=1&x=2&y=%20"
    assert event["queryStringParameters"] == {"x": "1,2", "y": " "}
    assert event["headers"] == {"accept": "*/*"}
    assert event_of("POST", "/", {}, b"\xff")["isBase64Encoded"] is True


def test_the_entry_point_starts_from_the_environment_and_asks_no_table_before_a_request() -> None:
    code = (
        "import os, sys, runpy\n"
        "from service.api.local import event_of\n"
        "from tests.service.http_client import Context\n"
        "for os.environ['LEDGER_STAGE'] in ('dev', 'production', ''):\n"
        "    os.environ['LEDGER_STAGE'] or os.environ.pop('LEDGER_STAGE')\n"
        "    handler = runpy.run_module('service.api.main')['handler']\n"
        "    for target in ('/nowhere', '/try-it?format=json'):\n"
        "        print(handler(event_of('GET', target, {}, None), Context())['statusCode'])\n"
        "print('moto' in sys.modules)"
    )
    environ = {"PATH": os.environ["PATH"], "LEDGER_TABLE": "counters", "AWS_REGION": "eu-west-1"}
    run = subprocess.run([sys.executable, "-c", code], env=environ, cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.split() == ["404", "200", "404", "404", "404", "404", "False"], run.stderr
