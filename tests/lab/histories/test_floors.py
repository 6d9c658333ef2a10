"""`make simulate` is right only when enough happened in its histories."""

from collections import Counter

from lab.histories.__main__ import FLOORS, lacks

ENOUGH = Counter(
    {"lanes": 100, "reads": 1_000, "deltas": 500, "cleaned": 100}
    | {"limits": 20, "decided": 300, "service": 10, "visits": 10, "late": 20, "thresholds": 10, "crossings": 2}
)


def test_of_each_kind_of_thing_enough_has_to_happen() -> None:
    assert lacks(ENOUGH) == []
    for name in FLOORS:
        (line,) = lacks(ENOUGH - Counter({name: 1}))
        assert line.startswith(f"too little happened: {name} ")


def test_of_a_few_histories_nothing_is_asked() -> None:
    assert lacks(Counter(lanes=99)) == []
