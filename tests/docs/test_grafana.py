"""The panel of its recipe, asked and read as Grafana's Infinity data source would."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import yaml

from ledger import Ledger, Settings
from ledger.tables.memory import MemoryTable
from reader import Reader
from service.api.app import Api
from service.api.local import event_of
from service.observe import Watch
from tests.docs.pages import RECIPES, blocks
from tests.world import A

PAGE = RECIPES / "grafana.md"
SINCE = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=30)
SETTINGS = Settings(table="counters", region=A)


def panel() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    (source,) = yaml.safe_load(blocks(PAGE, "yaml")[0])["datasources"]
    policy, panel = (json.loads(block) for block in blocks(PAGE, "json"))
    return source, policy, panel


def test_the_panel_shows_what_the_reader_reads() -> None:
    table = MemoryTable()
    ledger = Ledger(SETTINGS, table=table)
    for n in range(40):
        at = SINCE + timedelta(hours=19 * n)
        ledger.add("stock:85123A", 5 - n, idempotency_key=f"k{n}", at=at)
    _, _, shown = panel()
    (target,) = shown["targets"]
    query = urlencode({pair["key"]: pair["value"] for pair in target["url_options"]["params"]})
    for name, at in (("from", SINCE), ("to", UNTIL)):
        iso = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        query = query.replace(
            urlencode({"": f"${{__{name}:date:iso}}"})[1:], urlencode({"": iso})[1:]
        )
    api = Api(SETTINGS, Watch.here("api", io.StringIO()), table=table)
    asked = event_of(target["url_options"]["method"], f"{target['url']}?{query}", {}, None)
    answer = api(asked)
    assert answer["statusCode"] == 200, answer["body"]
    steps = json.loads(answer["body"])[target["root_selector"].removeprefix("$.")]
    rows = [[step[column["selector"]] for column in target["columns"]] for step in steps]
    assert [column["type"] for column in target["columns"]] == ["timestamp", "number", "number"]
    series = Reader(SETTINGS, table=table).series(
        "stock:85123A", since=SINCE, until=UNTIL, zone="Europe/Paris"
    )
    assert [[datetime.fromisoformat(start), change, value] for start, change, value in rows] == [
        [step.start, step.change, step.value] for step in series.steps
    ]
    assert len(rows) == 31


def test_its_source_and_its_policy_are_of_one_api() -> None:
    source, policy, shown = panel()
    host = source["url"].removeprefix("https://")
    assert host.split(".")[1:3] == [source["jsonData"]["aws"]["service"], A]
    assert source["jsonData"]["aws"]["region"] == A
    assert policy["Resource"].endswith(f":{host.split('.')[0]}/*/GET{shown['targets'][0]['url']}")
    assert shown["datasource"] == {"type": source["type"], "uid": source["uid"]}
