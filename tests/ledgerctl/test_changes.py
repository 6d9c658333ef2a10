"""`add`, `get`, `watch`, `history`, `list` and `top` on a table in memory; lanes that the directory lacks."""

import json
import re
import shlex
from typing import Any

import pytest

from ledger import Change, items
from ledger.errors import OutcomeUnknown, Throttled, Unavailable
from ledger.lane import directory
from ledger.memory import MemoryTable
from ledger.requests import GetMany, Key, Put, Query, Scan, keyed
from ledger.values import Delta, Lane
from ledgerctl.show import age
from tests.ledgerctl.support import ENVIRON, A, B, Failing, Tables, aws, ctl, refusal, refused

KEYED = ("--key", "536365/1", "--at", "2010-12-01T08:26:00Z")


@pytest.fixture
def tables() -> Tables:
    return Tables()


def test_a_change_without_a_key_is_given_one_that_replays_it(tables: Tables) -> None:
    (made,) = tables.ctl("add", "a_b'c", "5", "--json").documents
    again = ("--key", made["key"], "--at", made["at"])
    (replayed,) = tables.ctl("add", "a_b'c", "5", *again, "--json").documents
    assert (made["outcome"], replayed["outcome"]) == ("recorded", "replayed")
    assert made | {"outcome": "replayed"} == replayed
    assert isinstance(made["change"], int)


def test_an_unknown_outcome_names_the_command_that_sends_the_same_change_again() -> None:
    no_answer = OutcomeUnknown("put_item may or may not have been applied.")
    for failure, options, code in (
        (no_answer, (), 4),
        (KeyboardInterrupt(), (), 4),
        (no_answer, KEYED, 3),
        (KeyboardInterrupt(), KEYED, 130),
    ):
        table = Failing()
        table.failure, table.after = failure, True
        table.when = lambda request: isinstance(request, Put)
        said = Tables(table).ctl("add", "stock:1", "-6", *options)
        assert (said.code, "only by this command" in said.err) == (code, not options)
        del table.when
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
            status, body = refusal("ConditionalCheckFailedException")
            return status, {**body, "Item": self.items[key]}
        self.items[key] = item
        return 200, {}


def test_the_command_to_repeat_is_the_same_change_anywhere(tables: Tables) -> None:
    for environ, typed in (
        ({}, ()),
        ({"LEDGER_REGIONS": f"{A},{B}"}, ()),
        ({"LEDGER_SHARDS": '{"": 8}'}, ()),
        ({}, ("--table", "shop-2", "--region", B, "--regions", f"{A},{B}")),
    ):
        stores = Stores()
        first = ctl(aws(stores, ENVIRON | environ), "add", "stock:1", "-6", *typed)
        shards, _, command = first.out.splitlines()[-1].rpartition("ledgerctl ")
        there = {"LEDGER_TABLE": "other", "AWS_REGION": "ap-south-1", "LEDGER_REGIONS": "ap-south-1"}
        there |= dict(word.split("=", 1) for word in shlex.split(shards))
        assert ctl(aws(stores, there), *shlex.split(command)).out.startswith("replayed")
        assert len(stores.items) == 1
    tables.environ["AWS_PROFILE"] = "shop's"
    local = ("--endpoint-url", "http://127.0.0.1:8000")
    command = tables.ctl("add", "stock:1", "-6", *local).out.splitlines()[-1]
    assert shlex.split(command)[-4:] == [*local, "--profile", "shop's"]


def test_a_fail_over_names_its_home_region_and_get_shows_the_parts(tables: Tables) -> None:
    tables.environ["LEDGER_REGIONS"] = f"{A},{B}"
    assert tables.ctl("add", "stock:1", "1234567", *KEYED).code == 0
    said = tables.ctl("add", "stock:1", "1234567", *KEYED, "--region", B, "--home-region", A)
    assert said.out.startswith("replayed")
    tables.ctl("add", "stock:1", "-1", *KEYED, "--region", B)
    assert tables.ctl("get", "stock:1").out.splitlines()[:4] == [
        "stock:1  1,234,566",
        "  eu-west-1       1,234,567",
        "  us-east-1              -1",
        "2 changes, 2 of them pending in the tail",
    ]


def test_a_counter_is_shown_as_it_is_called_and_what_is_piped_has_no_escapes(tables: Tables) -> None:
    tables.ctl("add", "[red]:smile:", "1")
    assert tables.ctl("get", "[red]:smile:").out.startswith("[red]:smile:  1\n")
    assert "[red]:smile:" in tables.ctl("list").out
    tables.environ |= {"TERM": "xterm-256color"}
    for command in ("get c", "history c", "list", "top", "lag", "verify", "cost --changes 1M"):
        said = tables.ctl(*command.split())
        assert "\x1b" not in said.out + said.err
    tables.environ |= {"FORCE_COLOR": "1"}
    assert "\x1b[" in tables.ctl("get", "c").out
    tables.environ |= {"NO_COLOR": "1"}
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", tables.ctl("get", "c").out)


