"""The benchmark's own arithmetic, on small numbers and the embedded engine."""

import pytest

from lab.bench.compactor_speed import fold_peak_mb
from lab.bench.figures import lives
from lab.bench.pack_figures import BATCH, WINDOW_S, queued_units, tail_read, write_units
from lab.engines.ministack import Engine
from tests.infra import template


def test_the_lives_of_a_hot_and_a_cold_counter_cost_what_their_items_cost(engine: Engine) -> None:
    hot, cold, reads = lives(engine, say=lambda text: None, targets=(40, 1_000))
    puts_and_deletes = 1_000 + 1_000
    segments = 2 * (2 + 23)  # 40 and 960 entries of 24 bytes and the keys: 2 KB and 23 KB, twice for the transaction
    checkpoints, notes, listed = 2 * 2, 2, 1
    assert hot.changes == 1_000
    assert hot.write_units * 1_000 == puts_and_deletes + segments + checkpoints + notes + listed
    assert hot.deltas_per_commit == 500
    assert cold.write_units == 1
    assert [read.requests for read in reads] == [2, 2]
    assert [read.read_units for read in reads] == [2, 2]


def test_a_change_in_a_full_pack_costs_a_tenth_of_one_alone_over_its_whole_life(engine: Engine) -> None:
    packs = 40 * (1 + 1)  # of 38: a KB
    segments = 2 * 2 * 18  # 760 entries of 24 bytes and the keys, twice for the transaction, in each of two commits
    checkpoints, notes, listed = 2 * 2, 2, 1
    assert write_units(engine, 38, changes=1_520) * 1_520 == packs + segments + checkpoints + notes + listed


def test_what_comes_through_the_queue_is_packed_by_the_batch(engine: Engine) -> None:
    """Ten batches of a hundred messages, or three packs of a message or more: then they are folded, noted, cleaned."""
    queue = template.of_type(template.source(), "AWS::Lambda::EventSourceMapping")["ChangesToFunction"]
    assert (queue["BatchSize"], queue["MaximumBatchingWindowInSeconds"]) == (BATCH, WINDOW_S)
    assert template.framework()["params"]["default"]["changesPack"] == "true"
    ends = 2 + 2 * 24 + 1 + 1  # the checkpoint, a segment of 1,000 entries, twice each for a transaction; note, lane
    assert queued_units(engine, 1, seconds=1) * 1_000 == pytest.approx(10 * 2 * 3 + ends)
    assert queued_units(engine, 250, seconds=1) * 1_000 == pytest.approx(2 * (10 + 10 + 5) + ends)


def test_a_long_tail_of_packs_is_read_by_the_page_and_not_at_all_behind(engine: Engine) -> None:
    read = tail_read(engine, changes=2_000, rounds=1)
    assert (read.requests, read.read_units) == (2, 1 + 12)  # 5 packs of 9.4 KB after the checkpoint
    assert (read.behind_requests, read.behind_units) == (1, 1)


def test_the_memory_of_a_fold_does_not_grow_with_the_backlog() -> None:
    """It holds a span of the tail, here 10,000 deltas, a commit and a page."""
    assert fold_peak_mb(32_000) < 1.1 * fold_peak_mb(20_000)
