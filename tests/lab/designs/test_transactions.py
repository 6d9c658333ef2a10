"""Approaches 4 and 5: what a token and a marker remember, for how long, and where they do not."""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.designs.approach import Outcome, SingleItem
from lab.designs.transaction_marker import TransactionMarker, count_views
from lab.designs.transaction_token import TransactionToken
from lab.engines.ministack import Engine, EngineMissing, find_executable
from ledger.errors import OutcomeUnknown, Throttled, TokenConflict
from ledger.requests import Instant
from simulator.faults import Faults
from tests.lab.designs.support import (
    EU,
    START_MS,
    US,
    C,
    OnEngine,
    OnWorld,
    Place,
    add,
    adds,
    deliveries,
    unanswered,
    value,
)

TOKEN, MARKER = TransactionToken(), TransactionMarker()
BOTH: list[SingleItem] = [TOKEN, MARKER, TransactionMarker(keep_ms=60_000)]
FAULTS = Faults(lost=150, dropped=50, late=50, throttled=50, crash=50)
MINUTE_MS = 60_000
LATER = """#!{python}
import pathlib, sys, time
from ministack.app import main
now = time.time
time.time = lambda: now() + float(pathlib.Path({offset!r}).read_text())
sys.exit(main())
"""


@pytest.mark.parametrize("approach", BOTH)
def test_a_change_that_is_sent_again_counts_once_and_another_is_refused(anywhere: Place, approach: SingleItem) -> None:
    with pytest.raises(OutcomeUnknown):
        anywhere.run(unanswered(approach.add(C, 5, "k", START_MS), {0}))
    add(anywhere, approach, "k", 5)
    with pytest.raises(TokenConflict):
        add(anywhere, approach, "k", 6)
    assert value(anywhere, approach) == 5


@pytest.mark.parametrize("approach", BOTH)
def test_what_is_sent_until_it_is_answered_counts_once(approach: SingleItem) -> None:
    for seed in range(15):
        on_world = OnWorld(seed)
        told = on_world.at_once(*deliveries(approach), sdk_attempts=approach.sdk_attempts, faults=FAULTS)
        assert {*told} <= {"recorded", "replayed"}
        on_world.world.quiesce()
        assert value(on_world, approach) == sum(4**n for n in range(6)), seed


@pytest.mark.parametrize("approach", [TransactionToken(ceiling=3), TransactionMarker(ceiling=3)])
def test_a_limit_holds_and_a_refused_change_is_not_remembered(anywhere: Place, approach: SingleItem) -> None:
    assert [add(anywhere, approach, key, 2) for key in "ab"] == ["recorded", "refused"]
    assert add(anywhere, approach, "a", 2) in ("recorded", "replayed")
    assert add(anywhere, approach, "c", -2) == "recorded"
    assert add(anywhere, approach, "b", 2) == "recorded"
    assert value(anywhere, approach) == 2


@pytest.mark.parametrize("approach", BOTH)
def test_many_at_once_conflict_and_all_count(on_world: OnWorld, approach: SingleItem) -> None:
    assert on_world.at_once(*adds(approach, 4), faults=Faults(slow_landing=False)) == ["recorded"] * 4
    assert value(on_world, approach) == 4


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Callable[[float], object]]]:
    """An engine whose clock can be put forward by seconds."""
    folder = tmp_path_factory.mktemp("later")
    offset, program = folder / "offset", folder / "engine"
    try:
        python = Path(find_executable({}, sys.prefix)).with_name("python")
    except EngineMissing as missing:
        pytest.skip(str(missing))
    offset.write_text("0")
    program.write_text(LATER.format(python=python, offset=str(offset)))
    program.chmod(0o755)
    with Engine(program) as engine:
        yield engine, lambda seconds: offset.write_text(str(seconds))


def test_an_engine_forgets_a_token_after_ten_minutes(later: tuple[Engine, Callable[[float], object]]) -> None:
    engine, put_forward = later
    on_engine = OnEngine.of(engine, "later")
    for minutes, counted in ((0, 5), (9, 5), (11, 10)):
        put_forward(minutes * 60)
        assert add(on_engine, TOKEN, "k", 5) == "recorded"
        assert value(on_engine, TOKEN) == counted


def test_a_token_is_forgotten_after_ten_minutes_and_then_the_change_counts_twice(on_world: OnWorld) -> None:
    for wait_min, counted in ((0, 5), (9, 5), (2, 10)):
        on_world.wait(wait_min * MINUTE_MS)
        assert add(on_world, TOKEN, "k", 5) == "recorded"
        assert value(on_world, TOKEN) == counted


def test_a_token_is_not_known_in_another_region(on_world: OnWorld) -> None:
    for region in (EU, US):
        assert add(on_world, TOKEN, "k", 5, region) == "recorded"
        on_world.world.quiesce()
    assert value(on_world, TOKEN) == 10


def test_a_marker_is_known_in_another_region_once_it_has_arrived(on_world: OnWorld) -> None:
    add(on_world, MARKER, "k", 5)
    on_world.world.quiesce()
    assert add(on_world, MARKER, "k", 5, US) == "replayed"


def test_a_change_that_comes_after_its_marker_was_deleted_counts_twice(on_world: OnWorld) -> None:
    approach = TransactionMarker(keep_ms=60 * MINUTE_MS)
    for wait_min, outcome in ((0, "recorded"), (59, "replayed"), (2, "recorded")):
        on_world.wait(wait_min * MINUTE_MS)
        on_world.run(approach.housekeep(C, EU))
        assert add(on_world, approach, "k", 5) == outcome
    assert value(on_world, approach) == 10


def test_markers_of_an_engine_expire(on_engine: OnEngine) -> None:
    approach = TransactionMarker(keep_ms=60 * MINUTE_MS)
    for minutes, outcome in ((0, "recorded"), (59, "replayed"), (61, "recorded")):
        now = Instant(START_MS + minutes * MINUTE_MS, 0)
        on_engine.clock = partial(int, now.wall_ms)
        on_engine.run(approach.housekeep(C, EU))
        assert add(on_engine, approach, "k", 5) == outcome
    assert value(on_engine, approach) == 10


def message(number: int, **view: str) -> dict[str, str]:
    said = {"url": "/a", "time": "2026-03-28T13:17:23+00:00", "clientId": "x"} | view
    return {"messageId": f"{number}", "body": json.dumps(said)}


def test_a_view_counts_once_however_often_it_is_delivered_and_what_failed_comes_again(on_world: OnWorld) -> None:
    down = [True]

    def counted(counter: str, change: int, key: str, at_ms: int) -> Outcome:
        if key.endswith("down") and down:
            raise Throttled("Nothing was written.")
        return on_world.run(MARKER.add(counter, change, key, at_ms))

    poison = {"messageId": "9", "body": "no JSON"}
    views = [
        message(1),
        message(2),
        message(3, clientId="y"),
        message(4, clientId="down"),
        message(5, time="?"),
        poison,
    ]
    event: dict[str, Any] = {"Records": views}
    failed = {each["itemIdentifier"] for each in count_views(event, counted)["batchItemFailures"]}
    assert failed == {"4", "5", "9"}
    down.clear()
    assert len(count_views(event, counted)["batchItemFailures"]) == 2
    assert on_world.run(MARKER.value("views:/a")) == 3
