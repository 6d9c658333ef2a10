"""The API on this computer: real HTTP and the events it makes of it; and docs/openapi.json."""

import http.client
import io
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.api import openapi
from service.api.admission import BODY_BYTES_MAX
from service.api.app import Api
from service.api.local import event_of
from service.api.problems import TITLES
from service.loopback import HOST
from service.observe import Watch
from tests.service.support import ULID, served

PAGE = Path(__file__).parents[2] / "docs" / "http-api.md"


@pytest.fixture
def connection() -> Iterator[http.client.HTTPConnection]:
    with served(Api.in_memory(Watch.here("local", io.StringIO()))) as port:
        connection = http.client.HTTPConnection(HOST, port, timeout=120)
        yield connection
        connection.close()


def test_changes_are_added_and_read_over_http(
    connection: http.client.HTTPConnection,
) -> None:
    headers = {"Idempotency-Key": ULID, "Content-Type": "application/json"}
    for status in (201, 200):
        connection.request(
            "POST", "/counters/a%3Ab/deltas", b'{"counter": "a:b", "change": -6}', headers
        )
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["counter"]) == (status, "a:b")
    # one that says no more keeps nobody waiting
    with socket.create_connection((HOST, connection.port)) as half:
        host = f"{HOST}:{connection.port}"
        half.sendall(f"POST /deltas HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n".encode())
        connection.timeout = 9  # the half one is given up after 10 s
        connection.request("GET", "/counters?counter=a:b")
        assert json.loads(connection.getresponse().read())["value"] == -6
        half.shutdown(socket.SHUT_WR)
        assert b" 400 " in half.makefile("rb").read()


def test_what_is_no_request_is_a_problem(
    connection: http.client.HTTPConnection,
) -> None:
    for method, path, body, headers, status in (
        ("POST", "/deltas", b" " * (BODY_BYTES_MAX + 1), {}, 413),
        *(
            ("POST", "/deltas", None, {"Content-Length": length}, 400)
            for length in ("two", "-1", "9" * 5_000)
        ),
        ("POST", "/deltas", None, {"Transfer-Encoding": "chunked"}, 400),
        ("BREW", "/counters", None, {}, 405),
    ):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["status"]) == (status, status)
        assert answer.headers["Content-Type"] == "application/problem+json"
        connection.close()
    for method, status in (("HEAD", 200), ("OPTIONS", 204)):
        connection.request(method, "/history?counter=c")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Content-Length"], answer.read()) == (
            status,
            None,
            b"",
        )


def test_the_event_is_that_of_api_gateway() -> None:
    event = event_of("GET", "/counters/a%2Fb%3Fc?x=1&x=2&y=%20", {"Accept": "*/*"}, None)
    assert event["rawPath"] == event["requestContext"]["http"]["path"] == "/counters/a/b"
    assert event_of("GET", "/x%2541%253Fy%23", {}, None)["rawPath"] == "/xA?y#"
    assert (event["rawQueryString"], event["headers"]) == ("x=1&x=2&y=%20", {"accept": "*/*"})
    binary = event_of("POST", "/", {}, b"\xff")
    assert (binary["isBase64Encoded"], binary["body"]) == (True, "/w==")


# Powertools leaves its files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_page_to_try_it_is_there_only_when_asked_for() -> None:
    api = Api.in_memory(Watch.here("local", io.StringIO()), try_it=True)
    answer = api(event_of("GET", "/try-it", {}, None))
    assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (200, "text/html")
    assert 'src="http' not in answer["body"].replace("'", '"')
    assert '<meta name="viewport" content="width=device-width' in answer["body"][:200]
    assert len(answer["body"]) < 5_000_000, "Lambda answers 6 MB at most"
    assert api(event_of("OPTIONS", "/try-it", {}, None))["headers"]["Allow"] == "GET, HEAD, OPTIONS"


def test_the_document_is_what_make_openapi_writes() -> None:
    document: Any = openapi.document()
    assert openapi.FILE.read_text() == openapi.text(), "run make docs"
    page = PAGE.read_text("utf-8")
    rows = re.findall(
        r"^([a-z-]+) +(\d{3})  ", PAGE.with_name("problems.txt").read_text("utf-8"), re.MULTILINE
    )
    assert {name: int(status) for name, status in rows} == {
        name: status for name, (status, _) in TITLES.items()
    }
    groups = [group["name"] for group in document["tags"]]
    assert groups == [
        title for title in re.findall(r"^##+ (.+)$", page, re.MULTILINE) if title in groups
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert f"`{method.upper()} {path}`" in page
            assert operation["responses"]["default"] == {"$ref": "#/components/responses/Problem"}
            assert all(code < "300" for code in operation["responses"].keys() - {"default"})
            assert operation["summary"]
            assert operation["description"]
            assert operation["tags"][0] in groups
    (problem,) = document["components"]["responses"].values()
    for name, (status, title) in TITLES.items():
        assert f"{status} {name}: {title}" in problem["description"]
    assert list(problem["content"]) == ["application/problem+json"]
    for kind, name in re.findall(r"#/components/(\w+)/([\w-]+)", json.dumps(document)):
        assert name in document["components"][kind]
