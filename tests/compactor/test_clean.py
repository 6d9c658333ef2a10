"""The program `clean`: two visits, every Region, and only what is listed with the same change."""

from collections.abc import Callable
from typing import Any

import pytest

from compactor.clean import AHEAD_MAX_MS, clean
from compactor.report import Tally
from compactor.settle import settle
from ledger import items, tokens
from ledger.entries import TOKEN_BYTES
from ledger.errors import DamagedItem
from ledger.lane.add import add
from ledger.requests import At, DeleteMany, Get, Instant, Now, Pause, Put, Query, Request
from ledger.values import CleanNote, Delta
from tests.world import KEEP_MS, LANE, NOW_MS, A, B, Region, compactor, delta, refused, token, two_regions, value

CHECKPOINT, NOTE = Get(items.checkpoint_key(LANE), True), Get(items.note_key(LANE), True)


def folded(page_size: int = 1_000) -> tuple[Region, Region]:
    """Deltas 1 and 2 folded in version 1, in both Regions, not noted yet."""
    home, away = two_regions(page_size=page_size)
    home.put(delta(1), delta(2))
    compactor(home, away, clean=False).compact(LANE.counter)
    home.copy_to(away)
    home.asked.clear()
    return home, away


def visit(home: Region) -> Tally:
    tally = Tally()
    home.run(clean(LANE, tally, (A, B), keep_ms=KEEP_MS, units_per_s=500))
    return tally


def noted(page_size: int = 1_000) -> tuple[Region, Region]:
    """The same, and noted in both Regions long enough ago to be deleted."""
    home, away = folded(page_size)
    visit(home)
    home.now_ms += KEEP_MS
    home.asked.clear()
    return home, away


def note(home: Region) -> CleanNote | None:
    item = home.items.get(items.note_key(LANE))
    return None if item is None else items.note_of(LANE, item)


def deltas(home: Region) -> list[str]:
    return sorted(key.sk for key in home.items if key.pk == items.delta_pk(LANE))


def test_the_first_visit_asks_home_then_every_other_region_then_the_clock_then_notes() -> None:
    home, away = folded()
    away.asked.clear()
    visit(home)
    assert home.asked == [
        CHECKPOINT,
        NOTE,
        At(B, Get(items.checkpoint_key(LANE))),
        Now(),
        Put(items.note_item(CleanNote(LANE, 1, NOW_MS))),
    ]
    assert away.asked == [Get(items.checkpoint_key(LANE), True)]
    assert deltas(home) == [token(1), token(2)]


def test_the_time_noted_is_after_the_last_region_answered() -> None:
    home, _ = folded()
    program = clean(LANE, Tally(), (A, B), keep_ms=KEEP_MS, units_per_s=500)
    request = next(program)
    while not isinstance(request, Now):
        answer = home.answer(request)
        home.now_ms += 1_000  # every answer takes a second
        request = program.send(answer)
    put = program.send(Instant(home.now_ms, home.now_ms))
    assert put == Put(items.note_item(CleanNote(LANE, 1, NOW_MS + 3_000)))


def test_a_later_visit_looks_up_what_is_listed_cheaply_and_deletes_it() -> None:
    home, _ = noted()
    assert visit(home).cleaned == 2
    assert home.asked == [
        CHECKPOINT,
        NOTE,
        Now(),
        Query(items.delta_pk(LANE), None, f"{token(2)}$", None, False),
        Query(items.fold_pk(LANE), f"segment#{token(1)}", "segment$", 1, False),
        DeleteMany((items.delta_item(delta(1)), items.delta_item(delta(2)))),
    ]
    assert deltas(home) == []
    assert value(home) == {1, 2}


@pytest.mark.parametrize("age_ms", [0, 1, KEEP_MS - 1, -1, -AHEAD_MAX_MS])
def test_a_note_younger_than_keep_deletes_nothing_and_is_not_renewed(age_ms: int) -> None:
    home, away = folded()
    visit(home)
    home.put(delta(3))
    compactor(home, away, clean=False).compact(LANE.counter)
    home.copy_to(away)
    home.now_ms += age_ms
    assert visit(home) == Tally()
    assert deltas(home) == [token(1), token(2), token(3)]
    assert note(home) == CleanNote(LANE, 1, NOW_MS)


