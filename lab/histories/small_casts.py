"""The small casts: two or three programs on a few deltas; and those of the obvious design, which go wrong."""

from functools import partial

from compactor.rebuild import rebuild
from lab.designs import naive
from lab.histories import checker
from lab.histories.boards import AWAY, HOME
from lab.histories.cast import Seen
from lab.histories.history import finish
from lab.histories.stage import LANE, SETTINGS, Stage, judged
from ledger import items
from ledger.requests import Program


def one_read_against_two_folds(stage: Stage) -> None:
    stage.delta(0)
    stage.delta(1, old_ms=900)
    stage.fold(times=2)
    stage.read()


def a_read_elsewhere_while_a_fold_replicates(stage: Stage) -> None:
    stage.delta(0)
    stage.everything_arrives()
    stage.fold()
    stage.read(AWAY)


def a_read_elsewhere_through_a_fold_and_a_clean(stage: Stage) -> None:
    stage.delta(0)
    stage.everything_arrives()
    stage.folded()
    stage.compactions(2, everywhere=False)
    stage.read(AWAY)


def a_read_that_a_clean_overtakes(stage: Stage) -> None:
    stage.delta(0)
    stage.delta(1, old_ms=900)
    stage.everything_arrives()
    stage.compactions(3, everywhere=True)
    stage.read()


def a_read_that_visits_overtake_within_its_time(stage: Stage) -> None:
    stage.delta(0)
    stage.everything_arrives()
    stage.compactions(3, everywhere=True, apart_ms=1)
    stage.read()


def an_add_in_time_among_two_folds_and_a_read(stage: Stage) -> None:
    stage.delta(1)
    stage.add(stage.delta(0, old_ms=SETTINGS.allowed_lateness_ms - 1, put=False))
    stage.fold(times=2)
    stage.read()


def a_delta_that_is_only_just_on_time_against_a_fold(stage: Stage) -> None:
    delta = stage.delta(0, old_ms=249, put=False)
    stage.delta(1, old_ms=248)
    stage.add(delta)
    stage.time(250)
    stage.fold()


