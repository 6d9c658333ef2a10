"""begin and commit: every commit has seen the segment of the commit before it."""

from collections.abc import Callable
from typing import Any

import pytest

from compactor.commit import LANDING_MAX_MS, LOOKS_MAX, begin, commit
from compactor.fold import fold
from compactor.rebuild import rebuild
from compactor.report import Tally
from compactor.settle import settle
from compactor.verify import verify
from ledger import items
from ledger.conditions import Absent
from ledger.errors import DamagedItem, GaveUp, LaneDamaged, NotAllowed, TransactionConflict
from ledger.items import version_is
from ledger.lane import directory
from ledger.requests import Get, Program, Put, Query, Request, Transact
from ledger.values import Checkpoint, CleanNote, Segment
from tests.world import COUNTER, LANE, LATENESS_MS, NOW_MS, Region, compactor, delta, refused, token, two_regions

ENTRIES = Segment.of(LANE, token(3), 1, [delta(3)]).entries
CHECKPOINT, SEGMENT = Get(items.checkpoint_key(LANE)), Get(items.segment_key(LANE, token(2), 1))


def folded() -> tuple[Region, Checkpoint]:
    """Deltas 1 and 2 in the sum, 3 in the tail, 0 a stray."""
    home, away = two_regions()
    home.put(delta(1), delta(2))
    compactor(home, away).compact(COUNTER)
    home.put(delta(0), delta(3))
    home.asked.clear()
    return home, Checkpoint(LANE, 4 + 16, 2, token(2), 1, token(2), NOW_MS)


def test_it_reads_the_checkpoint_then_the_segment_of_its_last_commit_both_strongly() -> None:
    home, checkpoint = folded()
    assert home.run(begin(LANE)) == checkpoint
    assert home.asked == [CHECKPOINT, SEGMENT]
    assert CHECKPOINT.consistent
    assert SEGMENT.consistent
    empty = Region()  # without a checkpoint it looks for any segment
    assert empty.run(begin(LANE)) is None
    assert empty.asked == [CHECKPOINT, Query(items.fold_pk(LANE), "segment#", "segment$", limit=2, consistent=True)]


def test_a_first_segment_without_a_checkpoint_may_be_landing_so_it_gives_up() -> None:
    home, _ = folded()
    home.drop(items.checkpoint_key(LANE))
    with pytest.raises(GaveUp):
        home.run(begin(LANE))
    assert home.asked.count(CHECKPOINT) == 1


def _a_later_version(home: Region) -> None:
    home.drop(items.segment_key(LANE, token(2), 1))
    home.store([items.segment_item(Segment.of(LANE, token(2), 2, [delta(2)]))])


@pytest.mark.parametrize("page_size", [1, 1_000])
@pytest.mark.parametrize(
    "shown_by",
    [
        lambda home: home.store([items.segment_item(Segment.of(LANE, token(3), 1, [delta(3)]))]),
        _a_later_version,
        lambda home: home.store([items.note_item(CleanNote(LANE, 1, NOW_MS))]),
    ],
    ids=["a second segment", "a later version", "a clean note"],
)
def test_a_checkpoint_that_was_there_and_is_gone_is_damage_at_once(
    page_size: int, shown_by: Callable[[Region], None]
) -> None:
    home, _ = folded()
    home.page_size = page_size
    shown_by(home)
    home.drop(items.checkpoint_key(LANE))
    with refused(home, LaneDamaged, "no checkpoint"):
        home.run(begin(LANE))
    before = dict(home.items)
    assert "no checkpoint" in home.run(verify(LANE)).differences[0]
    assert home.items == before


def test_commits_that_land_after_the_first_look_are_no_damage() -> None:
    class Late(Region):
        def answer(self, request: Request, /) -> Any:
            if isinstance(request, Query):
                home.copy_to(self)
            return super().answer(request)

    home, _ = folded()
    compactor(home, Region()).compact(COUNTER)
    found = Late().run(begin(LANE))
    assert found is not None
    assert found.version == 3


def test_a_segment_that_lands_meanwhile_is_seen() -> None:
    class Landing(Region):
        def answer(self, request: Request, /) -> Any:
            if self.asked.count(SEGMENT) == LOOKS_MAX - 1:
                self.store([landing])
            return super().answer(request)

    home, checkpoint = folded()
    landing = home.items[items.segment_key(LANE, token(2), 1)]
    table = Landing()
    table.store(item for item in home.items.values() if item is not landing)
    assert table.run(begin(LANE)) == checkpoint
    assert table.asked == [CHECKPOINT, SEGMENT] * LOOKS_MAX


def test_both_are_read_again_because_another_commit_may_have_come() -> None:
    class Overtaken(Region):
        def answer(self, request: Request, /) -> Any:
            answer = super().answer(request)
            if request == SEGMENT:
                home.copy_to(self)
            return answer

    home, _ = folded()
    table = Overtaken()
    home.copy_to(table, items.checkpoint_key(LANE))
    compactor(home, Region()).compact(COUNTER)
    found = table.run(begin(LANE))
    assert found is not None
    assert found.version == 3


def fold_it() -> Program[object]:
    return fold(LANE, Tally(), allowed_lateness_ms=LATENESS_MS, fold_min=1, fold_max=8)


def settle_it() -> Program[object]:
    return settle(LANE, Tally(), token(2), fold_max=8)


