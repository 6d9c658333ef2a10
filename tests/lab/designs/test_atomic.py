"""Design 1, and what becomes of it when an answer is lost."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from lab.designs.atomic import Atomic
from lab.designs.clients import Traffic, config, table_of
from lab.designs.expressions import SetSum
from lab.engines.ministack import Engine
from ledger.actions import Add
from ledger.errors import OutcomeUnknown
from ledger.requests import Instant, run
from simulator.faults import Faults
from tests.lab.designs.conftest import EU, START_MS, C, OnWorld, Place, add, adds, value


@pytest.mark.parametrize("spelled_as", [Add, SetSum])
def test_a_floor_and_a_ceiling_hold(anywhere: Place, spelled_as: type[Add | SetSum]) -> None:
    design = Atomic(spelled_as=spelled_as, floor=0, ceiling=3)
    changes = [4, -1, 2, 2, 1, -4, -3, -1]
    outcomes = [add(anywhere, design, str(number), change) for number, change in enumerate(changes)]
    assert outcomes == ["refused", "refused", "recorded", "refused", "recorded", "refused", "recorded", "refused"]
    assert value(anywhere, design) == 0


def lose_next_answer(client: Any) -> None:
    """The engine applies the next UpdateItem, and the SDK gets no answer."""
    session, left = client._endpoint.http_session, [1]

    def before_send(request: Any, **_: Any) -> None:
        if left and left.pop():
            session.send(request)
            raise ReadTimeoutError(endpoint_url=request.url, error="answer lost by the test")

    client.meta.events.register("before-send.dynamodb.UpdateItem", before_send)


@pytest.mark.parametrize(
    ("design", "told", "counted", "retries"),
    [
        pytest.param(Atomic(), "recorded", 2, 1, id="with the retries of the SDK it counts twice"),
        pytest.param(Atomic(spelled_as=SetSum), "recorded", 2, 1, id="also spelled as a SET"),
        pytest.param(Atomic(ceiling=1), "refused", 1, 1, id="the change that filled it is told that it was refused"),
        pytest.param(Atomic(sdk_attempts=1), OutcomeUnknown, 1, 0, id="without retries nothing is known"),
    ],
)
def test_after_a_lost_answer(
    engine: Engine, table_names: Iterator[str], design: Atomic, told: object, counted: int, retries: int
) -> None:
    engine.create_table(name := next(table_names), EU)
    client = engine.client(EU, config(design.sdk_attempts))
    lose_next_answer(client)
    table, traffic = table_of(name, client), Traffic(client)
    try:
        outcome: object = run(design.add(C, 1, "k", START_MS), table, lambda: Instant(0, 0))
    except OutcomeUnknown as error:
        outcome = type(error)
    assert outcome == told
    assert run(design.value(C), table, lambda: Instant(0, 0)) == counted
    assert traffic.retries == retries


def test_without_retries_a_request_that_never_arrived_is_told_the_same(on_world: OnWorld) -> None:
    (told,) = on_world.at_once(*adds(Atomic(sdk_attempts=1), 1), faults=Faults(dropped=1_000))
    assert isinstance(told, OutcomeUnknown)
    assert value(on_world, Atomic()) == 0
