"""`add`, `get`, `watch`, `history`, `list` and `top` on a table in memory."""

import contextlib
import json
import os
import pty
import re
import select
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import OutcomeUnknown, Throttled
from ledger.memory import MemoryTable
from ledger.requests import GetMany, Put, Request
from ledgerctl.__main__ import app
from ledgerctl.show import age
from tests.ledgerctl.support import ENVIRON, A, B, Tables, aws, ctl, refusal

KEYED = ("--key", "536365/1", "--at", "2010-12-01T08:26:00Z")


@pytest.fixture
def tables() -> Tables:
    return Tables()


def test_a_change_without_a_key_is_given_one_that_replays_it(tables: Tables) -> None:
    (made,) = tables.ctl("add", "a b'c".replace(" ", "_"), "5", "--json").documents
    again = ("--key", made["key"], "--at", made["at"])
    (replayed,) = tables.ctl("add", "a_b'c", "5", *again, "--json").documents
    assert (made["outcome"], replayed["outcome"]) == ("recorded", "replayed")
    assert made | {"outcome": "replayed"} == replayed
    assert isinstance(made["change"], int)


class Silent(MemoryTable):
    """Writes, and does not answer while it is told to be silent."""

    silent = True
    failure: BaseException = OutcomeUnknown("put_item may or may not have been applied.")

    def answer(self, request: Request, /) -> Any:
        answer = super().answer(request)
        if isinstance(request, Put) and self.silent:
            raise self.failure
        return answer


@pytest.mark.parametrize(
    ("failure", "options", "code"),
    [
        (Silent.failure, (), 4),
        (KeyboardInterrupt(), (), 4),
        (Silent.failure, KEYED, 3),
        (KeyboardInterrupt(), KEYED, 130),
    ],
    ids=["no-answer", "interrupted", "no-answer-under-a-key", "interrupted-under-a-key"],
)
def test_an_unknown_outcome_tells_the_command_that_sends_the_same_change_again(
    failure: BaseException, options: tuple[str, ...], code: int
) -> None:
    table = Silent()
    table.failure = failure
    said = Tables(table).ctl("add", "stock:1", "-6", *options)
    assert (said.code, "only by this command" in said.err) == (code, not options)
    table.silent = False
    assert Tables(table).ctl(*shlex.split(said.err.splitlines()[-1])[1:]).out.startswith("replayed")
    assert not options or Tables(table).ctl("add", "stock:1", "-6", *options).out.startswith("replayed")


