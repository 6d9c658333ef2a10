"""Periods: what their names say, what they take and until when, with which limit they open, what is
carried, and that their items, and no others, retire."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import Change, Keep, Ledger, Limit, Period, Settings, Threshold
from ledger.core.checks import to_datetime, to_ms
from ledger.core.errors import (
    InvalidCounter,
    InvalidInput,
    InvalidSettings,
    InvalidTime,
    LimitReached,
    OutOfReach,
    PeriodOver,
    SettingsMismatch,
    Unavailable,
)
from ledger.core.keep import term_of
from ledger.core.period_name import UNITS, parted
from ledger.core.requests import Get
from ledger.core.values import Lane
from ledger.gate import items as gates
from ledger.lane import directory
from ledger.lane.shape import stored
from tests.world import A, B, World, fail, outcomes_of, refused

ZONES = (
    "UTC",
    "Europe/Paris",
    "Asia/Kolkata",
    "America/St_Johns",
    "Pacific/Kiritimati",
    "Etc/GMT+12",
    "Asia/Tehran",
)
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
PERIODS = st.builds(
    lambda unit, zone, anchor: Period(unit, zone, anchor if unit == "month" else 1),
    st.sampled_from(UNITS),
    st.sampled_from(ZONES),
    st.integers(1, 28),
)
KEEP = Keep(late=timedelta(days=15), keep=timedelta(days=400))
NOVEMBER, DECEMBER = (datetime(2026, month, 20, tzinfo=UTC) for month in (11, 12))
KEY, NAME, NEXT = "llm:key", "llm:key@2026-11", "llm:key@2026-12"
LIMITS = {"llm:": Limit(ceiling=50, region=A)}


def world(**changed: Any) -> World:
    given: dict[str, Any] = {"limits": LIMITS, "periods": {"llm:": KEEP, "plain:": KEEP}, **changed}
    return World(now_ms=to_ms(NOVEMBER), **given)


def at(made: World, moment: datetime) -> None:
    made.now_ms = to_ms(moment)


@given(period=PERIODS, moment=MOMENTS)
def test_a_moment_is_in_the_period_of_its_name_in_every_zone(
    period: Period, moment: datetime
) -> None:
    name = period.name("base@x", moment)
    assert period.start(name) <= moment < period.end(name)
    term = term_of(name, KEEP)
    assert term is not None
    assert (term.base, term.name, term.is_good_for(to_ms(moment))) == ("base@x", name, True)
    following = period.name("base@x", period.end(name).astimezone(UTC))
    assert period.start(following) == period.end(name)
    assert parted(following)[1] == term.span.next
    assert term.span.next.before == term.span
    assert period.names("base@x", moment, period.end(name) + timedelta(seconds=1)) == [
        name,
        following,
    ]
    assert period.last("base@x", 2, period.end(name).astimezone(UTC)) == [name, following]


CLOCKS_CHANGE = {
    "Europe/Paris": (2026,),
    "Antarctica/Troll": (2019, 2026),  # by two hours
    "Asia/Gaza": (1996, 2011, 2016, 2022),  # at a minute past midnight, too
    "Australia/Lord_Howe": (2026,),  # by half an hour
    "America/Havana": (2026,),  # at midnight
    "Pacific/Apia": (2011,),  # over the date line: a day is missing
    "America/Juneau": (1983,),
}


def changes_of_clocks(zone: str, year: int) -> list[datetime]:
    hours = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in range(366 * 24)]
    offsets = [hour.astimezone(ZoneInfo(zone)).utcoffset() for hour in hours]
    return [hours[i] for i in range(1, len(hours)) if offsets[i] != offsets[i - 1]]


@pytest.mark.parametrize("zone", CLOCKS_CHANGE)
def test_a_period_holds_each_of_its_moments_and_has_some(
    zone: str,
) -> None:
    changes = [change for year in CLOCKS_CHANGE[zone] for change in changes_of_clocks(zone, year)]
    assert len(changes) >= 2 * len(CLOCKS_CHANGE[zone]) - (zone == "Pacific/Apia")
    for period in (Period(unit, zone) for unit in UNITS):
        for change in changes:
            since, until = change - timedelta(hours=30), change + timedelta(hours=4)
            moments = [since + timedelta(minutes=i) for i in range(34 * 60)]
            name_of = {moment: period.name("b", moment) for moment in moments}
            for moment in {at for name in {*name_of.values()} for at in ends_of(name, name_of)}:
                name = name_of[moment]
                assert period.start(name) <= moment < period.end(name), (name, moment)
            met = sorted({*name_of.values()})
            assert period.names("b", since, until) == met
            last = period.last("b", len(met), moments[-1])
            assert [name for name in last if name >= met[0]] == met
            assert all(period.start(name) < period.end(name) for name in last)
            borders = [period.start(name) for name in met[1:]]
            assert borders == sorted({*borders})


def ends_of(name: str, name_of: dict[datetime, str]) -> tuple[datetime, datetime]:
    moments = [moment for moment, of in name_of.items() if of == name]
    return moments[0], moments[-1]


def test_an_hour_shown_twice_is_two_hours_and_a_skipped_one_none() -> None:
    hour, at = Period("hour", "Europe/Paris"), datetime(2026, 10, 25, 3, 30, tzinfo=UTC)
    assert hour.last("b", 3, at) == ["b@2026-10-25T02", "b@2026-10-25T03", "b@2026-10-25T04"]
    twice = hour.end("b@2026-10-25T02") - hour.start("b@2026-10-25T02")
    assert twice == timedelta(hours=2)
    at = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert hour.last("b", 3, at) == ["b@2026-03-29T00", "b@2026-03-29T01", "b@2026-03-29T03"]
    assert hour.names("b", at - timedelta(hours=2), at) == [
        "b@2026-03-29T00",
        "b@2026-03-29T01",
        "b@2026-03-29T03",
    ]


def test_names_leave_out_the_period_that_begins_at_until() -> None:
    new_year = [datetime(year, 1, 1, tzinfo=UTC) for year in (2025, 2026)]
    months = Period("month").names(KEY, *new_year)
    assert (len(months), months[0], months[-1]) == (12, f"{KEY}@2025-01", f"{KEY}@2025-12")
    a_moment_later = new_year[1] + timedelta(milliseconds=1)
    assert Period("month").names(KEY, new_year[0], a_moment_later) == [*months, f"{KEY}@2026-01"]


def test_a_period_is_spelt_in_one_way() -> None:
    names = {
        "month": NAME,
        "week": "llm:key@2026-W47",
        "day": "llm:key@2026-11-20",
        "hour": "llm:key@2026-11-20T00",
    }
    for unit, name in names.items():
        assert Period(unit).name(KEY, NOVEMBER) == name
    assert (
        Period("month", anchor=15).name(KEY, datetime(2026, 11, 14, tzinfo=UTC))
        == "llm:key@2026-10-15M"
    )
    assert (
        Period("day", "Pacific/Kiritimati").name(KEY, NOVEMBER + timedelta(hours=10))
        == "llm:key@2026-11-21"
    )
    paris = Period("month", "Europe/Paris")
    assert paris.end(NAME) == datetime(2026, 12, 1, tzinfo=ZoneInfo("Europe/Paris"))
    wrong = (
        "2026-13",
        "2026-02-30",
        "2026-1",
        "2021-W53",
        "2026-11-20T24",
        "2026-11-01M",
        "2026-11-29M",
    )
    for text in (*wrong, "1969", "9999"):
        assert parted(f"a@{text}") == (f"a@{text}", None)
    assert parted("@2026") == ("@2026", None)
    year, first, last = (
        Period("year"),
        datetime(1971, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC),
    )
    assert year.last("a", 3, first) == ["a@1970", "a@1971"]
    assert year.names("a", last.replace(year=9998), last) == ["a@9998"]


def test_a_name_is_made_of_the_texts_of_an_enum() -> None:
    class Of(str, Enum):  # noqa: UP042 -- the older spelling, whose str() is not its text
        KEY, UNIT, ZONE = KEY, "month", "Europe/Paris"

    period = Period(Of.UNIT, Of.ZONE)
    assert (period.name(Of.KEY, NOVEMBER), period) == (NAME, Period("month", "Europe/Paris"))
    assert (
        period.last(Of.KEY, 1, NOVEMBER)
        == period.names(Of.KEY, NOVEMBER, period.end(NAME))
        == [NAME]
    )


def test_what_is_no_period_is_refused_with_the_remedy() -> None:
    wrong: list[tuple[Any, type[Exception], str]] = [
        (lambda: Period("fortnight"), InvalidInput, "none of year, month"),
        (lambda: Period("month", "Europe/Pari"), InvalidInput, "no time zone .*tzdata"),
        (lambda: Period("month", ""), InvalidInput, "no time zone"),
        (lambda: Period("month", anchor=29), InvalidInput, "from 1 to 28"),
        (lambda: Period("day", anchor=2), InvalidInput, "of months alone"),
        (
            lambda: Period("month").start("llm:key@2026-W47"),
            InvalidCounter,
            "does not end with a period such as @2026",
        ),
        (
            lambda: Period("month").name(NAME, NOVEMBER),
            InvalidCounter,
            "Give the name without its period",
        ),
        (
            lambda: Period("month").name(KEY, datetime(2026, 1, 1)),
            InvalidTime,
            "^at=.* no time zone",
        ),
        (
            lambda: Period("month").name(KEY, datetime(1969, 1, 1, tzinfo=UTC)),
            InvalidTime,
            "1970 to 9998",
        ),
        (lambda: Period("month").names(KEY, DECEMBER, NOVEMBER), InvalidInput, "is after until"),
        (
            lambda: Period("hour").names(KEY, NOVEMBER, NOVEMBER.replace(year=2028)),
            InvalidInput,
            "more than 10,000",
        ),
        (lambda: Period("hour").last(KEY, 0, NOVEMBER), InvalidInput, "no number of periods"),
        (lambda: Period("hour").last(KEY, 10_001, NOVEMBER), InvalidInput, "no number of periods"),
        (
            lambda: Keep(late=timedelta(days=2), keep=timedelta(days=1)),
            InvalidSettings,
            "is longer than keep",
        ),
        (
            lambda: Keep(late=timedelta(seconds=0.5), keep=timedelta(1)),
            InvalidSettings,
            "whole seconds",
        ),
        (lambda: Keep(late=timedelta(-1), keep=timedelta(1)), InvalidSettings, "0 or more"),
        (
            lambda: Keep(late=timedelta(0), keep=timedelta(36_525, 1)),
            InvalidSettings,
            "longer than 36,525 days",
        ),
        (lambda: Keep(late=timedelta(0), keep=timedelta(1), carry=-1), InvalidSettings, "carry=-1"),
        (
            lambda: Keep(late=timedelta(0), keep=timedelta(1), carry=10**18 + 1),
            InvalidSettings,
            "carry=1",
        ),
    ]
    for call, error, says in wrong:
        with pytest.raises(error, match=says):
            call()
    carried = Keep(late=timedelta(0), keep=timedelta(0), carry=1)
    for limits in ({}, {"llm:": Limit(floor=0)}, {**LIMITS, "llm:free": Limit(floor=0)}):
        with pytest.raises(InvalidSettings, match="carry=1 carries what is left of a ceiling"):
            world(limits=limits, periods={"llm:": carried}).settings()
    of_one = (
        {"limits": {NAME: Limit(ceiling=5, region=A)}, "periods": {"llm:": KEEP}},
        {"periods": {NAME: KEEP}},
    )
    for each in of_one:
        with pytest.raises(
            InvalidSettings,
            match=f"the prefix {NAME} names a period.*set_limit sets the limit of one",
        ):
            Settings(table="counters", region=A, **cast(Any, each))
    with pytest.raises(InvalidSettings, match="is not a Keep"):
        world(periods={"llm:": timedelta(1)}).settings()


def test_the_environment_says_periods_in_seconds() -> None:
    said = {"LEDGER_PERIODS": '{"llm:": {"late_s": 1296000, "keep_s": 34560000}}'}
    assert Settings.from_env(said, table="counters", region=A).periods == {"llm:": KEEP}
    wrong = (
        '{"late_s": 1}',
        '{"late_s": 1, "keep_s": 2, "kept": 3}',
        "5",
        '{"late_s": true, "keep_s": 2}',
    )
    for text in (f'{{"llm:": {each}}}' for each in wrong):
        with pytest.raises(InvalidSettings, match="LEDGER_PERIODS"):
            Settings.from_env({"LEDGER_PERIODS": text}, table="counters", region=A)


def test_a_period_takes_changes_of_its_time_and_a_base_none() -> None:
    made = world()
    for counter in (NAME, "plain:a@2026-11"):
        assert made.add(counter, 1).outcome == "recorded"
        made.ledger().add(counter, 1)  # without a key its time is now
    writer = made.ledger()
    base = made.ledger().prepare(NAME, 1, **made.key())
    for counter, error, says in (
        (KEY, InvalidCounter, "ends with no period.*Period.name"),
        ("plain:a@b", InvalidCounter, "ends with no period"),
        (f"{NAME}@2026-11", InvalidCounter, "llm:key@2026-11 is no base"),
        ("llm:key@2026-12b@2026-11", InvalidCounter, "has no @ before four digits"),
        (NEXT, InvalidTime, "is not in the period of llm:key@2026-12"),
        ("plain:a@2026-10", InvalidTime, "is not in the period"),
    ):
        with refused(made.home, error, says):
            writer.add(counter, 1, **made.key())
        (outcome,) = writer.add_many([Change(counter, 1, **made.key())])
        assert isinstance(outcome, error)
    moved = type(base)(Lane(A, 0, NEXT), base.token, 1)
    with refused(made.home, InvalidTime):
        writer.apply(moved)
    with refused(made.home, InvalidCounter):
        writer.hold(KEY, 1, expires=timedelta(hours=1), **made.key())
    # where no prefix has periods, an @ is a letter as any
    assert made.add("other:a@b", 1).outcome == "recorded"


def test_a_period_that_is_over_takes_nothing_by_any_way() -> None:
    made = world()
    keyed = made.key()
    first = made.ledger().add(NAME, 4, **keyed)
    hold = made.ledger().hold(NAME, 3, expires=timedelta(days=399), **made.key())
    other = made.ledger().hold(NAME, 2, expires=timedelta(days=399), **made.key())
    at(made, datetime(2026, 12, 16, 11, 59, tzinfo=UTC))
    assert made.ledger().add(NAME, 4, **keyed).outcome == "replayed"
    at(made, datetime(2026, 12, 16, 12, tzinfo=UTC))
    calls: list[Any] = [
        lambda: made.ledger().add(NAME, 4, **keyed),
        lambda: made.ledger(gather=True).add(NAME, 4, **keyed),
        lambda: made.ledger().apply(first.delta),
        lambda: made.ledger().hold(NAME, 3, expires=timedelta(days=399), **keyed),
        lambda: made.ledger().set_limit(NAME, ceiling=7),
    ]
    for call in calls:
        with refused(
            made.home, PeriodOver, "since 2026-12-16T12:00Z the period takes no more changes"
        ) as raised:
            call()
        assert (raised.value.counter, raised.value.since) == (
            NAME,
            datetime(2026, 12, 16, 12, tzinfo=UTC),
        )
    made.home.asked.clear()
    changes = [Change(NAME, 4, **keyed), Change(NEXT, 1, **made.key())]
    assert outcomes_of(made.ledger().add_many(changes)) == ["PeriodOver", "recorded"]
    assert not [
        request
        for request in made.home.asked
        if isinstance(request, Get) and NAME in request.key.pk
    ]
    assert made.ledger().capture(hold).outcome == "recorded"
    assert made.value(NAME) == 7
    at(made, datetime(2028, 1, 5, 12, tzinfo=UTC))
    with refused(made.home, PeriodOver, "is kept no longer"):
        made.ledger().release(other)


def test_all_items_of_a_period_say_when_they_retire() -> None:
    made = world(fold_min=1)
    for n in range(60):
        made.add("plain:a@2026-11", 1)
        made.add("stock", 1)
        made.add(NAME, n % 2, B)
        if n < 49:
            made.ledger(B).hold("llm:b@2026-11", 1, expires=timedelta(days=9), **made.key())
        made.now_ms += 100
    made.ledger().add_many(
        [Change("plain:a@2026-11", 1, **made.key()) for _ in range(3)], pack=True
    )
    made.now_ms += 10**6
    for counter in ("plain:a@2026-11", "stock"):
        for _ in range(2):
            made.compactor().compact(counter)
            made.replicate()
    made.compactor().run()
    made.compactor(B).run()
    kinds = set()
    for table in made.regions.values():
        for key, item in table.items.items():
            name = (
                key.pk.rpartition("#")[2]
                if not key.pk.startswith("lane#")
                else key.sk.rpartition("#")[2]
            )
            retires = int(item["retires"]["N"]) if "retires" in item else 0
            assert retires == made.settings().retires_s(name), key
            if retires:
                kinds.add(f"{key.pk.partition('#')[0]} {key.sk.partition('#')[0][:7]}")
    (end,) = {made.settings().retires_s(name) for name in (NAME, "plain:a@2026-11")}
    assert datetime.fromtimestamp(end, UTC) == datetime(2026, 12, 1, 12, tzinfo=UTC) + timedelta(
        days=430
    )
    assert {
        "gate gate",
        "past segment",
        "fold segment",
        "fold checkpo",
        "fold clean",
        "lane 0",
    } <= kinds
    assert {"hold", "delta"} <= {kind.partition(" ")[0] for kind in kinds}


def test_a_period_kept_no_longer_is_not_looked_at() -> None:
    made = world()
    made.add("plain:a@2026-11", 1)
    made.add(NAME, 1)
    made.now_ms += 10**6
    made.compactor().compact("plain:a@2026-11")
    made.compactor().run()
    made.add("plain:a@2026-11", 1)
    segment = next(key for key in made.home.items if "segment" in key.sk)
    at(made, datetime(2028, 1, 5, 12, tzinfo=UTC))
    made.home.drop(segment, gates.gate_key(Lane(A, 0, NAME)))
    later = "plain:a@2028-01"
    made.add(later, 5)
    for name in ("plain:a@2026-11", NAME):
        for call in (
            made.reader().read,
            made.reader().history,
            made.reader().history_page,
            made.reader().value,
        ):
            with pytest.raises(PeriodOver, match="kept no longer"):
                call(name)
        with pytest.raises(PeriodOver, match="kept no longer"):
            made.compactor().verify(name)
    assert made.compactor().run().problems == {}
    assert made.compactor().compact("plain:a@2026-11").commits == 0
    for lane in (Lane(A, 0, name) for name in ("plain:a@2026-11", NAME, later)):
        made.home.store([directory.item_of(lane)])
    listed = made.reader().counters("", limit=100).counters
    assert later in listed
    assert not {"plain:a@2026-11", NAME} & {*listed}


def test_a_limit_of_the_base_is_that_of_each_later_period() -> None:
    made = world()
    made.add(NAME, 1)
    made.ledger(B).set_limit(KEY, ceiling=9)
    made.ledger().set_limit(NAME, ceiling=7)
    assert (made.reader().standing(NAME).ceiling, made.reader().standing(NEXT).ceiling) == (7, 9)
    (crossed,) = made.reader(thresholds={"llm:": (Threshold(left=10),)}).crossed(NEXT)
    assert crossed.above == -1
    at(made, DECEMBER)
    made.add(NEXT, 8, B)
    assert made.reader().standing(NEXT).ceiling == 9
    with pytest.raises(LimitReached) as raised:
        made.add(NEXT, 2)
    assert (raised.value.limit, raised.value.resets_at) == (9, datetime(2027, 1, 1, tzinfo=UTC))
    for wrong, says in (
        ({"floor": 5}, "floor=5"),
        ({"ceiling": -1}, "ceiling=-1"),
        ({"ceiling": "9"}, "not '9'"),
    ):
        with pytest.raises(InvalidInput, match=says):
            world(limits={"llm:": Limit(floor=0, ceiling=9, region=A)}).ledger().set_limit(
                KEY, **cast(Any, wrong)
            )
    made.replicate()
    found = made.reader().periods(KEY, Period("month"), 3)
    assert [
        (each.counter, each.value, each.standing.ceiling) for each in found if each.standing
    ] == [
        ("llm:key@2026-10", 0, 9),  # nobody opened it
        (NAME, 1, 7),
        (NEXT, 8, 9),
    ]
    with pytest.raises(InvalidInput, match="No prefix of periods"):
        made.reader().periods("stock", Period("month"))


def test_the_next_period_is_never_said_to_begin_in_the_past() -> None:
    """Two hours after the end by UTC it goes on in Los Angeles, and no settings know the zone of
    a name.
    """
    made = world()
    ledger, key = made.ledger(), made.key()
    made.add(NAME, 50)
    end = datetime(2026, 12, 1, tzinfo=UTC)
    for before_ms, resets_at in (
        (3_600_000, end),
        (1, end),
        (0, None),
        (-1, None),
        (-7_200_000, None),
    ):
        at(made, end)
        made.now_ms -= before_ms
        named = {**key, "at": to_datetime(made.now_ms)}
        for _ in range(2):  # by what all lanes have, or by memory; and again
            with pytest.raises(LimitReached) as raised:
                ledger.add(NAME, 2, **named)
            assert raised.value.resets_at == resets_at


def test_what_is_carried_passes_no_ceiling_that_a_gate_can_have() -> None:
    most = 10**18
    made = world(
        limits={"llm:": Limit(ceiling=most, region=A)}, periods={"llm:": replace(KEEP, carry=most)}
    )
    made.add(NAME, 1)
    at(made, DECEMBER)
    made.add(NEXT, most)
    with pytest.raises(LimitReached):
        made.add(NEXT, 1)
    assert (made.reader().standing(NEXT).ceiling, made.compactor().verify(NEXT).differences) == (
        most,
        (),
    )


def test_a_change_that_cannot_ask_the_period_before_fails() -> None:
    made = world(periods={"llm:": Keep(late=KEEP.late, keep=KEEP.keep, carry=20)})
    made.ledger().hold(NAME, 45, expires=timedelta(days=1), **made.key())  # which is over by then
    at(made, datetime(2026, 12, 1, 13, tzinfo=UTC))
    made.add(NEXT, 50)
    keyed = made.key()
    old = gates.gate_key(Lane(A, 0, NAME))
    made.home.before(
        lambda request: getattr(request, "key", None) == old, fail(Unavailable("down")), times=1
    )
    with pytest.raises(OutOfReach, match="could not be carried"):
        made.ledger().add(NEXT, 3, **keyed)
    assert made.ledger().add(NEXT, 3, **keyed).outcome == "recorded"
    assert made.reader().standing(NEXT).ceiling == 50 + 20


def test_the_shape_has_periods_and_takes_shards_of_one_to_come() -> None:
    made = world()
    made.shape()
    shape = made.home.run(stored())
    assert shape is not None
    assert {**shape.periods} == {"llm:": KEEP, "plain:": KEEP}
    made.add("plain:a@2026-11", 1)
    for wrong in ({}, {"llm:": KEEP, "plain:": Keep(late=KEEP.late, keep=timedelta(days=500))}):
        with refused(
            made.home, SettingsMismatch, 'process (none|{.*"keep_s": 43200000}): .* never change'
        ):
            made.ledger(periods=wrong).add("plain:a@2026-11", 1)
    more = {"llm:": KEEP, "plain:": KEEP, "new:": KEEP}
    with refused(
        made.home,
        SettingsMismatch,
        'lacks periods.*=\'.*"new:": {"late_s": 1296000, "keep_s": 34560000}}',
    ):
        made.ledger(periods=more).add("new:a@2026-11", 1)
    for made.awaits, pack in ((True, True), (False, True), (False, False)):
        changes = [
            Change(name, 1, **made.key())
            for name in ("new:a@2026-11", "plain:a@2026-11", "new:a@2026-11")
        ]
        first, second, third = outcomes_of(made.ledger(periods=more).add_many(changes, pack=pack))
        assert (first, second != first, third) == ("SettingsMismatch", True, "SettingsMismatch")
    made.shape(periods=more)
    made.ledger(periods=more).add("new:a@2026-11", 1)
    made.home.put(made.ledger(periods={}, limits={}, unshared_limits=True).prepare("old:a", 1))
    made.home.store([directory.item_of(Lane(A, 0, "old:a"))])
    with pytest.raises(SettingsMismatch, match="there are the counters old:a"):
        made.shape(periods={**more, "old:": KEEP})
    to_come = {"plain:a@2026-12": 8}
    for shards in ({"plain:a@2026-11": 8}, {"plain:a@2027-01": 8, "plain:a@2026-11": 2}):
        with pytest.raises(SettingsMismatch, match="that period has begun"):
            made.shape(periods=more, shards=shards)
    for shards in ({"plain:a": 8}, {"other:": 2}):
        with pytest.raises(SettingsMismatch, match="shards"):
            made.shape(periods=more, shards=shards)
    made.ledger(periods=more, shards=to_come).add("plain:a@2026-11", 1)  # processes first
    at(made, DECEMBER - timedelta(days=20))
    made.shape(periods=more, shards=to_come)
    with refused(made.home, SettingsMismatch, "it would add where nobody reads"):
        made.ledger(periods=more).add("plain:a@2026-11", 1)
    at(made, DECEMBER)
    writer = made.ledger(periods=more, shards=to_come)
    lanes = {writer.add("plain:a@2026-12", 1, **made.key()).delta.lane.shard for _ in range(40)}
    assert len(lanes) > 3
    assert made.reader(periods=more, shards=to_come).value("plain:a@2026-12") == 40
    turn = datetime(2026, 12, 31, 9, tzinfo=UTC)  # an hour before the next year begins somewhere
    at(made, turn - timedelta(days=7))  # when the first week of that year may begin
    with pytest.raises(SettingsMismatch, match="that period has begun"):
        made.shape(periods=more, shards={**to_come, "plain:a@2027": 2})
    at(made, turn - timedelta(milliseconds=1))
    made.shape(periods=more, shards={**to_come, "plain:a@2027-01": 2})


def test_the_first_use_of_periods_writes_the_shape() -> None:
    name = "plain:a@2026-11"
    adds: list[Any] = [
        Ledger.add,
        lambda by, *change: by.add_many([Change(*change), Change(*change)], pack=True),
    ]
    for add in adds:
        made = world(limits={})
        add(made.ledger(), name, 1)
        shape = made.home.run(stored())
        assert shape is not None
        assert "plain:" in shape.periods
