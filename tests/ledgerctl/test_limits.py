"""Limits on the command line: what is refused, held, captured and shown, and that no command goes past a gate."""

import shlex
from pathlib import Path

import pytest

from ledger.errors import OutcomeUnknown, Unavailable
from ledger.requests import Update
from tests.ledgerctl.support import KEYED, A, B, Failing, Limited, held, refused


@pytest.fixture
def tables() -> Limited:
    return Limited()


def both() -> Limited:
    limited = Limited()
    limited.environ["LEDGER_REGIONS"] = f"{A},{B}"
    return limited


def test_a_change_that_would_pass_the_limit_ends_with_1_and_counts_nothing(tables: Limited) -> None:
    assert tables.ctl("add", "stock:1", "5").code == 0
    refused(tables.ctl("add", "stock:1", "-6", *KEYED), 1, "would pass the limit", "final", "ledgerctl standing")
    tables.ctl("add", "stock:1", "5")
    refused(tables.ctl("add", "stock:1", "-6", *KEYED), 1, "would pass the limit")
    assert tables.ctl("get", "stock:1", "--json").documents[0]["value"] == 10
    assert {key.pk.partition("#")[0] for key in held(tables)} == {"gate", "shape"}


def test_what_another_region_may_have_is_out_of_reach_while_that_is_down(tmp_path: Path) -> None:
    tables = both()
    tables.ctl("add", "stock:1", "5", "--region", B)
    down = Failing()
    down.failure, down.when = Unavailable("Nobody there."), lambda _: True
    tables.there = down
    refused(tables.ctl("add", "stock:1", "-3", *KEYED), 3, "could not be asked", "Nothing was decided", "Run it again")
    refused(tables.ctl("hold", "stock:1", "-3", "--expires", "5m"), 3, "could not be asked")
    rows = tmp_path / "x.jsonl"
    rows.write_text('{"counter":"stock:1","change":-3,"idempotency_key":"k","at":"2027-01-15T08:00:00Z"}\n')
    refused(tables.ctl("import", str(rows)), 3, "could not be asked", "every row before line 1 is done")
    tables.there = None
    assert tables.ctl("add", "stock:1", "-3", *KEYED).out.startswith("recorded")


def test_a_hold_is_captured_in_part_and_the_rest_comes_back(tables: Limited) -> None:
    (hold,) = tables.ctl("hold", "seats:1", "10", "--expires", "5m", "--json").documents
    assert (hold["amount"], hold["until"]) == (10, "2027-01-15T08:05:00.032Z")  # rounded up
    refused(tables.ctl("add", "seats:1", "1"), 1, "would pass the limit")
    (open_,) = tables.ctl("holds", "seats:1", "--json").documents
    assert (open_["id"], open_["over"]) == (hold["id"], False)
    assert tables.ctl("standing", "seats:1", "--json").documents[0]["held"] == {"down": None, "up": 10}
    for outcome in ("recorded", "replayed"):
        assert tables.ctl("capture", "seats:1", hold["id"], "4").out.startswith(f"{outcome}: +4 to seats:1")
    assert tables.ctl("add", "seats:1", "6").code == 0
    refused(tables.ctl("capture", "seats:1", hold["id"], "5"), 1, "was captured: 4 of 10 counts", "A hold ends once")
    refused(tables.ctl("release", "seats:1", hold["id"]), 1, "was captured")
    assert tables.ctl("holds", "seats:1").out.startswith("0 open holds")
    tables.ctl("add", "stock:1", "5")
    (released,) = tables.ctl("hold", "stock:1", "-5", "--expires", "90s", "--json").documents
    for _ in range(2):
        assert tables.ctl("release", "stock:1", released["id"]).code == 0
    tables.ctl("hold", "stock:1", "-5", "--expires", "90s", *KEYED)
    tables.clock.now_ms += 91_000
    assert ", of 1 the time is over" in tables.ctl("holds", "stock:1").out
    assert tables.ctl("add", "stock:1", "-5").code == 0
    refused(tables.ctl("hold", "stock:1", "-5", "--expires", "90s", *KEYED), 1, "expired", "A hold ends once")


def test_the_printed_command_asks_for_the_same_hold_in_any_shell(tables: Limited) -> None:
    said = tables.ctl("hold", "stock:[b]", "-0", "--expires", "5m")
    assert said.code == 2
    tables.ctl("add", "stock:1", "5")
    said = tables.ctl("hold", "stock:1", "-2", "--expires", "5m")
    command = shlex.split(said.err.splitlines()[-1])
    assert command[0] == f"LEDGER_LIMITS={tables.environ['LEDGER_LIMITS']}"
    assert tables.ctl(*command[2:]).out.splitlines()[1] == said.out.splitlines()[1]
    assert len(tables.ctl("holds", "stock:1", "--json").documents) == 1


