"""The runbook for an unread lane: its changes are moved to where they count, each once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from compactor import Compactor
from ledger import Ledger, Settings
from ledger.requests import DeleteMany
from ledger.table import DynamoTable
from reader import Reader
from tests.docs.conftest import Account
from tests.docs.pages import ROOT, blocks

SETTINGS = Settings(table="counters", region="eu-west-1", fold_min=1)
COUNTER = "stock:85123A"


def test_the_changes_of_unread_lanes_are_moved_and_count_once(account: Account) -> None:
    names: dict[str, object] = {"__name__": "operations"}
    (source,) = (block for block in blocks(ROOT / "docs" / "operations.md", "python") if "def move(" in block)
    exec(compile(source, "operations.md", "exec", dont_inherit=True), names)
    move = names["move"]
    assert callable(move)
    wrong = Ledger(replace(SETTINGS, shards={"stock:": 4}))
    at = datetime.now(UTC) - timedelta(minutes=5)
    for number in range(20):
        wrong.add(COUNTER, 1, idempotency_key=str(number), at=at + timedelta(seconds=number))
    compactor = Compactor(SETTINGS)
    unread = list(compactor.run().problems)
    assert [lane.shard for lane in unread] == [1, 2, 3]
    for _ in range(2):
        moved = sum(move(lane, SETTINGS) for lane in unread)
        compactor.compact(COUNTER)
    assert Reader(SETTINGS).read(COUNTER).value == 20
    assert 0 < moved < 20
    table = DynamoTable.of(SETTINGS)
    held = account.dynamodb.scan(TableName="counters")["Items"]
    table.answer(DeleteMany(tuple(item for item in held if any(str(lane) in item["pk"]["S"] for lane in unread))))
    checked = compactor.verify(COUNTER)
    assert (checked.ok, checked.value, compactor.run().problems) == (True, 20, {})
