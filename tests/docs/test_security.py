"""What docs/security.md says that an operator's commands ask for, against what they ask."""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest

from compactor import Compactor
from ledger import Ledger, Limit
from ledger.requests import At, Get, GetMany, Now, Put, Query, Request, Together
from tests.docs.pages import ROOT
from tests.world import A, B, settings, two_regions

TABLE = (ROOT / "docs" / "security.md").read_text().partition("#### Verify and rebuild")[2].partition("\n###")[0]
ROW = re.compile(
    r"^\| (?P<actions>[\w, ]+) \| (?P<items>[^|]+) \| (?P<verify>✓?) ?\| (?P<rebuild>✓?) ?\|$", re.MULTILINE
)


def said(command: str) -> set[tuple[str, str]]:
    """(action, kind of item) of the page's table."""
    return {
        (action, kind)
        for row in ROW.finditer(TABLE)
        if row[command]
        for action in row["actions"].split(", ")
        for kind in re.findall(r"`(\w+)(?:#R#\*)?`", row["items"])
    }


def asked(requests: Sequence[Request], region: str) -> Iterator[tuple[str, str]]:
    """(action, kind of item) of what a Region's table was asked; each of its own items."""
    for request in requests:
        match request:
            case Together(requests=several):
                yield from asked(several, region)
                continue
            case At() | Now():  # the other Region was asked, and has it too
                continue
            case Get(key=key):
                found = [("GetItem", key.pk)]
            case GetMany(keys=keys):
                found = [("BatchGetItem", key.pk) for key in keys]
            case Query(pk=pk):
                found = [("Query", pk)]
            case Put(item=item):
                found = [("PutItem", item["pk"]["S"])]
            case _:
                raise AssertionError(f"{region} was asked {request}")
        for action, pk in found:
            kind, _, lane = pk.partition("#")
            assert pk == "shape" or lane.startswith(f"{region}#"), f"{action} of {pk} in {region}"
            yield action, kind


@pytest.mark.parametrize("command", ["verify", "rebuild"])
def test_verify_and_rebuild_of_a_limited_counter_ask_for_what_the_page_says_each_region_for_its_own(
    command: str,
) -> None:
    home, away = two_regions()
    tables = {A: home, B: away}
    limits = {"seats:": Limit(ceiling=100, region=A)}
    for region in (A, B):
        ledger = Ledger(settings(region, limits=limits), tables=tables)
        for _ in range(40):  # more than a gate keeps, whatever the tokens draw
            ledger.add("seats:gig", 1)
        ledger.hold("seats:gig", 1, expires=timedelta(hours=1))
    home.drop(*(key for key in home.items if key.pk.startswith("past#")))  # so that tokens are lost
    home.asked.clear()
    away.asked.clear()
    compactor = Compactor(settings(limits=limits), tables=tables)
    compactor.verify("seats:gig") if command == "verify" else compactor.rebuild("seats:gig")
    found = {pair for region, table in tables.items() for pair in asked(table.asked, region)}
    assert found == said(command)
