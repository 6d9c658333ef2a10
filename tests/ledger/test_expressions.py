"""The text of an expression is made once for each shape, and is the one that its parts give."""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import pytest

from ledger.core import tokens
from ledger.core.actions import Action, Remove, Set, update_expression
from ledger.core.conditions import (
    Absent,
    All,
    AtMost,
    Condition,
    Contains,
    Either,
    Equals,
    Item,
    Names,
    Not,
)
from ledger.core.limit import DOWN, UP, Limit
from ledger.core.requests import Update
from ledger.core.values import Lane
from ledger.gate import updates
from ledger.tables import expressions as made
from ledger.tables.expressions import expressions

LANE = Lane("eu-west-1", 0, "seats:gig")
LIMITS = (Limit(floor=0), Limit(ceiling=9, region="eu-west-1"), Limit(-5, 9, "eu-west-1"))
ONE, TWO = {"N": "1"}, {"N": "2"}


def token(number: int) -> str:
    return tokens.hold_token(LANE.counter, str(number), 1_700_000_000_000, 60_000)


def of_a_gate(token: str, name: str) -> Iterator[Update]:
    """Every way to decide, to hold, to refuse and to end."""
    for limit, change, seen in product(LIMITS, (-7, -1, 0, 1, 7), (None, 0, 7)):
        for slack_ms, shows in product((None, 0, 250), (True, False)):
            yield updates.decide(LANE, limit, {token: change}, seen, slack_ms, shows=shows)
        if not change:
            continue
        yield updates.hold(LANE, limit, token, change, seen)
        yield updates.hold(LANE, limit, token, change, seen, name=name)
        yield updates.end(LANE, limit, {token: change}, filed=seen)
        if limit.has(DOWN if change < 0 else UP):
            yield updates.refuse(LANE, limit, token, change, seen)


def general(actions: tuple[Action, ...], condition: Condition | None) -> dict[str, Any]:
    names = Names()
    texts = {"UpdateExpression": update_expression(actions, names)} if actions else {}
    if condition is not None:
        texts["ConditionExpression"] = condition.expression(names)
    return texts | names.arguments()


def test_an_update_of_a_gate_is_sent_as_its_parts_say() -> None:
    for number in range(3):
        some = token(number)
        for update in of_a_gate(some, tokens.name_of(some)):
            given = update.actions, update.condition
            assert expressions(*given) == general(*given)


PLACES: dict[str, tuple[Condition, Condition]] = {
    "one name twice, and two": (
        Either((Equals("a", ONE), Equals("a", TWO))),
        Either((Equals("a", ONE), Equals("b", TWO))),
    ),
    "within parentheses, and without": (
        Not(All((Absent("a"), Absent("b")))),
        All((Not(All((Absent("a"),))), Absent("b"))),
    ),
    "a path, and two names": (
        All((Absent(("a", "b")), Absent("c"))),
        All((Absent("a"), Absent(("b", "c")))),
    ),
    "a sign, and another one": (Equals("a", ONE), AtMost("a", ONE)),
    "a value, and none": (Contains("a", ONE), Absent("a")),
}


@pytest.mark.parametrize("what", PLACES)
def test_conditions_of_two_shapes_have_two_texts(what: str) -> None:
    actions = Set("n", ONE), Remove(("m", "a"))
    for condition in PLACES[what] * 2:
        assert expressions(actions, condition) == general(actions, condition)
        assert expressions((), condition) == general((), condition)
    assert expressions(actions, None) == general(actions, None)


class Longer(NamedTuple):
    """A condition of somebody else, whose text its parts do not give."""

    name: str
    size: int

    def expression(self, names: Names) -> str:
        return f"size({names.path(self.name)}) > {self.size}"

    def holds(self, item: Item) -> bool:
        return len(str(item.get(self.name))) > self.size


def test_a_condition_of_somebody_else_says_its_own_text() -> None:
    for size in (3, 4):
        condition = All((Absent("a"), Longer("b", size)))
        assert expressions((), condition) == general((), condition)


def test_the_texts_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_texts", {})
    monkeypatch.setattr(made, "TEXTS_MAX", 3)
    for size in (*range(1, 8), made.SHAPE_MAX):
        condition = All([Absent(str(n)) for n in range(size)])
        assert expressions((), condition) == general((), condition)
    assert 0 < len(made._texts) <= 3
