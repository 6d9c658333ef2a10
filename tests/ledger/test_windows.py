"""Windows, periods of several hours or days: they tile the time, their names say all of it, the
table knows their anchor, and "5 hours and a week" is decided as one.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import Keep, Ledger, Limit, Period, Settings
from ledger.budgets import Budgets, OverBudget
from ledger.core import items
from ledger.core.checks import to_ms
from ledger.core.errors import (
    DamagedItem,
    InvalidCounter,
    InvalidInput,
    InvalidSettings,
    InvalidTime,
    LimitReached,
    PeriodOver,
    SettingsMismatch,
    TableError,
)
from ledger.core.keep import term_of
from ledger.core.limit import Shape
from ledger.core.period_name import EPOCH, EVERY_MAX, YEAR_MAX, parted, span_of
from ledger.lane.shape import stored
from reader import Reader
from simulator import Faults, Simulation
from tests.docs.pages import rows
from tests.ledger.test_periods import CLOCKS_CHANGE, MOMENTS, ZONES, changes_of_clocks
from tests.world import A, B, World, refused

KEEP = Keep(late=timedelta(days=1), keep=timedelta(days=35))
AT = datetime(2026, 11, 28, 7, tzinfo=UTC)
LAST_DAY = datetime(9999, 12, 31, 23, tzinfo=UTC)
FIVE, WEEK = Period("hour", every=5), Period("week")
UNITS = {"hour": timedelta(hours=1), "day": timedelta(days=1)}


@st.composite
def windows(draw: st.DrawFn) -> Period:
    unit, zone = draw(st.sampled_from(sorted(EVERY_MAX))), draw(st.sampled_from(ZONES))
    every = draw(st.integers(2, 31) | st.integers(2, EVERY_MAX[unit]))
    day = datetime(2024, 1, 1, tzinfo=ZoneInfo(zone)) + timedelta(days=draw(st.integers(0, 1_000)))
    hour = 0 if unit == "day" else draw(st.integers(4, 23))
    anchor: datetime | int = day.replace(hour=hour) if draw(st.booleans()) else 1
    return Period(unit, zone, anchor, every)


@given(period=windows(), moment=MOMENTS)
def test_windows_tile_the_time_and_a_name_is_good_for_its_own(
    period: Period, moment: datetime
) -> None:
    name = period.name("base@x", moment)
    start, end = period.start(name), period.end(name)
    assert start <= moment < end
    assert abs(end - start - period.every * UNITS[period.unit]) <= timedelta(hours=2)
    before, after = (
        period.name("base@x", at.astimezone(UTC)) for at in (start - timedelta(milliseconds=1), end)
    )
    assert (period.end(before), period.start(after)) == (start, end)
    assert before < name < after
    assert period.last("base@x", 3, end) == [before, name, after]
    assert period.names("base@x", start, end) == [name]
    assert period.name("base@x", start) == name
    term = term_of(name, KEEP)
    assert term is not None
    assert (term.base, term.name, term.is_good_for(to_ms(moment))) == ("base@x", name, True)
    assert (term.before.name, parted(after)[1]) == (before, term.span.next)


def test_an_anchor_is_where_one_window_begins() -> None:
    for zone, anchor in (("UTC", AT), ("Europe/Paris", AT), ("Asia/Tokyo", AT)):
        period = Period("hour", zone, anchor, every=7)
        for number in (-400, -1, 0, 1, 52):
            begins = anchor + number * timedelta(hours=7)
            if zone == "Europe/Paris" and number == -400:
                continue  # its clock has gone back between the two
            assert period.start(period.name("b", begins)) == begins
    november, december = (
        datetime(2026, month, 1, tzinfo=ZoneInfo("Europe/Paris")) for month in (11, 12)
    )
    month = Period("day", "Europe/Paris", november, every=30)
    assert month.name("b", AT) == "b@2026-11-01+30d"
    assert month.end("b@2026-11-01+30d") == december
    other = Period("hour", anchor=AT, every=5)
    assert (FIVE.name("b", AT), other.name("b", AT)) == ("b@2026-11-28T05+5h", "b@2026-11-28T07+5h")
    for mine, theirs in ((FIVE, other), (other, FIVE), (Period("hour"), FIVE), (FIVE, month)):
        with pytest.raises(InvalidCounter, match=r"does not end with a period such as @2026-11-2"):
            mine.start(theirs.name("b", AT))
    assert Period("hour", every=1) == Period("hour")


@pytest.mark.parametrize(
    ("zone", "unit", "every", "anchor"),
    [
        ("Europe/Berlin", "hour", 5, datetime(2026, 3, 29, 2)),
        ("Australia/Lord_Howe", "hour", 5, datetime(2026, 10, 4, 2)),
        ("Africa/Cairo", "day", 30, datetime(2026, 4, 24)),
        ("Pacific/Apia", "day", 7, datetime(2011, 12, 30)),
    ],
)
def test_an_anchor_that_no_clock_shows_is_that_of_settings(
    zone: str, unit: str, every: int, anchor: datetime
) -> None:
    keep = replace(KEEP, anchor=anchor.replace(tzinfo=ZoneInfo(zone)))
    period = Period(unit, zone, anchor.replace(tzinfo=ZoneInfo(zone)), every)
    for days in (-700, -3, 0, 3, 700):
        at = anchor.replace(tzinfo=UTC) + timedelta(days=days)
        term = term_of(period.name("b", at), keep)
        assert term is not None
        term.check_window()


@pytest.mark.parametrize("zone", CLOCKS_CHANGE)
def test_each_moment_round_a_change_of_clocks_is_in_one_window(zone: str) -> None:
    changes = [change for year in CLOCKS_CHANGE[zone] for change in changes_of_clocks(zone, year)]
    for period in (Period("hour", zone, every=2), Period("hour", zone, every=5)):
        for change in changes:
            since, until = change - timedelta(hours=12), change + timedelta(hours=12)
            moments = [since + timedelta(minutes=i) for i in range(24 * 60)]
            name_of = {moment: period.name("b", moment) for moment in moments}
            met = sorted({*name_of.values()})
            assert period.names("b", since, until) == met
            for moment in moments[::7]:
                name = name_of[moment]
                assert period.start(name) <= moment < period.end(name), (name, moment)
            assert all(period.start(name) < period.end(name) for name in met)


def test_a_window_is_longer_or_shorter_where_clocks_change() -> None:
    five, hours = Period("hour", "Europe/Paris", every=5), timedelta(hours=1)
    for day, lengths in (((2026, 3, 29), {4, 5}), ((2026, 10, 25), {5, 6}), ((2026, 7, 1), {5})):
        since = datetime(*day, tzinfo=ZoneInfo("Europe/Paris"))
        names = five.names("b", since, since + timedelta(days=1))
        starts = [five.start(name).astimezone(UTC) for name in names]
        ends = [five.end(name).astimezone(UTC) for name in names]
        assert {(end - start) // hours for start, end in zip(starts, ends, strict=True)} == lengths
        assert ends[:-1] == starts[1:]
    # in Havana no clock shows the midnight at which a window would begin
    havana = Period("day", "America/Havana", every=2)
    spring = datetime(2026, 3, 8, 12, tzinfo=ZoneInfo("America/Havana"))
    lengths = {
        (havana.end(name).astimezone(UTC) - havana.start(name).astimezone(UTC)) // hours
        for name in havana.names("b", spring - timedelta(days=3), spring + timedelta(days=3))
    }
    assert lengths == {47, 48}


def test_a_window_is_spelt_in_one_way() -> None:
    for text in ("2026-11-28T05+5h", "2026-11-28+30d", "1970-01-01+365d", "2026-11-28T05+8760h"):
        span = span_of(text)
        assert span is not None
        assert span.text == text
    for wrong in (
        *("2026-11-28T05+1h", "2026-11-28T05+0h", "2026-11-28T05+05h", "2026-11-28T05+5d"),
        *("2026-11-28+1d", "2026-11-28+5h", "2026-11-28M+5d", "2026-11+5d", "2026-W48+2d"),
        *("2026-11-28T05+8761h", "2026-11-28+366d", "2026-11-28+99999d", "2026-11-28T05+h"),
        *("2026-11-28T05+5", "2026-11-28T05 5h", "2026-11-28T24+5h", "9998-12-31+2d"),
    ):
        assert parted(f"a@{wrong}") == (f"a@{wrong}", None)
    last = datetime(YEAR_MAX, 12, 31, 23, tzinfo=UTC)
    assert Period("day", every=2).names("a", last - timedelta(days=4), last.replace(year=9999))
    for unit, every in EVERY_MAX.items():
        with pytest.raises(InvalidTime, match="in no period of the years 1970 to 9998"):
            Period(unit, every=every).name("a", last)
        with pytest.raises(InvalidTime, match="in no period of the years 1970 to 9998"):
            Period(unit, anchor=datetime(1970, 1, 2, tzinfo=UTC), every=every).name(
                "a", EPOCH.replace(tzinfo=UTC)
            )


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"unit": "hour", "every": 0}, InvalidInput, "every=0 is not an int from 1 to 8,760"),
        ({"unit": "hour", "every": -5}, InvalidInput, "every=-5 is not an int from 1"),
        ({"unit": "hour", "every": True}, InvalidInput, "every=True is not an int"),
        ({"unit": "hour", "every": 5.0}, InvalidInput, "every=5.0 is not an int"),
        ({"unit": "hour", "every": "5"}, InvalidInput, "every='5' is not an int"),
        ({"unit": "hour", "every": 8_761}, InvalidInput, "from 1 to 8,760, how many"),
        ({"unit": "day", "every": 366}, InvalidInput, "from 1 to 365, how many"),
        ({"unit": "week", "every": 2}, InvalidInput, "of hours and days alone.*every=14"),
        ({"unit": "month", "every": 3}, InvalidInput, "not of a month"),
        ({"unit": "hour", "anchor": AT}, InvalidInput, "without every.*Give every"),
        ({"unit": "month", "anchor": AT}, InvalidInput, "the day from 1 to 28"),
        ({"unit": "hour", "every": 5, "anchor": 15}, InvalidInput, "not a datetime with a time"),
        ({"unit": "hour", "every": 5, "anchor": None}, InvalidInput, "not a datetime with a time"),
        (
            {"unit": "hour", "every": 5, "anchor": AT.replace(tzinfo=None)},
            InvalidTime,
            "anchor=.* has no time zone",
        ),
        (
            {"unit": "hour", "every": 5, "anchor": AT.replace(minute=13)},
            InvalidInput,
            "is 2026-11-28T07:13:00 in UTC, no whole hour",
        ),
        (
            {"unit": "hour", "every": 5, "anchor": AT, "zone": "Asia/Kolkata"},
            InvalidInput,
            "T12:30:00 in Asia/Kolkata, no whole hour",
        ),
        ({"unit": "day", "every": 5, "anchor": AT}, InvalidInput, "no midnight. Nothing was"),
        (
            {"unit": "day", "every": 5, "anchor": LAST_DAY, "zone": "Pacific/Kiritimati"},
            InvalidInput,
            "beyond the years that a clock in Pacific/Kiritimati shows. Nothing was",
        ),
    ],
)
def test_what_is_no_window_is_refused_with_the_remedy(
    given: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Period(**given)


def test_an_anchor_of_settings_is_a_whole_hour_of_some_clock() -> None:
    odd: list[tuple[Any, str]] = [
        (AT.replace(tzinfo=None), "has no time zone"),
        (AT.replace(minute=1), "no whole hour"),
        (AT.replace(year=1969), "no whole hour of the years 1970"),
        ("2026-11-28", "an aware datetime"),
    ]
    for wrong, says in odd:
        with pytest.raises(InvalidSettings, match=says):
            replace(KEEP, anchor=wrong)
    paris = AT.replace(tzinfo=ZoneInfo("Europe/Paris"))
    assert replace(KEEP, anchor=paris) == replace(KEEP, anchor=AT)  # names have no zone
    said = '{"llm:": {"late_s": 86400, "keep_s": 3024000, "anchor": "2026-11-28T07:00:00+05:00"}}'
    made = Settings.from_env({"LEDGER_PERIODS": said}, table="counters", region=A)
    assert made.periods == {"llm:": replace(KEEP, anchor=AT)}
    for text, says in (
        ('"2026-11-28T07:00"', "has no time zone"),
        ('"2026-11-28T07:30Z"', "no whole hour"),
        ('"soon"', "cannot be read as periods"),
        ("5", "cannot be read as periods"),
    ):
        said = f'{{"llm:": {{"late_s": 1, "keep_s": 2, "anchor": {text}}}}}'
        with pytest.raises(InvalidSettings, match=f"LEDGER_PERIODS.*{says}"):
            Settings.from_env({"LEDGER_PERIODS": said}, table="counters", region=A)


# -- a table's anchor


ANCHORED = replace(KEEP, anchor=AT)


def world(**changed: Any) -> World:
    return World(now_ms=to_ms(AT), **{"periods": {"llm:": ANCHORED, "free:": KEEP}, **changed})


def test_a_shape_has_the_anchor_and_refuses_another() -> None:
    made = world()
    made.shape()
    shape = made.home.run(stored())
    assert shape is not None
    assert {**shape.periods} == {"llm:": ANCHORED, "free:": KEEP}
    of_llm, of_free = made.home.items[items.SHAPE_KEY]["periods"]["L"][::-1]
    assert of_llm["M"]["anchor"] == {"S": "2026-11-28T07"}
    assert "anchor" not in of_free["M"]
    other = replace(KEEP, anchor=AT + timedelta(hours=1))
    for hour, wrong, says in (
        (7, KEEP, '"keep_s": 3024000}: its windows'),
        (8, other, '"anchor": "2026-11-28T08:00Z"}: its windows'),
    ):
        periods = {"llm:": wrong, "free:": KEEP}
        with refused(made.home, SettingsMismatch, f"{says} would begin elsewhere.* never changes"):
            made.ledger(periods=periods).add(f"llm:a@2026-11-28T0{hour}+5h", 1)
        with pytest.raises(SettingsMismatch, match="never changes"):
            made.shape(periods=periods)
    more = {"llm:": ANCHORED, "free:": KEEP, "new:": ANCHORED}
    pasted = '"new:": {"late_s": 86400, "keep_s": 3024000, "anchor": "2026-11-28T07:00Z"}'
    with refused(made.home, SettingsMismatch, f"lacks periods.*{pasted}"):
        made.ledger(periods=more).add("new:a@2026-11-28T07+5h", 1)


@pytest.mark.parametrize(
    "anchor", [{"S": "2026-11-28"}, {"S": "soon"}, {"N": "5"}, {"S": "2026-11-28T05+5h"}]
)
def test_a_damaged_anchor_is_told(anchor: Any) -> None:
    item = items.shape_item(Shape((A,), {}, periods={"llm:": ANCHORED}))
    assert items.shape_of(item).periods == {"llm:": ANCHORED}
    item["periods"]["L"][0]["M"]["anchor"] = anchor
    with pytest.raises(DamagedItem):
        items.shape_of(item)


def test_a_window_of_another_anchor_counts_nothing() -> None:
    limits = {"llm:": Limit(ceiling=5, region=A)}
    made = world(limits=limits)
    ledger = made.ledger()
    right, wrong = "llm:a@2026-11-28T07+5h", "llm:a@2026-11-28T05+5h"
    assert ledger.add(right, 1, **made.key()).outcome == "recorded"
    ledger.add("llm:a@2026-11-28", 1, **made.key())  # what is no window has no anchor
    calls: list[Any] = [
        lambda: ledger.add(wrong, 1, **made.key()),
        lambda: ledger.hold(wrong, 1, expires=timedelta(hours=1), **made.key()),
        lambda: ledger.hold_all([right, wrong], 1, expires=timedelta(hours=1), **made.key()),
        lambda: ledger.set_limit(wrong, ceiling=9),
        lambda: made.reader().standing(wrong),
    ]
    for call in calls:
        with refused(made.home, InvalidCounter, "one begins at 2026-11-28T07, the others every 5"):
            call()
    with pytest.raises(InvalidCounter, match="Give Period the anchor that periods"):
        made.reader().periods("llm:a", FIVE, 2)
    (found,) = made.reader().periods("llm:a", Period("hour", every=5, anchor=AT), 1)
    assert (found.counter, found.value) == (right, 1)
    for name in ("free:a@2026-11-28T07+5h", "free:a@2026-11-28T05+5h"):  # whose prefix has none
        assert ledger.add(name, 1, **made.key()).outcome == "recorded"


# -- what is counted in windows


def both(base: str, at: datetime) -> list[str]:
    return [FIVE.name(f"5h:{base}", at), WEEK.name(f"week:{base}", at)]


LIMITS = {"5h:": Limit(ceiling=10, region=A), "week:": Limit(ceiling=25, region=A)}
PERIODS = {"5h:": KEEP, "week:": KEEP}


def test_five_hours_and_a_week_are_decided_as_one() -> None:
    """In memory, as a test of a user's would."""
    made = world(limits=LIMITS, periods=PERIODS)
    ledger = made.ledger()

    def call(amount: int, at: datetime) -> int | datetime | None:
        made.now_ms = to_ms(at)
        try:
            with ledger.hold_all(
                both("k1", at), amount, expires=timedelta(minutes=5), **made.key()
            ) as held:
                held.capture(amount)
        except LimitReached as over:
            return over.resets_at
        return amount

    monday = datetime(2026, 12, 1, 12, tzinfo=UTC)
    windows = [FIVE.start(name) for name in FIVE.names("b", monday, monday + timedelta(days=1))]
    assert [call(6, windows[1]), call(6, windows[1])] == [6, windows[2]]  # of five hours
    assert call(4, windows[2] - timedelta(seconds=1)) == 4
    assert [call(10, windows[2]), call(6, windows[3])] == [10, datetime(2026, 12, 7, tzinfo=UTC)]
    assert call(5, windows[3]) == 5
    first, second, third = (name for name in FIVE.last("5h:k1", 3, windows[3]))
    assert [made.value(name) for name in (first, second, third)] == [10, 10, 5]
    assert made.value("week:k1@2026-W49") == 25
    over = FIVE.end(first) + timedelta(hours=12) + KEEP.late
    made.now_ms = to_ms(over) - 1
    assert ledger.add(first, -1, idempotency_key="late", at=windows[1]).outcome == "recorded"
    made.now_ms += 1
    with pytest.raises(PeriodOver) as raised:
        ledger.add(first, -1, idempotency_key="later", at=windows[1])
    assert raised.value.since == over
    kept = {key: item for key, item in made.home.items.items() if first in key.pk}
    assert kept
    retires = over - KEEP.late + KEEP.keep + timedelta(days=30)
    assert {int(item["retires"]["N"]) for item in kept.values()} == {int(retires.timestamp())}