class Stores:
    """Any table of any name, as far as a put goes."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str, str], Any] = {}

    def __call__(self, operation: str, asked: Any) -> tuple[int, Any]:
        if operation == "GetItem":
            return 200, {}
        assert operation == "PutItem"
        item = asked["Item"]
        key = asked["TableName"], item["pk"]["S"], item["sk"]["S"]
        if key in self.items:
            status, refused = refusal("ConditionalCheckFailedException")
            return status, {**refused, "Item": self.items[key]}
        self.items[key] = item
        return 200, {}


@pytest.mark.parametrize(
    ("environ", "typed"),
    [
        ({}, ()),
        ({"LEDGER_REGIONS": f"{A},{B}"}, ()),
        ({"LEDGER_SHARDS": '{"": 8}'}, ()),
        ({}, ("--table", "shop-2", "--region", B, "--regions", f"{A},{B}")),
    ],
)
def test_the_command_to_repeat_is_the_same_change_anywhere(environ: dict[str, str], typed: tuple[str, ...]) -> None:
    stores = Stores()
    first = ctl(aws(stores, ENVIRON | environ), "add", "stock:1", "-6", *typed)
    shards, _, command = first.out.splitlines()[-1].rpartition("ledgerctl ")
    there = {"LEDGER_TABLE": "other", "AWS_REGION": "ap-south-1", "LEDGER_REGIONS": "ap-south-1"}
    there |= dict(word.split("=", 1) for word in shlex.split(shards))
    assert ctl(aws(stores, there), *shlex.split(command)).out.startswith("replayed")
    assert len(stores.items) == 1


def test_the_command_to_repeat_names_endpoint_and_profile(tables: Tables) -> None:
    tables.environ["AWS_PROFILE"] = "shop's"
    local = ("--endpoint-url", "http://127.0.0.1:8000")
    command = tables.ctl("add", "stock:1", "-6", *local).out.splitlines()[-1]
    assert shlex.split(command)[-4:] == [*local, "--profile", "shop's"]
    typed = tables.ctl("add", "stock:1", "-6", *local, "--profile", "mine").out.splitlines()[-1]
    assert shlex.split(typed)[-2:] == ["--profile", "mine"]


def test_a_fail_over_names_its_home_region(tables: Tables) -> None:
    tables.environ["LEDGER_REGIONS"] = f"{A},{B}"
    assert tables.ctl("add", "stock:1", "-6", *KEYED).code == 0
    assert f"--home-region {A}" in tables.ctl("add", "stock:2", "1").out
    said = tables.ctl("add", "stock:1", "-6", *KEYED, "--region", B, "--home-region", A)
    assert said.out.startswith("replayed")
    assert tables.ctl("get", "stock:1", "--json").documents[0]["by_region"] == {A: -6, B: 0}


def test_get_shows_the_parts_by_region_and_what_is_pending(tables: Tables) -> None:
    tables.environ["LEDGER_REGIONS"] = f"{A},{B}"
    tables.ctl("add", "stock:1", "1234567", *KEYED)
    tables.ctl("add", "stock:1", "-1", *KEYED, "--region", B)
    said = tables.ctl("get", "stock:1")
    assert said.out.splitlines()[:4] == [
        "stock:1  1,234,566",
        "  eu-west-1       1,234,567",
        "  us-east-1              -1",
        "2 changes, 2 of them pending in the tail",
    ]


def test_a_counter_is_shown_as_it_is_called_whatever_rich_makes_of_brackets(tables: Tables) -> None:
    tables.ctl("add", "[red]:smile:", "1")
    assert tables.ctl("get", "[red]:smile:").out.startswith("[red]:smile:  1\n")
    assert "[red]:smile:" in tables.ctl("list").out


class Stumbling(MemoryTable):
    """Throttles the second read."""

    reads = 0

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, GetMany):
            self.reads += 1
            if self.reads == 2:
                raise Throttled("Slower.")
        return super().answer(request)


def test_watch_goes_on_after_a_failure_that_passes_unless_it_never_saw_anything() -> None:
    said = Tables(Stumbling()).ctl("watch", "c", "--count", "3")
    assert (said.code, len(said.out.splitlines())) == (0, 2)
    assert said.err == "Slower. Reading again.\n"
    said = Tables(Stumbling()).ctl("watch", "c", "--count", "3", "--json")
    assert (said.code, len(said.documents)) == (0, 2)
    assert json.loads(said.err)["error"] == "Throttled"
    never = Stumbling()
    never.reads = 1
    assert Tables(never).ctl("watch", "c").code == 3


def in_a_terminal(tables: Tables, *arguments: str) -> str:
    """What a real pseudo-terminal is sent."""
    master, slave = pty.openpty()
    changes = iter(range(1, 10))

    def pause(_: float) -> None:
        tables.clock.now_ms += 2_000
        tables.ledger.add("c", next(changes))

    with os.fdopen(slave, "w") as terminal, contextlib.redirect_stdout(terminal):
        app(arguments, obj=replace(tables.world, pause=pause), standalone_mode=False)
        terminal.flush()
        sent = b""
        while select.select([master], [], [], 0.5)[0]:  # the kernel hands it over piece by piece
            sent += os.read(master, 65_536)
    os.close(master)
    return sent.decode()


def test_colours_are_for_a_terminal_that_wants_them(tables: Tables) -> None:
    tables.environ |= {"TERM": "xterm-256color"}
    sent = in_a_terminal(tables, "watch", "c", "--count", "4")
    assert "\x1b[1;36m6" in sent  # 1 + 2 + 3, in colour
    plain = re.sub(r"\x1b\[[0-9;]*m", "", sent)
    assert "▁▂▄█" in plain
    assert "+1.5 a second" in plain
    tables.environ |= {"NO_COLOR": "1"}
    sent = in_a_terminal(tables, "get", "c")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", sent)
    assert "c  6" in re.sub(r"\x1b\[[0-9;]*m", "", sent)


def test_what_is_piped_has_no_escapes(tables: Tables) -> None:
    tables.environ |= {"TERM": "xterm-256color"}
    tables.ctl("add", "c", "1")
    for command in ("get c", "history c", "list", "top", "lag", "verify", "cost --changes 1M"):
        said = tables.ctl(*command.split())
        assert "\x1b" not in said.out + said.err
        assert all(len(line) <= 80 for line in said.out.splitlines()), command


def test_history_is_in_the_order_of_time_and_within_its_bounds(tables: Tables) -> None:
    for day, change in ((3, 30), (1, 10), (2, 20)):
        tables.ctl("add", "c", str(change), "--key", str(day), "--at", f"2010-12-0{day}T00:00:00Z")

    def changes(*options: str) -> list[int]:
        return [each["change"] for each in tables.ctl("history", "c", "--json", *options).documents]

    assert changes() == [10, 20, 30]
    assert changes("--since", "2010-12-02") == [20, 30]
    assert changes("--until", "2010-12-02T00:00:00Z") == [10]
    assert changes("--limit", "2") == [10, 20]
    assert tables.ctl("history", "c").out.splitlines()[-1] == "3 changes of c, together 60"
    assert tables.ctl("history", "c", "--format", "csv").out.splitlines()[0] == "counter,change,at,token,region"


def test_a_counter_that_nobody_has_added_to_is_an_error_for_export_and_verify_and_nothing_is_written(
    tables: Tables, tmp_path: Path
) -> None:
    tables.ctl("add", "c", "1")
    tables.ctl("add", "zero", "1")
    tables.ctl("add", "zero", "-1")
    for command in (("export", "c", "out.jsonl"), ("export", "c", "out.jsonl", "--out", str(tmp_path / "x"))):
        said = tables.ctl(*command)
        assert (said.code, said.out, list(tmp_path.iterdir())) == (2, "", [])
        assert (
            "error: Nobody has added to 'out.jsonl'.\nA file is --out: `ledgerctl export --out out.jsonl`." in said.err
        )
    for typed in ("verify c stok:1", "export stok:1"):
        said = tables.ctl(*typed.split())
        assert (said.code, said.out) == (2, "")
        assert "Nobody has added to 'stok:1'.\n`ledgerctl list` names the counters" in said.err
    assert tables.ctl("verify", "c", "zero").code == tables.ctl("export", "zero").code == 0


def test_list_and_top_take_a_prefix_and_a_limit(tables: Tables) -> None:
    for name, change in (("a:1", 5), ("a:2", 9), ("a:2", -1), ("b:1", 100)):
        tables.ledger.add(name, change)
    assert [each["counter"] for each in tables.ctl("list", "--prefix", "a:", "--json").documents] == ["a:1", "a:2"]
    assert (
        tables.ctl("list", "--limit", "1").out.splitlines()[-1]
        == "1 of 3 counters; --limit shows more; --scan finds also those that nobody has listed yet"
    )
    assert tables.ctl("list", "--scan").out.splitlines()[-1] == "3 of 3 counters"
    assert (
        tables.ctl("top").out.splitlines()[-1] == "3 of 3 counters; --scan finds also those that nobody has listed yet"
    )
    assert [each["counter"] for each in tables.ctl("top", "--json").documents] == ["a:2", "a:1", "b:1"]
    assert [each["value"] for each in tables.ctl("top", "--by", "value", "--json").documents] == [100, 8, 5]
    assert "no counter begins with 'x'" in tables.ctl("list", "--prefix", "x").out


def test_an_age_is_shown_in_its_largest_unit() -> None:
    assert [age(age_ms) for age_ms in (5, 59_999, 60_000, 10**12)] == ["5 ms", "59 s", "1 min", "31 y"]
    assert age(None) == "-"


def test_a_sparkline_spans_the_lowest_and_the_highest() -> None:
    assert sparkline([]) == ""
    assert sparkline([7, 7]) == "▁▁"
    assert sparkline([-(10**30), 0, 10**30]) == "▁▄█"
