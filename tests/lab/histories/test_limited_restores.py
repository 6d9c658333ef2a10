"""Restores of limited counters: right after a rebuild, whatever came back and whatever did not."""

from collections import Counter

import pytest

from lab.histories import limited_restores
from lab.histories.limited_restores import play
from simulator.choices import Drawn, Replayed


def test_every_counter_that_is_restored_is_right_after_a_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_restores, "ONE_OF", 1)
    played = [play(Drawn(seed)) for seed in range(9, 17)]
    assert [each.violations for each in played] == [[]] * 8
    happened = sum((Counter(each.counts) for each in played), Counter[str]())
    seen = ("restored", "restored beyond", "tokens lost", "gates gone")
    assert min(happened[what] for what in seen) > 0


def test_a_seed_is_the_same_history_every_time_and_its_picks_are_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_restores, "ONE_OF", 1)
    first = Drawn(12)
    assert play(first) == play(Drawn(12)) == play(Replayed(first.picks))
    assert play(Drawn(12)).counts["restored"]
