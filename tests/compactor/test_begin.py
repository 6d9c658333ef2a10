"""begin and commit: every commit has seen the segment of the commit before it."""

from collections.abc import Callable
from functools import partial

import pytest

from compactor.commit import LANDING_MAX_MS, LOOKS_MAX, begin, commit
from compactor.fold import fold
from compactor.rebuild import rebuild
from compactor.report import Tally
from compactor.settle import settle
from compactor.verify import verify
from ledger.core import items
from ledger.core.errors import GaveUp, LaneDamaged, NotAllowed, TransactionConflict
from ledger.core.requests import Get, Program, Put
from ledger.core.values import Checkpoint, CleanNote, Segment
from tests.world import (
    COUNTER,
    LANE,
    NOW_MS,
    Region,
    compactor,
    delta,
    fail,
    folded,
    in_one_day,
    refused,
    settings,
    token,
)

ENTRIES = Segment.of(LANE, token(3), 1, [delta(3)]).entries
CHECKPOINT, SEGMENT = Get(items.checkpoint_key(LANE)), Get(items.segment_key(LANE, token(2), 1))


def lane() -> tuple[Region, Checkpoint]:
    """Deltas 1 and 2 in the sum, 3 in the tail, 0 a stray."""
    return folded(1, 2, later=(0, 3), fold_max=8)[0], Checkpoint(
        LANE, 4 + 16, 2, token(2), 1, token(2), NOW_MS, in_one_day(2, 20)
    )


def without_last_segment() -> tuple[Region, Checkpoint, Callable[[], None]]:
    """And what puts it back."""
    home, checkpoint = lane()
    segment = home.items[SEGMENT.key]
    home.drop(SEGMENT.key)
    return home, checkpoint, lambda: home.store([segment])


def fold_it() -> Program[object]:
    return fold(LANE, Tally(), settings())


def settle_it() -> Program[object]:
    return settle(LANE, Tally(), token(2), fold_max=8)


def test_a_lane_without_a_checkpoint_has_one_landing_segment() -> None:
    home, _ = lane()
    home.drop(CHECKPOINT.key)
    with refused(home, GaveUp):
        home.run(begin(LANE))
    second, later = (
        Segment.of(LANE, token(3), 1, [delta(3)]),
        Segment.of(LANE, token(2), 2, [delta(2)]),
    )
    for gone, shown_by in (
        ((), items.segment_item(second)),
        ((SEGMENT.key,), items.segment_item(later)),
        ((), items.note_item(CleanNote(LANE, 1, NOW_MS))),
    ):
        for page_size in (1, 1_000):
            home, _ = lane()
            home.page_size = page_size
            home.store([shown_by])
            home.drop(CHECKPOINT.key, *gone)
            with refused(home, LaneDamaged, "no checkpoint"):
                home.run(begin(LANE))
            assert "no checkpoint" in home.run(verify(LANE)).differences[0]


def test_a_segment_that_lands_meanwhile_is_seen() -> None:
    home, checkpoint, lands = without_last_segment()
    home.before(lambda _: home.asked.count(SEGMENT) == LOOKS_MAX, lambda _: lands())
    assert home.run(begin(LANE)) == checkpoint
    assert home.asked == [CHECKPOINT, SEGMENT] * LOOKS_MAX
    home, checkpoint, lands = without_last_segment()

    def stands_still(_: object, answer: object) -> object:
        if home.asked.count(SEGMENT) == LOOKS_MAX:
            lands()
            home.now_ms += LANDING_MAX_MS
        return answer

    home.after(Get, stands_still)
    assert home.run(begin(LANE)) == checkpoint


def test_a_last_segment_that_stays_away_is_damage_after_minutes() -> None:
    for age_ms, error in (
        *((0, GaveUp), (-5, GaveUp), (LANDING_MAX_MS - 1, GaveUp), (LANDING_MAX_MS, LaneDamaged)),
        # of a clock that was ahead
        *((-LANDING_MAX_MS + 1, GaveUp), (-LANDING_MAX_MS, LaneDamaged)),
    ):
        for program in (fold_it, settle_it):
            home, _, _ = without_last_segment()
            home.now_ms += age_ms
            with refused(home, error):
                home.run(program())
            assert home.asked.count(SEGMENT) == LOOKS_MAX


def test_a_reader_cannot_tell_lost_from_landing() -> None:
    home, _, _ = without_last_segment()
    home.before(Put, fail(NotAllowed("Only reads are allowed. Nothing was written.")))
    home.now_ms += LANDING_MAX_MS
    for program in (begin(LANE), verify(LANE), fold_it()):
        with refused(home, GaveUp, "with a role that may put"):
            home.run(program)


def test_half_a_commit_of_a_fast_clock_is_rebuilt_at_once() -> None:
    for ahead_ms in (LANDING_MAX_MS, 365 * 86_400_000):
        home, _ = lane()
        home.now_ms += ahead_ms
        home.put(delta(3))
        compactor(home, home).compact(COUNTER)
        last = items.checkpoint_of(LANE, home.items[CHECKPOINT.key])
        home.drop(items.segment_key(LANE, last.last, last.version))
        home.now_ms -= ahead_ms
        with pytest.raises(LaneDamaged):
            compactor(home, home).compact(COUNTER)
        assert not compactor(home, home).verify(COUNTER).ok
        home.before(
            Put, fail(TransactionConflict("A transaction holds it. Nothing was written.")), times=1
        )
        with refused(home, TransactionConflict):  # it is landing after all
            home.run(rebuild(LANE))
        assert home.run(rebuild(LANE))
        assert home.run(verify(LANE)).differences == ()


def test_a_commit_whose_condition_fails_changes_nothing() -> None:
    for happens in (
        lambda table: compactor(table, Region()).compact(COUNTER),
        lambda table: table.store([items.segment_item(Segment.of(LANE, token(3), 2, []))]),
        None,  # a first commit finds a checkpoint
    ):
        home, checkpoint = lane()
        if happens:
            happens(home)
        again = partial(commit, LANE, checkpoint if happens else None, ENTRIES)
        with refused(home, GaveUp):
            home.run(again(hi=token(3), watermark=token(3), now_ms=NOW_MS))
