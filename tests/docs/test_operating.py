"""What the pages say of operating a table: the runbooks, a gate that is gone, the process
without Lambda, a visit.
"""

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from compactor import Compactor, Report
from ledger import Change, Ledger
from ledger.core.clocks import wall_clock
from ledger.core.errors import DamagedItem, HoldEnded
from ledger.core.items import is_pack, lane_of
from ledger.core.limit import Limit
from ledger.core.requests import DeleteMany
from ledger.core.values import Lane
from ledger.tables.dynamo import DynamoTable
from reader import Reader
from tests.docs.conftest import SETTINGS, Account, Names, value
from tests.docs.pages import DOCS

COUNTER = "stock:85123A"
WITHOUT_LAMBDA = DOCS / "without-lambda.md"
RUNBOOKS: Names = {"__name__": "runbooks"}
exec(
    compile((DOCS / "runbooks.py").read_text(), "runbooks.py", "exec", dont_inherit=True), RUNBOOKS
)
MINUTE_AGO = datetime.now(UTC) - timedelta(minutes=5)
EAGER = replace(SETTINGS, fold_min=1)


@pytest.fixture(autouse=True)
def _empty(account: Account) -> None:
    """Each test has the table for itself: some ask of all lanes that are there."""
    DynamoTable.of(EAGER).answer(
        DeleteMany(tuple(account.dynamodb.scan(TableName="counters")["Items"]))
    )


def test_the_changes_of_unread_lanes_are_moved_and_count_once(account: Account) -> None:
    wrong = Ledger(replace(EAGER, shards={"stock:": 4}))
    for number in range(20):
        wrong.add(
            COUNTER, 1, idempotency_key=str(number), at=MINUTE_AGO + timedelta(seconds=number)
        )
    account.without_shape()
    compactor = Compactor(EAGER)
    unread = list(compactor.run().problems)
    assert [lane.shard for lane in unread] == [1, 2, 3]
    for _ in range(2):
        moved = sum(RUNBOOKS["move"](lane, EAGER) for lane in unread)
        compactor.compact(COUNTER)
    assert value(COUNTER) == 20
    assert 0 < moved < 20
    held = account.dynamodb.scan(TableName="counters")["Items"]
    old = tuple(item for item in held if any(str(lane) in item["pk"]["S"] for lane in unread))
    DynamoTable.of(EAGER).answer(DeleteMany(old))
    checked = compactor.verify(COUNTER)
    assert (checked.ok, checked.value, compactor.run().problems) == (True, 20, {})


def test_holds_that_are_over_end_and_those_that_go_on_stay(account: Account) -> None:
    limits = {"seats:": Limit(ceiling=30, region=SETTINGS.region)}
    # the other tests here have none
    limited = replace(SETTINGS, limits=limits, unshared_limits=True)
    now, long_ago = Ledger(limited), Ledger(limited, clock=lambda: wall_clock() - 7_200_000)
    over = [long_ago.hold("seats:gig", 1, expires=timedelta(hours=1)) for _ in range(12)]
    open_one = now.hold("seats:gig", 2, expires=timedelta(hours=1))
    RUNBOOKS["end_holds"]("seats:gig", limited)
    assert Reader(limited).holds("seats:gig") == [open_one]
    with pytest.raises(HoldEnded, match="expired"):
        now.capture(over[0])
    assert now.add("seats:gig", 28).outcome == "recorded"


def test_a_refused_packs_changes_are_moved_and_count_once(account: Account) -> None:
    counter, here = "tickets:gala", replace(EAGER, shards={"tickets:": 2})
    changes = [Change(counter, 1, str(number), MINUTE_AGO) for number in range(20)]
    # as where no shape says how many
    wrong = replace(here, shards={"tickets:": 3}, unshared_limits=True)
    Ledger(wrong).add_many(changes, pack=True)
    with pytest.raises(DamagedItem, match="an entry's token is of another shard"):
        Reader(here).read(counter)
    for item in account.dynamodb.scan(TableName="counters")["Items"]:
        match lane_of(item["pk"]["S"]), item["sk"]["S"]:
            case ("delta", Lane(counter="tickets:gala") as lane), name if is_pack(name):
                RUNBOOKS["move_pack"](lane, name, here)
    assert Reader(here).read(counter).value == 20
    Compactor(here).compact(counter)
    assert Reader(here).read(counter).value == 20


def test_the_page_on_a_gate_that_is_gone_has_its_steps_in_order() -> None:
    page = (
        (DOCS / "limits.md")
        .read_text()
        .partition("## When a gate is gone")[2]
        .partition("\n## ")[0]
    )
    steps = [
        "Stop the writers",
        "Restore the lane",
        "Rebuild the counter",
        "Verify the counter",
        "Start the writers",
    ]
    assert re.findall(r"^\d\. \*\*(.+?)\*\*", page, re.M) == steps


def test_a_visit_of_a_cold_lane_reads_what_the_units_say(account: Account) -> None:
    def visit(counter: str, changes: int, compactor: Compactor) -> float:
        """After so many changes more."""
        for number in range(changes):
            at = MINUTE_AGO - timedelta(hours=1) + timedelta(minutes=number)
            Ledger(SETTINGS).add(counter, 1, idempotency_key=str(number), at=at)
        compactor.compact("another")  # looks at the table's shape
        with account.bill() as bill:
            compactor.compact(counter)
        return bill[0].read_units

    units = (DOCS / "units.txt").read_text()
    (said,) = re.findall(
        r"about (\d) for a lane that was never folded, (\d) to (\d) for another", units
    )
    never, least, most = map(int, said)
    assert visit("never-folded", 5, Compactor(SETTINGS)) == never
    visit("folded-once", 5, Compactor(EAGER))
    for changes in (6, 0):  # the first one writes its clean note
        assert least <= visit("folded-once", changes, Compactor(SETTINGS)) <= most


def test_the_process_reports_and_fails_where_one_must_look(
    account: Account,
    page: Callable[[str | Path], Names],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    main = page(WITHOUT_LAMBDA)["main"]
    monkeypatch.setenv("LEDGER_FOLD_MIN", "2")
    for number in range(3):
        Ledger(SETTINGS).add("stock:l", -1, idempotency_key=str(number), at=MINUTE_AGO)
    assert main() == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["lanes"], done["folded"], done["problems"]) == (1, 3, {})
    wrong = Ledger(replace(SETTINGS, shards={"stock:": 4}, unshared_limits=True))
    for number in range(9):
        wrong.add("stock:l", -1, idempotency_key=f"wrong/{number}", at=MINUTE_AGO)
    assert main() == 1
    assert "LaneUnread" in capsys.readouterr().out
    alarms = set(
        re.findall(
            r"^\|.*?`(\w+)`", WITHOUT_LAMBDA.read_text().partition("## What to alarm on")[2], re.M
        )
    )
    assert alarms <= {field.name for field in fields(Report)}
