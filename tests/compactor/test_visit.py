"""The program `visit`: the order of its parts, and the settings that each gets."""

from typing import Any

from compactor.report import Report, Tally
from compactor.verify import verify
from compactor.visit import visit
from ledger.core import items
from ledger.core.errors import NotAllowed, OutcomeUnknown, Throttled, Unavailable
from ledger.core.requests import DeleteMany, Put, Query
from ledger.lane.add import pack_of
from tests.world import (
    KEEP_MS,
    LANE,
    LATENESS_MS,
    Region,
    compactor,
    delta,
    fail,
    folded,
    settings,
    token,
    two_regions,
    value,
)


def noted(page_size: int = 1_000) -> tuple[Region, Region]:
    """Deltas 1 and 9 folded, noted, and old enough to be deleted; delta 10 in the tail."""
    home, away = folded(1, 9, page_size=page_size)  # two ranges
    home.copy_to(away)
    compactor(home, away).compact(LANE.counter)
    home.now_ms += KEEP_MS
    home.put(delta(10))
    home.asked.clear()
    return home, away


def visited(
    home: Region, whole: bool = True, commits_max: int | None = None, **changed: Any
) -> Tally:
    home.run(
        visit(LANE, tally := Tally(), settings(**changed), whole=whole, commits_max=commits_max)
    )
    return tally


def test_a_visit_that_is_not_whole_settles_what_its_clean_met() -> None:
    for page_size in (1, 2, 1_000):
        home, away = noted(page_size)
        home.put(delta(5))
        home.store(
            items.pack_item(pack_of(list(map(delta, some)))) for some in ((2, 6), (5, 7), (0, 8))
        )
        tally = visited(home, whole=False)
        assert (tally.folded, tally.settled, tally.cleaned) == (1, 6, 2)
        assert value(home) == {0, 1, 2, 5, 6, 7, 8, 9, 10}
        assert home.run(verify(LANE)).differences == ()
        home.copy_to(away)
        visited(home, whole=False)  # the note is younger than `keep`: no clean
        home.put(*(delta(n, at_ms=n) for n in (3, 4)))
        home.asked.clear()
        assert visited(home, whole=False) == Tally()
        assert not [
            each
            for each in home.asked
            if isinstance(each, Query) and each.upto == items.tail_upto(token(10))
        ]
        assert (visited(home).settled, value(home)) == (2, {*range(11)})


def test_fold_and_settle_have_a_bound_of_commits_each() -> None:
    for whole in (True, False):
        home, _ = noted()
        home.put(*(delta(n + 2, at_ms=n) for n in range(4)), *map(delta, range(20, 25)))
        tally = visited(home, whole, fold_max=1, commits_max=2)
        assert (tally.folded, tally.settled, tally.unfolded, tally.unsettled) == (2, 2, True, True)


def test_a_whole_visit_may_look_back_so_far_and_no_further() -> None:
    home, _ = noted()
    home.put(delta(3, at_ms=400), delta(4, at_ms=401), delta(5, at_ms=402))
    home.run(visit(LANE, tally := Tally(), settings(clean=False), since=token(4, at_ms=401)))
    assert (tally.settled, value(home)) == (1, {1, 5, 9, 10})


def test_a_clean_that_fails_is_postponed_and_the_fold_goes_on() -> None:
    for failure in (
        Throttled("slow"),
        Unavailable("away"),
        OutcomeUnknown("lost"),
        NotAllowed("no"),
    ):

        def but_the_first(
            _: object, answer: tuple[object, ...], failure: Exception = failure
        ) -> object:
            return (*answer[:1], *[failure] * (len(answer) - 1))

        for each in (True, False):
            home, _ = noted()
            before = home.items[items.note_key(LANE)]
            if each:
                home.after(DeleteMany, but_the_first)
            else:
                home.before(DeleteMany, fail(failure))
            home.put(delta(0))
            tally = visited(home)
            assert (tally.folded, tally.settled, tally.cleaned) == (1, 1, 1 if each else 0)
            assert (tally.postponed_by, tally.uncleaned) == ([str(failure)], False)
            assert home.items[items.note_key(LANE)] == before  # not renewed
    home, away = two_regions()
    home.put(delta(1))
    visited(home)
    home.copy_to(away)
    home.before(Put, fail(Throttled("slow")))  # of the note
    home.put(delta(2))
    tally = visited(home)
    assert (tally.folded, tally.postponed_by, tally.uncleaned) == (1, ["slow"], False)


def test_a_watermark_ahead_of_the_clock_is_told() -> None:
    home, away = two_regions()
    home.now_ms += 86_400_000
    home.put(delta(1, at_ms=home.now_ms - LATENESS_MS))
    compactor(home, away).compact(LANE.counter)  # by a clock that was a day ahead
    home.now_ms -= 86_400_000
    home.put(delta(2))
    ahead_ms = 86_400_000 - LATENESS_MS
    report = compactor(home, away).compact(LANE.counter)
    assert (report.ahead, report.settled) == ({LANE: ahead_ms}, 1)
    assert Report.total([report, Report()]).ahead == {LANE: ahead_ms}
    home.now_ms += ahead_ms
    assert compactor(home, away).compact(LANE.counter).ahead == {}