def test_watch_goes_on_after_a_failure_that_passes_unless_it_never_saw_anything() -> None:
    def stumbling(read: int) -> Tables:
        table, reads = Failing(), iter(range(1, 9))
        table.failure = Throttled("Slower.")
        table.when = lambda request: isinstance(request, GetMany) and next(reads) == read
        return Tables(table)

    said = stumbling(2).ctl("watch", "c", "--count", "3")
    assert (said.code, len(said.out.splitlines()), said.err) == (0, 2, "Slower. Reading again.\n")
    said = stumbling(2).ctl("watch", "c", "--count", "3", "--json")
    assert (said.code, len(said.documents), json.loads(said.err)["error"]) == (0, 2, "Throttled")
    assert stumbling(1).ctl("watch", "c").code == 3


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


def test_list_and_top_take_a_prefix_and_a_limit(tables: Tables) -> None:
    for name, change in (("a:1", 5), ("a:2", 9), ("a:2", -1), ("b:1", 100)):
        tables.ledger.add(name, change)
    assert [each["counter"] for each in tables.ctl("list", "--prefix", "a:", "--json").documents] == ["a:1", "a:2"]
    lacks = "--scan finds also those that nobody has listed yet"
    assert tables.ctl("list", "--limit", "1").out.splitlines()[-1] == f"1 of 3 counters; --limit shows more; {lacks}"
    assert tables.ctl("list", "--scan").out.splitlines()[-1] == "3 of 3 counters"
    assert tables.ctl("top").out.splitlines()[-1] == f"3 of 3 counters; {lacks}"
    assert [each["counter"] for each in tables.ctl("top", "--json").documents] == ["a:2", "a:1", "b:1"]
    assert [each["value"] for each in tables.ctl("top", "--by", "value", "--json").documents] == [100, 8, 5]
    assert "no counter begins with 'x'" in tables.ctl("list", "--prefix", "x").out


# -- lanes that the directory lacks ------------------------------------------------------------------------------------

OLD = [Lane(region, shard, name) for name in ("a", "b", "c") for region, shard in ((A, 0), (A, 3), (B, 0))]


@pytest.fixture
def older() -> Tables:
    """A table of two Regions that is older than its directory; its pages are small."""
    tables = Tables(MemoryTable(page_size=4, lists=False))
    tables.environ |= {"LEDGER_REGIONS": f"{A},{B}", "LEDGER_SHARDS": '{"": 4}'}
    for lane in OLD:
        for n in range(3):
            tables.table.answer(Put(items.delta_item(Delta(lane, f"015JGGKGE064BG4X58772SZH{n:02}", 1))))
    return tables


def test_an_empty_directory_is_an_error_that_says_what_to_do_until_a_compactor_has_scanned(older: Tables) -> None:
    for command in ("list", "top", "lag", "verify", "export"):
        refused(older.ctl(command), 1, f"The directory of {A} {B} names no lane", "ledgerctl compact", "--scan")
        assert older.ctl(command, "--scan").code == 0
    for region in (A, B):
        assert older.ctl("compact", "--region", region).code == 0
    assert [each["lanes"] for each in older.ctl("list", "--json").documents] == [3, 3, 3]


def test_a_scan_says_which_lanes_no_directory_has_and_what_they_hold(older: Tables) -> None:
    older.table.answer(Put(directory.item_of(OLD[0])))
    said = older.ctl("list", "--scan")
    assert "lanes that no directory has: eu-west-1#0#b, eu-west-1#0#c, eu-west-1#3#a" in said.err
    assert "and 3 more" in said.err
    unlisted = ["eu-west-1#3#a", "us-east-1#0#a"]
    first = {"counter": "a", "regions": [A, B], "lanes": 3, "deltas": 9, "unlisted": unlisted}
    assert older.ctl("list", "--scan", "--json").documents[0] == first
    assert older.ctl("list", "--json").documents == [{"counter": "a", "regions": [A], "lanes": 1}]
    assert f"The directory of {B} names no lane" in older.ctl("list").err
    older.environ["LEDGER_SHARDS"] = '{"": 4, "packed": 1}'
    older.ledger.add_many([Change("packed", 1)] * 3, pack=True)
    assert older.ctl("list", "--prefix", "packed", "--scan", "--json").documents[0]["deltas"] == 1, "a pack is one"


def test_what_names_no_lane_is_skipped_and_named(older: Tables) -> None:
    older.table.answer(Put(directory.item_of(OLD[0])))
    older.table.answer(Put(keyed(Key(f"lane#{A}#7", "0#elsewhere"))))
    said = older.ctl("list")
    assert (said.code, "1 of 1 counters" in said.out) == (0, True)
    assert "pk='lane#eu-west-1#7' sk='0#elsewhere'" in said.err


def test_a_region_that_does_not_answer_ends_with_3() -> None:
    table = Failing()
    table.failure = Unavailable("No answer.")
    table.when = lambda request: isinstance(request, Query | Scan) or type(request).__name__ == "Together"
    for command in (("list",), ("list", "--scan"), ("compact",)):
        assert Tables(table).ctl(*command).code == 3


def test_an_age_is_shown_in_its_largest_unit() -> None:
    assert [age(age_ms) for age_ms in (5, 59_999, 60_000, 10**12, None)] == ["5 ms", "59 s", "1 min", "31 y", "-"]
