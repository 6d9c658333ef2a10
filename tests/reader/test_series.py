"""`series` and `value_at`: at every border what the history sums to, from few items; and never a
short bar.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ledger import Change, Limit
from ledger.core import items
from ledger.core.checks import to_datetime
from ledger.core.errors import (
    InvalidCounter,
    InvalidInput,
    InvalidTime,
    NotYetReplicated,
    ReadTooSlow,
)
from ledger.core.requests import GetMany, Query, Transact
from reader import Entry, Reader, Series, Step
from tests.strategies import effort
from tests.world import (
    COUNTER,
    KEEP_MS,
    LANE,
    LATER_MS,
    READ_MS,
    A,
    B,
    Region,
    World,
    compactor,
    delta,
    folded,
    reader,
)

NOW, DAY, HOUR = to_datetime(LATER_MS), timedelta(days=1), timedelta(hours=1)
AGES = st.sampled_from([0, 1, 2, 10, 47, 50]).flatmap(
    lambda days: st.integers(days * 86_400, days * 86_400 + 7_200)
)
ACTS = st.lists(
    st.one_of(
        st.lists(AGES, min_size=1, max_size=5),  # the ages of changes, each alone
        st.tuples(AGES, st.integers(1, 4)),  # of a pack, and how many are in it
        st.sampled_from(["compact", "later"]),
    ),
    min_size=2,
    max_size=12,
)
ROOM_TAKEN = st.sampled_from([60, 780, 810])
"""Bytes of a checkpoint that its days may not take: so that they stay days, go together, or all
become one.
"""


def played(acts: Sequence[Any], **changed: Any) -> World:
    """A world in which each act happened; strays wait for a settle that may have come or not."""
    world = World(shards={COUNTER: 2}, fold_max=2, **changed)
    number = 0
    for act in [*acts, "compact", *acts[:1]]:
        if act == "compact":
            world.compactor().compact(COUNTER)
        elif act == "later":
            world.now_ms += KEEP_MS
        else:
            ages = [act[0]] * act[1] if isinstance(act, tuple) else act
            changes = []
            for age in ages:
                at, number = to_datetime(world.now_ms - age * 1_000), number + 1
                changes.append(
                    Change(COUNTER, (-1) ** number * number, idempotency_key=str(number), at=at)
                )
            world.ledger().add_many(changes, pack=isinstance(act, tuple))
    return world


def summed(entries: Sequence[Entry], steps: Sequence[Step]) -> list[tuple[int, int, int]]:
    """The change, the count and the value of each step, by a history."""
    inside = [
        [entry.change for entry in entries if step.start <= entry.at < step.end] for step in steps
    ]
    values = [sum(entry.change for entry in entries if entry.at < step.end) for step in steps]
    return [
        (sum(changes), len(changes), value) for changes, value in zip(inside, values, strict=True)
    ]


def sums(found: Series) -> list[tuple[int, int, int]]:
    return [(step.change, step.count, step.value) for step in found.steps]


@given(
    ACTS,
    ROOM_TAKEN,
    st.integers(1, 60 * 86_400),
    st.sampled_from(
        [("day", None), ("hour", None), ("week", None), ("month", None), (7 * HOUR, "Asia/Kolkata")]
    )
    | st.sampled_from(
        [("day", "America/St_Johns"), ("hour", "Asia/Kolkata"), ("month", "Pacific/Kiritimati")]
    ),
)
@effort(0.5)
def test_a_series_is_what_the_history_sums_to_at_every_border(
    acts: list[Any], taken: int, age: int, steps: tuple[Any, str | None]
) -> None:
    with patch("ledger.core.items.FREE_BYTES", taken):
        world = played(acts)
    asked, (every, zone) = world.reader(), steps
    since = to_datetime(world.now_ms - age * 1_000)
    entries = list(asked.history(COUNTER))
    found = asked.series(COUNTER, since=since, every=every, zone=zone)
    assert sums(found) == summed(entries, found.steps)
    assert found.steps[0].start <= since < found.steps[0].end
    assert found.steps[-1].start <= found.as_of == to_datetime(world.now_ms) < found.steps[-1].end
    assert all(before.end == after.start for before, after in pairwise(found.steps))
    assert asked.value_at(COUNTER, since) == sum(
        entry.change for entry in entries if entry.at < since
    )
    assert world.compactor().verify(COUNTER).ok


@given(ACTS, ROOM_TAKEN, st.integers(1, 60 * 86_400), st.data())
@effort(0.5)
def test_a_replica_without_a_segment_shows_no_short_bar(
    acts: list[Any], taken: int, age: int, data: st.DataObject
) -> None:
    with patch("ledger.core.items.FREE_BYTES", taken):
        world = played(acts)
    world.home.copy_to(world.away)
    segments = [key for key in world.away.items if key.sk.startswith("segment#")]
    assume(segments)
    world.away.drop(data.draw(st.sampled_from(segments)))
    since = to_datetime(world.now_ms - age * 1_000)
    for every in ("hour", "day"):
        try:
            found = world.reader(B).series(COUNTER, since=since, every=every)
        except NotYetReplicated:
            continue
        assert found == world.reader(A).series(COUNTER, since=since, every=every)


def test_an_hour_without_its_segment_leaves_its_day_known() -> None:
    home, away = folded(1, 2)
    home.copy_to(away)
    away.drop(items.segment_key(LANE, delta(1).token, 1))
    asked, since = reader(away, region=B), datetime(1970, 1, 1, tzinfo=UTC)
    assert sums(asked.series(COUNTER, since=since)) == [(20, 2, 20)]
    with pytest.raises(NotYetReplicated):
        asked.series(COUNTER, since=since, every=timedelta(seconds=2))
    with pytest.raises(NotYetReplicated):
        asked.value_at(COUNTER, since + timedelta(seconds=2))


def test_a_segment_of_a_later_version_is_not_counted() -> None:
    home, away = folded(1)
    home.copy_to(away)
    home.put(delta(2))
    compactor(home, away).compact(COUNTER)
    home.copy_to(away, items.delta_key(delta(2)), items.segment_key(LANE, delta(2).token, 2))
    found = reader(away, region=B).series(COUNTER, since=to_datetime(0), every=timedelta(seconds=2))
    assert sums(found)[:2] == [(4, 1, 4), (16, 1, 20)]


def test_strays_of_several_settles_after_a_bucket_are_found() -> None:
    world = World((A,))
    for days in (3, 1, 2, 2):
        world.add(COUNTER, 1, at=NOW - days * DAY)
        world.compactor().compact(COUNTER)
    since, until = NOW - 3 * DAY, NOW - 2 * DAY + HOUR
    steps = world.reader().series(COUNTER, since=since, until=until, every="hour").steps
    assert [step.start for step in steps if step.count == 2] == [steps[24].start]
    assert steps[-1].value == 3


def test_days_are_one_read_and_hours_the_segments_of_their_days() -> None:
    world = World((A,))
    for days in range(40, 0, -1):
        world.add(COUNTER, days, at=NOW - days * DAY)
        world.compactor().compact(COUNTER)
    world.home.asked.clear()
    days_back = 30
    found = world.reader().series(COUNTER, since=NOW - days_back * DAY)
    assert [step.change for step in found.steps] == [*range(days_back, 0, -1), 0]
    asked = [each for each in world.home.in_short if "shape" not in each]
    assert asked == [
        "getmany checkpoint strongly",
        "together: query delta strongly",
        "query delta strongly",
    ]
    world.home.asked.clear()
    assert (
        len(
            world.reader().series(COUNTER, since=NOW - 2 * DAY, until=NOW - DAY, every="hour").steps
        )
        == 24 + 1
    )
    assert world.home.in_short[-1] == "query segment 4 strongly"
    assert world.reader().value_at(COUNTER, NOW - 2 * DAY) == sum(range(3, 41))


def test_a_checkpoint_without_days_has_its_segments_read() -> None:
    world = played([[0, 90_000, 200_000], "compact", [0, 300_000], "compact"])
    for lane in world.settings().lanes_of(COUNTER, A):
        if items.checkpoint_key(lane) in world.home.items:
            world.home.forget_days(lane)
    whole = world.reader().series(COUNTER, since=NOW - 5 * DAY)
    assert sums(whole) == summed(list(world.reader().history(COUNTER)), whole.steps)
    assert Query in world.home.kinds
    world.add(COUNTER, 1, at=NOW - DAY)
    world.compactor().compact(COUNTER)
    checkpoint = items.checkpoint_key(world.settings().lanes_of(COUNTER, A)[0])
    assert "days" not in world.home.items[checkpoint]  # nobody guesses
    world.compactor().rebuild(COUNTER)
    assert "days" in world.home.items[checkpoint]
    found = world.reader().series(COUNTER, since=NOW - 5 * DAY)
    assert sums(found) == summed(list(world.reader().history(COUNTER)), found.steps)


def test_a_limited_counters_steps_are_what_its_gates_decided() -> None:
    world = World(limits={"seats:": Limit(ceiling=10, region=A)})
    for number, days in ((4, 3), (5, 2), (9, 2), (-2, 1)):
        try:
            world.add("seats:gig", number, at=NOW - days * DAY)
        except Exception:
            assert number == 9
    found = world.reader().series("seats:gig", since=NOW - 3 * DAY)
    assert sums(found) == [(4, 1, 4), (5, 1, 9), (-2, 1, 7), (0, 0, 7)]
    assert world.reader().value_at("seats:gig", NOW - DAY) == 9


def test_a_read_that_takes_too_long_starts_again_then_fails() -> None:
    with pytest.raises(ReadTooSlow, match=f"^{COUNTER}: "):
        reader(Region().takes(READ_MS)).series(COUNTER, since=to_datetime(0))


def test_a_fold_within_a_read_changes_no_bar() -> None:
    home, away = folded(1, later=(2,))
    home.after(
        GetMany, lambda _, answer: (compactor(home, away).compact(COUNTER), answer)[1], times=1
    )
    assert sums(reader(home).series(COUNTER, since=to_datetime(0))) == [(20, 2, 20)]
    assert Transact in home.kinds


PARIS = ZoneInfo("Europe/Paris")


@pytest.mark.parametrize(
    ("every", "zone", "since", "until", "starts"),
    [
        (
            "day",
            PARIS,
            "2025-10-25T12:00",
            "2025-10-27T01:00",
            ["25T00:00+02", "26T00:00+02", "27T00:00+01"],
        ),
        (
            "hour",
            PARIS,
            "2025-10-26T02:30",
            "2025-10-26T03:10",
            ["26T02:00+02", "26T02:00+01", "26T03:00+01"],
        ),
        ("hour", PARIS, "2025-03-30T01:30", "2025-03-30T04:00", ["30T01:00+01", "30T03:00+02"]),
        ("week", UTC, "2025-01-01T00:00", "2025-01-06T00:01", ["30T00:00+00", "06T00:00+00"]),
        ("month", PARIS, "2025-01-31T10:00", "2025-03-01T00:00", ["01T00:00+01", "01T00:00+01"]),
        (
            "day",
            ZoneInfo("Pacific/Apia"),
            "2011-12-29T12:00",
            "2011-12-31T12:00",
            ["29T00:00-10", "31T00:00+14"],
        ),
        (5 * HOUR, UTC, "2025-01-01T06:00", "2025-01-01T11:00", ["01T05:00+00", "01T10:00+00"]),
    ],
    ids=str,
)
def test_steps_follow_the_calendar_of_the_zone(
    every: Any, zone: Any, since: str, until: str, starts: list[str]
) -> None:
    first, last = (datetime.fromisoformat(each).replace(tzinfo=zone) for each in (since, until))
    name = None if zone is UTC else zone.key
    world = World(now_ms=2 * LATER_MS)
    found = world.reader().series(COUNTER, since=first, until=last, every=every, zone=name)
    assert [f"{step.start:%dT%H:%M%z}"[:-2] for step in found.steps] == starts
    for step in found.steps:
        assert (
            step.end - step.start
        ).total_seconds() == step.end.timestamp() - step.start.timestamp()
    assert found.steps[0].start <= first
    assert found.steps[-1].start < last <= found.steps[-1].end


HERE: dict[str, Any] = {"since": NOW - DAY}
LATER = to_datetime(LATER_MS + 1)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"since": NOW, "until": NOW}, InvalidInput, "since is not before until"),
        ({"until": NOW - 2 * DAY}, InvalidInput, "since is not before until"),
        ({"since": LATER, "until": NOW + DAY}, InvalidTime, "since=2023-11-14T22:13:20.001"),
        (
            {"until": datetime(9999, 12, 1, tzinfo=UTC), "every": 400 * DAY},
            InvalidTime,
            "after November 9999",
        ),
        (
            {"until": datetime.max.replace(tzinfo=UTC), "every": 365 * DAY},
            InvalidTime,
            "after November 9999",
        ),
        ({"until": datetime(9990, 1, 1, tzinfo=UTC)}, InvalidInput, "more than 10,000 steps"),
        ({"since": datetime(1969, 12, 31, tzinfo=UTC)}, InvalidTime, "before 1970"),
        ({"since": datetime(2023, 1, 1)}, InvalidTime, "time zone"),
        ({"zone": "Europe/Pariss"}, InvalidInput, "install the package tzdata"),
        ({"zone": "Europe"}, InvalidInput, "IANA"),
        ({"zone": ""}, InvalidInput, "IANA"),
        ({"every": timedelta(0)}, InvalidInput, "above 0"),
        ({"every": timedelta.max}, InvalidInput, "at most 100 years"),
        ({"every": timedelta(microseconds=1_500)}, InvalidInput, "whole milliseconds"),
        ({"every": "year"}, InvalidInput, '"month"'),
        ({"every": timedelta(seconds=5)}, InvalidInput, "more than 10,000 steps"),
        ({"every": "hour", "limit": 23}, InvalidInput, "more than 23 steps"),
        ({"limit": 10_001}, InvalidInput, "limit"),
        ({"counter": "a b"}, InvalidCounter, "name"),
    ],
    ids=str,
)
def test_what_cannot_be_a_series_is_refused_and_nothing_is_sent(
    wrong: dict[str, Any], error: type[Exception], says: str
) -> None:
    world = World()
    with pytest.raises(error, match=says):
        world.reader().series(**{"counter": COUNTER, **HERE, **wrong})
    with pytest.raises(InvalidTime):
        world.reader().value_at(COUNTER, LATER)
    assert not world.home.kinds


def test_a_chart_of_today_goes_on_to_midnight() -> None:
    """What a clock that is ahead has put is in the step of its time; all others of the future
    have nothing.
    """
    world = World()
    world.add(COUNTER, 3, at=NOW - DAY)
    world.add(COUNTER, 5, at=NOW - HOUR)
    world.add(COUNTER, 7, at=NOW + timedelta(minutes=4))
    midnight = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
    found = world.reader().series(COUNTER, since=midnight, until=midnight + DAY, every="hour")
    assert (found.steps[0].start, found.steps[-1].end, len(found.steps)) == (
        midnight,
        midnight + DAY,
        24,
    )
    future = [step for step in found.steps if step.start > found.as_of]
    assert [each for each in sums(found) if each[1]] == [(5, 1, 8), (7, 1, 15)]
    assert {(step.change, step.count, step.value) for step in future} == {(0, 0, 15)}
    assert len(future) == 23 - NOW.hour
    with pytest.raises(InvalidTime):
        world.reader().value_at(COUNTER, midnight + DAY)


@pytest.mark.parametrize("every", ["hour", "day", "week", "month", timedelta(days=7)])
def test_the_steps_until_now_are_the_same_whatever_follows_them(every: Any) -> None:
    world = played([[0, 90_000, 200_000], "compact", [0, 300_000]])
    until_now = world.reader().series(COUNTER, since=NOW - 5 * DAY, every=every)
    further = world.reader().series(
        COUNTER, since=NOW - 5 * DAY, until=NOW + 300 * DAY, every=every
    )
    assert further.steps[: len(until_now.steps)] == until_now.steps
    future = {(step.change, step.value) for step in further.steps[len(until_now.steps) :]}
    assert future == {(0, until_now.steps[-1].value)}


def test_a_consistent_read_has_what_was_added_just_before() -> None:
    """Where eventually consistent reads lag; a reader of these may see the past."""
    world = World(limits={"seats:": Limit(ceiling=10, region=A)})
    world.add("seats:gig", 4)
    world.home.lag()
    world.add("seats:gig", 5)
    later = to_datetime(world.now_ms + 1)
    world.now_ms += 1_000

    def values(consistent: bool) -> list[int]:
        reader = Reader(
            world.settings(), consistent=consistent, table=world.home, clock=world.clock
        )
        return [
            reader.series("seats:gig", since=later - DAY).steps[-1].value,
            reader.value_at("seats:gig", later),
            sum(entry.change for entry in reader.history("seats:gig")),
            sum(entry.change for entry in reader.history_page("seats:gig").entries),
            reader.standing("seats:gig").value,
            reader.read("seats:gig").value,
        ]

    assert (values(True), values(False)) == ([9] * 6, [4] * 6)


def test_so_many_steps_as_the_limit_says_are_a_series() -> None:
    assert len(World().reader().series(COUNTER, **HERE, every="hour", limit=25).steps) == 25
