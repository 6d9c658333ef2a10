"""The small casts of lanes, packs, late changes and thresholds; and those of the obvious design,
which go wrong.
"""

from lab.histories.casts.part import AWAY, Casts, do
from ledger.core.limit import Threshold

BETWEEN_VISITS = do.having(time_goes=True, stops=False)  # between two visits alone it could stop
PACK_OF_TWO = (
    do.asks(0, old=900),
    do.asks(1, old=899),
    do.pack(0, 1),
    do.folded(),
    do.noted(),
    do.clean(),
)
EVALUATIONS = (do.delta(0), do.asks(1), do.evaluation(), do.evaluation(1))

# fmt: off
SMALL_CASTS: Casts = {
    "one_read_against_two_folds": (
        do.delta(0), do.delta(1, old=900), do.fold(fold_max=1, commits_max=2), do.read()),
    "a_read_elsewhere_while_a_fold_replicates": (
        do.delta(0), do.arrive(), do.fold(), do.read(region=AWAY)),
    "a_read_elsewhere_through_a_fold_and_a_clean": (
        do.delta(0), do.arrive(), do.folded(), BETWEEN_VISITS,
        do.compactions(2, everywhere=False), do.read(region=AWAY)),
    "a_read_that_a_clean_overtakes": (
        do.delta(0), do.delta(1, old=900), do.arrive(), BETWEEN_VISITS,
        do.compactions(3, everywhere=True), do.read()),
    "a_read_that_visits_overtake_within_its_time": (
        do.delta(0), do.arrive(), BETWEEN_VISITS, do.compactions(3, everywhere=True, apart_ms=1),
        do.read()),
    "an_add_in_time_among_two_folds_and_a_read": (
        do.delta(1), do.asks(0, old=249), do.add(0), do.fold(fold_max=1, commits_max=2), do.read()),
    "a_delta_that_is_only_just_on_time_against_a_fold": (
        do.asks(0, old=249), do.delta(1, old=248), do.add(0),
        do.having(passes_ms=250, time_goes=True), do.fold()),
    "a_fail_over_against_a_fold": (
        do.delta(1, old=900), do.arrive(), do.asks(0), do.add(0, region=AWAY), do.fold(),
        do.read()),
    "two_compactors": (
        do.delta(0), do.delta(1, old=900), do.fold(), do.fold(fold_max=1)),
    "two_settles": (
        do.delta(1, old=900), do.folded(), do.delta(0, stray=True), do.settle(), do.settle()),
    "a_fold_against_a_settle": (
        do.delta(1, old=900), do.folded(), do.settle(), do.delta(0, stray=True),
        do.delta(2, old=800), do.fold()),
    "settle_against_clean_and_a_retry": (
        do.delta(1, old=900), do.folded(), do.noted(),
        do.delta(0, old=3_000, stray=True), do.settle(), do.clean(), do.add(1)),
    "a_stray_that_is_settled_while_an_older_version_is_cleaned": (
        do.delta(1, old=900), do.delta(2, old=800), do.folded(), do.noted(),
        do.delta(0, old=3_000, stray=True), do.having(stays=0), do.settle(), do.clean(times=2)),
    "two_cleans_and_a_retry_elsewhere": (
        do.delta(0), do.folded(), do.noted(), do.cleaned(0, AWAY),
        do.clean(), do.clean(), do.add(0, region=AWAY)),
    "a_retry_against_a_clean": (
        do.delta(0), do.folded(), do.noted(), do.clean(), do.add(0), do.read()),
    "a_visit_a_retry_and_a_read": (
        do.delta(1, old=900), do.folded(), do.noted(), do.delta(0, old=3_000, stray=True),
        do.delta(2, old=800),
        do.visit(), do.add(1), do.read()),
    "a_rebuild_while_the_first_commit_lands": (  # an operator should not, but may: no read is wrong
        do.having(rebuilt_at_the_end=True), do.delta(0), do.delta(1, old=900), do.fold(),
        do.rebuild()),
    # also of a compactor that was stopped the last commit may still be landing
    "a_rebuild_while_a_settle_commits": (
        do.delta(1, old=900), do.folded(), do.delta(0, stray=True), do.settle(), do.rebuild()),
    "a_change_in_two_packs_and_alone_among_two_folds_and_a_read": (
        do.delta(0), do.asks(1, old=900), do.delta(2, old=800), do.pack(0, 1), do.pack(1, 2),
        do.fold(fold_max=1, commits_max=2), do.read()),
    "a_pack_that_reaches_over_the_cutoff_against_a_fold": (
        do.asks(0, old=900), do.asks(1, old=200), do.asks(2, old=100), do.delta(3, old=500),
        do.pack(0, 1, 2),
        do.fold(), do.read()),
    "a_pack_in_time_against_two_folds": (
        do.delta(0, old=900), do.delta(1, old=800), do.asks(2, old=240), do.asks(3, old=100),
        do.add(2, 3), do.fold(fold_max=1, commits_max=2), do.read()),
    "strays_in_a_pack_of_the_tail_against_two_settles": (
        do.delta(2, old=900), do.folded(),
        do.asks(0, old=1_100, stray=True), do.asks(1, stray=True), do.asks(3, old=100, stray=True),
        do.pack(0, 1, 3),
        do.settle(), do.settle()),
    "a_fold_of_two_commits_against_another": (
        *(do.asks(n, old=1_000 - 100 * n) for n in range(4)), do.pack(0, 2), do.pack(1, 2, 3),
        do.fold(fold_max=2, commits_max=2), do.fold(fold_max=1)),
    "a_pack_with_a_stray_among_a_clean_and_a_settle": (
        do.asks(1, old=900), do.asks(2, old=800), do.pack(1, 2), do.folded(), do.noted(),
        do.asks(0, old=3_000, stray=True), do.pack(0, 1, 2), do.clean(), do.settle()),
    "a_pack_that_reaches_over_the_watermark_among_a_clean_and_a_read_elsewhere": (
        do.delta(0, old=900), do.folded(), do.noted(), do.asks(1, old=100), do.pack(0, 1),
        do.arrive(),
        do.fold(), do.clean(), do.read(region=AWAY)),
    "a_pack_again_elsewhere_against_a_clean": (
        *PACK_OF_TWO, do.add(0, 1, region=AWAY), do.read()),
    "a_pack_again_with_one_more_against_a_clean_and_a_fold": (
        *PACK_OF_TWO, do.asks(2, old=100), do.add(0, 1, 2), do.fold()),
}
SERVED_CASTS: Casts = {
    "a_late_change_is_named_while_a_fold_is_under_way": (
        do.delta(2, old=2_000), do.folded(), do.delta(1), do.asks(0, old=1_050, stray=True),
        do.fold(), do.named(0)),
    "a_message_of_a_late_change_is_stopped_and_goes_on": (
        do.delta(2, old=2_000), do.folded(), do.asks(0, old=2_050, stray=True), do.named(0),
        do.read()),
    "a_late_change_is_named_where_one_was_and_beside_a_settle": (
        do.delta(2, old=2_000), do.folded(), do.delta(1, old=2_020, stray=True), do.warmed(1),
        do.asks(0, old=2_010, stray=True), do.settle(), do.named(0)),
    "a_message_of_a_late_change_is_served_twice_beside_a_settle": (
        do.delta(2, old=2_000), do.folded(), do.delta(0, old=2_020, stray=True), do.warmed(0),
        do.settle(), do.named(0)),
    "a_message_of_a_late_change_is_served_three_times_beside_a_settle": (
        do.delta(2, old=2_000), do.folded(), do.delta(0, old=2_020, stray=True), do.warmed(0),
        do.warmed(0), do.settle(), do.named(0)),
    "a_late_change_is_named_below_the_cover_of_the_last_one": (
        do.delta(2, old=3_000), do.folded(), do.delta(3, old=1_900), do.folded(),
        do.delta(1, old=2_000, stray=True), do.warmed(1),
        do.asks(0, old=3_010, stray=True), do.named(0)),
    "a_late_change_is_named_after_a_rebuild_of_its_lane": (
        do.delta(2, old=2_000), do.folded(),
        do.delta(3, old=1_950), do.delta(4, old=1_900), do.half(3, 4, version=2),
        do.delta(5, old=1_800), do.folded(), do.warmed(3), do.rebuilt(),
        do.asks(1, old=301_930 , stray=True), do.named(1)),
}
THRESHOLD_CASTS: Casts = {
    "a_stray_is_settled_beside_an_evaluation": (
        do.told_of(Threshold(above=16)), do.delta(2, old=2_000), do.folded(),
        do.delta(0, old=2_500, stray=True),
        do.evaluation(), do.settle()),
    "an_evaluation_while_a_change_comes": (  # to below: what the first one read holds no more
        do.told_of(Threshold(below=5)), *EVALUATIONS),
    "an_evaluation_while_a_change_comes_that_crosses": (
        do.told_of(Threshold(above=4)), *EVALUATIONS),
    "an_evaluation_and_a_change_whose_updates_are_sent_twice": (
        do.having(resends=True), do.told_of(Threshold(below=5)), *EVALUATIONS),
}
NAIVE_CASTS: Casts = {
    "a_read_while_the_merge_becomes_visible": (
        do.delta(0), do.arrive(), do.merge(), do.read()),
    "a_read_elsewhere_while_the_merge_replicates": (
        do.delta(0), do.arrive(), do.merged(), do.read(region=AWAY)),
    "a_retry_after_the_merge": (
        do.delta(0), do.arrive(), do.merge(), do.add(0, name="the same add again")),
    "two_regions_merge": (
        do.delta(0), do.arrive(), do.asks(1, old=900),
        do.add(1, region=AWAY, name="add through us-east-1"),
        do.merge(), do.merge("merge elsewhere", AWAY, cut=True)),
}
