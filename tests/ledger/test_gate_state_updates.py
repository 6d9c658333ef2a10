"""What the Updates of a gate ask of it and make of it, in DynamoDB's words."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ledger.actions import update_expression
from ledger.conditions import Names
from ledger.gate import items, updates
from ledger.gate.gate import REFUSED, RELEASED, Gate, fingerprint
from ledger.limit import DOWN, UP, Limit
from ledger.requests import Update
from tests.ledger.test_gate_items import GATE, LANE, LIMIT, OLD, YOUNG

FLOOR = Limit(floor=0)
CELL = "us-east-1#0"
(HELD,) = GATE.held
BARE: Gate = replace(GATE, recent={OLD: -2, YOUNG: REFUSED}, got={}, moved=frozenset())


def said(update: Update) -> tuple[str, str]:
    """(what it does, if what), with the names and values where an expression has placeholders; tokens by a letter."""
    names = Names()
    assert update.condition is not None
    texts = update_expression(update.actions, names), update.condition.expression(names)
    given = names.arguments()
    spelled: dict[str, str] = dict(given["ExpressionAttributeNames"])
    spelled |= {name: str(*value.values()) for name, value in given["ExpressionAttributeValues"].items()}
    short = {OLD: "O", YOUNG: "Y", HELD: "H", str(fingerprint(OLD)): "o", str(fingerprint(YOUNG)): "y"}
    does, when = (re.sub(r"[#:]\d+", lambda found: spelled[found[0]], text) for text in texts)
    for long, letter in short.items():
        does, when = does.replace(long, letter), when.replace(long, letter)
    return does, when.replace("attribute_not_exists", "no")


THERE = "NOT no(pk)"
OPEN = "no(recent.O) AND no(held.O)"
NEW = f"{OPEN} AND NOT contains(moved, o) AND NOT low >= O"
FRESH = f"{THERE} AND {NEW}"
SEEN = f"{THERE} AND {OPEN} AND version = 3"
BOTH = "NOT no(down) AND NOT no(up)"


@pytest.mark.parametrize(
    ("asked", "given", "does", "when"),
    [
        (
            updates.decide,
            (LANE, LIMIT, {OLD: -2}),
            "SET recent.O = -2 ADD down -2, up 2",
            f"{FRESH} AND down >= 2 AND NOT no(up)",
        ),
        (
            updates.decide,
            (LANE, LIMIT, {OLD: 2}, 3),
            "SET recent.O = 2 ADD down 2, up -2",
            f"{SEEN} AND NOT no(down) AND up >= 2",
        ),
        (
            updates.decide,
            (LANE, FLOOR, {OLD: 0}, 3, 9),
            "SET recent.O = 0, slack = 9",
            f"{SEEN} AND NOT no(down) AND no(up)",
        ),
        (
            updates.decide,
            (LANE, LIMIT, {YOUNG: 5, OLD: -5}),
            "SET recent.Y = 5, recent.O = -5",
            f"{THERE} AND no(recent.Y) AND no(held.Y) AND NOT contains(moved, y) AND {NEW} AND {BOTH}",
        ),
        (updates.hold, (LANE, LIMIT, OLD, -2), "SET held.O = -2 ADD down -2", f"{FRESH} AND down >= 2 AND NOT no(up)"),
        (updates.hold, (LANE, LIMIT, OLD, 2, 3), "SET held.O = 2 ADD up -2", f"{SEEN} AND NOT no(down) AND up >= 2"),
        (
            updates.refuse,
            (LANE, LIMIT, OLD, -2),
            f"SET recent.O = {REFUSED}",
            f"{FRESH} AND NOT down >= 2 AND {BOTH}",
        ),
        (updates.refuse, (LANE, LIMIT, OLD, 1, 3), f"SET recent.O = {REFUSED}", f"{SEEN} AND NOT up >= 1 AND {BOTH}"),
        (
            updates.end,
            (LANE, LIMIT, HELD, -3, -1),
            "SET recent.H = -1 ADD down 2, up 1 REMOVE held.H",
            f"{THERE} AND held.H = -3 AND {BOTH}",
        ),
        (
            updates.end,
            (LANE, LIMIT, HELD, 3, RELEASED, 4),
            f"SET recent.H = {RELEASED} ADD up 3",
            f"{THERE} AND no(recent.H) AND no(held.H) AND version = 4 AND {BOTH}",
        ),
        (
            updates.give,
            (GATE, (CELL, UP), 4),
            f"ADD up -4, given:{CELL}:up 4",
            f"up >= 4 AND given:{CELL}:up = 5",
        ),
        (
            updates.give,
            (GATE, (CELL, DOWN), 4),
            f"ADD down -4, given:{CELL}:down 4",
            f"down >= 4 AND no(given:{CELL}:down)",
        ),
        (
            updates.take_over,
            (GATE, (CELL, DOWN), 8),
            f"ADD down 2 SET got:{CELL}:down = 8",
            f"NOT no(down) AND got:{CELL}:down = 6",
        ),
        (
            updates.take_over,
            (BARE, (CELL, UP), 8),
            f"ADD up 8 SET got:{CELL}:up = 8",
            f"NOT no(up) AND no(got:{CELL}:up)",
        ),
        (
            updates.set_limit,
            (GATE, LIMIT, {DOWN: -5, UP: 7}),
            "ADD up -2 SET floor = -5, ceiling = 7, epoch = 2",
            f"{THERE} AND epoch = 1 AND NOT no(down) AND up >= 2",
        ),
        (
            updates.set_limit,
            (replace(GATE, rights={DOWN: 3}), FLOOR, {DOWN: -6, UP: None}),
            "ADD down 1 SET floor = -6, epoch = 2",
            f"{THERE} AND epoch = 1 AND NOT no(down) AND no(up)",
        ),
        (
            updates.finish_roll,
            (BARE, [OLD, YOUNG], [HELD], OLD, YOUNG, frozenset({b"bbbb", b"aaaa"}), 7),
            "REMOVE recent.O, recent.Y, held.H SET total = 5, count = 3, version = 4, low = O, top = Y, slack = 7, "
            "moved = [b'aaaa', b'bbbb']",
            "version = 3",
        ),
        (
            updates.finish_roll,
            (BARE, [], [], OLD, YOUNG, frozenset(), 7),
            "SET total = 7, count = 2, version = 4, low = O, top = Y, slack = 7 REMOVE moved",
            "version = 3",
        ),
    ],
)
def test_an_update_of_a_gate_is_one_request_that_says_all_it_rests_on(
    asked: Callable[..., Update], given: tuple[Any, ...], does: str, when: str
) -> None:
    update = asked(*given)
    assert said(update) == (does, when)
    assert (update.key, update.shows) == (items.gate_key(LANE), True)
