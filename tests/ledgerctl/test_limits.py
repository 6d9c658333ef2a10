"""Limits on the command line: what is refused, held, captured and shown, and that no command goes past a gate."""

import shlex
from pathlib import Path

import pytest

from ledger.errors import OutcomeUnknown
from ledger.requests import Update
from tests.ledgerctl.support import KEYED, A, B, Tables, limited, refused

KEY = " ".join(KEYED)
ROW = '{{"counter":"{}","change":{},"idempotency_key":"{}","at":"2027-01-15T08:00:00Z"}}\n'


@pytest.fixture
def tables() -> Tables:
    return limited()


def test_a_change_that_would_pass_the_limit_ends_with_1_and_counts_nothing(tables: Tables) -> None:
    for _ in range(2):
        tables("add stock:1 5")
        refused(tables(f"add stock:1 -6 {KEY}", 1), 1, "would pass the limit", "final", "ledgerctl standing")
    assert tables.json("get stock:1")[0]["value"] == 10
    assert {key.pk.partition("#")[0] for key in tables.held} == {"gate", "shape"}


def test_a_hold_is_captured_in_part_and_the_rest_comes_back(tables: Tables) -> None:
    (hold,) = tables.json(f"hold seats:1 10 --expires 5m {KEY}")
    until = "2027-01-15T08:05:00.032Z"  # rounded up
    id_ = hold["id"]
    named = {"key": "k", "at": "2027-01-15T08:00:00.000Z"}
    assert hold == {"id": id_, "counter": "seats:1", "amount": 10, "until": until, **named}
    refused(tables("add seats:1 1", 1), 1, "would pass the limit")
    assert tables.json("holds seats:1") == [
        {"id": id_, "counter": "seats:1", "amount": 10, "until": until, "over": False}
    ]
    for outcome in ("recorded", "replayed"):
        captured = {"outcome": outcome, "counter": "seats:1", "change": 4, "id": id_}
        assert tables.json(f"capture seats:1 {id_} 4") == [captured]
    tables("add seats:1 6")
    refused(tables(f"capture seats:1 {id_} 5", 1), 1, "was captured: 4 of 10 counts", "A hold ends once")
    refused(tables(f"release seats:1 {id_}", 1), 1, "was captured")
    assert tables("holds seats:1").out.startswith("0 open holds")
    tables("add stock:1 5")
    (released,) = tables.json("hold stock:1 -5 --expires 90s")
    for _ in range(2):
        gone = {"outcome": "released", "counter": "stock:1", "id": released["id"]}
        assert tables.json(f"release stock:1 {released['id']}") == [gone]
    tables(f"hold stock:1 -5 --expires 90s {KEY}")
    tables.clock.now_ms += 91_000
    tables("holds stock:1", says=", of 1 the time is over")
    tables("add stock:1 -5")
    refused(tables(f"hold stock:1 -5 --expires 90s {KEY}", 1), 1, "expired", "A hold ends once")


def test_the_printed_command_asks_for_the_same_hold_in_any_shell_also_when_nobody_knows_the_outcome() -> None:
    for keyed, fails, code in (("", False, 0), ("", True, 4), (KEY, True, 3)):
        tables = limited()
        tables("add stock:1 5")
        if fails:
            tables.fails(Update, OutcomeUnknown("update_item may or may not have been applied."), after=True)
        said = tables(f"hold stock:1 -2 --expires 5m {keyed}", code)
        assert not fails or "Nobody knows whether -2 of stock:1 is held" in said.err
        tables.mends()
        environ, _, *command = shlex.split(said.err.splitlines()[-1])
        assert environ == f"LEDGER_LIMITS={tables.environ['LEDGER_LIMITS']}"
        again = tables.ctl(*command)
        assert fails or again.out.splitlines()[1] == said.out.splitlines()[1]
        assert len(tables.json("holds stock:1")) == 1


