"""What the pages say of operating a table: the runbook for an unread lane, and what a visit reads."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compactor import Compactor
from lab.measure.meter import Meter
from ledger import Change, Ledger
from ledger.clocks import wall_clock
from ledger.errors import DamagedItem, HoldEnded
from ledger.items import is_pack, lane_of
from ledger.limit import Limit
from ledger.requests import DeleteMany
from ledger.table import DynamoTable
from ledger.values import Lane
from reader import Reader
from tests.docs.conftest import SETTINGS, Account, value
from tests.docs.pages import ROOT, blocks, run

COSTS = (ROOT / "docs" / "costs.md").read_text()
COUNTER = "stock:85123A"


def told(name: str) -> Any:
    """A function of the page."""
    names: dict[str, object] = {"__name__": "operations"}
    (source,) = (block for block in blocks(ROOT / "docs" / "operations.md", "python") if f"def {name}(" in block)
    exec(compile(source, "operations.md", "exec", dont_inherit=True), names)
    return names[name]


def test_the_changes_of_unread_lanes_are_moved_and_count_once(account: Account) -> None:
    eager, move = replace(SETTINGS, fold_min=1), told("move")
    wrong = Ledger(replace(eager, shards={"stock:": 4}))
    at = datetime.now(UTC) - timedelta(minutes=5)
    for number in range(20):
        wrong.add(COUNTER, 1, idempotency_key=str(number), at=at + timedelta(seconds=number))
    compactor = Compactor(eager)
    unread = list(compactor.run().problems)
    assert [lane.shard for lane in unread] == [1, 2, 3]
    for _ in range(2):
        moved = sum(move(lane, eager) for lane in unread)
        compactor.compact(COUNTER)
    assert value(COUNTER) == 20
    assert 0 < moved < 20
    table = DynamoTable.of(eager)
    held = account.dynamodb.scan(TableName="counters")["Items"]
    table.answer(DeleteMany(tuple(item for item in held if any(str(lane) in item["pk"]["S"] for lane in unread))))
    checked = compactor.verify(COUNTER)
    assert (checked.ok, checked.value, compactor.run().problems) == (True, 20, {})


def test_holds_that_are_over_end_and_those_that_go_on_stay(account: Account) -> None:
    limits = {"seats:": Limit(ceiling=30, region=SETTINGS.region)}
    limited = replace(SETTINGS, limits=limits, unshared_limits=True)  # the other tests here have none
    now, long_ago = Ledger(limited), Ledger(limited, clock=lambda: wall_clock() - 7_200_000)
    over = [long_ago.hold("seats:gig", 1, expires=timedelta(hours=1)) for _ in range(12)]
    open_one = now.hold("seats:gig", 2, expires=timedelta(hours=1))
    told("end_holds")("seats:gig", limited)
    assert Reader(limited).holds("seats:gig") == [open_one]
    with pytest.raises(HoldEnded, match="expired"):
        now.capture(over[0])
    assert now.add("seats:gig", 28).outcome == "recorded"


def test_the_changes_of_a_pack_that_is_refused_are_moved_and_count_once(account: Account) -> None:
    counter, at = "tickets:gala", datetime.now(UTC) - timedelta(minutes=5)
    here = replace(SETTINGS, shards={"tickets:": 2}, fold_min=1)
    changes = [Change(counter, 1, str(number), at) for number in range(20)]
    Ledger(replace(here, shards={"tickets:": 3})).add_many(changes, pack=True)
    with pytest.raises(DamagedItem, match="an entry's token is of another shard"):
        Reader(here).read(counter)
    for item in account.dynamodb.scan(TableName="counters")["Items"]:
        match lane_of(item["pk"]["S"]), item["sk"]["S"]:
            case ("delta", Lane(counter="tickets:gala") as lane), name if is_pack(name):
                told("move_pack")(lane, name, here)
    assert Reader(here).read(counter).value == 20
    Compactor(here).compact(counter)
    assert Reader(here).read(counter).value == 20


def add(counter: str, changes: int) -> None:
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    for number in range(changes):
        Ledger(SETTINGS).add(counter, 1, idempotency_key=str(number), at=an_hour_ago + timedelta(minutes=number))


def visit(account: Account, counter: str) -> float:
    """The read units, without the one look at the table's shape."""
    compactor = Compactor(SETTINGS)
    compactor.compact("another")
    meter = Meter()
    meter.attach(account.dynamodb)
    compactor.compact(counter)
    return meter.total().read_units


def test_a_visit_of_a_cold_lane_reads_what_the_page_on_costs_says(account: Account) -> None:
    add("never-folded", 5)
    add("folded-once", 5)
    Compactor(replace(SETTINGS, fold_min=1)).compact("folded-once")
    add("folded-once", 6)
    said = re.search(r"about (\d) for a lane that was never folded, (\d) to (\d) for another", COSTS)
    assert said
    never, least, most = map(int, said.groups())
    assert visit(account, "never-folded") == never
    for _ in range(2):  # the first one writes its clean note
        assert least <= visit(account, "folded-once") <= most


@pytest.mark.usefixtures("account")
def test_what_a_call_cost_is_as_the_page_on_costs_prints_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_TABLE", SETTINGS.table)
    monkeypatch.setenv("AWS_REGION", SETTINGS.region)
    spent = run(ROOT / "docs" / "costs.md")["spent"]
    assert (spent["ledger.add"].requests, spent["ledger.add"].write_units) == (3, 2)
