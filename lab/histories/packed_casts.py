"""Small casts with packs: a token in several items, and packs that reach over a cutoff or a watermark."""

from functools import partial

from compactor.fold import fold
from compactor.report import Tally
from lab.histories.boards import AWAY, HOME
from lab.histories.stage import FOLD, LANE, Stage
from ledger.values import Delta


def a_change_in_two_packs_and_alone_among_two_folds_and_a_read(stage: Stage) -> None:
    first, second, third = (
        stage.delta(0, old_ms=1_000),
        stage.delta(1, old_ms=900, put=False),
        stage.delta(2, old_ms=800),
    )
    stage.pack(first, second)
    stage.pack(second, third)
    stage.everything_is_acknowledged()
    stage.fold(times=2)
    stage.read()


def a_pack_that_reaches_over_the_cutoff_against_a_fold(stage: Stage) -> None:
    deltas = [
        stage.delta(0, old_ms=900, put=False),
        stage.delta(1, old_ms=200, put=False),
        stage.delta(2, old_ms=100, put=False),
    ]
    stage.delta(3, old_ms=500)
    stage.pack(*deltas)
    stage.everything_is_acknowledged()
    stage.fold()
    stage.read()


def a_pack_in_time_against_two_folds(stage: Stage) -> None:
    stage.delta(0, old_ms=900)
    stage.delta(1, old_ms=800)
    stage.add_pack(stage.delta(2, old_ms=240, put=False), stage.delta(3, old_ms=100, put=False))
    stage.fold(times=2)
    stage.read()


def strays_in_a_pack_of_the_tail_against_two_settles(stage: Stage) -> None:
    stage.delta(2, old_ms=900)
    stage.folded()
    stage.pack(
        stage.delta(0, old_ms=1_100, put=False, stray=True),
        stage.delta(1, old_ms=1_000, put=False, stray=True),
        stage.delta(3, old_ms=100, put=False, stray=True),
    )
    stage.everything_is_acknowledged()
    stage.settle("one")
    stage.settle("the other")


def a_fold_of_two_commits_against_another(stage: Stage) -> None:
    deltas = [stage.delta(n, old_ms=1_000 - 100 * n, put=False) for n in range(4)]
    stage.pack(*deltas[::2])
    stage.pack(*deltas[1:])
    stage.everything_is_acknowledged()
    stage.enter("fold", HOME, partial(fold, LANE, Tally(), **FOLD, fold_max=2, commits_max=2))
    stage.fold("the other", fold_max=1)


def a_pack_with_a_stray_among_a_clean_and_a_settle(stage: Stage) -> None:
    first, last = stage.delta(1, old_ms=900, put=False), stage.delta(2, old_ms=800, put=False)
    stage.pack(first, last)
    stage.everything_is_acknowledged()
    stage.folded()
    stage.noted()
    stage.pack(stage.delta(0, old_ms=3_000, put=False, stray=True), first, last)
    stage.everything_is_acknowledged()
    stage.clean()
    stage.settle()


def a_pack_that_reaches_over_the_watermark_among_a_clean_and_a_read_elsewhere(stage: Stage) -> None:
    first = stage.delta(0, old_ms=900)
    stage.folded()
    stage.noted()
    stage.pack(first, stage.delta(1, old_ms=100, put=False))
    stage.everything_is_acknowledged()
    stage.everything_arrives()
    stage.fold()
    stage.clean()
    stage.read(AWAY)


def _a_pack_that_a_clean_deletes(stage: Stage) -> list[Delta]:
    deltas = [stage.delta(n, old_ms=900 - n, put=False) for n in range(2)]
    stage.pack(*deltas)
    stage.everything_is_acknowledged()
    stage.folded()
    stage.noted()
    stage.clean()
    return deltas


def a_pack_again_elsewhere_against_a_clean(stage: Stage) -> None:
    deltas = _a_pack_that_a_clean_deletes(stage)
    stage.add_pack(*deltas, region=AWAY)
    stage.read()


def a_pack_again_with_one_more_against_a_clean_and_a_fold(stage: Stage) -> None:
    deltas = _a_pack_that_a_clean_deletes(stage)
    stage.add_pack(*deltas, stage.delta(2, old_ms=100, put=False))
    stage.fold()


PACKED_CASTS = (
    a_change_in_two_packs_and_alone_among_two_folds_and_a_read,
    a_pack_that_reaches_over_the_cutoff_against_a_fold,
    a_pack_in_time_against_two_folds,
    strays_in_a_pack_of_the_tail_against_two_settles,
    a_fold_of_two_commits_against_another,
    a_pack_with_a_stray_among_a_clean_and_a_settle,
    a_pack_that_reaches_over_the_watermark_among_a_clean_and_a_read_elsewhere,
    a_pack_again_elsewhere_against_a_clean,
    a_pack_again_with_one_more_against_a_clean_and_a_fold,
)