def test_a_limit_is_set_as_far_as_what_counts_and_what_is_held_allow(tables: Tables) -> None:
    tables("add seats:1 8")
    assert tables("limit seats:1").out == f"seats:1  limit: ceiling 10; set in {A}\n"
    assert tables.json("limit seats:1 --ceiling 8") == [{"counter": "seats:1", "ceiling": 8}]
    refused(tables("limit seats:1 --ceiling 7", 1), 1, "is beyond what counts", "ledgerctl standing")
    refused(tables("add seats:1 1", 1), 1, "would pass the limit")
    for counter, ceiling in (("seats:1", 8), ("seats:2", 10)):
        shown = {"counter": counter, "floor": None, "ceiling": ceiling, "region": A}
        assert tables.json(f"limit {counter}")[0].items() >= shown.items()


def test_standing_shows_what_is_left_here_and_elsewhere() -> None:
    tables = limited(A, B)
    for typed in ("add stock:1 5", f"add stock:1 3 --region {B}", "hold stock:1 -2 --expires 5m"):
        tables(typed)
    amounts = {"available": 6, "here": 3, "moving": 0, "held": 2}
    shown = {"counter": "stock:1", "value": 8, "count": 2, "floor": 0, "ceiling": None, "closed": True}
    shown |= {name: {"down": amount, "up": None} for name, amount in amounts.items()}
    assert tables.json("standing stock:1")[0].items() >= shown.items()
    lines = tables("standing stock:1").out.splitlines()
    assert lines[:2] == ["stock:1  8", "limit: floor 0; 2 changes"]
    assert [line.split() for line in lines[3:]] == [[name, str(amount), "-"] for name, amount in amounts.items()]


def test_limited_counters_are_found_by_a_scan_and_recounted(tables: Tables) -> None:
    tables("add stock:1 5")
    tables("add plain 1")
    assert [each["counter"] for each in tables.json("list")] == ["plain", "stock:1"]
    assert [each["value"] for each in tables.json("top --by value")] == [5, 1]
    verified = tables.json("verify")
    assert [(each["counter"], each["ok"], each["value"]) for each in verified] == [
        ("plain", True, 1),
        ("stock:1", True, 5),
    ]
    tables("compact")
    assert [each["counter"] for each in tables.json("lag")] == ["plain"]


def test_a_history_is_exported_and_goes_through_the_gates_when_it_comes_back(tmp_path: Path) -> None:
    tables, other, file = limited(A, B), limited(A, B), tmp_path / "x.jsonl"
    for n in range(30):
        tables.clock.now_ms += 1_000
        tables.ctl("add", "stock:1", "5" if n % 2 else "-5", "--region", (A, B)[n // 2 % 2])
    (hold,) = tables.json("hold stock:1 -5 --expires 5m")
    tables(f"capture stock:1 {hold['id']} 2", says="recorded: -2 to stock:1")
    tables(f"export --out {file}")
    (read,) = tables.json("get stock:1")
    assert len(file.read_text().splitlines()) == read["count"]
    other.clock.now_ms = tables.clock.now_ms
    for outcome in ("recorded", "replayed"):
        (said,) = other.json(f"import {file}")
        assert said[outcome] == said["rows"] == read["count"]
    assert other.json("get stock:1")[0]["value"] == read["value"]
    assert not [key for key in other.held if key.pk.startswith("delta#")]
    other("verify stock:1")


def test_a_row_that_would_pass_the_limit_is_a_bad_row_and_stops_nobody(tables: Tables, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    rows = [("stock:1", 5), ("stock:1", -6), ("plain", -6), ("stock:1", -5)]
    file.write_text("".join(ROW.format(counter, change, n) for n, (counter, change) in enumerate(rows)))
    (said,) = tables.json(f"import {file}", code=1)
    assert (said["recorded"], said["bad"]) == (3, 1)
    assert "would pass the limit" in (tmp_path / "x.bad.jsonl").read_text()
