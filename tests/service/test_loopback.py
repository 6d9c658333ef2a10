"""The servers on this computer, entered by strangers: over real HTTP, with what browsers send
for foreign pages.
"""

import http.client
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from random import Random
from typing import Any

import pytest

from lab.engines.proxy import _Proxy
from lab.live.server import Server
from service.api.app import Api
from service.api.local import serve
from service.loopback import HOST, authorities
from service.observe import Watch

EVIL = "https://evil.example"
JSON = "application/json"
CHANGE = {"counter": "stock:1", "change": -6, "idempotency_key": "k", "at": "2025-01-01T00:00:00Z"}
DELTAS = json.dumps({"deltas": [CHANGE]}).encode()
WISH = b'{"set": {"lag_ms": 700}}'


def api() -> ThreadingHTTPServer:
    return serve(Api.in_memory(Watch.here("api", io.StringIO()), try_it=True), 0)


def live() -> ThreadingHTTPServer:
    return Server(0)


def proxy() -> ThreadingHTTPServer:
    """One that would reach no engine."""
    server = _Proxy(9, Random(1), {})
    server.answer = lambda place, headers, body: (200, {}, b"{}")  # type: ignore[method-assign]
    return server


Ask = Callable[..., tuple[int, bytes]]


@contextmanager
def entered(make: Callable[[], ThreadingHTTPServer]) -> Iterator[tuple[int, Ask]]:
    """A running server's port, and what a request of raw headers is answered there."""

    def ask(
        method: str, path: str, body: bytes | None, headers: list[tuple[str, str]]
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(HOST, server.server_port, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        said = answer.status, answer.read()
        connection.close()
        return said

    with make() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port, ask
        finally:
            server.shutdown()
            thread.join()


SERVERS: dict[str, tuple[Callable[[], ThreadingHTTPServer], str, bytes, int, str | None]] = {
    "api": (api, "/deltas", DELTAS, 200, "/counters?counter=stock:1"),
    "live": (live, "/do", WISH, 204, "/picture"),
    "proxy": (proxy, "/outside", b"{}", 200, None),
}


def strangers(port: int) -> Iterator[list[tuple[str, str]]]:
    """Headers that name who asks: pages of other sites, and names that a foreign page has
    resolve to this computer.
    """
    own = ("Host", f"{HOST}:{port}")
    for host in (
        "evil.example",
        f"evil.example:{port}",
        HOST,
        "localhost",
        f"{HOST}:{port + 1}",
        f"{HOST}:{port}.x",
        "",
    ):
        yield [("Host", host)]
        yield [("Host", host), ("Origin", f"http://{host}"), ("Sec-Fetch-Site", "same-origin")]
    yield []
    yield [own, ("Host", "evil.example")]
    for origin in (
        EVIL,
        "null",
        f"http://{HOST}",
        f"https://{HOST}:{port}",
        f"http://localhost:{port + 1}",
        "file://",
    ):
        yield [own, ("Origin", origin)]
    yield [own, ("Origin", f"http://{HOST}:{port}"), ("Origin", EVIL)]
    for site in ("cross-site", "same-site"):
        yield [
            own,
            ("Sec-Fetch-Site", site),
            ("Sec-Fetch-Mode", "no-cors"),
            ("Sec-Fetch-Dest", "image"),
        ]
        yield [
            own,
            ("Sec-Fetch-Site", site),
            ("Sec-Fetch-Mode", "navigate"),
            ("Sec-Fetch-Dest", "iframe"),
        ]


@pytest.mark.parametrize("name", SERVERS)
def test_no_local_server_does_what_a_foreign_page_asks(name: str) -> None:
    make, path, body, _, read = SERVERS[name]
    with entered(make) as (port, ask):
        for stranger in strangers(port):
            assert ask("POST", path, body, [*stranger, ("Content-Type", JSON)])[0] == 403, stranger
            assert ask("POST", path, body, stranger)[0] == 403, stranger
            if read is not None:
                status, said = ask("GET", read, None, stranger)
                assert (status, b"value" in said) == (403, False), stranger
        linked = [
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Mode", "navigate"),
            ("Sec-Fetch-Dest", "document"),
        ]
        posted = [("Host", f"{HOST}:{port}"), *linked, ("Content-Type", JSON)]
        assert ask("POST", path, body, posted)[0] == 403  # a form that is sent
        if name == "api":
            status, said = ask(
                "GET", "/counters?counter=stock:1", None, [("Host", f"{HOST}:{port}")]
            )
            assert (status, json.loads(said)["count"]) == (200, 0)


@pytest.mark.parametrize("name", SERVERS)
def test_a_local_server_does_what_its_page_and_user_ask(name: str) -> None:
    make, path, body, done, read = SERVERS[name]
    with entered(make) as (port, ask):
        for own in sorted(authorities(port)):
            assert (
                ask(
                    "POST",
                    path,
                    body,
                    [("Host", own), ("Origin", f"http://{own}"), ("Content-Type", JSON)],
                )[0]
                == done
            )
            if read is not None:
                assert ask("GET", read, None, [("Host", own), ("Sec-Fetch-Site", "none")])[0] == 200
        if read is not None:  # somebody followed a link
            linked = [
                ("Sec-Fetch-Site", "cross-site"),
                ("Sec-Fetch-Mode", "navigate"),
                ("Sec-Fetch-Dest", "document"),
            ]
            assert ask("GET", read, None, [("Host", f"{HOST}:{port}"), *linked])[0] == 200


@pytest.mark.parametrize("name", ["api", "live"])
def test_a_body_that_does_not_say_that_it_is_json_is_refused(name: str) -> None:
    make, path, body, *_ = SERVERS[name]
    with entered(make) as (port, ask):
        own: list[Any] = [("Host", f"{HOST}:{port}"), ("Origin", f"http://{HOST}:{port}")]
        for kind in (
            None,
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "",
        ):
            said = [] if kind is None else [("Content-Type", kind)]
            assert ask("POST", path, body, [*own, *said])[0] == 415, kind