def test_of_a_hold_without_an_answer_nobody_knows_until_it_is_asked_for_again() -> None:
    for keyed, code in (((), 4), (KEYED, 3)):
        tables = Limited(table := Failing())
        tables.ctl("add", "stock:1", "5")
        table.failure, table.after = OutcomeUnknown("update_item may or may not have been applied."), True
        table.when = lambda request: isinstance(request, Update)
        said = tables.ctl("hold", "stock:1", "-2", "--expires", "5m", *keyed)
        refused(said, code, "Nobody knows whether -2 of stock:1 is held")
        del table.when
        assert tables.ctl(*shlex.split(said.err.splitlines()[-1])[2:]).code == 0
        assert len(tables.ctl("holds", "stock:1", "--json").documents) == 1


def test_a_limit_is_set_as_far_as_what_counts_and_what_is_held_allow(tables: Limited) -> None:
    tables.ctl("add", "seats:1", "8")
    assert tables.ctl("limit", "seats:1").out == f"seats:1  limit: ceiling 10; set in {A}\n"
    assert tables.ctl("limit", "seats:1", "--ceiling", "8").out == "seats:1  ceiling 8\n"
    refused(tables.ctl("limit", "seats:1", "--ceiling", "7"), 1, "is beyond what counts", "ledgerctl standing")
    refused(tables.ctl("add", "seats:1", "1"), 1, "would pass the limit")
    assert tables.ctl("limit", "seats:1", "--json").documents[0]["ceiling"] == 8
    assert tables.ctl("limit", "seats:2", "--json").documents[0]["ceiling"] == 10


def test_standing_shows_what_is_left_here_and_elsewhere() -> None:
    tables = both()
    tables.ctl("add", "stock:1", "5")
    tables.ctl("add", "stock:1", "3", "--region", B)
    tables.ctl("hold", "stock:1", "-2", "--expires", "5m")
    assert tables.ctl("standing", "stock:1").out.splitlines() == [
        "stock:1  8",
        "limit: floor 0; 2 changes",
        "           down  up",
        "available     6   -",
        "here          3   -",
        "moving        0   -",
        "held          2   -",
    ]


def test_limited_counters_are_found_by_a_scan_and_recounted(tables: Limited) -> None:
    tables.ctl("add", "stock:1", "5")
    tables.ctl("add", "plain", "1")
    assert [each["counter"] for each in tables.ctl("list", "--json").documents] == ["plain", "stock:1"]
    assert [each["value"] for each in tables.ctl("top", "--by", "value", "--json").documents] == [5, 1]
    verified = tables.ctl("verify", "--json").documents
    assert [(each["counter"], each["ok"], each["value"], each["unread"]) for each in verified] == [
        ("plain", True, 1, []),
        ("stock:1", True, 5, []),
    ]
    assert tables.ctl("compact").code == 0
    assert [each["counter"] for each in tables.ctl("lag", "--json").documents] == ["plain"]


def test_a_history_is_exported_and_goes_through_the_gates_when_it_comes_back(tmp_path: Path) -> None:
    tables = both()
    for n in range(30):
        tables.clock.now_ms += 1_000
        tables.ctl("add", "stock:1", "5" if n % 2 else "-5", "--region", (A, B)[n // 2 % 2])
    open_hold = tables.ctl("hold", "stock:1", "-5", "--expires", "5m", "--json").documents[0]["id"]
    assert tables.ctl("capture", "stock:1", open_hold, "2").out.startswith("recorded: -2 to stock:1")
    file = tmp_path / "x.jsonl"
    assert tables.ctl("export", "--out", str(file)).code == 0
    value = tables.ctl("get", "stock:1", "--json").documents[0]["value"]
    assert len(file.read_text().splitlines()) == tables.ctl("get", "stock:1", "--json").documents[0]["count"]
    other = both()
    other.clock.now_ms = tables.clock.now_ms
    for counts in ({"recorded": 30, "replayed": 0}, {"recorded": 0, "replayed": 30}):
        (said,) = other.ctl("import", str(file), "--json").documents
        assert said["recorded"] + said["replayed"] == len(file.read_text().splitlines())
        assert bool(said["recorded"]) == bool(counts["recorded"])
    assert other.ctl("get", "stock:1", "--json").documents[0]["value"] == value
    assert not [key for key in held(other) if key.pk.startswith("delta#")]
    assert other.ctl("verify", "stock:1").code == 0


def test_a_row_that_would_pass_the_limit_is_a_bad_row_and_stops_nobody(tables: Limited, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    row = '{{"counter":"{}","change":{},"idempotency_key":"{}","at":"2027-01-15T08:00:00Z"}}\n'
    some = [("stock:1", 5), ("stock:1", -6), ("plain", -6), ("stock:1", -5)]
    file.write_text("".join(row.format(counter, change, n) for n, (counter, change) in enumerate(some)))
    said = tables.ctl("import", str(file), "--json")
    assert (said.code, said.documents[0]["recorded"], said.documents[0]["bad"]) == (1, 3, 1)
    assert "would pass the limit" in (tmp_path / "x.bad.jsonl").read_text()
