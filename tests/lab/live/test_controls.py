"""Controls are taken whole or refused with a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.live.controls import LIMITS, BadControl, Controls

JSON: st.SearchStrategy[object] = st.one_of(
    st.none(), st.booleans(), st.integers(-10, 10_000), st.floats(), st.text(max_size=3), st.just([1]), st.just({})
)


def test_what_is_given_is_set_and_the_rest_stays() -> None:
    assert Controls(lag_ms=7).with_({"cut": True, "writes_per_s": 0}) == Controls(lag_ms=7, cut=True, writes_per_s=0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "Give an object"),
        (None, "Give an object"),
        ([["lag_ms", 1]], "Give an object"),
        ({"speed": 1}, "There is no control 'speed'"),
        ({"lag_ms": -1}, "from 0 to 5,000, not -1"),
        ({"lag_ms": 5_001}, "from 0 to 5,000, not 5001"),
        ({"lag_ms": 1.5}, "a whole number"),
        ({"lag_ms": True}, "a whole number"),
        ({"lag_ms": "9"}, "a whole number"),
        ({"lag_ms": float("nan")}, "a whole number"),
        ({"cut": 1}, "true or false"),
        ({"lag_ms": 5, "cut": "no"}, "true or false"),
    ],
)
def test_a_bad_value_is_refused_with_a_sentence(given: object, says: str) -> None:
    with pytest.raises(BadControl, match=says):
        Controls().with_(given)


@given(st.dictionaries(st.sampled_from([*LIMITS, "cut", "paused", "x"]), JSON, max_size=3) | JSON)
def test_whatever_is_sent_is_taken_within_its_limits_or_refused(given: object) -> None:
    try:
        controls = Controls().with_(given)
    except BadControl:
        return
    for name, (least, most) in LIMITS.items():
        assert least <= getattr(controls, name) <= most
        assert type(getattr(controls, name)) is int
    assert type(controls.cut) is type(controls.paused) is bool
