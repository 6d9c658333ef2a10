"""Histories of limited counters: right, repeatable, and wrong as soon as a mistake is planted."""

from collections import Counter

import pytest

from lab.histories.limited import play
from lab.histories.limited_mistakes import LIMITED
from lab.histories.planting import ROOT, Mistake, catch
from simulator.choices import Drawn, Replayed
from simulator.trace import Trace

SOON = (
    "a filed hold ends whatever was filed since",
    "a limit is set whoever else sets it",
    "a tighter limit takes nothing",
    "given without having it",
    "low is not looked at",
    "rebuilt: low stays",
    "rebuilt: the version stays",
    "refused though a Region was not asked",
    "what lies far ahead is filed",
    "the note is deleted before the hold has ended",
    "what is filed is removed before it is put",
)


def test_fifty_histories_are_right_and_everything_happens_in_them() -> None:
    played = [play(Drawn(seed)) for seed in range(1_000_000, 1_000_050)]
    assert [each.violations for each in played] == [[]] * 50
    happened = sum((Counter(each.counts) for each in played), Counter[str]())
    assert min(happened[what] for what in ("counted", "held", "refused", "released", "expired")) > 5
    assert happened["refused from memory"] > 0


def test_a_seed_is_the_same_history_every_time_and_its_picks_are_too() -> None:
    first = Drawn(3)
    assert play(first) == play(Drawn(3)) == play(Replayed(first.picks))


def test_a_history_can_be_read() -> None:
    trace = Trace()
    play(Drawn(3), log=trace)
    assert any("gate#" in line for line in trace.lines)


def test_every_mistake_fits_its_file() -> None:
    assert len({mistake.name for mistake in LIMITED}) == len(LIMITED) > 45
    for each in LIMITED:
        for file, right in ((each.file, each.right), (each.file_too, each.right_too)):
            assert not file or (ROOT / file).read_text().count(right) == 1, each.name


@pytest.mark.parametrize("mistake", [each for each in LIMITED if each.name in SOON], ids=lambda each: each.name)
def test_a_mistake_is_found(mistake: Mistake) -> None:
    assert catch(mistake, histories=100).by
