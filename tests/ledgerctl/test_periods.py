"""Commands about periods: what they came to, who is of one, rows of one that is over, and the
table's time to live.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from ledger.core import items
from ledger.core.limit import Shape
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.lane import directory
from tests.ledgerctl.support import ENVIRON, A, Tables, ctl, refused
from tests.ledgerctl.test_doctor_and_init import findings, world

OF_ENVIRON = {
    "LEDGER_LIMITS": json.dumps({"llm:": {"ceiling": 50, "region": A}}),
    "LEDGER_PERIODS": json.dumps(
        {name: {"late_s": 1_296_000, "keep_s": 34_560_000} for name in ("llm:", "plain:")}
    ),
}
JANUARY = "2027-01"  # that of NOW_MS


@pytest.fixture
def tables() -> Tables:
    drawn = itertools.count()
    made = Tables(
        environ=ENVIRON | OF_ENVIRON, entropy=lambda size: next(drawn).to_bytes(size, "big")
    )
    made(f"add llm:key@{JANUARY} 5")
    made("add plain:a@2026-12 3 --key k --at 2026-12-31T23:00:00Z")
    made(f"add plain:a@{JANUARY} 4")
    return made


def test_the_last_periods_are_rows_with_what_is_left(
    tables: Tables,
) -> None:
    tables("limit llm:key --ceiling 60")
    header, *rows = [line.split() for line in tables("periods llm:key --last 2").out.splitlines()]
    assert header == ["counter", "value", "floor", "ceiling", "left", "down", "left", "up"]
    assert rows == [
        ["llm:key@2026-12", "0", "-", "60", "-", "60"],
        ["llm:key@2027-01", "5", "-", "50", "-", "45"],
    ]
    *_, december, january = tables.json("periods plain:a --last 12")
    assert (december["counter"], december["value"]) == ("plain:a@2026-12", 3)
    times = {"start": "2027-01-01T00:00:00.000Z", "end": "2027-02-01T00:00:00.000Z"}
    bounds = {"floor": None, "ceiling": None, "available": {"down": None, "up": None}}
    assert january == {"counter": f"plain:a@{JANUARY}", "value": 4, "count": 1, **times, **bounds}
    assert len(tables.json("periods plain:a")) == 12
    (paris,) = tables.json("periods plain:a --every week --zone Europe/Paris --last 1")
    assert (paris["counter"], paris["start"]) == ("plain:a@2027-W02", "2027-01-10T23:00:00.000Z")
    (five,) = tables.json("periods plain:a --every 5h --last 1")
    assert five["counter"] == "plain:a@2027-01-15T08+5h"
    assert five["end"] == "2027-01-15T13:00:00.000Z"
    for begins, day in (("2027-01-14", 14), ("2027-01-15T00:00:00Z", 15)):
        (two,) = tables.json(f"periods plain:a --every 2d --begins {begins} --last 1")
        assert two["counter"] == f"plain:a@2027-01-{day}+2d"
    for typed, says in (
        ("plain:a --every 5x", "none of year, month, week, day, hour"),
        ("plain:a --every 5h --begins 2027-01-14T00:30:00Z", "no whole hour"),
        ("plain:a --every 5h --begins 2027-01-14 --anchor 3", "Give one"),
        ("stock", "No prefix of periods="),
        ("plain:a --zone Europe/Pariss", "no time zone"),
    ):
        refused(tables.ctl("periods", *typed.split()), 2, says)


def test_what_a_period_passed_on_is_shown_beside_its_ceiling(tables: Tables) -> None:
    carry = {"llm:": {"late_s": 1_296_000, "keep_s": 34_560_000, "carry": 20}}
    made = Tables(environ={**ENVIRON, **OF_ENVIRON, "LEDGER_PERIODS": json.dumps(carry)})
    made("add llm:key@2026-12 45 --key a --at 2026-12-31T23:00:00Z")
    for key, change in (("b", 50), ("c", 3)):
        made(f"add llm:key@{JANUARY} {change} --key {key} --at 2027-01-15T07:00:00Z")
    older, newer = made.json("periods llm:key --last 2")
    assert (older["ceiling"], older["available"]["up"], older["carried"], older.get("took")) == (
        50,
        0,
        5,
        None,
    )
    assert (newer["ceiling"], newer["available"]["up"], newer.get("carried"), newer["took"]) == (
        55,
        2,
        None,
        5,
    )
    (standing,) = made.json("standing llm:key@2026-12")
    assert (standing["ceiling"], standing["carried"]) == (50, 5)
    said = "llm:key@2026-12: 5 passed on to the next period"
    made("standing llm:key@2026-12", says=said)
    made("periods llm:key --last 2", says=said)
    made(f"standing llm:key@{JANUARY}", says=f"llm:key@{JANUARY}: 5 came from the period before")


def test_a_list_may_be_of_one_period(tables: Tables) -> None:
    tables.table.store([directory.item_of(Lane(A, 0, "llm:key@2020-01"))])  # kept no longer
    for typed, names in (
        (f"list --period {JANUARY}", ["llm:key@2027-01", "plain:a@2027-01"]),
        ("list --prefix plain: --period 2026-12", ["plain:a@2026-12"]),
    ):
        assert [each["counter"] for each in tables.json(typed)] == names
    tables("list --period 2027-02", says="no counter of 2027-02")
    tables("add plain:b@2027-01-15T08+5h 1")
    (five,) = tables.json("list --period 2027-01-15T08+5h")
    assert five["counter"] == "plain:b@2027-01-15T08+5h"
    tables("list --period 2020-01", says="no counter of 2020-01")
    refused(tables.ctl("list", "--period", "2027-13"), 2, "is no period such as 2026")


def test_a_row_of_a_period_that_is_over_is_bad_and_stops_nobody(
    tables: Tables, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    row = {
        "counter": f"plain:b@{JANUARY}",
        "change": 1,
        "idempotency_key": "a",
        "at": "2027-01-10T00:00:00Z",
    }
    late = row | {"counter": "plain:b@2026-11", "at": "2026-11-10T00:00:00Z"}
    path.write_text(
        "\n".join(json.dumps(each) for each in (late, row, row | {"counter": "plain:b"}))
    )
    tables(f"import {path}", 1, says="1 recorded, 0 replayed (they were there already), 2 bad")
    bad = [json.loads(line) for line in path.with_name("rows.bad.jsonl").read_text().splitlines()]
    assert [each["bad_line"] for each in bad] == [1, 3]
    assert "takes no more changes" in bad[0]["bad_reason"]


def test_a_period_that_is_over_is_final_and_not_rebuilt(
    tables: Tables,
) -> None:
    typed = f"till plain:a@{JANUARY} 5 --key k --at 2027-01-15T07:00:00Z"
    tables.clock.now_ms += 40 * 86_400_000
    before = {**tables.held}
    refused(
        tables.ctl("transfer", *typed.split()), 1, "takes no more changes", "No call can finish it"
    )
    tables.clock.now_ms += 400 * 86_400_000
    for name in ("llm:key", "plain:a"):
        refused(tables.ctl("rebuild", f"{name}@{JANUARY}", "--yes"), 1, "kept no longer")
    assert tables.held == before


# -- time to live


def with_periods(status: str, attribute: str | None = None, **changed: Any) -> Any:
    shape = Settings.from_env(OF_ENVIRON, table="any", region=A)
    there = Shape((A,), {}, limits=shape.limits, periods=shape.periods)
    described = {"TimeToLiveStatus": status} | (
        {} if attribute is None else {"AttributeName": attribute}
    )
    answers = {
        "DescribeTimeToLive": {"TimeToLiveDescription": described},
        "GetItem": {"Item": items.shape_item(there)},
    }
    return world(OF_ENVIRON, **answers, **changed)


def test_init_turns_time_to_live_on_for_periods() -> None:
    asked: list[Any] = []

    def update(request: Any) -> dict[str, Any]:
        asked.append(request)
        return {}

    on: Any = {"UpdateTimeToLive": update}
    (made,) = ctl(with_periods("DISABLED", **on), "init", "--json").documents
    assert made["steps"] == [f"{A}: items of periods retire"]
    (request,) = asked
    assert request["TimeToLiveSpecification"] == {"Enabled": True, "AttributeName": "retires"}
    for there in (with_periods("ENABLED", "retires"), with_periods("ENABLING", "retires"), world()):
        assert ctl(there, "init", "--json").documents[0]["steps"] == []
    refused(
        ctl(with_periods("ENABLED", "expires", **on), "init"),
        1,
        "time to live: enabled, by expires",
    )
    assert len(asked) == 1


def test_doctor_says_where_nothing_retires() -> None:
    assert findings(with_periods("ENABLED", "retires")) == (0, {})
    assert findings(with_periods("DISABLED")) == (0, {f"{A} periods": "warn"})
    assert findings(with_periods("ENABLED", "expires")) == (1, {f"{A} time to live": "fail"})
    assert f"by {items.RETIRES}" in " ".join(ctl(with_periods("DISABLED"), "doctor").out.split())