@pytest.mark.parametrize("ahead_ms", [AHEAD_MAX_MS + 1, 365 * 86_400_000])
def test_a_note_from_the_future_deletes_nothing_and_is_renewed_for_now(ahead_ms: int) -> None:
    home, away = folded()
    home.now_ms += ahead_ms
    visit(home)  # by a clock that is ahead
    home.now_ms = NOW_MS
    assert visit(home) == Tally()
    assert (note(home), deltas(home)) == (CleanNote(LANE, 1, NOW_MS), [token(1), token(2)])
    home.now_ms += KEEP_MS
    assert visit(home).cleaned == 2
    away.down = True
    home.now_ms += ahead_ms
    home.store([items.note_item(CleanNote(LANE, 1, home.now_ms + ahead_ms))])
    assert visit(home).postponed_by == [B]  # it is asked anew what every Region has reached


def many(number: int, *, page_size: int = 1_000) -> Region:
    """So many deltas, folded and noted, and old enough to be deleted."""
    home, away = two_regions(page_size=page_size)
    home.now_ms += 10_000_000
    home.store(items.delta_item(Delta(LANE, token(n), 1)) for n in range(number))
    compactor(home, away, clean=False).compact(LANE.counter)
    home.copy_to(away)
    visit(home)
    home.now_ms += KEEP_MS
    return home


class Metered(Region):
    """Each request takes `request_ms` of the steady clock, and a pause what it asks for."""

    request_ms = 10

    def answer(self, request: Request, /) -> Any:
        self.steady_ms += request.ms if isinstance(request, Pause) else self.request_ms
        return super().answer(request)


def timed(home: Region, units_per_s: int, request_ms: int = 10) -> tuple[Tally, Metered]:
    metered = Metered(page_size=home.page_size)
    metered.request_ms = request_ms
    metered.store(home.items.values())
    metered.now_ms, metered.peers = home.now_ms, {B: home}
    metered.run(clean(LANE, tally := Tally(), (A, B), keep_ms=KEEP_MS, units_per_s=units_per_s))
    return tally, metered


@pytest.mark.parametrize("units_per_s", [1, 40, 100, 140, 500, 2_000])
@pytest.mark.parametrize("page_size", [7, 1_000])
def test_deletes_are_paced_and_none_waits_after_the_last(units_per_s: int, page_size: int) -> None:
    home = many(min(450, 50 * units_per_s), page_size=page_size)
    tally, metered = timed(home, units_per_s)
    assert (tally.cleaned, tally.uncleaned) == (min(450, 50 * units_per_s), False)
    deleted, begun_ms, since = 0, None, Metered(page_size=page_size)
    since.steady_ms = metered.steady_ms = home.steady_ms
    for request in metered.asked:
        if isinstance(request, Now | Put):
            continue
        since.steady_ms += request.ms if isinstance(request, Pause) else metered.request_ms
        if isinstance(request, DeleteMany):
            begun_ms = since.steady_ms if begun_ms is None else begun_ms
            passed_ms = since.steady_ms - begun_ms + 40  # what came before the first: four requests
            assert deleted <= units_per_s * (passed_ms + 20) / 1_000
            assert len(request.items) <= min(100, units_per_s)
            deleted += len(request.items)
    pauses = [request.ms for request in metered.asked if isinstance(request, Pause)]
    assert {*map(type, pauses)} <= {int}
    assert 0 not in pauses
    last = next(request for request in reversed(metered.asked) if isinstance(request, DeleteMany | Pause))
    assert isinstance(last, DeleteMany)


