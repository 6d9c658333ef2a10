"""What a read must hold: the third promise, and what it excuses."""

from collections.abc import Callable

import pytest

from lab.demo.acknowledged import Acknowledged
from lab.events import Event, shop_day

HOME, OTHER = "eu-west-1", "us-east-1"
EVENT = Event("stock:a", 1, "k", shop_day(1, 1)[0].at)
Act = Callable[[Acknowledged], None]


def acknowledged(region: str) -> Act:
    """The event was first asked for at second 0, at home."""
    return lambda known: known.add(EVENT, 0.0, HOME, region)


def settled(region: str, began_s: float) -> Act:
    return lambda known: known.settled(region, began_s)


TAKEN, FAILED_OVER = acknowledged(HOME), acknowledged(OTHER)
CUT, HEALING = Acknowledged.cut, Acknowledged.healing


@pytest.mark.parametrize(
    ("acts", "region", "began_s", "ended_s", "demanded"),
    [
        pytest.param({}, HOME, 0.5, 0.6, False, id="not before it is acknowledged"),
        pytest.param({1.9: TAKEN}, HOME, 1.9, 2, True, id="in time: at home of every later read"),
        pytest.param({1.9: TAKEN}, HOME, 500, 501, True, id="in time: for ever"),
        pytest.param({1: TAKEN}, OTHER, 500, 501, False, id="not where another Region took it"),
        pytest.param({2: TAKEN}, HOME, 5, 6, False, id="late: not at once"),
        pytest.param({2: TAKEN, 6: settled(HOME, 1.9)}, HOME, 7, 8, False, id="late: not by an earlier compactor"),
        pytest.param({2: TAKEN, 8: settled(HOME, 2.1)}, HOME, 9, 10, True, id="late: once a later compactor is done"),
        pytest.param({1: TAKEN, 9: TAKEN}, HOME, 10, 11, True, id="the first acknowledgement counts"),
        pytest.param({1: FAILED_OVER}, OTHER, 1.1, 1.9, True, id="a fail-over: where it was taken"),
        pytest.param({1: FAILED_OVER}, OTHER, 1.1, 2.1, False, id="a fail-over: until its home may have got it late"),
        pytest.param({1: FAILED_OVER}, HOME, 1.1, 1.9, False, id="a fail-over: not at home"),
        pytest.param({0: CUT, 1: FAILED_OVER}, OTHER, 20, 30, True, id="cut: until it is healed"),
        pytest.param({0: CUT, 1: FAILED_OVER, 40: HEALING}, OTHER, 38, 39, True, id="cut: before it was healed"),
        pytest.param({0: CUT, 1: FAILED_OVER, 40: HEALING}, OTHER, 38, 41, False, id="cut: not after it was healed"),
        pytest.param({0: CUT, 1: FAILED_OVER, 1.1: HEALING}, OTHER, 1.2, 1.9, True, id="healed at once: the lateness"),
        pytest.param({0: CUT, 1: FAILED_OVER, 1.1: HEALING}, OTHER, 1.2, 2.1, False, id="healed at once: not longer"),
        pytest.param({0: CUT, 2.5: FAILED_OVER, 3.5: settled(OTHER, 3)}, OTHER, 4, 5, False, id="a late fail-over"),
    ],
)
def test_a_change_is_demanded(
    acts: dict[float, Act], region: str, began_s: float, ended_s: float, demanded: bool
) -> None:
    now_s = 0.0
    known = Acknowledged(2_000, now=lambda: now_s, wall=lambda: now_s)
    for now_s, act in acts.items():  # noqa: B007
        act(known)
    now_s = began_s
    assert any(ack.holds(ended_s) for ack in known.demanded(EVENT.counter, region)) == demanded