def test_a_budget_of_two_windows_is_kept_or_refused_as_one() -> None:
    made = world(limits=LIMITS, periods=PERIODS)
    budgets = Budgets(made.ledger())
    names = both("k1", AT)
    with budgets.reserve(names, 8) as call:
        call.settle(5)
    with pytest.raises(OverBudget) as raised, budgets.reserve(names, 6):
        pass
    assert (raised.value.counter, raised.value.available) == (names[0], 5)
    assert raised.value.resets_at == FIVE.end(names[0])
    assert [made.value(name) for name in names] == [5, 5]


def test_a_window_carries_what_it_left_to_the_next_one() -> None:
    carrying = {"5h:": replace(KEEP, carry=4)}
    made = world(limits={"5h:": LIMITS["5h:"]}, periods=carrying)
    first, second = (FIVE.name("5h:k1", AT + number * timedelta(hours=5)) for number in (0, 1))
    made.now_ms = to_ms(AT)
    made.add(first, 7)
    # the first one is over in every zone, and the second one is not
    made.now_ms = to_ms(FIVE.end(first) + timedelta(hours=12))
    keyed: dict[str, Any] = {"at": FIVE.start(second)}
    made.ledger().add(second, 10, idempotency_key="a", **keyed)
    made.ledger().add(second, 3, idempotency_key="b", **keyed)
    with pytest.raises(LimitReached):
        made.ledger().add(second, 1, idempotency_key="c", **keyed)
    rows = made.reader().periods("5h:k1", FIVE, 5)
    shown = {row.counter: row for row in rows if row.counter in (first, second)}
    standings = [shown[name].standing for name in (first, second)]
    assert [(of.carried, of.took) for of in standings if of] == [(3, 0), (0, 3)]


