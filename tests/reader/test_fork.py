"""A Reader that was used before a fork answers in the child: threads, locks and connections are the child's own."""

import functools
import http.server
import json
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ledger.dynamo import client as clients
from reader import Reader
from tests.world import COUNTER, A, Region, delta, settings
from tests.world import reader as reader_of

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


@contextmanager
def meanwhile(call: Callable[[Callable[[], None]], object]) -> Iterator[None]:
    """A thread is in this call, which waits in what it is given until the block has ended."""
    began, go = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        assert go.wait(TIMEOUT_S)

    thread = threading.Thread(target=call, args=(wait,), name="waits")
    thread.start()
    try:
        assert began.wait(TIMEOUT_S)
        yield
    finally:
        go.set()
        thread.join(TIMEOUT_S)


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


def test_a_child_does_not_wait_for_a_lock_that_a_thread_of_its_parent_held() -> None:
    reader = reader_of(Region())

    def hold(wait: Callable[[], None]) -> None:
        with reader._cache.value._condition, clients._making_a_client.value:
            wait()

    with meanwhile(hold):
        assert in_a_child(lambda: reader.value(COUNTER)) == 0
        assert in_a_child(lambda: clients.make_client(A, "http://127.0.0.1:1").meta.region_name) == A


def test_a_child_begins_with_an_empty_cache() -> None:
    table = Region()
    reader = reader_of(table)
    assert reader.value(COUNTER) == 0
    table.put(delta(1))
    assert in_a_child(lambda: reader.value(COUNTER)) == 4
    assert reader.value(COUNTER) == 0  # the parent's balance is still young


def test_a_child_makes_connections_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
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

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        serving = threading.Thread(target=functools.partial(server.serve_forever, 0.05))
        serving.start()
        reader = Reader(settings(endpoint_url=f"http://127.0.0.1:{server.server_port}", regions=(A,)))
        try:
            assert reader.read(COUNTER).value == 0
            assert len(set(asked)) == 1
            parents, before = set(asked), len(asked)
            assert in_a_child(lambda: reader.read(COUNTER).value) == 0
            assert parents.isdisjoint(asked[before:])
            assert reader.read(COUNTER).value == 0
            assert asked[-1] in parents
        finally:
            server.shutdown()
            serving.join()
