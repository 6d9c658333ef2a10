"""What the demo counts: files, the generated day, the truth."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab.events import SHOP, BadEvents, Event, is_witness, read_events, shop_day, truth_of, with_witnesses

HEADER = "line,invoice,stock_code,quantity,invoiced_at\n"
WriteFile = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> WriteFile:
    def write(rows: str) -> Path:
        path = tmp_path / "events.csv"
        path.write_text(HEADER + rows, encoding="utf-8")
        return path

    return write


def test_a_sale_is_minus_its_quantity_and_a_return_is_plus(write: WriteFile) -> None:
    path = write("1,536,21733,64,2010-12-01T09:32:00Z\n2,C37,21733,-24,2010-12-01T10:24:00Z\n")
    sale, taken_back = read_events(path, SHOP)
    assert (sale.counter, sale.change, sale.key, sale.at.isoformat()) == (
        "stock:21733",
        -64,
        "536/1",
        "2010-12-01T09:32:00+00:00",
    )
    assert taken_back.change == 24


NO_EVENTS = [  # rows                                columns                             the error
    ("1,5,A,six,2010-12-01T09:32:00Z\n", SHOP, "line 2"),
    ("1,5,A,6,2010-12-01T09:32:00\n", SHOP, "has no time zone"),
    ("1,5,A,6,yesterday\n", SHOP, "line 2"),
    ("1,5,A,6,2010-12-01T09:32:00Z\n", replace(SHOP, counter="{sku}"), "no column 'sku'"),
    ("", SHOP, "no rows"),
]


def test_a_row_that_is_no_event_stops_with_its_line(write: WriteFile) -> None:
    for rows, columns, error in NO_EVENTS:
        with pytest.raises(BadEvents, match=error):
            read_events(write(rows), columns)


def test_the_truth_counts_a_repeated_row_once_and_refuses_one_key_for_two_changes() -> None:
    event = shop_day(1, 1)[0]
    assert truth_of([event, event]) == {event.counter: event.change}
    with pytest.raises(BadEvents, match="two different changes"):
        truth_of([event, Event(event.counter, event.change + 1, event.key, event.at)])


def test_every_witness_counter_takes_each_power_of_four_once() -> None:
    truth = truth_of(with_witnesses(shop_day(1, 10), 1))
    assert {value for counter, value in truth.items() if is_witness(counter)} == {(4**28 - 1) // 3}
