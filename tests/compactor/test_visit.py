"""The program `visit`: the order of its parts, and the settings that each gets."""

from typing import Any

import pytest

from compactor.report import Report, Tally
from compactor.verify import verify
from compactor.visit import visit
from ledger import items, tokens
from ledger.errors import DamagedItem, LedgerError, NotAllowed, OutcomeUnknown, Throttled, Unavailable
from ledger.lane.add import pack_of
from ledger.requests import DeleteMany, Put, Query, Request, Transact
from ledger.values import Delta
from reader import Reader
from tests.world import KEEP_MS, LANE, LATENESS_MS, B, Region, compactor, delta, settings, token, two_regions, value


def noted() -> tuple[Region, Region]:
    """Delta 1 folded, noted, and old enough to be deleted; delta 2 in the tail."""
    home, away = two_regions()
    home.put(delta(1))
    compactor(home, away).compact(LANE.counter)
    home.copy_to(away)
    compactor(home, away).compact(LANE.counter)
    home.now_ms += KEEP_MS
    home.put(delta(2))
    home.asked.clear()
    return home, away


def test_clean_comes_before_fold_before_settle() -> None:
    home, away = noted()
    home.put(delta(0))  # a stray
    home.peers = {B: away}
    tally = Tally()
    home.run(visit(LANE, tally, settings()))
    written = [request for request in home.asked if isinstance(request, DeleteMany | Transact)]
    assert [type(request) for request in written] == [DeleteMany, Transact, Transact]
    segments = [request.writes[1].key.sk for request in written if isinstance(request, Transact)]
    assert segments == [f"segment#{token(2)}#0000000002", f"segment#{token(1)}#0000000003"]
    assert (tally.folded, tally.settled, tally.cleaned) == (1, 1, 1)
    assert value(home) == {0, 1, 2}


