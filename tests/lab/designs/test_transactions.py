"""Designs 4 and 5: what a token and a marker remember, for how long, and where they do not."""

from functools import partial

import pytest

from lab.designs.design import SingleItem
from lab.designs.transaction_marker import TransactionMarker
from lab.designs.transaction_token import TransactionToken
from ledger.errors import OutcomeUnknown, TokenConflict
from ledger.requests import Instant
from tests.lab.designs.conftest import EU, START_MS, US, C, OnEngine, OnWorld, Place, add, unanswered, value

TOKEN, MARKER = TransactionToken(), TransactionMarker()
BOTH: list[SingleItem] = [TOKEN, MARKER, TransactionMarker(keep_ms=60_000)]
MINUTE_MS = 60_000


@pytest.mark.parametrize("design", BOTH)
def test_a_change_that_is_sent_again_counts_once_and_another_is_refused(anywhere: Place, design: SingleItem) -> None:
    with pytest.raises(OutcomeUnknown):
        anywhere.run(unanswered(design.add(C, 5, "k", START_MS), {0}))
    add(anywhere, design, "k", 5)
    with pytest.raises(TokenConflict):
        add(anywhere, design, "k", 6)
    assert value(anywhere, design) == 5


@pytest.mark.parametrize("design", [TransactionToken(ceiling=3), TransactionMarker(ceiling=3)])
def test_a_limit_holds_and_a_refused_change_is_not_remembered(anywhere: Place, design: SingleItem) -> None:
    assert [add(anywhere, design, key, 2) for key in "ab"] == ["recorded", "refused"]
    assert add(anywhere, design, "a", 2) in ("recorded", "replayed")
    assert add(anywhere, design, "c", -2) == "recorded"
    assert add(anywhere, design, "b", 2) == "recorded"
    assert value(anywhere, design) == 2


def test_a_marker_is_known_in_another_region_once_it_has_arrived(on_world: OnWorld) -> None:
    add(on_world, MARKER, "k", 5)
    on_world.world.quiesce()
    assert add(on_world, MARKER, "k", 5, US) == "replayed"


def test_markers_of_an_engine_expire(on_engine: OnEngine) -> None:
    design = TransactionMarker(keep_ms=60 * MINUTE_MS)
    for minutes, outcome in ((0, "recorded"), (59, "replayed"), (61, "recorded")):
        now = Instant(START_MS + minutes * MINUTE_MS, 0)
        on_engine.clock = partial(int, now.wall_ms)
        on_engine.run(design.housekeep(C, EU))
        assert add(on_engine, design, "k", 5) == outcome
    assert value(on_engine, design) == 10
