"""rebuild: a checkpoint from the segments alone, after damage and after a backup that held half
a transaction.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product

import pytest

from compactor.commit import LANDING_MAX_MS
from compactor.fold import fold
from compactor.rebuild import rebuild
from compactor.report import Tally
from compactor.settle import settle
from ledger.core import items
from ledger.core.conditions import Absent, Condition
from ledger.core.errors import GaveUp, LaneDamaged
from ledger.core.items import version_is
from ledger.core.requests import DeleteMany, Get, Item, Key, Query, Request, Transact, key_of, keyed
from ledger.core.values import Checkpoint, CleanNote, Delta, Segment
from reader.history import history
from tests.world import (
    COUNTER,
    LANE,
    NOW_MS,
    Region,
    compact_for_long,
    compactor,
    delta,
    in_one_day,
    refused,
    settings,
    token,
    two_regions,
    value,
)

CHECKPOINT, NOTE = items.checkpoint_key(LANE), items.note_key(LANE)


def lane_of_four_versions() -> tuple[Region, Region, list[dict[Key, Item]]]:
    """Folded 2, 4 and 6, settled 3; 5 is a stray and 7 the tail. And the table as it was after each
    version. It is so long ago that no commit can be landing any more.
    """
    home, away = two_regions()
    home.put(delta(2), delta(4), delta(6))
    states = [dict(home.items)]
    for _ in (1, 2, 3):
        home.run(fold(LANE, Tally(), settings(allowed_lateness_ms=0, fold_max=1), commits_max=1))
        states.append(dict(home.items))
    home.put(delta(3))
    home.run(settle(LANE, Tally(), token(6), fold_max=8))
    states.append(dict(home.items))
    home.put(delta(5), delta(7))
    home.now_ms += LANDING_MAX_MS
    home.asked.clear()
    return home, away, states


EVERYTHING = {2, 3, 4, 5, 6, 7}


def is_exact(home: Region, away: Region, everything: set[int]) -> None:
    """After some compactions."""
    compact_for_long(home, away)
    assert value(home) == value(away) == everything
    assert compactor(home, away).verify(COUNTER).differences == ()


def test_what_it_costs() -> None:
    """It reads all strongly, deletes the note, then writes a version above all."""
    home, _, _ = lane_of_four_versions()
    home.store([items.note_item(CleanNote(LANE, 9, NOW_MS))])
    rebuilt = home.run(rebuild(LANE))
    total = 4**2 + 4**3 + 4**4 + 4**6
    expected = Checkpoint(LANE, total, 4, token(6), 10, token(6), home.now_ms, in_one_day(4, total))
    assert rebuilt == expected
    assert home.in_short == [
        *(
            "get checkpoint strongly",
            "get segment strongly",
            "get clean strongly",
            "query segment strongly",
            "now",
        ),
        *("deletemany clean", "transact checkpoint segment"),
    ]
    empty = Segment.of(LANE, token(6), 10, ())
    assert home.items[items.segment_key(LANE, token(6), 10)] == items.segment_item(empty)


DAMAGES: tuple[tuple[Callable[[Region], None], int, Condition | None], ...] = (
    (lambda home: home.drop(CHECKPOINT), 5, Absent()),
    (lambda home: home.store([keyed(CHECKPOINT)]), 5, None),
    (lambda home: home.alter(CHECKPOINT, total={"N": "7"}), 5, version_is(4)),
    (lambda home: home.alter(CHECKPOINT, watermark={"S": token(9)}), 5, version_is(4)),
    (lambda home: home.alter(CHECKPOINT, version={"N": "99"}), 100, version_is(99)),
    (lambda home: home.alter(CHECKPOINT, version={"N": "1"}), 5, version_is(1)),
    (lambda home: home.alter(CHECKPOINT, version={"S": "four"}), 5, None),
    (lambda home: home.drop(items.segment_key(LANE, token(6), 4)), 5, version_is(4)),
    (lambda home: home.store([keyed(NOTE, version={"N": "99"})]), 100, version_is(4)),
    (lambda home: home.store([items.note_item(CleanNote(LANE, 50, 0))]), 51, version_is(4)),
)


def test_damage_is_replaced_and_the_counter_becomes_exact() -> None:
    for damage, version, unchanged in DAMAGES:
        home, away, _ = lane_of_four_versions()
        damage(home)
        rebuilt = home.run(rebuild(LANE))
        assert rebuilt is not None
        assert rebuilt.version == version
        transaction = home.asked[-1]
        assert isinstance(transaction, Transact)
        assert transaction.writes[0].condition == unchanged
        assert DeleteMany(()) not in home.asked
        is_exact(home, away, EVERYTHING)


def test_a_backup_checkpoint_beside_any_segments_becomes_exact() -> None:
    """A restored table holds every delta (nothing was cleaned), and half of a transaction or an
    older checkpoint.
    """
    for checkpoint_is_of, segments_upto in product(range(5), range(5)):
        home, _, states = lane_of_four_versions()
        restored, away = two_regions()
        restored.put(*map(delta, sorted(EVERYTHING)))
        if checkpoint_is_of:
            restored.store([states[checkpoint_is_of][CHECKPOINT]])
        segments = {key: item for key, item in home.items.items() if key.sk.startswith("segment#")}
        restored.store(item for key, item in segments.items() if int(key.sk[-10:]) <= segments_upto)
        restored.now_ms += LANDING_MAX_MS
        # segments are lost, and strays are beside what they listed
        if checkpoint_is_of > 1 and not segments_upto:
            with refused(restored, LaneDamaged):
                compactor(restored, away).rebuild(COUNTER)
            continue
        compactor(restored, away).rebuild(COUNTER)
        is_exact(restored, away, EVERYTHING)


def test_a_landing_commit_makes_it_give_up() -> None:
    for age_ms, gives_up in ((0, True), (LANDING_MAX_MS - 1, True), (LANDING_MAX_MS, False)):
        home, away, _ = lane_of_four_versions()
        home.drop(items.segment_key(LANE, token(4), 4))
        home.now_ms += age_ms - LANDING_MAX_MS
        if gives_up:
            with refused(home, GaveUp):
                compactor(home, away).rebuild(COUNTER)
        else:
            assert compactor(home, away).rebuild(COUNTER) == {LANE: 4**2 + 4**4 + 4**6}


def test_a_noted_checkpoint_without_segments_is_damage() -> None:
    home, away = two_regions()
    home.put(delta(1))
    compact_for_long(home, away)
    home.drop(items.segment_key(LANE, token(1), 1))
    home.now_ms += LANDING_MAX_MS
    with refused(home, LaneDamaged):
        compactor(home, away).rebuild(COUNTER)
    empty = Region()  # a lane that was never folded stays as it is
    empty.put(delta(1))
    before = dict(empty.items)
    assert empty.run(rebuild(LANE)) is None
    assert empty.items == before


def _segment(hi: int, version: int, *numbers: int) -> Segment:
    return Segment.of(LANE, token(hi), version, map(delta, numbers))


ORPHANS = {
    "of a fold that a later one covers": [_segment(7, 5, 5, 7), _segment(8, 5, 5, 7, 8)],
    "of a fold that took more": [_segment(9, 5, 7, 8, 9), _segment(8, 5, 7, 8)],
    "of a fold that a settle went under": [
        _segment(8, 5, 7, 8),
        _segment(9, 5, 7, 8, 9),
        _segment(8, 6, 5),
    ],
    "of a settle that was done again": [_segment(6, 5, 5), _segment(6, 6, 5)],
    "of a version that never came to be": [_segment(6, 7, 6)],
    "of a fold whose cleaned deltas nothing else lists": [
        _segment(8, 5, 7, 8),
        _segment(9, 5, 9),
        _segment(9, 6, 5),
    ],
    "of several commits": [
        _segment(7, 5, 7),
        _segment(9, 6, 8, 9),
        _segment(8, 5, 7, 8),
        _segment(10, 6, 9, 10),
    ],
    "that is empty": [_segment(7, 5), _segment(8, 5, 7, 8)],
}


def orphaned(name: str) -> tuple[Region, Region, set[int]]:
    """A lane with segments that overlap, of a lost commit and of those that came after; and what
    they list in all.
    """
    home, away, _ = lane_of_four_versions()
    home.store(map(items.segment_item, ORPHANS[name]))
    everything = {2, 3, 4, 6} | {
        change.bit_length() // 2 for segment in ORPHANS[name] for _, change in segment
    }
    home.put(*(delta(number) for number in everything))
    # whoever lists them, counts them
    home.drop(items.delta_key(delta(5)), items.delta_key(delta(7)))
    newest = ORPHANS[name][-1]
    kept = Checkpoint(
        LANE, 0, 9, newest.hi, newest.version if newest.version < 7 else 4, newest.hi, 0
    )
    home.store([items.checkpoint_item(kept)])
    home.store([items.note_item(CleanNote(LANE, 1, 0))])
    home.asked.clear()
    return home, away, everything


def listed(home: Region) -> list[int]:
    """The numbers of the deltas that history lists, each as often as it does."""
    segments, _ = home.run(history(LANE, consistent=True, read_time_max_ms=1_000))
    return sorted(change.bit_length() // 2 for segment in segments for _, change in segment)


class Ended(BaseException):
    """The process ends here."""


def end_at(home: Region, request: Request) -> None:
    if isinstance(request, DeleteMany):  # its deletes happen one at a time
        home.drop(key_of(request.items[0]))
    raise Ended


@pytest.mark.parametrize("name", ORPHANS)
def test_an_orphan_is_undone_and_each_change_counts_once(
    name: str,
) -> None:
    for stop in range(100):
        home, away, everything = orphaned(name)
        requests = iter(range(stop))
        home.before(
            lambda _, left=requests: next(left, None) is None, partial(end_at, home), times=1
        )
        with suppress(Ended):
            home.run(rebuild(LANE))
            break
        home.now_ms += LANDING_MAX_MS
        deltas = {
            items.delta_of(LANE, i).change
            for key, i in home.items.items()
            if key.pk == items.delta_pk(LANE)
        }
        segments = [
            items.segment_of(LANE, i)
            for key, i in home.items.items()
            if key.sk.startswith("segment#")
        ]
        named = (*deltas, *(change for each in segments for _, change in each))
        assert everything <= {change.bit_length() // 2 for change in named}
        home.run(rebuild(LANE))
        is_exact(home, away, everything)
        assert listed(home) == sorted(everything)  # each once
        home.put(*map(delta, everything))  # as late retries
        is_exact(home, away, everything)
    assert 5 < stop < 99
    newest = ORPHANS[name][-1]  # the checkpoint names it, unless its version never came to be
    assert (items.segment_key(LANE, newest.hi, newest.version) in home.items) == (
        newest.version < 7
    )


def test_a_token_with_two_changes_is_damage() -> None:
    for changes, says in (
        ([Delta(LANE, token(6), 1)], "once as 4096 and once as 1"),
        ([Delta(LANE, token(5), 99), delta(6)], token(5)),  # in an orphan and in the table
    ):
        home, _, _ = lane_of_four_versions()
        home.store([items.segment_item(Segment.of(LANE, token(6), 7, changes))])
        home.store([items.note_item(CleanNote(LANE, 1, 0))])
        with refused(home, LaneDamaged, f"^{LANE}: .*{says}"):
            home.run(rebuild(LANE))


def without_segments() -> tuple[Region, Region]:
    home, away, _ = lane_of_four_versions()
    home.drop(
        *(key for key in home.items if key.sk.startswith("segment#")), items.delta_key(delta(5))
    )
    home.store([items.note_item(CleanNote(LANE, 1, 0))])
    return home, away


def test_a_checkpoint_without_segments_goes_if_deltas_are_there() -> None:
    home, away = without_segments()
    assert home.run(rebuild(LANE)) is None
    assert not home.items.keys() & {CHECKPOINT, NOTE}
    assert {request.consistent for request in home.asked if isinstance(request, Get | Query)} == {
        True
    }
    is_exact(home, away, EVERYTHING - {5})
    home, _ = without_segments()
    home.drop(items.delta_key(delta(3)))
    with refused(home, LaneDamaged):
        home.run(rebuild(LANE))


def test_who_works_on_the_lane_meanwhile_makes_it_give_up() -> None:
    for changed in (CHECKPOINT, NOTE):  # the checkpoint is deleted where there is no segment
        home = without_segments()[0] if changed == CHECKPOINT else lane_of_four_versions()[0]
        home.store([items.note_item(CleanNote(LANE, 1, 0))])
        alters = partial(home.alter, changed, version={"N": "7"})
        home.before(DeleteMany, lambda _, alters=alters: alters())  # type: ignore[misc]
        with pytest.raises(GaveUp, match=f"^{LANE}: it changed meanwhile"):
            home.run(rebuild(LANE))
        assert home.items[changed]["version"] == {"N": "7"}
        assert Transact not in home.kinds
    home, away, _ = lane_of_four_versions()
    home.before(Transact, lambda _: compactor(home, away).compact(COUNTER), times=1)
    with pytest.raises(GaveUp):
        home.run(rebuild(LANE))
    assert value(home) == EVERYTHING