def test_a_lane_that_is_busy_in_two_regions_is_cleaned_and_its_visits_stay_small() -> None:
    home, away = two_regions()
    cleaned: list[int] = []
    for minute in range(120):
        home.store(
            items.delta_item(Delta(LANE, tokens.make(home.now_ms + n, bytes(9) + bytes([n])), 1)) for n in range(40)
        )
        home.now_ms += 60_000
        home.asked.clear()
        cleaned.append(compactor(home, away, fold_min=32).compact(LANE.counter).cleaned)
        home.copy_to(away)  # slower than a visit, and done by the next one
        deltas = sum(key.pk == items.delta_pk(LANE) for key in home.items)
        assert deltas <= 40 * (2 * KEEP_MS // 60_000 + 3), f"minute {minute}: {deltas} deltas"
    assert sum(cleaned) >= 40 * (120 - 2 * KEEP_MS // 60_000 - 3)
    assert Reader(settings(), table=home).read(LANE.counter).value == 120 * 40


def test_a_visit_that_is_not_whole_settles_what_its_clean_met_and_seeks_nothing() -> None:
    home, away = noted()
    home.put(delta(0))
    home.run(visit(LANE, tally := Tally(), settings(), whole=False))
    assert (tally.folded, tally.settled, tally.cleaned) == (1, 1, 1)
    assert value(home) == {0, 1, 2}
    home.copy_to(away)
    home.run(visit(LANE, Tally(), settings(), whole=False))  # the note is younger than `keep`: no clean
    home.put(*(delta(n, at_ms=n) for n in (3, 4)))
    home.asked.clear()
    home.run(visit(LANE, tally := Tally(), settings(), whole=False))
    assert (tally, value(home)) == (Tally(), {0, 1, 2})
    assert not [each for each in home.asked if isinstance(each, Query) and each.upto == items.tail_upto(token(2))]
    home.run(visit(LANE, tally := Tally(), settings()))
    assert (tally.settled, value(home)) == (2, {0, 1, 2, 3, 4})


@pytest.mark.parametrize("page_size", [1, 2, 1_000])
def test_what_the_clean_met_on_several_pages_is_settled_once_and_in_its_place(page_size: int) -> None:
    home, away = two_regions(page_size=page_size)
    home.put(delta(3), delta(9))
    compactor(home, away, fold_max=1).compact(LANE.counter)  # two ranges
    home.copy_to(away)
    compactor(home, away).compact(LANE.counter)
    home.now_ms += KEEP_MS
    home.put(delta(5))
    home.store(items.pack_item(pack_of(list(map(delta, some)))) for some in ((2, 6), (5, 7), (1, 8)))
    home.run(visit(LANE, tally := Tally(), settings(), whole=False))
    assert (tally.settled, value(home)) == (6, {1, 2, 3, 5, 6, 7, 8, 9})
    assert home.run(verify(LANE)).differences == ()


def test_the_bound_of_commits_holds_for_what_the_clean_met() -> None:
    home, _ = noted()
    home.put(*(delta(n + 3, at_ms=n) for n in range(4)))
    home.run(visit(LANE, tally := Tally(), settings(fold_max=1), whole=False, commits_max=2))
    assert (tally.folded, tally.settled, tally.unsettled) == (1, 2, True)


def test_a_whole_visit_may_look_back_so_far_and_no_further() -> None:
    home, _ = noted()
    home.put(delta(3, at_ms=400), delta(4, at_ms=401), delta(5, at_ms=402))
    home.run(visit(LANE, tally := Tally(), settings(clean=False), since=token(4, at_ms=401)))
    assert (tally.settled, value(home)) == (1, {1, 2, 5})


FAILURES = [Throttled("slow"), Unavailable("away"), OutcomeUnknown("lost"), NotAllowed("no")]


class Refusing(Region):
    """Fails one kind of request; lists of deletes fail item by item where `each` says so."""

    def __init__(self, kind: type, failure: LedgerError, *, each: bool = False) -> None:
        super().__init__()
        self.kind, self.failure, self.each = kind, failure, each

    def answer(self, request: Request, /) -> Any:
        if not isinstance(request, self.kind) or (isinstance(request, Put) and request.item["sk"]["S"] != "clean"):
            return super().answer(request)
        if not self.each:
            raise self.failure
        assert isinstance(request, DeleteMany)
        done: tuple[Any, ...] = super().answer(DeleteMany(request.items[:1]))
        return (*done, *[self.failure] * (len(request.items) - 1))


@pytest.mark.parametrize("failure", FAILURES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("each", [True, False])
def test_a_clean_whose_deletes_fail_is_postponed_and_the_fold_goes_on(failure: LedgerError, each: bool) -> None:
    home = Refusing(DeleteMany, failure, each=each)
    home.peers = {B: home}
    home.put(delta(1), delta(2))
    home.run(visit(LANE, Tally(), settings()))
    home.run(visit(LANE, Tally(), settings()))
    home.now_ms += KEEP_MS
    home.put(delta(3), delta(0))
    home.run(visit(LANE, tally := Tally(), settings()))
    assert (tally.folded, tally.settled, tally.cleaned) == (1, 1, 1 if each else 0)
    assert (tally.postponed_by, tally.uncleaned) == ([str(failure)], False)
    assert items.note_of(LANE, home.items[items.note_key(LANE)]).noted_ms == home.now_ms - KEEP_MS  # not renewed
    assert value(home) == {0, 1, 2, 3}


def test_a_clean_whose_note_fails_is_postponed_and_the_fold_goes_on() -> None:
    home = Refusing(Put, Throttled("slow"))
    home.peers = {B: home}
    home.put(delta(1))
    home.run(visit(LANE, Tally(), settings()))
    home.put(delta(2))
    home.run(visit(LANE, tally := Tally(), settings()))
    assert (tally.folded, tally.postponed_by, tally.uncleaned) == (1, ["slow"], False)


def test_a_damaged_note_is_raised_after_the_lane_was_folded_and_settled() -> None:
    home, _ = noted()
    home.alter(items.note_key(LANE), version={"S": "1"})
    home.put(delta(0))
    with pytest.raises(DamagedItem) as raised:
        home.run(visit(LANE, tally := Tally(), settings()))
    assert raised.value.sk == "clean"
    assert (tally.folded, tally.settled, tally.cleaned, tally.postponed_by) == (1, 1, 0, [raised.value.args[0]])


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
