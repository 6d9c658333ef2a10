"""The shipped programs in every order of their steps; in every state a crash, a read, and a fresh compactor."""

from collections.abc import Callable

import pytest

from compactor.clean import clean
from compactor.fold import fold
from compactor.rebuild import rebuild
from compactor.report import Tally
from compactor.settle import settle
from compactor.visit import visit
from ledger import items
from ledger.add import add
from ledger.errors import GaveUp
from ledger.requests import Program
from ledger.values import Delta
from reader.read import read
from tests.support import (
    KEEP_MS,
    LANE,
    LATENESS_MS,
    READ_MS,
    A,
    B,
    Process,
    Region,
    Scene,
    compact_for_long,
    compactor,
    delta,
    every_order,
    settings,
    steps,
    summed,
    token,
    two_regions,
    value,
)


def folding(
    home: Region, *, fold_max: int = 8, first: bool = True, commits_max: int = 1, time_goes: bool = False
) -> Process[None]:
    program = fold(
        LANE, Tally(), allowed_lateness_ms=LATENESS_MS, fold_min=1, fold_max=fold_max, commits_max=commits_max
    )
    return giving_up(home, program, first, time_goes)


def settling(home: Region, *, watermark: int = 9, first: bool = True) -> Process[None]:
    return giving_up(home, settle(LANE, Tally(), token(watermark), fold_max=8), first)


def cleaning(home: Region) -> Process[None]:
    return giving_up(home, clean(LANE, Tally(), (A, B), keep_ms=KEEP_MS, units_per_s=500), True)


def adding(table: Region, added: Delta) -> Process[None]:
    yield from steps(add(added), table)


def giving_up(home: Region, program: Program[object], first: bool, time_goes: bool = False) -> Process[None]:
    try:
        yield from steps(program, home, checkpoint_first=first, time_goes=time_goes)
    except GaveUp:
        yield "gave up"


def reading(table: Region, least: Callable[[], set[int]], *, consistent: bool = True) -> Process[None]:
    """A read that must hold all that was acknowledged before it began."""
    known = set(least())
    yield tuple(known)
    _, [lane_sum] = yield from steps(read([LANE], consistent=consistent, read_time_max_ms=READ_MS), table)
    held = summed(lane_sum.value)
    assert held >= known, f"the read misses {known - held}"
    assert lane_sum.count == len(held)


def in_the_end(home: Region, away: Region, sent: set[int], at_once: set[int], visits: int = 1) -> None:
    """Whatever stopped here: a read is a true sum that holds `at_once`, and after compaction each delta counts once."""
    assert at_once <= value(home) <= sent
    compact_for_long(home, away, visits)
    assert value(home) == value(away, B) == sent


landing = pytest.mark.parametrize("first", [True, False], ids=["checkpoint-lands-first", "segment-lands-first"])


@landing
def test_a_read_sees_every_delta_whatever_two_folds_do(first: bool) -> None:
    def make() -> Scene:
        home, away = two_regions(page_size=2)
        home.put(*map(delta, (1, 2, 3)))
        everything = {1, 2, 3}
        processes = [
            reading(home, lambda: everything),
            folding(home, fold_max=2, first=first, commits_max=2),
        ]
        return [home], processes, lambda: in_the_end(home, away, everything, everything)

    assert every_order(make) > 50


def test_a_delta_added_in_time_is_in_every_read_that_begins_after_its_acknowledgement() -> None:
    def make() -> Scene:
        home, away = two_regions()
        home.put(delta(1))
        new = delta(2, at_ms=home.now_ms - LATENESS_MS + 1)

        def acknowledged() -> set[int]:
            return {1, 2} if any(key.sk == new.token for key in home.items) else {1}

        processes = [adding(home, new), folding(home, commits_max=2), reading(home, acknowledged)]
        return [home], processes, lambda: in_the_end(home, away, {1} | acknowledged(), acknowledged())

    assert every_order(make) > 50


def test_a_delta_on_its_way_while_time_passes_is_not_passed_by_the_watermark() -> None:
    """The cutoff is fixed before the Query: a delta that arrives in time between the two stays above it."""

    def make() -> Scene:
        home, away = two_regions()
        late, later = delta(2, at_ms=home.now_ms - 1), delta(3, at_ms=home.now_ms)
        home.put(delta(1), later)

        def adding_in_time() -> Process[None]:
            yield from steps(add(late), home)
            home.now_ms += LATENESS_MS
            yield "late"

        def acknowledged() -> set[int]:
            return {1, 2, 3} if any(key.sk == late.token for key in home.items) else {1, 3}

        processes = [adding_in_time(), folding(home, time_goes=True)]
        return [home], processes, lambda: in_the_end(home, away, acknowledged(), acknowledged())

    assert every_order(make) > 50


@landing
def test_two_compactors_that_fold_at_once_count_every_delta_once(first: bool) -> None:
    def make() -> Scene:
        home, away = two_regions()
        home.put(delta(1), delta(2))
        processes = [folding(home, fold_max=2, first=first), folding(home, fold_max=1, first=first)]
        return [home], processes, lambda: in_the_end(home, away, {1, 2}, {1, 2})

    assert every_order(make) > 200


@landing
def test_two_compactors_that_settle_at_once_count_every_stray_once(first: bool) -> None:
    def make() -> Scene:
        home, away = two_regions()
        home.put(delta(2))
        compactor(home, away).compact(LANE.counter)
        home.put(delta(1))
        processes = [settling(home, watermark=2, first=first) for _ in range(2)]
        return [home], processes, lambda: in_the_end(home, away, {1, 2}, {2})

    assert every_order(make) > 100


