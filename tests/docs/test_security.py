"""What docs/policies.txt says that an operator's commands ask for, against what they ask."""

import re
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from compactor import Compactor
from ledger import Ledger, Limit
from ledger.core.clocks import wall_clock
from tests.docs.pages import ROOT
from tests.infra.roles import Account, Table
from tests.world import A, B, settings, two_regions

TABLE = (ROOT / "docs" / "policies.txt").read_text().partition("The same of a limited counter")[2]
SAID = {
    (command, action, kind)
    for commands, action, items in re.findall(
        r"^(verify|rebuild|verify, rebuild) {2,}(\w+) on (.+)$", TABLE, re.M
    )
    for command in commands.split(", ")
    for kind in re.findall(r"(\w+)(?:#R#\*)?", items)
}


class Operator(Account):
    """The table of a Region, and (action, kind of item) of what it was asked there; each of its
    own items.
    """

    def __init__(self, table: Any, region: str) -> None:
        super().__init__()
        self.table, self.region = table, region
        self.asked: set[tuple[str, str, str]] = set()

    def judge(self, function: str, action: str, on: str, region: str = A, *pks: str) -> None:
        # the other Region was asked, and has it too
        for pk in pks if region == self.region else ():
            kind, _, lane = pk.partition("#")
            assert pk == "shape" or lane.startswith(f"{region}#"), f"{action} of {pk} in {region}"
            self.asked.add((function, action.removeprefix("dynamodb:"), kind))


@pytest.mark.parametrize("command", ["verify", "rebuild"])
def test_a_command_asks_for_what_the_page_says(
    command: str,
) -> None:
    home, away = two_regions()
    tables = {A: home, B: away}
    limits = {"seats:": Limit(ceiling=100, region=A)}
    ticks = count(wall_clock())  # a slow machine would file other tokens
    for region in (A, B):
        ledger = Ledger(settings(region, limits=limits), tables=tables, clock=lambda: next(ticks))
        for _ in range(40):  # more than a gate keeps, whatever the tokens draw
            ledger.add("seats:gig", 1)
        ledger.hold("seats:gig", 1, expires=timedelta(hours=1))
    home.drop(*(key for key in home.items if key.pk.startswith("past#")))  # so that tokens are lost
    operators = {region: Operator(table, region) for region, table in tables.items()}
    watched = {region: Table(operator, command, region) for region, operator in operators.items()}
    getattr(Compactor(settings(limits=limits), tables=watched), command)("seats:gig")
    assert operators[A].asked | operators[B].asked == {each for each in SAID if each[0] == command}