def test_windows_count_exactly_in_two_regions_that_lag_and_lose() -> None:
    """In the simulator: calls in both Regions, each asked for again and again."""
    simulation = Simulation((A, B), seed=3, faults=Faults(lag_steps=20, throttled=30, lost=60))
    tables = {region: simulation.table(region) for region in (A, B)}
    ledgers, readers = [], []
    for region in (A, B):
        made = Settings(
            table="counters", region=region, regions=(A, B), limits=LIMITS, periods=PERIODS
        )
        ledgers.append(Ledger(made, tables=tables, clock=simulation.clock))
        readers.append(Reader(made, table=tables[region], clock=simulation.clock))

    def until_answered(call: Callable[[], Any]) -> Any:
        for _ in range(50):
            with suppress(TableError):
                return call()
        raise AssertionError("no answer")

    spent: dict[str, int] = {}
    refused_by = set()
    for number in range(24):
        at = simulation.now()
        names = both("k1", at)
        given: dict[str, Any] = {"idempotency_key": f"call {number}", "at": at, "region": A}
        for ledger in ledgers[:: (-1) ** number]:  # a retry elsewhere has the same answer
            ask = partial(ledger.hold_all, names, 3, expires=timedelta(days=2), **given)
            try:
                holds = until_answered(ask)
            except LimitReached as error:
                holds = None
                refused_by.add((error.counter or "").partition(":")[0])
        if holds is not None:
            until_answered(holds.capture)
            for name in names:
                spent[name] = spent.get(name, 0) + 3
        simulation.wait(40 * 60_000)
    simulation.come_to_rest()
    assert refused_by == {"5h", "week"}
    for name, value in spent.items():
        assert value <= (10 if name.startswith("5h:") else 25)
        assert [reader.value(name) for reader in readers] == [value] * 2, name


PAGE = Path(__file__).parents[2] / "docs" / "data-model.md"


def test_the_vectors_for_other_languages_are_those_of_the_code() -> None:
    found = list(rows(PAGE, "zone | window"))
    assert len(found) == 5
    for zone, window, anchor, at, end, ends in found:
        number, unit = window.split()
        first = datetime.fromisoformat(anchor.strip("`")) if anchor else 1
        period = Period(unit.removesuffix("s"), zone, first, int(number))
        name = period.name("a", datetime.fromisoformat(at.strip("`")))
        term = term_of(name, KEEP)
        assert term is not None
        assert (f"a{end.strip('`')}", ends) == (name, f"`{term.resets_at:%Y-%m-%dT%H:%MZ}`")
