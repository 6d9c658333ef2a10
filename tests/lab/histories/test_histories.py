"""Histories of the shipped code: right, repeatable, and worth something only when enough
happened in them.
"""

from collections import Counter
from dataclasses import replace

import pytest

from lab.histories.__main__ import LEAST, lacks
from lab.histories.judges import restores as limited_restores
from lab.histories.kinds import ASIDE, KINDS, lines
from simulator.choices import Drawn, Replayed
from simulator.faults import mix
from simulator.trace import Trace

FIRST = 1_000_000


def played(kind: str, times: int, first: int = FIRST) -> Counter[str]:
    """What happened in so many histories, which are right."""
    happened = Counter[str]()
    for seed in range(first, first + times):
        history = (KINDS | ASIDE)[kind].play(Drawn(seed))
        assert history.violations == [], seed
        happened += history.counts
    return happened


# kind, histories, first seed, counts that must be exceeded
PLAYED: list[tuple[str, int, int, dict[str, int]]] = [
    ("lanes", 25, FIRST, {"reads": 250, "deltas": 75}),
    ("series", 15, FIRST, {"charts": 150}),
    (
        "limits",
        10,
        FIRST + 13,
        dict.fromkeys(("counted", "held", "refused", "released", "expired"), 3),
    ),
    ("takes", 6, FIRST, {"parts": 12, "counted": 50, "refused": 20, "held": 5}),
    ("strong", 8, FIRST, {"conflicts": 15}),
    ("periods", 12, FIRST + 58, {"counted": 20, "looks": 20, "over": 20, "carried": 0}),
    (
        "sagas",
        25,
        179,
        {
            "moved": 20,
            "refused": 20,
            "refunded": 20,
            "held": 20,
            "refused holds": 20,
            "by queue": 20,
            "stuck": 0,
        },
    ),
    ("service", 6, 2_000_003, {"visits": 5, "rings": 30, "late": 30, "purged": 0}),
    ("thresholds", 3, 3_000_007, {"crossings": 5}),
    ("budgets", 30, 0, {"settled": 200}),
]


def test_every_kind_of_history_is_played() -> None:
    assert sorted(kind for kind, *_ in PLAYED) == sorted([*KINDS, "budgets"])


@pytest.mark.parametrize(
    ("kind", "times", "first", "bounds"), PLAYED, ids=[kind for kind, *_ in PLAYED]
)
def test_a_kinds_histories_are_right_and_everything_happens(
    kind: str, times: int, first: int, bounds: dict[str, int]
) -> None:
    happened = played(kind, times, first)
    assert {what: happened[what] for what, bound in bounds.items() if happened[what] <= bound} == {}


def test_a_restored_limited_counter_is_right_after_a_rebuild(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limited_restores, "ONE_OF", 1)
    happened = played("limits", 6, first=33)
    assert (
        min(happened[what] for what in ("restored", "restored beyond", "tokens lost", "gates gone"))
        > 0
    )


@pytest.mark.parametrize("kind", KINDS | ASIDE)
def test_a_seed_is_the_same_history_and_picks_every_time(kind: str) -> None:
    seed = {"service": 2_000_006, "thresholds": 3_000_005}.get(kind, 7)
    play, first, second = (KINDS | ASIDE)[kind].play, Drawn(seed), Drawn(seed)
    assert play(first) == play(second) == play(Replayed(first.picks))
    assert first.picks == second.picks


@pytest.mark.parametrize(("kind", "what"), [("lanes", "checkpoint"), ("limits", "gate#")])
def test_a_history_can_be_read(kind: str, what: str) -> None:
    shown = lines(kind, 3)
    assert any(what in line for line in shown)
    assert not any(line.startswith("WRONG") for line in shown)


def test_a_replica_made_with_half_a_commit_is_rebuilt_right() -> None:
    """Also where compactors went on before it, so that segments overlap."""
    struck = 0
    for seed in range(120, 132):
        choices, trace = Drawn(seed), Trace()
        assert (
            KINDS["lanes"].play(choices, replace(mix(choices), remade=True), trace).violations == []
        )
        struck += any("is made again" in line for line in trace.lines)
    assert struck > 0


def test_enough_has_to_happen_in_many_histories() -> None:
    enough = Counter(
        {"lanes": 1_000, **{name: int(1_000 * least) for name, least in LEAST.items()}}
    )
    assert lacks(enough) == []
    for name in LEAST:
        assert lacks(enough - Counter({name: 1})) == [name]
    assert lacks(Counter(lanes=99)) == []
