"""What docs/costs.md says that a visit of the compactor reads, against the requests that one makes."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from compactor import Compactor
from lab.meters.meter import Meter
from ledger import Ledger, Settings
from tests.docs.conftest import Account
from tests.docs.pages import ROOT

COSTS = (ROOT / "docs" / "costs.md").read_text()
SETTINGS = Settings(table="counters", region="eu-west-1")


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
