"""What answers a program's requests; and the capacity that a function consumes, as the engine says."""

from collections.abc import Iterator
from typing import Any

import pytest

from compactor.report import Tally
from compactor.visit import visit
from lab.engines.ministack import Engine
from ledger.errors import Unavailable
from ledger.requests import DeleteMany, Get, Key, Put, Query, Scan, Transact
from ledger.table import DynamoTable
from service.job_queue import DeadLetter, Enqueue, Message
from service.jobs import Look
from service.observe import Watch
from service.runtime import OutOfTime, Runtime, until
from tests.service.http_client import Context
from tests.service.support import Notes, Service
from tests.world import LANE, A, Region, compact_for_long, delta, settings, two_regions


def test_a_visit_is_stopped_before_any_of_its_requests_and_asks_nothing_more() -> None:
    def visited(requests_max: int = 10**6) -> Region:
        """A lane with deltas to delete, to fold and to settle is visited, for so many requests."""
        home, away = two_regions()
        for n in (2, 4):
            home.put(delta(n))
            compact_for_long(home, away, 2)
        home.put(delta(1), delta(3), delta(5), delta(6))
        home.asked.clear()
        home.run(until(visit(LANE, Tally(), settings(fold_max=1)), lambda: len(home.asked) >= requests_max))
        return home

    asked = visited().asked
    assert {DeleteMany, Transact} <= set(map(type, asked))
    for number in range(len(asked)):
        with pytest.raises(OutOfTime):
            visited(number)


def get(key: Key) -> Any:
    return (yield Get(key))


def test_independent_programs_give_their_results_in_order_and_each_request_goes_to_what_knows_it() -> None:
    service = Service()
    service.table.store([item("a"), item("b")])
    runtime = Runtime(service.table, service.queue)
    found = runtime.run_each(get(Key("p", sk)) for sk in "abc")
    assert found == service.runtime.run_each(get(Key("p", sk)) for sk in "abc") == [item("a"), item("b"), None]
    assert service.runtime.answer(Enqueue((Message(Look(LANE), 75),))) == (None,)
    service.runtime.answer(DeadLetter("x"))
    assert (service.queue.sent, service.queue.dead) == ([(Look(LANE), 75)], ["x"])
    service.table.down = True
    with pytest.raises(Unavailable):
        service.runtime.run(get(Key("p", "a")))


def item(sk: str, size: int = 0) -> Any:
    return {"pk": {"S": "p"}, "sk": {"S": sk}, "x": {"S": "x" * size}}


def test_a_function_publishes_what_its_requests_consumed_from_all_its_threads_and_when_it_fails(
    engine: Engine, table_names: Iterator[str]
) -> None:
    name = next(table_names)
    engine.create_table(name, A)
    client = engine.client(A)
    watch, runtime = Watch.here("consumed"), Runtime(DynamoTable(name, A, lambda _: client))
    notes = Notes()
    object.__setattr__(watch, "metrics", notes)

    def ask(request: Any) -> Any:
        return (yield request)

    def work(requests: Any, _: Any) -> None:
        runtime.run_each(map(ask, requests))
        if not requests:
            raise KeyError

    def consumed(*requests: Any) -> tuple[float, float]:
        notes.metrics.clear()
        Watch.metered(watch, work)(requests, Context())  # type: ignore[arg-type]
        return notes.metrics["ReadUnits"], notes.metrics["WriteUnits"]

    notes.metric_set = {}  # type: ignore[attr-defined]
    assert consumed(Put(item("a", 1_500))) == (0, 2)
    assert consumed(Get(Key("p", "a")), Query("p"), Query("p", consistent=False)) == (2.5, 0)
    assert consumed(Scan()) == (0.5, 0)
    assert consumed(Transact((Put(item("b")), Put(item("c"))))) == (0, 4)
    assert consumed(DeleteMany((item("b"), item("c")))) == (0, 2)
    notes.metrics.clear()
    with pytest.raises(KeyError):
        consumed()
    assert (notes.metrics["ReadUnits"], notes.metrics["WriteUnits"]) == (0, 0)
    client.close()
