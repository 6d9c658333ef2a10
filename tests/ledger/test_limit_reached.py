"""What a refusal carries: the limit as it is set, what was left, and whether that was remembered."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from ledger import Change
from ledger.errors import LimitReached
from tests.ledger.test_limits import MINUTE, SEATS, STOCK, A, B, World

Seen = tuple[int | None, int | None, bool]


def seen(error: BaseException) -> Seen:
    assert isinstance(error, LimitReached)
    return error.limit, error.available, error.remembered


def refused(call: Callable[[], Any]) -> LimitReached:
    with pytest.raises(LimitReached) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("given", [{}, {"gather": True}], ids=["alone", "gather"])
def test_a_refusal_carries_the_limit_and_what_was_left_of_all_regions(given: dict[str, Any]) -> None:
    world = World(**given)
    world.add(SEATS, 3)
    world.add(SEATS, 5, B)
    error = refused(lambda: world.add(SEATS, 3))
    assert seen(error) == (10, 2, False)
    assert "3 would pass the limit of 10; all Regions together had 2 left." in str(error)
    world.add(STOCK, 60, B)
    assert seen(refused(lambda: world.hold(-61, counter=STOCK))) == (0, 60, False)
    error = refused(lambda: world.add(SEATS, 4))
    assert seen(error) == (10, 2, True)
    assert "left up to a second ago." in str(error)


def test_of_an_earlier_refusal_of_the_same_key_nothing_was_seen() -> None:
    world = World()
    key = world.key()
    assert seen(refused(lambda: world.ledgers[A].add(SEATS, 11, **key))) == (10, 10, False)
    error = refused(lambda: world.ledgers[A].add(SEATS, 11, **key))
    assert seen(error) == (None, None, False)
    assert "11 would pass the limit. Nothing counts" in str(error)


def test_in_a_batch_each_refusal_carries_what_it_saw() -> None:
    world = World()
    first, second, counted = world.ledgers[A].add_many([Change(SEATS, 11), Change(SEATS, 12), Change(SEATS, 10)])
    assert isinstance(first, LimitReached)
    assert isinstance(second, LimitReached)
    assert (seen(first)[:2], seen(second)[:2]) == ((10, 10), (10, 10))
    assert not isinstance(counted, Exception)


def test_the_limit_is_the_one_that_was_set_and_a_hold_is_not_left() -> None:
    world = World()
    world.hold(4)
    world.ledgers[A].set_limit(SEATS, ceiling=7)
    assert seen(refused(lambda: world.add(SEATS, 4, B))) == (7, 3, False)


def test_a_limit_that_cannot_be_set_carries_the_one_that_stands_and_how_far_it_may_come() -> None:
    world = World()
    world.add(SEATS, 8)
    error = refused(lambda: world.ledgers[A].set_limit(SEATS, ceiling=7))
    assert seen(error) == (10, 2, False)


def test_a_refusal_is_copied_and_pickled_with_what_it_carries() -> None:
    error = LimitReached("no", limit=10, available=2, remembered=True)
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (seen(other), str(other)) == ((10, 2, True), "no")
    assert seen(LimitReached("no")) == (None, None, False)


def test_a_hold_that_was_refused_is_refused_again_when_its_time_is_over() -> None:
    world = World()
    key = world.key()
    for later_ms, what in ((0, (10, 10, False)), (120_000, (None, None, False))):
        world.now_ms += later_ms
        error = refused(lambda: world.ledgers[A].hold(SEATS, 11, expires=MINUTE, **key))
        assert seen(error) == what
