"""The API on this computer: real HTTP, and the events it makes of it."""

from __future__ import annotations

import http.client
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics

from service.api import openapi
from service.api.gate import BODY_BYTES_MAX
from service.api.local import HOST, event_of, serve
from service.observe import Watch
from tests.service.http_client import ULID

ROOT = Path(__file__).parents[2]


@pytest.fixture
def connection() -> Iterator[http.client.HTTPConnection]:
    watch = Watch(Logger(service="local", stream=io.StringIO()), EphemeralMetrics(namespace="Ledger", service="test"))
    server = serve(openapi.in_memory(watch=watch), port=0)
    assert server.server_address[0] == "127.0.0.1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=10)
    yield connection
    connection.close()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_change_is_added_and_read_over_http(connection: http.client.HTTPConnection) -> None:
    headers = {"Idempotency-Key": ULID, "Content-Type": "application/json"}
    for status in (201, 200):
        connection.request("POST", "/counters/stock%3A85123A/deltas", b'{"change": -6}', headers)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["counter"]) == (status, "stock:85123A")
    connection.request("GET", "/counters/stock:85123A?max_age=0&consistent=true")
    assert json.loads(connection.getresponse().read())["value"] == -6


def test_a_body_that_is_too_large_is_a_problem_over_http_too(connection: http.client.HTTPConnection) -> None:
    connection.request("POST", "/deltas", b" " * (BODY_BYTES_MAX + 1))
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Type"]) == (413, "application/problem+json")


def test_an_unknown_method_is_a_problem(connection: http.client.HTTPConnection) -> None:
    connection.request("BREW", "/counters/c")
    assert connection.getresponse().status == 405


def test_the_event_is_that_of_api_gateway() -> None:
    event = event_of("GET", "/counters/a%2Fb%3Fc?x=1&x=2&y=%20", {"Accept": "*/*"}, None)
    assert event["rawPath"] == event["requestContext"]["http"]["path"] == "/counters/a/b"
    assert event["rawQueryString"] == "x=1&x=2&y=%20"
    assert event["queryStringParameters"] == {"x": "1,2", "y": " "}
    assert event["headers"] == {"accept": "*/*"}
    assert event_of("POST", "/", {}, b"\xff")["isBase64Encoded"] is True


def test_the_entry_point_starts_from_the_environment_and_asks_no_table_before_a_request() -> None:
    code = (
        "import json, sys\n"
        "from service.api.main import handler\n"
        "from service.api.local import event_of\n"
        "from tests.service.lambda_context import Context\n"
        "for target in ('/nowhere', '/try-it?format=json'):\n"
        "    print(handler(event_of('GET', target, {}, None), Context())['statusCode'])\n"
        "print('moto' in sys.modules)"
    )
    environ = {"PATH": os.environ["PATH"], "LEDGER_TABLE": "counters", "AWS_REGION": "eu-west-1"}
    for stage, status in (({"LEDGER_STAGE": "dev"}, "200"), ({"LEDGER_STAGE": "production"}, "404"), ({}, "404")):
        run = subprocess.run(
            [sys.executable, "-c", code], env=environ | stage, cwd=ROOT, capture_output=True, text=True
        )
        assert run.stdout.split() == ["404", status, "False"], run.stderr
