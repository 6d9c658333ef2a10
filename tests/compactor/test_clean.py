"""The program `clean`: two visits, every Region, and only what is listed with the same change."""

import pytest

from compactor.clean import clean
from compactor.report import Tally
from ledger.core import items, tokens
from ledger.core.entries import TOKEN_BYTES
from ledger.core.requests import At, DeleteMany, Pause
from ledger.core.values import CleanNote, Delta
from ledger.lane.add import add
from tests.world import (
    KEEP_MS,
    LANE,
    NOW_MS,
    B,
    Region,
    compactor,
    delta,
    folded,
    settings,
    token,
    two_regions,
    value,
)


def whole(page_size: int = 1_000) -> tuple[Region, Region]:
    """Deltas 1 and 2 folded in version 1, in both Regions, not noted yet."""
    home, away = folded(1, 2, fold_max=8, page_size=page_size)
    home.copy_to(away)
    return home, away


def met(home: Region, tally: Tally, units_per_s: int = 500) -> list[str]:
    """What a visit hands on."""
    found = home.run(clean(LANE, tally, settings(clean_units_per_s=units_per_s)))
    return [tokens.from_bytes(entry[:TOKEN_BYTES]) for entry in found]


def visit(home: Region, units_per_s: int = 500) -> Tally:
    met(home, tally := Tally(), units_per_s)
    return tally


def noted(page_size: int = 1_000) -> tuple[Region, Region]:
    """The same, and noted in both Regions long enough ago to be deleted."""
    home, away = whole(page_size)
    visit(home)
    home.now_ms += KEEP_MS
    home.asked.clear()
    return home, away


def note(home: Region) -> CleanNote | None:
    item = home.items.get(items.note_key(LANE))
    return None if item is None else items.note_of(LANE, item)


def deltas(home: Region) -> list[str]:
    return sorted(key.sk for key in home.items if key.pk == items.delta_pk(LANE))


def test_what_it_costs() -> None:
    """It asks every other Region before it notes; a later visit looks up what is listed cheaply
    and deletes it.
    """
    home, away = whole()
    home.takes(1_000, At)
    away.asked.clear()
    visit(home)
    looks = ["get checkpoint strongly", "get clean strongly"]
    assert home.in_short == [*looks, f"get checkpoint strongly in {B}", "now", "put clean"]
    assert note(home) == CleanNote(LANE, 1, NOW_MS + 1_000)  # after the last Region answered
    assert away.in_short == ["get checkpoint strongly"]
    home, _ = noted()
    assert visit(home).cleaned == 2
    assert home.in_short == [
        *looks,
        "now",
        "query delta",
        "query segment 1",
        "deletemany delta delta",
    ]
    assert (deltas(home), value(home)) == ([], {1, 2})
    before = note(home)
    home.put(delta(1))  # it comes back, and goes again without a new note
    assert (visit(home).cleaned, deltas(home), note(home)) == (1, [], before)


def many(number: int, *, page_size: int = 1_000, request_ms: int = 10) -> Region:
    """So many deltas, folded and noted, and old enough to be deleted; a request takes time by
    the steady clock.
    """
    home, away = two_regions(page_size=page_size)
    home.now_ms += 10_000_000
    home.store(items.delta_item(Delta(LANE, token(n), 1)) for n in range(number))
    compactor(home, away, clean=False).compact(LANE.counter)
    home.copy_to(away)
    visit(home)
    home.now_ms += KEEP_MS

    def passes(request: object) -> None:
        home.steady_ms += int(request.ms) if isinstance(request, Pause) else request_ms

    home.before(object, passes)
    home.asked.clear()
    return home


def test_deletes_are_paced_and_none_waits_after_the_last() -> None:
    for units_per_s in (1, 40, 100, 140, 500, 2_000):
        number = min(450, 50 * units_per_s)
        for page_size in (7, 1_000):
            home = many(number, page_size=page_size)
            began_ms, deleted = home.steady_ms, list[tuple[int, int]]()

            def note_when(
                request: DeleteMany, home: Region = home, to: list[tuple[int, int]] = deleted
            ) -> None:
                to.append((home.steady_ms, len(request.items)))

            home.before(DeleteMany, note_when)
            tally = visit(home, units_per_s)
            assert (tally.cleaned, tally.uncleaned) == (number, False)
            before = 0
            for at_ms, size in deleted:
                assert before <= units_per_s * (at_ms - began_ms) / 1_000
                assert size <= min(100, units_per_s)
                before += size
            pauses = [request.ms for request in home.asked if isinstance(request, Pause)]
            assert all(type(pause) is int and pause > 0 for pause in pauses)
            last = next(
                request
                for request in reversed(home.asked)
                if isinstance(request, DeleteMany | Pause)
            )
            assert isinstance(last, DeleteMany)


def test_a_clean_ends_after_a_minute_and_goes_on_next_visit() -> None:
    home = many(200)
    home.put(delta(0, at_ms=1))
    before = note(home)
    assert met(home, tally := Tally(), 2) == [token(0, at_ms=1)]  # 120 in a minute
    assert (tally.cleaned, tally.uncleaned, tally.postponed_by) == (122, True, [])
    assert (len(deltas(home)), note(home)) == (79, before)
    tally = visit(home, 2)
    assert (tally.cleaned, tally.uncleaned, deltas(home)) == (78, False, [token(0, at_ms=1)])
    tally = visit(many(200, request_ms=20_001))  # a minute is over with the first hundred
    assert (tally.cleaned, tally.uncleaned) == (100, True)


def test_a_delta_that_was_put_over_before_its_delete_stays() -> None:
    home, _ = noted()

    def another(_: object) -> None:
        # another compactor's clean, then the same token for another change
        home.drop(items.delta_key(delta(1)))
        home.run(add(Delta(LANE, token(1), 100)))

    home.before(DeleteMany, another, times=1)
    tally = visit(home)
    assert (tally.cleaned, tally.conflicts) == (1, [token(1)])
    assert deltas(home) == [token(1)]
    assert visit(home).conflicts == [token(1)]


def test_so_many_are_handed_on_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    home, _ = noted(page_size=2)
    home.put(*(delta(n, at_ms=n) for n in range(5)))
    monkeypatch.setattr("compactor.clean.STRAYS_MAX", 3)
    assert len(met(home, Tally())) == 3
