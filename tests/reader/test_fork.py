"""A Reader that was used before a fork answers in the child: threads, locks and connections are the child's own."""

import functools
import http.server
import json
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ledger.dynamo import client as clients
from ledger.requests import Request
from reader import Reader
from tests.support import COUNTER, A, Region, delta, settings
from tests.support import reader as reader_of

TIMEOUT_S = 120  # bounds a hang alone

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # Python 3.12 on: that is the test


def in_a_child(call: Callable[[], object]) -> object:
    """What `call` answers in a forked child; fails when it does not answer in time."""
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)
    child = fork.Process(target=lambda: there.send(call()))
    child.start()
    try:
        assert here.poll(TIMEOUT_S), "the child does not answer"
        return here.recv()
    finally:
        child.kill()
        child.join()


class Empty:
    """A client of a table without items, which is asked for the tails of two lanes at once."""

    def __init__(self) -> None:
        self.both = threading.Barrier(2)

    def get_item(self, **_: Any) -> Any:
        return {}

    def batch_get_item(self, **_: Any) -> Any:
        return {"Responses": {}}

    def query(self, **_: Any) -> Any:
        self.both.wait(TIMEOUT_S)
        return {"Items": []}


def test_a_reader_of_two_regions_that_was_used_answers_in_a_child() -> None:
    reader: Any = Reader(settings(), client=Empty())  # type: ignore[arg-type]
    assert reader.read(COUNTER).value == 0
    assert in_a_child(lambda: reader.read(COUNTER).value) == 0
    assert in_a_child(lambda: in_a_child(lambda: reader.read(COUNTER).value)) == 0
    assert reader.read(COUNTER).value == 0


class Held(Region):
    """Does not answer the parent until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.go = threading.Event(), threading.Event()

    def answer(self, request: Request, /) -> Any:
        if threading.current_thread().name == "loads":
            self.began.set()
            assert self.go.wait(TIMEOUT_S)
        return super().answer(request)


def test_a_child_does_not_wait_for_a_load_of_its_parent() -> None:
    table = Held()
    table.put(delta(1))
    reader = reader_of(table)
    loads = threading.Thread(target=reader.value, args=(COUNTER,), name="loads")
    loads.start()
    try:
        assert table.began.wait(TIMEOUT_S)
        assert in_a_child(lambda: reader.value(COUNTER)) == 4
    finally:
        table.go.set()
        loads.join(TIMEOUT_S)
    assert reader.value(COUNTER) == 4


def test_a_child_does_not_wait_for_a_lock_that_a_thread_of_its_parent_held() -> None:
    table = Region()
    reader = reader_of(table)
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with reader._cache.value._condition, clients._making_a_client.value:
            held.set()
            go.wait(TIMEOUT_S)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(TIMEOUT_S)
        assert in_a_child(lambda: reader.value(COUNTER)) == 0
        assert in_a_child(lambda: clients.make_client(A, "http://127.0.0.1:1").meta.region_name) == A
    finally:
        go.set()
        holder.join(TIMEOUT_S)


def test_a_child_begins_with_an_empty_cache() -> None:
    table = Region()
    reader = reader_of(table)
    assert reader.value(COUNTER) == 0
    table.put(delta(1))
    assert in_a_child(lambda: reader.value(COUNTER)) == 4
    assert reader.value(COUNTER) == 0  # the parent's balance is still young


@pytest.fixture
def engine() -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """An endpoint whose table is empty, and the connections on which it was asked."""
    asked: list[tuple[str, int]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked.append(self.client_address)
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"Responses": {}, "UnprocessedKeys": {}, "Items": []}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    serving = threading.Thread(target=functools.partial(server.serve_forever, 0.05))
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    serving.join()
    server.server_close()


def test_a_child_makes_connections_of_its_own(
    engine: tuple[str, list[tuple[str, int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    endpoint, asked = engine
    reader = Reader(settings(endpoint_url=endpoint, regions=(A,)))
    assert reader.read(COUNTER).value == 0
    assert len(set(asked)) == 1
    parents, before = set(asked), len(asked)
    assert in_a_child(lambda: reader.read(COUNTER).value) == 0
    assert parents.isdisjoint(asked[before:])
    assert reader.read(COUNTER).value == 0
    assert asked[-1] in parents
