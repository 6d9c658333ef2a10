"""`series`, and `get --at`: bars, files and the steps that `--last` means."""

import csv
import io
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ledgerctl.series import Every, back
from tests.ledgerctl.support import Tables, refused


@pytest.fixture
def tables() -> Tables:
    made = Tables()
    for key, change, at in (
        ("a", 8, "2027-01-13T10:00"),
        ("b", -4, "2027-01-14T23:30"),
        ("c", 2, "2027-01-15T07:00"),
    ):
        made(f"add c {change} --key {key} --at {at}:00Z")
    return made


def test_the_last_steps_are_bars_that_end_today(tables: Tables) -> None:
    shown = tables("series c --last 4").out.splitlines()
    assert [line.split()[0] for line in shown[1:]] == [
        "2027-01-12",
        "2027-01-13",
        "2027-01-14",
        "2027-01-15",
    ]
    assert [line.split()[-3:] for line in shown[2:]] == [
        ["+8", "1", "8"],
        ["-4", "1", "4"],
        ["+2", "1", "6"],
    ]
    bars = [line[12:36] for line in shown[1:]]
    assert bars[0].strip() == ""
    assert (bars[1].rstrip(), bars[2].rstrip()) == (" " * 8 + "\u2588" * 16, "\u2588" * 8)
    assert len(tables("series c --every hour").out.splitlines()) == 1 + 30


def test_a_zone_moves_the_days_and_files_have_a_row_a_step(tables: Tables) -> None:
    first = {"start": "2027-01-12T23:00:00.000Z", "end": "2027-01-13T23:00:00.000Z"}
    typed = "series c --since 2027-01-13 --zone Europe/Paris"
    documents = tables.json(typed)
    assert documents[0] == first | {"change": 8, "count": 1, "value": 8}
    assert [each["change"] for each in documents] == [8, 0, -2]
    (american, *_) = tables.json("series c --since 2027-01-13 --zone America/New_York")
    assert american["start"] == "2027-01-13T05:00:00.000Z"  # a date is the zone's, too
    assert tables(f"{typed} --format jsonl").documents == documents
    rows = list(csv.DictReader(io.StringIO(tables(f"{typed} --format csv").out)))
    assert rows == [{name: str(value) for name, value in each.items()} for each in documents]
    assert [each["change"] for each in tables.json("series c --until 2027-01-15 --last 2")] == [
        8,
        -4,
    ]


def test_the_steps_may_go_on_in_the_future(tables: Tables) -> None:
    documents = tables.json("series c --every hour --since 2027-01-15 --until 2027-01-16")
    assert [documents[0]["start"], documents[-1]["end"]] == [
        f"2027-01-{day}T00:00:00.000Z" for day in (15, 16)
    ]
    assert [each["value"] for each in documents] == [4] * 7 + [6] * 17
    assert [each["change"] for each in tables.json("series c --until 2027-01-17 --last 4")] == [
        8,
        -4,
        2,
        0,
    ]


def test_get_shows_the_value_at_an_instant(tables: Tables) -> None:
    (said,) = tables.json("get c --at 2027-01-15")
    assert said.items() >= {"counter": "c", "at": "2027-01-15T00:00:00.000Z", "value": 4}.items()
    assert (
        "c  4"
        in tables("get c --at 2027-01-15", says="of the changes before 2027-01-15 00:00:00Z").out
    )


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("series c --last 3 --since 2027-01-01", "Give one of them"),
        ("series c --zone Europe/Pariss", "no time zone"),
        ("series c --since 2027-02-01", "after this clock"),
        ("series c --since 2027-01-01 --until 9999-12-31 --every week", "more than 10,000 steps"),
        ("series c --since 1980-01-01 --every hour", "more than 10,000 steps"),
        ("series c --every month --last 1000", "before 1970"),
        ("get c --at 2028-01-01", "after this clock"),
    ],
)
def test_what_cannot_be_shown_is_refused(tables: Tables, typed: str, says: str) -> None:
    refused(tables.ctl(*typed.split()), 2, says)


PARIS: Any = ZoneInfo("Europe/Paris")


@pytest.mark.parametrize(
    ("every", "steps", "now", "then"),
    [
        (
            Every.day,
            1,
            datetime(2025, 10, 27, 0, 30, tzinfo=PARIS),
            datetime(2025, 10, 26, 0, 30, tzinfo=PARIS),
        ),
        (
            Every.hour,
            3,
            datetime(2025, 10, 26, 4, 0, tzinfo=PARIS),
            datetime(2025, 10, 26, 0, 0, tzinfo=UTC),
        ),
        (Every.week, 2, datetime(2025, 1, 15, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)),
        (Every.month, 0, datetime(2025, 3, 31, tzinfo=UTC), datetime(2025, 3, 1, tzinfo=UTC)),
        (Every.month, 13, datetime(2025, 1, 31, tzinfo=UTC), datetime(2023, 12, 1, tzinfo=UTC)),
    ],
)
def test_so_many_steps_back_follow_the_clocks_of_the_zone(
    every: Every, steps: int, now: datetime, then: datetime
) -> None:
    assert back(now, every, steps) == then
