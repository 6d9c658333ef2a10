"""Histories of the shipped code: repeatable, and worth something only when enough happened in
them. `make simulate` plays them.
"""

from collections import Counter

import pytest

from lab.histories.__main__ import LEAST, lacks
from lab.histories.kinds import ASIDE, KINDS, lines
from simulator.choices import Drawn, Replayed


def test_the_histories_of_budgets_are_right_and_settle() -> None:
    """`make simulate` does not play them."""
    happened = Counter[str]()
    for seed in range(30):
        history = ASIDE["budgets"].play(Drawn(seed))
        assert history.violations == [], seed
        happened += history.counts
    assert happened["settled"] > 200


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_is_the_same_history_and_picks_every_time(kind: str) -> None:
    seed = {"service": 2_000_006, "thresholds": 3_000_005}.get(kind, 7)
    play, first, second = KINDS[kind].play, Drawn(seed), Drawn(seed)
    assert play(first) == play(second) == play(Replayed(first.picks))
    assert first.picks == second.picks


@pytest.mark.parametrize(("kind", "what"), [("lanes", "checkpoint"), ("limits", "gate#")])
def test_a_history_can_be_read(kind: str, what: str) -> None:
    shown = lines(kind, 3)
    assert any(what in line for line in shown)
    assert not any(line.startswith("WRONG") for line in shown)


def test_enough_has_to_happen_in_many_histories() -> None:
    enough = Counter(
        {"lanes": 1_000, **{name: int(1_000 * least) for name, least in LEAST.items()}}
    )
    assert lacks(enough) == []
    for name in LEAST:
        assert lacks(enough - Counter({name: 1})) == [name]
    assert lacks(Counter(lanes=99)) == []
