"""`add`, `get`, `watch`, `history`, `list` and `top` on a table in memory; lanes that the directory lacks."""

import json
import re
import shlex
from typing import Any

import pytest

from ledger import Change
from ledger.errors import OutcomeUnknown, Throttled
from ledger.lane import directory
from ledger.requests import GetMany, Key, Put, keyed
from ledger.values import Delta, Lane
from ledgerctl.show import age
from tests.ledgerctl.support import ENVIRON, A, B, Tables, aws, ctl, refusal, refused
from tests.world import Region

KEYED = "--key 536365/1 --at 2010-12-01T08:26:00Z"


@pytest.fixture
def tables() -> Tables:
    return Tables()


def test_changes_are_added_read_and_listed_as_documents(tables: Tables) -> None:
    token = "015JGGKGE0ZK8G0PVF11E7PHQ0"
    named = {"key": "536365/1", "at": "2010-12-01T08:26:00.000Z"}
    change = {"counter": "stock:1", "change": -6, **named, "token": token, "region": A}
    assert tables.json(f"add stock:1 -6 {KEYED}") == [{"outcome": "recorded", **change}]
    assert tables.json(f"add stock:1 -6 {KEYED}") == [{"outcome": "replayed", **change}]
    (made,) = tables.json('add "a_b\'c" 5')
    again = f'add "a_b\'c" 5 --key {made["key"]} --at {made["at"]}'
    assert tables.json(again) == [made | {"outcome": "replayed"}]
    read = {"counter": "stock:1", "value": -6, "count": 1, "pending": 1, "by_region": {A: -6}}
    asked = {"requests": 0, "read_units": 0, "write_units": 0}
    read |= {"as_of": "2027-01-15T08:00:00.000Z", "closed": True}
    assert tables.json("get stock:1") == tables.json("watch stock:1 --count 1") == [read | asked]
    entry = {"counter": "stock:1", "change": -6, "at": "2010-12-01T08:26:00.000Z", "token": token, "region": A}
    assert tables.json("history stock:1") == [entry]
    assert tables.json("list --prefix stock") == [{"counter": "stock:1", "regions": [A], "lanes": 1}]
    assert tables.json("top --prefix stock") == [read]


def test_an_unknown_outcome_names_the_command_that_sends_the_same_again() -> None:
    no_answer = OutcomeUnknown("put_item may or may not have been applied.")
    for failure, options, code in (
        (no_answer, "", 4),
        (KeyboardInterrupt(), "", 4),
        (no_answer, KEYED, 3),
        (KeyboardInterrupt(), KEYED, 130),
    ):
        tables = Tables()
        tables.fails(Put, failure, after=True)
        said = tables(f"add stock:1 -6 {options}", code)
        assert ("only by this command" in said.err) == (not options)
        tables.mends()
        tables(said.err.splitlines()[-1].removeprefix("ledgerctl "), says="replayed")
        assert not options or tables(f"add stock:1 -6 {options}", says="replayed")


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
    local = "--endpoint-url http://127.0.0.1:8000"
    command = tables(f"add stock:1 -6 {local}").out.splitlines()[-1]
    assert shlex.split(command)[-4:] == [*local.split(), "--profile", "shop's"]


def test_a_fail_over_names_its_home_region_and_get_shows_the_parts(tables: Tables) -> None:
    tables.environ["LEDGER_REGIONS"] = f"{A},{B}"
    tables(f"add stock:1 1234567 {KEYED}")
    tables(f"add stock:1 1234567 {KEYED} --region {B} --home-region {A}", says="replayed")
    tables(f"add stock:1 -1 {KEYED} --region {B}")
    assert tables("get stock:1").out.splitlines()[:4] == [
        "stock:1  1,234,566",
        "  eu-west-1       1,234,567",
        "  us-east-1              -1",
        "2 changes, 2 of them pending in the tail",
    ]


def test_a_counter_is_shown_as_it_is_called_and_what_is_piped_has_no_escapes(tables: Tables) -> None:
    tables("add [red]:smile: 1")
    assert tables("get [red]:smile:").out.startswith("[red]:smile:  1\n")
    assert "[red]:smile:" in tables("list").out
    tables.environ |= {"TERM": "xterm-256color"}
    for command in ("get c", "history c", "list", "top", "lag", "verify", "cost --changes 1M"):
        said = tables(command)
        assert "\x1b" not in said.out + said.err
    tables.environ |= {"FORCE_COLOR": "1"}
    assert "\x1b[" in tables("get c").out
    tables.environ |= {"NO_COLOR": "1"}
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", tables("get c").out)


def test_watch_goes_on_after_a_failure_that_passes_unless_it_never_saw_anything() -> None:
    for options, printed in (("", 2), ("--json", 2)):
        tables, reads = Tables(), iter(range(1, 9))
        tables.fails(lambda request, reads=reads: isinstance(request, GetMany) and next(reads) == 2, Throttled("Slow."))
        said = tables(f"watch c --count 3 {options}")
        assert len(said.out.splitlines()) == printed
        assert said.err == "Slow. Reading again.\n" if not options else json.loads(said.err)["error"] == "Throttled"
    tables = Tables()
    tables.fails(GetMany, Throttled("Slow."), times=1)
    tables("watch c", code=3)


