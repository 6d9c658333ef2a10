"""Two Regions: items that arrive in any order, fail-over, lag, and deltas that come back."""

from collections.abc import Callable

import pytest

from ledger import Ledger, items
from tests.world import (
    COUNTER,
    KEEP_MS,
    LANE,
    LATENESS_MS,
    A,
    B,
    Region,
    compact_for_long,
    compactor,
    delta,
    settings,
    token,
    two_regions,
    value,
)


def test_a_fail_over_retry_counts_once_whichever_region_had_it_first() -> None:
    home, away = two_regions()
    at_home, failed_over = (Ledger(settings(r), table=t, clock=lambda: 0) for r, t in ((A, home), (B, away)))
    lost = at_home.prepare(COUNTER, 4)
    assert failed_over.apply(lost).outcome == "recorded"
    assert at_home.apply(lost).outcome == "recorded"
    assert value(home) == value(away, B) == {1}
    compact_for_long(home, away, 3)
    assert value(home) == value(away, B) == {1}
    assert not any(key.pk.startswith("delta#us-east-1") for key in (*home.items, *away.items))


def test_a_change_that_only_the_other_region_acknowledged_counts_at_home_once_it_arrives() -> None:
    home, away = two_regions()
    home.put(delta(2))
    compact_for_long(home, away)
    away.put(delta(1))  # acknowledged there; at home it will be a stray
    assert value(home) == value(away, B) == {2}
    away.copy_to(home, items.delta_key(delta(1)))
    assert compactor(home, away).compact(COUNTER).settled == 1
    home.copy_to(away)
    assert value(home) == value(away, B) == {1, 2}


@pytest.mark.parametrize(
    "trouble",
    [lambda away: away.drop(items.checkpoint_key(LANE)), lambda away: setattr(away, "down", True)],
    ids=["it lags", "it is down"],
)
def test_a_region_in_trouble_postpones_the_clean_and_nothing_else(trouble: Callable[[Region], None]) -> None:
    home, away = two_regions()
    home.put(delta(2))
    compactor(home, away, clean=False).compact(COUNTER)
    home.copy_to(away)
    trouble(away)
    for n in range(3):
        home.put(delta(n * 2 + 4), delta(n * 2 + 1))
        home.now_ms += KEEP_MS
        report = compactor(home, away).compact(COUNTER)
        assert (report.folded, report.settled, report.cleaned, report.postponed) == (1, 1, 0, 1)
    assert value(home) == {1, 2, 3, 4, 5, 6, 8}
    away.down = False
    reports = compact_for_long(home, away, 3)
    assert reports.cleaned == 7
    assert value(home) == value(away, B) == {1, 2, 3, 4, 5, 6, 8}


def test_a_region_cut_off_for_a_day_reads_true_sums_before_and_after_it_comes_back() -> None:
    home, away = two_regions()
    home.put(delta(1), delta(2))
    home.copy_to(away)
    for _ in range(24):
        home.now_ms += 3_600_000
        away.now_ms += 3_600_000
        compactor(home, away).compact(COUNTER)
        assert value(away, B) == {1, 2}
    assert items.delta_key(delta(1)) in home.items
    home.copy_to(away)
    compact_for_long(home, away, 2)
    assert value(home) == value(away, B) == {1, 2}
    assert items.delta_key(delta(1)) not in home.items


def test_a_delta_that_comes_back_a_year_later_counts_no_second_time_and_is_cleaned_again() -> None:
    home, away = two_regions()
    home.put(delta(1), delta(2))
    assert compact_for_long(home, away, 3).cleaned == 2
    for region in (home, away):
        region.now_ms += 365 * 24 * 3_600_000
    away.drop(items.delta_key(delta(1)))
    away.put(delta(1))
    assert value(away, B) == {1, 2}
    report = compact_for_long(home, away)
    assert (report.settled, report.cleaned) == (0, 2)  # delta 2 never left Region B
    assert value(home) == value(away, B) == {1, 2}


def test_a_retry_with_another_change_after_the_clean_is_kept_and_told_and_does_not_count() -> None:
    home, away = two_regions()
    home.put(delta(1), delta(2))
    compact_for_long(home, away, 3)
    home.store([{"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": token(1)}, "change": {"N": "99"}}])
    report = compactor(home, away).compact(COUNTER)
    assert report.conflicts == (token(1),)
    assert items.delta_key(delta(1)) in home.items
    assert value(home) == {1, 2}


def test_each_region_compacts_its_own_lanes_and_the_values_agree() -> None:
    home, away = two_regions()
    ledgers = {A: Ledger(settings(A), table=home, clock=lambda: 0), B: Ledger(settings(B), table=away, clock=lambda: 0)}
    for n, region in enumerate((A, B, A, B)):
        ledgers[region].add(COUNTER, 4**n)
    for n, region in enumerate((A, B, A, B), start=4):
        ledgers["us-east-1" if region == A else A].add(COUNTER, 4**n, region=region)
    for _ in range(2):
        home.copy_to(away)
        away.copy_to(home)
        for mine, other, region in ((home, away, A), (away, home, B)):
            compactor(mine, other, region=region).run()
            mine.now_ms += LATENESS_MS
    home.copy_to(away, *(key for key in home.items if key.pk.startswith(f"fold#{A}")))
    away.copy_to(home, *(key for key in away.items if key.pk.startswith(f"fold#{B}")))
    assert value(home) == value(away, B) == set(range(8))