@pytest.mark.parametrize("program", [fold_it, settle_it])
@pytest.mark.parametrize(
    ("age_ms", "error"),
    [
        (0, GaveUp),
        (-5, GaveUp),
        (LANDING_MAX_MS - 1, GaveUp),
        (LANDING_MAX_MS, LaneDamaged),
        (-LANDING_MAX_MS + 1, GaveUp),
        (-LANDING_MAX_MS, LaneDamaged),  # of a clock that was ahead
    ],
)
def test_a_last_segment_that_stays_away_gives_up_and_after_minutes_is_damage(
    program: Callable[[], Program[object]], age_ms: int, error: type[Exception]
) -> None:
    home, _ = folded()
    home.drop(items.segment_key(LANE, token(2), 1))
    home.now_ms += age_ms
    with refused(home, error):
        home.run(program())
    assert home.asked.count(SEGMENT) == LOOKS_MAX


def test_who_may_only_read_cannot_tell_what_is_lost_from_what_is_landing_and_gives_up() -> None:
    class ReadOnly(Region):
        def answer(self, request: Request, /) -> Any:
            if isinstance(request, Put):
                raise NotAllowed("Only reads are allowed. Nothing was written.")
            return super().answer(request)

    home, _ = folded()
    home.drop(items.segment_key(LANE, token(2), 1))
    table = ReadOnly()
    table.store(home.items.values())
    table.now_ms = home.now_ms + LANDING_MAX_MS
    for program in (begin(LANE), verify(LANE), fold_it()):
        with refused(table, GaveUp, "only a role that may put"):
            table.run(program)


@pytest.mark.parametrize("ahead_ms", [LANDING_MAX_MS, 365 * 86_400_000])
def test_half_a_commit_of_a_clock_that_was_ahead_is_told_and_rebuilt_without_waiting_for_its_time(
    ahead_ms: int,
) -> None:
    home, _ = folded()
    home.now_ms += ahead_ms
    home.put(delta(3))
    compactor(home, home).compact(COUNTER)
    last = items.checkpoint_of(LANE, home.items[items.checkpoint_key(LANE)])
    home.drop(items.segment_key(LANE, last.last, last.version))
    home.now_ms -= ahead_ms
    with pytest.raises(LaneDamaged):
        compactor(home, home).compact(COUNTER)
    assert not compactor(home, home).verify(COUNTER).ok
    landing = Locked()
    landing.store(home.items.values())
    landing.now_ms = home.now_ms
    with refused(landing, TransactionConflict):  # it is landing after all
        landing.run(rebuild(LANE))
    assert home.run(rebuild(LANE))
    assert home.run(verify(LANE)).differences == ()


class Locked(Region):
    """A transaction holds the segments."""

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, Put) and request.key.sk.startswith("segment#"):
            raise TransactionConflict("A transaction holds it. Nothing was written.")
        return super().answer(request)


def test_a_segment_that_lands_while_the_process_stands_still_for_minutes_is_no_damage() -> None:
    """Of 100,000 seeded histories one told of damage where there was none."""

    class Frozen(Region):
        def answer(self, request: Request, /) -> Any:
            answer = super().answer(request)
            if self.asked.count(SEGMENT) == LOOKS_MAX:
                self.store([landing])
                self.now_ms += LANDING_MAX_MS
            return answer

    home, checkpoint = folded()
    landing = home.items[items.segment_key(LANE, token(2), 1)]
    table = Frozen()
    table.store(item for item in home.items.values() if item is not landing)
    assert table.run(begin(LANE)) == checkpoint


def test_a_verify_too_gives_up_while_a_commit_lands_and_tells_a_damage_that_lasts() -> None:
    home, _ = folded()
    home.drop(items.segment_key(LANE, token(2), 1))
    with pytest.raises(GaveUp):
        home.run(verify(LANE))
    home.now_ms += LANDING_MAX_MS
    assert items.segment_key(LANE, token(2), 1).sk in home.run(verify(LANE)).differences[0]


@pytest.mark.parametrize("present", [False, True])
def test_a_commit_is_one_transaction_of_the_checkpoint_over_the_version_seen_and_a_new_segment(present: bool) -> None:
    home, checkpoint = folded()
    before = checkpoint if present else None
    table = home if present else Region()
    after = table.run(commit(LANE, before, ENTRIES, hi=token(4), watermark=token(5), now_ms=7))
    total, count, version = (4 + 16 + 64, 3, 2) if present else (64, 1, 1)
    assert after == Checkpoint(LANE, total, count, token(5), version, token(4), 7)
    first = Put(items.checkpoint_item(after), version_is(1) if present else Absent())
    second = Put(items.segment_item(Segment.of(LANE, token(4), version, [delta(3)])), Absent())
    listed = [] if present else [Put(directory.item_of(LANE))]  # a lane is in the directory before its first sum
    assert table.asked == [*listed, Transact((first, second))]


@pytest.mark.parametrize(
    "happens",
    [
        lambda table: compactor(table, Region()).compact(COUNTER),
        lambda table: table.store([items.segment_item(Segment.of(LANE, token(3), 2, []))]),
        None,
    ],
    ids=["another commits", "the segment is there", "a first commit finds a checkpoint"],
)
def test_a_commit_that_finds_its_condition_broken_gives_up_and_changes_nothing(
    happens: Callable[[Region], object] | None,
) -> None:
    home, checkpoint = folded()
    if happens:
        happens(home)
    before = checkpoint if happens else None
    with refused(home, GaveUp):
        home.run(commit(LANE, before, ENTRIES, hi=token(3), watermark=token(3), now_ms=NOW_MS))


def test_a_damaged_checkpoint_is_named() -> None:
    home, _ = folded()
    home.alter(items.checkpoint_key(LANE), version={"S": "1"})
    with pytest.raises(DamagedItem) as raised:
        home.run(begin(LANE))
    assert (raised.value.pk, raised.value.sk) == (items.fold_pk(LANE), "checkpoint")