def test_a_clean_ends_after_a_minute_and_the_next_visit_goes_on_without_a_new_note() -> None:
    home = many(200)
    before = note(home)
    tally, metered = timed(home, 2)  # 120 in a minute
    assert (tally.cleaned, tally.uncleaned, tally.postponed_by) == (122, True, [])
    assert (len(deltas(metered)), note(metered)) == (78, before)
    again, metered = timed(metered, 2)
    assert (again.cleaned, again.uncleaned, deltas(metered)) == (78, False, [])
    slow, _ = timed(many(200), 500, request_ms=20_001)  # a minute is over with the first hundred
    assert (slow.cleaned, slow.uncleaned) == (100, True)


def test_a_delta_that_is_put_with_another_change_just_before_its_delete_stays_and_is_told() -> None:
    home, _ = noted()
    program = clean(LANE, tally := Tally(), (A, B), keep_ms=KEEP_MS, units_per_s=500)
    request = next(program)
    while not isinstance(request, DeleteMany):
        request = program.send(home.now() if isinstance(request, Now) else home.answer(request))
    home.drop(items.delta_key(delta(1)))  # another compactor's clean, then the same token for another change
    home.run(add(Delta(LANE, token(1), 100)))
    with pytest.raises(StopIteration):
        program.send(home.answer(request))
    assert (tally.cleaned, tally.conflicts) == (1, [token(1)])
    assert deltas(home) == [token(1)]
    assert visit(home).conflicts == [token(1)]


def test_only_what_the_noted_version_or_an_older_one_lists_is_deleted() -> None:
    home, away = noted()
    home.put(delta(0), delta(3))
    compactor(home, away, clean=False).compact(LANE.counter)  # version 2 lists 3, version 3 lists 0
    home.copy_to(away)
    assert visit(home).cleaned == 2
    assert deltas(home) == [token(0), token(3)]
    assert note(home) == CleanNote(LANE, 3, NOW_MS + KEEP_MS)
    home.now_ms += KEEP_MS
    assert visit(home).cleaned == 2
    assert deltas(home) == []
    assert value(home) == {0, 1, 2, 3}


@pytest.mark.parametrize("number", [0, 5], ids=["a stray", "in the tail"])
def test_what_is_not_listed_is_kept(number: int) -> None:
    home, _ = noted()
    home.put(delta(number))
    assert visit(home).conflicts == []
    assert deltas(home) == [token(number)]


def met(home: Region) -> list[str]:
    """What a visit hands on."""
    found = home.run(clean(LANE, Tally(), (A, B), keep_ms=KEEP_MS, units_per_s=500))
    return [tokens.from_bytes(entry[:TOKEN_BYTES]) for entry in found]


@pytest.mark.parametrize("page_size", [1, 1_000])
def test_what_no_segment_lists_is_handed_on_and_not_what_a_newer_one_does(page_size: int) -> None:
    home, away = noted(page_size)
    home.put(delta(0), delta(3))
    compactor(home, away, clean=False).compact(LANE.counter)  # version 2 lists 3, version 3 lists 0
    other = Delta(LANE, token(0), 99)
    home.drop(items.delta_key(delta(0)))
    home.put(other, delta(1, at_ms=1_500), delta(4))
    assert met(home) == [delta(1, at_ms=1_500).token]
    assert deltas(home) == [token(0), delta(1, at_ms=1_500).token, token(3), token(4)]


def test_nothing_is_handed_on_where_nothing_is_looked_up() -> None:
    home, _ = folded()
    home.put(delta(0))
    assert met(home) == []
    home.now_ms += KEEP_MS - 1
    assert met(home) == []
    home.now_ms += 1
    assert met(home) == [token(0)]


def test_a_clean_that_time_ends_hands_on_what_it_met() -> None:
    home = many(200)
    home.put(delta(0, at_ms=1))
    metered = Metered()
    metered.store(home.items.values())
    metered.now_ms, metered.peers = home.now_ms, {B: home}
    found = metered.run(clean(LANE, tally := Tally(), (A, B), keep_ms=KEEP_MS, units_per_s=2))
    assert (tally.uncleaned, len(found)) == (True, 1)


def test_so_many_are_handed_on_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    home, _ = noted(page_size=2)
    home.put(*(delta(n, at_ms=n) for n in range(5)))
    monkeypatch.setattr("compactor.clean.STRAYS_MAX", 3)
    assert len(met(home)) == 3


