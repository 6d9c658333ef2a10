"""A Reader that was used before a fork answers in the child: threads, locks and clients are the
child's own.
"""

import multiprocessing
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ledger.tables import boto as clients
from reader import Reader
from tests.world import COUNTER, A, Region, delta, settings
from tests.world import reader as reader_of

TIMEOUT_S = 120  # bounds a hang alone

# Python 3.12 on: that is the test
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


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


def empty(lanes: int) -> Any:
    """A client of a table without items, which is asked for the tails of so many lanes at once."""
    every_tail = threading.Barrier(lanes)

    def query(**_: Any) -> Any:
        every_tail.wait(TIMEOUT_S)
        return {"Items": []}

    return SimpleNamespace(
        get_item=lambda **_: {}, batch_get_item=lambda **_: {"Responses": {}}, query=query
    )


def test_a_used_reader_of_two_regions_answers_in_a_child() -> None:
    reader = Reader(settings(), client=empty(2))
    assert reader.read(COUNTER).value == 0
    assert in_a_child(lambda: reader.read(COUNTER).value) == 0
    assert in_a_child(lambda: in_a_child(lambda: reader.read(COUNTER).value)) == 0
    assert reader.read(COUNTER).value == 0


def test_a_child_waits_for_no_lock_of_its_parents_thread() -> None:
    reader, held, go = reader_of(Region()), threading.Event(), threading.Event()

    def hold() -> None:
        with reader._cache.value._lock, clients._making_a_client.value:
            held.set()
            assert go.wait(TIMEOUT_S)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(TIMEOUT_S)
        assert in_a_child(lambda: reader.value(COUNTER)) == 0
        assert (
            in_a_child(lambda: clients.make_client(A, "http://127.0.0.1:1").meta.region_name) == A
        )
    finally:
        go.set()
        thread.join(TIMEOUT_S)


def test_a_child_begins_with_an_empty_cache() -> None:
    table = Region()
    reader = reader_of(table)
    assert reader.value(COUNTER) == 0
    table.put(delta(1))
    assert in_a_child(lambda: reader.value(COUNTER)) == 4
    assert reader.value(COUNTER) == 0  # the parent's balance is still young


def test_a_child_makes_a_client_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def make(*_: object, **__: object) -> Any:
        made.append(empty(1))
        return made[-1]

    monkeypatch.setattr("botocore.session.Session.create_client", make)
    reader = Reader(settings(endpoint_url="http://127.0.0.1:3", regions=(A,)))

    def clients_made() -> int:
        assert reader.read(COUNTER).value == 0
        return len(made)

    assert [clients_made() for _ in range(2)] == [1, 1]
    assert in_a_child(clients_made) == 2
    assert clients_made() == 1
