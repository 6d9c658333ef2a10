"""What the page on periods and the recipe for quotas claim: forms and times of names, plans,
what all of it costs.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lab.measure.metered_table import HOME, Shop
from ledger import Keep, Ledger, Limit, Period, Settings
from ledger.core.checks import to_datetime, to_ms
from ledger.core.cost import item_bytes
from ledger.core.errors import LimitReached, PeriodOver
from ledger.core.keep import term_of
from ledger.tables.memory import MemoryTable
from reader import Reader
from tests.docs.conftest import Names
from tests.docs.pages import DOCS, RECIPES, rows

PAGE, QUOTA = DOCS / "periods.md", RECIPES / "quota.md"
HOUR_MS = 3_600_000


def prose(page: Path) -> str:
    return " ".join(page.read_text().split())


def test_the_forms_of_names_on_the_page_are_those_of_the_code() -> None:
    at = datetime(2026, 11, 26, 9, tzinfo=UTC)
    for made, end in rows(PAGE, "`Period`"):
        period: Period = eval(made.strip("`"), {"Period": Period})
        assert end.startswith(f"`{period.name('a', at).removeprefix('a')}`"), made


def test_the_times_of_a_period_on_the_page_are_those_of_the_code() -> None:
    term = term_of("llm:key:k1@2026-11", Keep(late=timedelta(days=15), keep=timedelta(days=400)))
    assert term is not None
    times = (term.end_ms, term.closes_ms, term.kept_until_ms, term.retires_s * 1_000)
    assert [until[:17] for until, _ in rows(PAGE, "until")] == [
        f"{to_datetime(ms):%Y-%m-%dT%H:%MZ}" for ms in times
    ]
    start_ms, end_ms = (to_ms(datetime(2026, month, 1, tzinfo=UTC)) for month in (11, 12))
    before, after = (start_ms - term.first_ms) // HOUR_MS, (term.end_ms - end_ms) // HOUR_MS
    assert f"up to {before} hours earlier or {after} later" in prose(PAGE)


def test_the_history_says_whether_an_attempt_counts() -> None:
    keep, table = Keep(late=timedelta(days=1), keep=timedelta(days=400)), MemoryTable()
    settings = Settings(table="counters", region=HOME, periods={"llm:": keep})
    at = datetime(2026, 11, 20, tzinfo=UTC)
    now = {"ms": to_ms(at)}
    ledger = Ledger(settings, table=table, clock=lambda: now["ms"])
    ledger.add("llm:a@2026-11", 7, idempotency_key="call-1", at=at)
    now["ms"] += 30 * 86_400_000
    tokens = {
        entry.token
        for entry in Reader(settings, table=table, clock=lambda: now["ms"]).history("llm:a@2026-11")
    }
    for key, counts in (("call-1", True), ("call-2", False)):
        with pytest.raises(PeriodOver) as raised:
            ledger.add("llm:a@2026-11", 7, idempotency_key=key, at=at)
        assert raised.value.delta is not None
        assert (raised.value.delta.token in tokens) == counts


def shop(carry: int = 0) -> Shop:
    """Its table stands: somebody has used it."""
    keep = Keep(late=timedelta(hours=1), keep=timedelta(days=35), carry=carry)
    made = Shop(
        HOME, limits={"calls:": Limit(ceiling=1_000, region=HOME)}, periods={"calls:": keep}
    )
    made.now_ms = to_ms(datetime(2026, 11, 26, tzinfo=UTC))
    made.ledger.add("calls:other@2026-11-26", 1)
    return made


def test_a_period_opens_with_what_was_left_at_the_pages_price() -> None:
    made, costs = shop(carry=100), []
    for day, change in ((26, 400), (27, 1_000), (27, 50)):
        made.now_ms = to_ms(datetime(2026, 11, day, 18, tzinfo=UTC))
        before = made.cost
        made.ledger.add(f"calls:acme@2026-11-{day}", change)
        cost = made.cost - before
        costs.append([cost.requests - 1, cost.read_units, cost.write_units - 1])
    said = [[int(cell) for cell in cells] for _, *cells in rows(PAGE, "| requests")]
    assert said == [costs[0], costs[2]]


@pytest.mark.parametrize(("calls", "said"), [(100, "109 write"), (1_000, "1.1.")])
def test_a_day_of_calls_costs_and_leaves_what_the_recipe_says(calls: int, said: str) -> None:
    made = shop()
    table, before = made.tables[HOME].table, made.cost
    there = {*table.items}
    for number in range(calls):
        made.ledger.add(
            "calls:acme@2026-11-26",
            1,
            idempotency_key=str(number),
            at=to_datetime(int(made.now_ms)),
        )
        made.now_ms += 86_000_000 / calls
    left = [item for key, item in table.items.items() if key not in there]
    size = sum(map(item_bytes, left)) / 1_000
    units = (made.cost - before).write_units
    assert said in (f"{units} write", f"{units / calls:.1f}.")
    assert said in prose(QUOTA)
    assert (
        f"{calls:,} calls {'leaves ' if calls == 100 else ''}{len(left)} items with {size:.2g} KB"
        in prose(QUOTA)
    )


def test_a_call_of_two_windows_costs_what_the_recipe_says() -> None:
    keep = Keep(late=timedelta(hours=1), keep=timedelta(days=35))
    limits = dict.fromkeys(("5h:", "week:"), Limit(ceiling=1_000, region=HOME))
    made = Shop(HOME, limits=limits, periods=dict.fromkeys(limits, keep))
    at = datetime(2026, 11, 28, 5, tzinfo=UTC)
    names = [Period("hour", every=5).name("5h:a", at), Period("week").name("week:a", at)]
    made.now_ms, minute = to_ms(at), timedelta(minutes=1)
    units = []
    for number in range(201):
        before, now = made.cost, to_datetime(int(made.now_ms))
        key = f"{number}"
        made.ledger.hold_all(names, 1, expires=minute, idempotency_key=key, at=now).capture()
        units.append((made.cost - before).write_units)
        made.now_ms += 60_000
    assert f"{sum(units[1:]) / 200:.1f} write units" in prose(QUOTA)


def test_the_bill_of_the_recipe_is_its_arithmetic() -> None:
    lines = {what: (how, dollars) for what, how, dollars in rows(QUOTA, "| | dollars")}
    reckoned = {
        "calls": 10_000 * 30 * 109 * 0.625e-6,
        "directory": 10_000 * 30 * 0.625e-6,
        "storage": 10_000 * 66 * 3.9e-6 * 0.45,
        "sweep": 0.36 * 20,
    }
    assert {what: f"{dollars:.2f}" for what, dollars in reckoned.items()} == {
        what: dollars for what, (how, dollars) in lines.items() if how
    }
    assert lines["**all**"] == ("", f"**{sum(reckoned.values()):.0f}**")


def test_a_plan_is_of_every_day_and_who_is_refused_learns_when(
    page: Callable[[str | Path], Names],
) -> None:
    quota, at = page("quota"), datetime.now(UTC)
    handle, subscribe, name = quota["handle"], quota["subscribe"], quota["DAY"].name
    quota["PLANS"]["none"] = 0
    for number in range(3):
        assert handle("beta", f"req-{number}", at) == (200, {})
    with pytest.raises(LimitReached):
        subscribe("beta", "trial", at)
    assert handle("beta", "req-4", at) == (200, {})
    reader = Reader(quota["settings"])
    tomorrow = name("calls:beta", at + timedelta(days=1))
    assert reader.standing(tomorrow).ceiling == 2
    subscribe("gamma", "none", at)
    status, headers = handle("gamma", "req-1", at)
    left = (quota["DAY"].end(name("calls:gamma", at)) - datetime.now(UTC)).total_seconds()
    assert status == 429
    assert abs(int(headers["Retry-After"]) - left) < 5 or left < 0