def test_history_is_in_the_order_of_time_and_within_its_bounds(tables: Tables) -> None:
    for day, change in ((3, 30), (1, 10), (2, 20)):
        tables(f"add c {change} --key {day} --at 2010-12-0{day}T00:00:00Z")
    for options, changes in (
        ("", [10, 20, 30]),
        ("--since 2010-12-02", [20, 30]),
        ("--until 2010-12-02T00:00:00Z", [10]),
        ("--limit 2", [10, 20]),
    ):
        assert [each["change"] for each in tables.json(f"history c {options}")] == changes
    assert tables("history c").out.splitlines()[-1] == "3 changes of c, together 60"
    assert tables("history c --format csv").out.splitlines()[0] == "counter,change,at,token,region"


def test_list_and_top_take_a_prefix_and_a_limit(tables: Tables) -> None:
    for name, change in (("a:1", 5), ("a:2", 9), ("a:2", -1), ("b:1", 100)):
        tables.ledger.add(name, change)
    lacks = "--scan finds also those that nobody has listed yet"
    for typed, last in (
        ("list --limit 1", f"1 of 3 counters; --limit shows more; {lacks}"),
        ("list --scan", "3 of 3 counters"),
        ("top", f"3 of 3 counters; {lacks}"),
        ("list --prefix x", f"no counter begins with 'x'; {lacks}"),
    ):
        assert tables(typed).out.splitlines()[-1] == last
    for typed, names in (
        ("list --prefix a:", ["a:1", "a:2"]),
        ("top", ["a:2", "a:1", "b:1"]),
        ("top --by value", ["b:1", "a:2", "a:1"]),
    ):
        assert [each["counter"] for each in tables.json(typed)] == names


def test_a_region_that_does_not_answer_ends_with_3(tables: Tables) -> None:
    tables.table.down = True
    for typed in ("list", "list --scan", "compact"):
        tables(typed, code=3)


def test_an_age_is_shown_in_its_largest_unit() -> None:
    assert [age(age_ms) for age_ms in (5, 59_999, 60_000, 10**12, None)] == ["5 ms", "59 s", "1 min", "31 y", "-"]


# -- lanes that the directory lacks ------------------------------------------------------------------------------------

OLD = [Lane(region, shard, name) for name in ("a", "b", "c") for region, shard in ((A, 0), (A, 3), (B, 0))]


@pytest.fixture
def older() -> Tables:
    """A table of two Regions that is older than its directory; its pages are small."""
    tables = Tables(Region(page_size=4))
    tables.environ |= {"LEDGER_REGIONS": f"{A},{B}", "LEDGER_SHARDS": '{"": 4}'}
    tables.table.put(*(Delta(lane, f"015JGGKGE064BG4X58772SZH{n:02}", 1) for lane in OLD for n in range(3)))
    return tables


def test_an_empty_directory_is_an_error_that_says_what_to_do_until_a_compactor_has_scanned(older: Tables) -> None:
    for command in ("list", "top", "lag", "verify", "export"):
        refused(older.ctl(command), 1, f"The directory of {A} {B} names no lane", "ledgerctl compact", "--scan")
        older(f"{command} --scan")
    for region in (A, B):
        older(f"compact --region {region}")
    assert [each["lanes"] for each in older.json("list")] == [3, 3, 3]


def test_a_scan_says_which_lanes_no_directory_has_and_what_they_hold(older: Tables) -> None:
    older.table.store([directory.item_of(OLD[0])])
    lacks = "lanes that no directory has: eu-west-1#0#b, eu-west-1#0#c, eu-west-1#3#a"
    assert lacks in (said := older("list --scan", says="and 3 more")).err, said
    unlisted = ["eu-west-1#3#a", "us-east-1#0#a"]
    first = {"counter": "a", "regions": [A, B], "lanes": 3, "deltas": 9, "unlisted": unlisted}
    assert older.json("list --scan")[0] == first
    assert older.json("list") == [{"counter": "a", "regions": [A], "lanes": 1}]
    older("list", says=f"The directory of {B} names no lane")
    older.environ["LEDGER_SHARDS"] = '{"": 4, "packed": 1}'
    older.ledger.add_many([Change("packed", 1)] * 3, pack=True)
    assert older.json("list --prefix packed --scan")[0]["deltas"] == 1, "a pack is one"


def test_what_names_no_lane_is_skipped_and_named(older: Tables) -> None:
    older.table.store([directory.item_of(OLD[0]), keyed(Key(f"lane#{A}#7", "0#elsewhere"))])
    assert "1 of 1 counters" in older("list", says="pk='lane#eu-west-1#7' sk='0#elsewhere'").out