@pytest.mark.parametrize("page_size", [1, 2, 3])
def test_all_pages_are_cleaned(page_size: int) -> None:
    home, away = two_regions(page_size=page_size)
    home.put(*map(delta, range(7)))
    compactor(home, away, fold_max=3).compact(LANE.counter)
    home.copy_to(away)
    visit(home)
    home.now_ms += KEEP_MS
    assert visit(home).cleaned == 7
    assert deltas(home) == []


def test_a_region_that_lags_postpones_the_note() -> None:
    home, away = folded()
    home.put(delta(3))
    compactor(home, away, clean=False).compact(LANE.counter)
    tally = visit(home)
    assert (tally.postponed_by, note(home)) == ([B], None)
    home.copy_to(away, items.checkpoint_key(LANE))
    assert visit(home).postponed_by == []
    assert note(home) == CleanNote(LANE, 2, NOW_MS)


@pytest.mark.parametrize(
    "trouble",
    [
        lambda away: away.drop(items.checkpoint_key(LANE)),
        lambda away: setattr(away, "down", True),
        lambda away: away.alter(items.checkpoint_key(LANE), version={"S": "1"}),
    ],
    ids=["it has no checkpoint yet", "it does not answer", "its checkpoint is damaged"],
)
def test_a_region_in_trouble_postpones_the_note_and_not_what_is_noted(trouble: Callable[[Region], None]) -> None:
    home, away = folded()
    trouble(away)
    assert visit(home).postponed_by == [B]
    assert note(home) is None
    home, away = noted()
    trouble(away)
    assert visit(home).cleaned == 2


def test_a_region_ahead_of_the_checkpoint_that_was_read_does_not_postpone() -> None:
    home, away = folded()
    away.alter(items.checkpoint_key(LANE), version={"N": "7"})
    visit(home)
    assert note(home) == CleanNote(LANE, 1, NOW_MS)


@pytest.mark.parametrize(("page_size", "listed_otherwise"), [(1_000, [1]), (1, [1, 2])])
def test_a_delta_listed_with_another_change_is_kept_and_told(page_size: int, listed_otherwise: list[int]) -> None:
    home, _ = noted(page_size)
    home.put(*(Delta(LANE, token(n), 99) for n in listed_otherwise))
    tally = visit(home)
    assert (tally.cleaned, tally.conflicts) == (2 - len(listed_otherwise), [token(n) for n in listed_otherwise])
    assert deltas(home) == tally.conflicts


def test_a_delta_that_comes_back_is_deleted_again_without_a_new_note() -> None:
    home, _ = noted()
    visit(home)
    before = note(home)
    home.put(delta(1))
    assert visit(home).cleaned == 1
    assert (deltas(home), note(home)) == ([], before)


def test_a_lane_that_was_never_folded_has_nothing_to_clean() -> None:
    home = Region()
    home.put(delta(1))
    assert visit(home) == Tally()
    assert home.asked == [CHECKPOINT]


def test_a_replica_node_that_lags_behind_the_segments_deletes_less_never_more() -> None:
    home, away = folded()
    home.put(delta(0))
    home.lag()
    home.run(settle(LANE, Tally(), token(2), fold_max=8))
    home.copy_to(away)
    visit(home)
    home.now_ms += KEEP_MS
    assert visit(home).cleaned == 2
    assert deltas(home) == [token(0)]


@pytest.mark.parametrize("damage", [{"version": {"S": "1"}}, {"version": {"N": "0"}}, {"noted_ms": {}}])
def test_a_damaged_note_is_named_and_nothing_is_deleted(damage: dict[str, dict[str, str]]) -> None:
    home, _ = noted()
    home.alter(items.note_key(LANE), **damage)
    with refused(home, DamagedItem) as raised:
        visit(home)
    assert (raised.value.pk, raised.value.sk) == (items.fold_pk(LANE), "clean")
    assert len(deltas(home)) == 2