def a_fail_over_against_a_fold(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.everything_arrives()
    stage.add(stage.delta(0, put=False), AWAY)
    stage.fold()
    stage.read()


def two_compactors(stage: Stage) -> None:
    stage.delta(0)
    stage.delta(1, old_ms=900)
    stage.fold("one")
    stage.fold("the other", fold_max=1)


def two_settles(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.folded()
    stage.delta(0, stray=True)
    stage.settle("one")
    stage.settle("the other")


def a_fold_against_a_settle(stage: Stage) -> None:
    stage.delta(1, old_ms=900)
    stage.folded()
    stage.settle()
    stage.delta(0, stray=True)
    stage.delta(2, old_ms=800)
    stage.fold()


def settle_against_clean_and_a_retry(stage: Stage) -> None:
    delta = stage.delta(1, old_ms=900)
    stage.folded()
    stage.noted()
    stage.delta(0, old_ms=3_000, stray=True)
    stage.settle()
    stage.clean()
    stage.add(delta)


def a_stray_that_is_settled_while_an_older_version_is_cleaned(stage: Stage) -> None:
    """It stays until every Region counts it."""
    stage.delta(1, old_ms=900)
    stage.delta(2, old_ms=800)
    stage.folded()
    stage.noted()
    stray = stage.delta(0, old_ms=3_000, stray=True)

    def cleans() -> Program[None]:
        yield from stage.cleaning()
        stage.wait(stage.settings.keep_ms)
        yield from stage.cleaning()

    def judge(stage: Stage) -> list[str]:
        there = stage.world.replicas[HOME].item(items.delta_key(stray))
        return judged(stage) if there else ["the stray is deleted, and not every Region counts it"]

    stage.judge = judge
    stage.settle()
    stage.enter("clean", HOME, cleans)


def two_cleans_and_a_retry_elsewhere(stage: Stage) -> None:
    delta = stage.delta(0)
    stage.folded()
    stage.noted()
    del stage.world.replicas[AWAY].cells[items.delta_pk(LANE)][delta.token]  # as another clean did
    stage.clean("one")
    stage.clean("the other")
    stage.add(delta, AWAY)


def a_retry_against_a_clean(stage: Stage) -> None:
    delta = stage.delta(0)
    stage.folded()
    stage.noted()
    stage.clean()
    stage.add(delta)
    stage.read()


def a_visit_a_retry_and_a_read(stage: Stage) -> None:
    delta = stage.delta(1, old_ms=900)
    stage.folded()
    stage.noted()
    stage.delta(0, old_ms=3_000, stray=True)
    stage.delta(2, old_ms=800)
    stage.enter("visit", HOME, stage.visiting)
    stage.add(delta)
    stage.read()


def a_rebuild_while_the_first_commit_lands(stage: Stage) -> None:
    """An operator should not, but may: no read is wrong, and a rebuild with nobody else there puts it right."""

    def judge(stage: Stage) -> list[str]:
        value, count = finish(stage.world, HOME, stage.reading())
        wrong = checker.check_read(Seen(HOME, True, value, count, 2, stage.must(HOME)), stage.record.asked)
        stage.world.quiesce()
        finish(stage.world, HOME, rebuild(LANE))
        return [wrong] if wrong else judged(stage)

    stage.judge = judge
    stage.delta(0)
    stage.delta(1, old_ms=900)
    stage.fold()
    stage.rebuild()


def a_rebuild_while_a_settle_commits(stage: Stage) -> None:
    """Also when the compactor was stopped before, its last commit may still be landing."""
    stage.delta(1, old_ms=900)
    stage.folded()
    stage.delta(0, stray=True)
    stage.settle()
    stage.rebuild()


SMALL_CASTS = (
    one_read_against_two_folds,
    a_read_elsewhere_while_a_fold_replicates,
    a_read_elsewhere_through_a_fold_and_a_clean,
    a_read_that_a_clean_overtakes,
    a_read_that_visits_overtake_within_its_time,
    an_add_in_time_among_two_folds_and_a_read,
    a_delta_that_is_only_just_on_time_against_a_fold,
    a_fail_over_against_a_fold,
    two_compactors,
    two_settles,
    a_fold_against_a_settle,
    settle_against_clean_and_a_retry,
    a_stray_that_is_settled_while_an_older_version_is_cleaned,
    two_cleans_and_a_retry_elsewhere,
    a_retry_against_a_clean,
    a_visit_a_retry_and_a_read,
    a_rebuild_while_the_first_commit_lands,
    a_rebuild_while_a_settle_commits,
)


def _naive(stage: Stage) -> None:
    def judge(stage: Stage) -> list[str]:
        stage.world.quiesce()
        values = {region: finish(stage.world, region, naive.read(LANE))[0] for region in (HOME, AWAY)}
        held = {region: sorted(checker.deltas_in(value) or ()) for region, value in values.items()}
        return list(checker.check_end(stage.record, values, {r: [4**n for n in held[r]] for r in held}))

    stage.judge, stage.stops = judge, False
    stage.delta(0)
    stage.everything_arrives()


def a_read_while_the_merge_becomes_visible(stage: Stage) -> None:
    _naive(stage)
    stage.enter("merge", HOME, partial(naive.merge, LANE))
    stage.read(HOME, partial(naive.read, LANE))


def a_read_elsewhere_while_the_merge_replicates(stage: Stage) -> None:
    _naive(stage)
    stage.alone(naive.merge(LANE))
    stage.read(AWAY, partial(naive.read, LANE))


def a_retry_after_the_merge(stage: Stage) -> None:
    _naive(stage)
    stage.enter("merge", HOME, partial(naive.merge, LANE))
    stage.add(stage.record.asked[0].delta, name="the same add again")


def two_regions_merge(stage: Stage) -> None:
    _naive(stage)
    stage.world.cut.add(AWAY)  # for a while
    stage.add(stage.delta(1, old_ms=900, put=False), AWAY)
    stage.enter("merge", HOME, partial(naive.merge, LANE))
    stage.enter("merge elsewhere", AWAY, partial(naive.merge, LANE))


NAIVE_CASTS = (
    a_read_while_the_merge_becomes_visible,
    a_read_elsewhere_while_the_merge_replicates,
    a_retry_after_the_merge,
    two_regions_merge,
)