@landing
def test_a_fold_and_a_settle_at_once_count_every_delta_once(first: bool) -> None:
    def make() -> Scene:
        home, away = two_regions()
        home.put(delta(2))
        compactor(home, away).compact(LANE.counter)
        home.put(delta(1), delta(3))
        processes = [folding(home, first=first), settling(home, watermark=2, first=first)]
        return [home], processes, lambda: in_the_end(home, away, {1, 2, 3}, {2, 3})

    assert every_order(make) > 200


def test_a_settle_whose_cheap_reads_lag_counts_nothing_twice() -> None:
    def make() -> Scene:
        home, away = two_regions()
        home.put(delta(2))
        compactor(home, away).compact(LANE.counter)
        home.put(delta(1))
        home.lag()
        processes = [settling(home, watermark=2) for _ in range(2)]
        return [home], processes, lambda: in_the_end(home, away, {1, 2}, {2})

    assert every_order(make) > 100


def _noted_long_ago(home: Region, away: Region) -> None:
    """Deltas 2 and 3 are folded, everywhere, and noted; they may be deleted."""
    home.put(delta(2), delta(3))
    compactor(home, away).compact(LANE.counter)
    home.copy_to(away)
    compactor(home, away).compact(LANE.counter)
    home.copy_to(away)
    home.now_ms += KEEP_MS
    away.now_ms += KEEP_MS


def test_a_settle_and_a_clean_at_once_lose_and_double_nothing() -> None:
    def make() -> Scene:
        home, away = two_regions()
        _noted_long_ago(home, away)
        home.put(delta(1))
        processes = [settling(home, watermark=3), cleaning(home), adding(home, delta(3))]
        return [home], processes, lambda: in_the_end(home, away, {1, 2, 3}, {2, 3}, visits=2)

    assert every_order(make) > 300


def test_an_add_retried_through_either_region_among_two_cleans_counts_once() -> None:
    def make() -> Scene:
        home, away = two_regions()
        _noted_long_ago(home, away)
        away.drop(*(key for key in away.items if key.pk.startswith("delta#")))

        def retrying() -> Process[None]:
            yield from adding(home, delta(2))
            yield from adding(away, delta(3))

        processes = [cleaning(home), cleaning(home), retrying()]
        return [home, away], processes, lambda: in_the_end(home, away, {2, 3}, {2, 3}, visits=2)

    assert every_order(make) > 300


def test_a_stray_that_is_settled_while_an_older_version_is_cleaned_stays_till_every_region_counts_it() -> None:
    def make() -> Scene:
        home, away = two_regions()
        _noted_long_ago(home, away)
        home.put(delta(1))

        def cleaning_twice() -> Process[None]:
            yield from cleaning(home)
            home.now_ms += KEEP_MS
            yield from cleaning(home)

        def check() -> None:
            assert items.delta_key(delta(1)) in home.items
            in_the_end(home, away, {1, 2, 3}, {2, 3}, visits=2)

        return [home], [settling(home, watermark=3), cleaning_twice()], check

    assert every_order(make) > 300


@pytest.mark.parametrize("visits_every_ms", [KEEP_MS, 1])
def test_a_read_that_outlasts_the_clean_starts_again_and_any_other_finds_its_deltas(visits_every_ms: int) -> None:
    """The read holds an old checkpoint while its deltas are folded, noted and, `keep` later, deleted."""

    def make() -> Scene:
        home, away = two_regions()
        home.put(*map(delta, (1, 2)))

        def compacting_for_long() -> Process[None]:
            for _ in range(3):
                compactor(home, away).compact(LANE.counter)
                home.copy_to(away)
                yield "compacted"
                home.now_ms += visits_every_ms
                home.steady_ms += visits_every_ms
                yield "waited"

        processes = [compacting_for_long(), reading(home, lambda: {1, 2})]
        return [home], processes, lambda: in_the_end(home, away, {1, 2}, {1, 2})

    assert every_order(make) > 20


def test_a_read_among_a_whole_visit_and_a_retried_add_sees_every_delta() -> None:
    def make() -> Scene:
        home, away = two_regions()
        _noted_long_ago(home, away)
        home.put(delta(1), delta(4))

        visiting = giving_up(home, visit(LANE, Tally(), settings(fold_min=1)), True)
        processes = [visiting, adding(home, delta(2)), reading(home, lambda: {2, 3, 4})]
        return [home], processes, lambda: in_the_end(home, away, {1, 2, 3, 4}, {2, 3, 4}, visits=2)

    assert every_order(make) > 500


@landing
def test_a_rebuild_while_the_first_commit_lands_makes_no_read_wrong_and_can_be_mended(first: bool) -> None:
    """An operator should not, but may: nothing is lost, and a rebuild with nobody else there puts it right."""

    def make() -> Scene:
        home, away = two_regions()
        home.put(delta(1), delta(2))

        def check() -> None:
            assert value(home) == {1, 2}
            home.store(home.landing)
            home.landing.clear()
            compactor(home, away).rebuild(LANE.counter)
            in_the_end(home, away, {1, 2}, {1, 2})

        return [home], [folding(home, first=first), giving_up(home, rebuild(LANE), first)], check

    assert every_order(make) > 30


@landing
def test_a_rebuild_while_a_settle_commits_loses_and_doubles_nothing(first: bool) -> None:
    """Also when the compactor was stopped before, its last commit may still be landing."""

    def make() -> Scene:
        home, away = two_regions()
        home.put(delta(2))
        compactor(home, away).compact(LANE.counter)
        home.put(delta(1))
        processes = [settling(home, watermark=2, first=first), giving_up(home, rebuild(LANE), first)]
        return [home], processes, lambda: in_the_end(home, away, {1, 2}, {2})

    assert every_order(make) > 100
