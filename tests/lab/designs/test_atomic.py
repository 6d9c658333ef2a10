"""Design 1, and what becomes of it when an answer is lost."""

from collections.abc import Iterator

import pytest

from lab.demo.event_faults import LostAnswers
from lab.designs.atomic import Atomic
from lab.designs.clients import Traffic, config, table_of
from lab.designs.expressions import SetSum
from lab.engines.ministack import Engine
from ledger.actions import Add
from ledger.errors import OutcomeUnknown
from ledger.requests import Instant, run
from ledger.table import DynamoTable
from simulator.faults import Faults
from tests.lab.designs.support import EU, START_MS, C, OnWorld, Place, add, adds, value

FORMS = [Atomic(), Atomic(spelled_as=SetSum)]


@pytest.mark.parametrize("spelled_as", [Add, SetSum])
def test_a_floor_and_a_ceiling_hold(anywhere: Place, spelled_as: type[Add | SetSum]) -> None:
    design = Atomic(spelled_as=spelled_as, floor=0, ceiling=3)
    changes = [4, -1, 2, 2, 1, -4, -3, -1]
    outcomes = [add(anywhere, design, str(number), change) for number, change in enumerate(changes)]
    assert outcomes == ["refused", "refused", "recorded", "refused", "recorded", "refused", "recorded", "refused"]
    assert value(anywhere, design) == 0


def sdk(engine: Engine, name: str, attempts: int) -> tuple[DynamoTable, LostAnswers, Traffic]:
    engine.create_table(name, EU)
    client, lost = engine.client(EU, config(attempts)), LostAnswers()
    lost.attach(client)
    return table_of(name, client), lost, Traffic(client)


@pytest.mark.parametrize("design", FORMS)
def test_with_the_retries_of_the_sdk_a_lost_answer_counts_twice(
    engine: Engine, table_names: Iterator[str], design: Atomic
) -> None:
    table, lost, traffic = sdk(engine, next(table_names), design.sdk_attempts)
    lost.next(1)
    assert run(design.add(C, 1, "k", START_MS), table, lambda: Instant(0, 0)) == "recorded"
    assert run(design.value(C), table, lambda: Instant(0, 0)) == 2
    assert traffic.retries == 1


def test_with_retries_and_a_ceiling_the_change_that_filled_it_may_be_told_that_it_was_refused(
    engine: Engine, table_names: Iterator[str]
) -> None:
    design = Atomic(ceiling=1)
    table, lost, _ = sdk(engine, next(table_names), design.sdk_attempts)
    lost.next(1)
    assert run(design.add(C, 1, "k", START_MS), table, lambda: Instant(0, 0)) == "refused"
    assert run(design.value(C), table, lambda: Instant(0, 0)) == 1


def test_without_retries_the_caller_is_told_that_nothing_is_known(engine: Engine, table_names: Iterator[str]) -> None:
    design = Atomic(sdk_attempts=1)
    table, lost, traffic = sdk(engine, next(table_names), design.sdk_attempts)
    lost.next(1)
    with pytest.raises(OutcomeUnknown):
        run(design.add(C, 1, "k", START_MS), table, lambda: Instant(0, 0))
    assert run(design.value(C), table, lambda: Instant(0, 0)) == 1
    assert traffic.retries == 0


def test_without_retries_a_request_that_never_arrived_is_told_the_same(on_world: OnWorld) -> None:
    (told,) = on_world.at_once(*adds(Atomic(sdk_attempts=1), 1), faults=Faults(dropped=1_000))
    assert isinstance(told, OutcomeUnknown)
    assert value(on_world, Atomic()) == 0
