"""Approaches 4 and 5: what a token and a marker remember, for how long, and where they do not."""

from functools import partial

import pytest

from lab.designs.approach import SingleItem
from lab.designs.table import ApproachTable
from lab.designs.transaction_marker import TransactionMarker
from lab.designs.transaction_token import TransactionToken
from ledger.errors import OutcomeUnknown, TokenConflict
from ledger.requests import Instant, run
from tests.lab.designs.support import (
    EU,
    MARKERS,
    START_MS,
    US,
    C,
    OnEngine,
    OnWorld,
    Place,
    add,
    unanswered,
    value,
)

TOKEN, MARKER = TransactionToken(), TransactionMarker()
BOTH: list[SingleItem] = [TOKEN, MARKER, TransactionMarker(markers=MARKERS)]
MINUTE_MS = 60_000


@pytest.mark.parametrize("approach", BOTH)
def test_a_change_that_is_sent_again_counts_once_and_another_is_refused(anywhere: Place, approach: SingleItem) -> None:
    with pytest.raises(OutcomeUnknown):
        anywhere.run(unanswered(approach.add(C, 5, "k", START_MS), {0}))
    add(anywhere, approach, "k", 5)
    with pytest.raises(TokenConflict):
        add(anywhere, approach, "k", 6)
    assert value(anywhere, approach) == 5


@pytest.mark.parametrize("approach", [TransactionToken(ceiling=3), TransactionMarker(ceiling=3)])
def test_a_limit_holds_and_a_refused_change_is_not_remembered(anywhere: Place, approach: SingleItem) -> None:
    assert [add(anywhere, approach, key, 2) for key in "ab"] == ["recorded", "refused"]
    assert add(anywhere, approach, "a", 2) in ("recorded", "replayed")
    assert add(anywhere, approach, "c", -2) == "recorded"
    assert add(anywhere, approach, "b", 2) == "recorded"
    assert value(anywhere, approach) == 2


def test_a_marker_is_known_in_another_region_once_it_has_arrived(on_world: OnWorld) -> None:
    add(on_world, MARKER, "k", 5)
    on_world.world.quiesce()
    assert add(on_world, MARKER, "k", 5, US) == "replayed"


def test_markers_of_an_engine_expire_in_a_table_of_their_own(on_engine: OnEngine) -> None:
    approach = TransactionMarker(markers=MARKERS, keep_ms=60 * MINUTE_MS)
    markers = ApproachTable(f"{on_engine.table.name}-{MARKERS}", EU, on_engine.client)
    for minutes, outcome in ((0, "recorded"), (59, "replayed"), (61, "recorded")):
        now = Instant(START_MS + minutes * MINUTE_MS, 0)
        on_engine.clock = partial(int, now.wall_ms)
        run(approach.housekeep(C, EU), markers, now._replace)
        assert add(on_engine, approach, "k", 5) == outcome
    assert value(on_engine, approach) == 10
