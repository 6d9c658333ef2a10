"""Holds as values, and how they end: what is asked of the table, and what is told."""

from datetime import timedelta

import pytest

from ledger import Hold
from ledger.errors import HoldEnded, InvalidInput, LedgerError
from tests.ledger.test_limits import SEATS, A, B, World, refused


def test_a_hold_that_ended_in_its_block_asks_nothing_when_the_block_is_left() -> None:
    world = World()
    for end in (Hold.capture, Hold.release):
        with world.hold(2) as hold:
            end(hold)
            world.tables[A].asked.clear()
        assert not world.tables[A].asked


def test_a_release_that_fails_is_told_when_the_block_did_not_fail() -> None:
    world = World()
    with pytest.raises(LedgerError, match="It is down"), world.hold(2):
        world.tables[A].is_down = True


def test_a_hold_that_a_ledger_parsed_is_ended_by_it_and_two_holds_are_two() -> None:
    world = World()
    hold, other = world.hold(2), world.hold(2)
    assert hash(hold) != hash(other)
    world.ledgers[B].parse_hold(SEATS, hold.id).release()
    refused(HoldEnded, lambda: world.ledgers[A].capture(hold), "released")
    with world.ledgers[B].parse_hold(SEATS, other.id) as parsed:
        assert parsed == other
    refused(HoldEnded, lambda: other.capture(), "released")
    refused(InvalidInput, lambda: world.ledgers[A].parse_hold(SEATS, "x"), "is the id of no hold")


def test_of_a_hold_that_was_captured_with_nothing_nothing_counts() -> None:
    world = World()
    hold = world.hold(4, expires=timedelta(hours=1))
    world.ledgers[A].capture(hold, 0)
    error = refused(HoldEnded, lambda: world.ledgers[A].capture(hold, 4), "0 of 4 counts")
    assert isinstance(error, HoldEnded)
    assert (error.state, error.actual, world.value()) == ("captured", 0, 0)
