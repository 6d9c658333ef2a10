"""`add`, `get`, `watch`, `history`, `list`, `top`, and the commands of limits, on a table in
memory.
"""

import json
import re
import shlex
from pathlib import Path

import pytest

from ledger import Change
from ledger.core.errors import OutcomeUnknown, Throttled
from ledger.core.requests import GetMany, Key, Put, Scan, Update, keyed
from ledger.core.values import Delta, Lane
from ledger.lane import directory
from ledgerctl.lanes import SCANNED_MAX
from ledgerctl.show import age
from tests.ledgerctl.support import ENVIRON, A, B, Tables, limited, refused
from tests.world import Region

KEYED = "--key 536365/1 --at 2010-12-01T08:26:00Z"
NOW = "--key k --at 2027-01-15T08:00:00Z"
PERIODS = '{"llm:": {"late_s": 1296000, "keep_s": 34560000}}'
NO_COST = {"requests": 0, "read_units": 0, "write_units": 0}


@pytest.fixture
def tables() -> Tables:
    return Tables()


def test_changes_are_added_read_and_listed_as_documents(tables: Tables) -> None:
    token = "015JGGKGE0ZK8G0PVF11E7PHQ0"
    named = {"key": "536365/1", "at": "2010-12-01T08:26:00.000Z"}
    change = {"counter": "stock:1", "change": -6, **named, "token": token, "region": A}
    for outcome in ("recorded", "replayed"):
        assert tables.json(f"add stock:1 -6 {KEYED}") == [{"outcome": outcome, **change}]
    (made,) = tables.json('add "a_b\'c" 5')
    again = f'add "a_b\'c" 5 --key {made["key"]} --at {made["at"]}'
    assert tables.json(again) == [made | {"outcome": "replayed"}]
    read = {"counter": "stock:1", "value": -6, "count": 1, "pending": 1, "by_region": {A: -6}}
    read |= {"as_of": "2027-01-15T08:00:00.000Z", "closed": True}
    assert tables.json("get stock:1") == tables.json("watch stock:1 --count 1") == [read | NO_COST]
    entry = {
        "counter": "stock:1",
        "change": -6,
        "at": "2010-12-01T08:26:00.000Z",
        "token": token,
        "region": A,
    }
    assert tables.json("history stock:1") == [entry]
    assert tables.json("list --prefix stock") == [
        {"counter": "stock:1", "regions": [A], "lanes": 1}
    ]
    assert tables.json("top --prefix stock") == [read]
    nobody = tables("get nobody", says="nobody has added to it `ledgerctl list` names")
    assert max(map(len, nobody.out.splitlines())) <= 80


def test_a_fail_over_names_its_home_region(tables: Tables) -> None:
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


def test_an_unknown_outcome_names_the_command_to_repeat() -> None:
    no_answer = OutcomeUnknown("put_item may or may not have been applied.")
    for typed, keys in (("add stock:1 -6", KEYED), ("hold seats:1 2 --expires 5m", NOW)):
        for failure, options, code in (
            (no_answer, "", 4),
            (KeyboardInterrupt(), "", 4),
            (no_answer, keys, 3),
            (KeyboardInterrupt(), keys, 130),
        ):
            tables = limited() if "hold" in typed else Tables()
            tables.fails(Put if "add" in typed else Update, failure, after=True)
            said = tables(f"{typed} {options}", code, says="Nobody knows whether")
            assert ("only by this command" in said.err) == (not options)
            tables.mends()
            tables(said.err.splitlines()[-1].partition("ledgerctl ")[2])
            counted = (
                tables.json("holds seats:1") if "hold" in typed else tables.json("history stock:1")
            )
            assert len(counted) == 1


def test_the_command_to_repeat_is_the_same_in_any_environment() -> None:
    here, local = (
        f"{A} --table counters --region {A} --regions {A}",
        f"--region {B} --endpoint-url http://127.0.0.1:8000",
    )
    profile = {"AWS_PROFILE": "shop", "LEDGER_REGIONS": f"{A},{B}"}
    there = (
        f"{B} --table shop-2 --region {B} --regions {A},{B} --endpoint-url "
        "http://127.0.0.1:8000 --profile shop"
    )
    for environ, typed, begin, where in (
        ({}, "", "", here),
        ({"LEDGER_SHARDS": '{"": 8}'}, "", "LEDGER_SHARDS='{\"\": 8}' ", here),
        ({"LEDGER_PERIODS": PERIODS}, "", f"LEDGER_PERIODS='{PERIODS}' ", here),
        (profile, f"--table shop-2 {local}", "", there),
    ):
        shown = Tables(environ=ENVIRON | environ)(f"add stock:1 -6 {typed}").out.splitlines()[-1]
        made = f"--key {'00' * 10} --at 2027-01-15T08:00:00.000Z"
        assert shown == f"{begin}ledgerctl add stock:1 -6 {made} --home-region {where}"
    tables = limited()
    limits, _, *command = shlex.split(tables("hold seats:1 2 --expires 5m").err.splitlines()[-1])
    assert limits == f"LEDGER_LIMITS={tables.environ['LEDGER_LIMITS']}"
    assert tables.ctl(*command).out.splitlines()[1] == tables.json("holds seats:1")[0]["id"]


def test_a_part_counts_where_not_all_is_left() -> None:
    tables = limited()
    tables("add seats:1 8")
    said = tables("add seats:1 5 --partial", says="recorded: +2 of +5 to seats:1")
    again = tables(said.out.splitlines()[-1].partition("ledgerctl ")[2])
    assert again.out.startswith("replayed: +2 of +5 to seats:1")
    refused(tables("add seats:1 5 --partial", 1), 1, "5 would pass the limit of 10")
    refused(tables("add seats:1 0 --partial", 2), 2, "no part can count")
    tables("add seats:1 -3")
    (answer,) = tables.json(f"add seats:1 9 --partial {KEYED}")
    assert (answer["change"], answer["asked"], answer["outcome"]) == (3, 9, "recorded")


def test_an_amount_is_held_in_several_counters_or_in_none() -> None:
    tables = limited()
    holds = tables.json(f"hold seats:1 seats:2 3 --expires 5m {NOW}")
    assert [(hold["counter"], hold["amount"], hold["key"]) for hold in holds] == [
        ("seats:1", 3, "k"),
        ("seats:2", 3, "k"),
    ]
    # the name holds the counters
    assert tables.json(f"hold seats:2 seats:1 3 --expires 9m {NOW}") == holds[::-1]
    alone = tables.json(f"hold seats:1 1 --expires 5m {NOW}")
    assert alone[0]["id"] not in {hold["id"] for hold in holds}
    tables(f"release seats:1 {alone[0]['id']}")
    tables("hold seats:3 9 --expires 5m")
    refused(
        tables("hold seats:1 seats:3 2 --expires 5m", 1),
        1,
        "seats:3: 2 would pass the limit of 10",
        "standing",
    )
    assert [len(tables.json(f"holds seats:{n}")) for n in (1, 2, 3)] == [1, 1, 1]
    said = tables("hold seats:1 seats:2 1 --expires 5m")
    assert [line.partition(" until")[0] for line in said.out.splitlines()[::2]] == [
        "held: +1 of seats:1",
        "held: +1 of seats:2",
    ]
    again = said.err.splitlines()[-1].partition("ledgerctl ")[2]
    assert again.startswith("hold seats:1 seats:2 1 --expires 5m --key")
    assert tables(again).out == said.out
    refused(tables("hold seats:1 seats:1 1 --expires 5m", 2), 2, "is named twice")
    refused(tables("hold seats:1 views 1 --expires 5m", 2), 2, "has no limit")


def test_an_amount_is_transferred_once_refused_or_finished() -> None:
    tables = limited()
    tables("add stock:1 60")
    named = {
        "source": "stock:1",
        "target": "seats:1",
        "amount": 4,
        "key": "k",
        "at": "2027-01-15T08:00:00.000Z",
    }
    assert tables.json(f"transfer stock:1 seats:1 4 {NOW}") == [
        {"outcome": "moved", **named, "region": A}
    ]
    tables(
        f"transfer stock:1 seats:1 4 {NOW}",
        says="moved: 4 from stock:1 to seats:1; it was moved before",
    )
    refused(
        tables("transfer stock:1 seats:1 57", 1), 1, "refused: the limit of stock:1", "standing"
    )
    refused(
        tables("transfer stock:1 seats:1 7", 1), 1, "refunded: the limit of seats:1", "standing"
    )
    assert [tables.json(f"get {name}")[0]["value"] for name in ("stock:1", "seats:1")] == [56, 4]
    for options, code in (("", 4), (NOW.replace(" k ", " j "), 3)):
        tables.fails(Update, Throttled("slower"), after=True)
        said = tables(
            f"transfer stock:1 views 5 {options}", code, says="Its last step failed: slower"
        )
        tables.mends()
        tables(said.err.splitlines()[-1].partition("ledgerctl ")[2], says="moved: 5")
    assert [tables.json(f"get {name}")[0]["value"] for name in ("stock:1", "views")] == [46, 10]
    refused(tables("transfer stock:1 stock:1 5", 2), 2, "has two counters")
    refused(tables("transfer stock:1 views -- -5", 2), 2, "is of 1 to")


def test_a_counter_is_shown_as_named_and_pipes_have_no_escapes(
    tables: Tables,
) -> None:
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


def test_watch_goes_on_after_a_failure_that_passes() -> None:
    for options in ("", "--json"):
        tables, reads = Tables(), iter(range(1, 9))
        tables.fails(
            lambda request, reads=reads: isinstance(request, GetMany) and next(reads) == 2,
            Throttled("Slow."),
        )
        said = tables(f"watch c --count 3 {options}")
        assert len(said.out.splitlines()) == 2
        assert (
            said.err == "Slow. Reading again.\n"
            if not options
            else json.loads(said.err)["error"] == "Throttled"
        )
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
        ("--limit 9", [10, 20, 30]),
    ):
        assert [each["change"] for each in tables.json(f"history c {options}")] == changes
    assert tables("history c").out.splitlines()[-1] == "3 changes of c, together 60"
    assert tables("history c --format csv").out.splitlines()[0] == "counter,change,at,token,region"


def test_list_and_top_take_a_prefix_and_a_limit(tables: Tables) -> None:
    for name, change in (("a:1", 5), ("a:2", 9), ("a:2", -1), ("b:1", 100)):
        tables.ledger.add(name, change)
    lacks = "--scan also finds those that no directory lists yet"
    for typed, last in (
        ("list --limit 1", f"1 of 3 counters; --limit shows more; {lacks}"),
        ("list --scan", "3 of 3 counters"),
        ("top", f"3 of 3 counters; {lacks}"),
        ("list --prefix x", f"no counter begins with 'x'; {lacks}"),
    ):
        assert tables(typed).out.splitlines()[-1] == last
    for typed, names in (
        ("list --prefix a:", ["a:1", "a:2"]),
        ("list a:", ["a:1", "a:2"]),
        ("top", ["b:1", "a:2", "a:1"]),
        ("top --by changes", ["a:2", "a:1", "b:1"]),
        ("top a: --limit 1", ["a:2"]),
        ("top --prefix a:", ["a:2", "a:1"]),
    ):
        assert [each["counter"] for each in tables.json(typed)] == names


def test_an_age_is_shown_in_its_largest_unit() -> None:
    for age_ms, shown in (
        (5, "5 ms"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (10**12, "31 y"),
        (None, "-"),
    ):
        assert age(age_ms) == shown


def test_top_leaves_out_tails_unless_it_is_to_be_exact(
    tables: Tables,
) -> None:
    tables.environ["LEDGER_FOLD_MIN"] = "1"
    for name, change in (("a", 5), ("b", 7)):
        tables(f"add {name} {change}")
    tables.clock.now_ms += 60_000
    tables("compact a b")
    tables("add a 4")
    for options, values, pending in (
        ("--by value", [7, 5], [0, 0]),
        ("--by value --exact", [9, 7], [1, 0]),
        ("--by pending", [9, 7], [1, 0]),
    ):
        documents = tables.json(f"top {options}")
        assert [(each["value"], each["pending"]) for each in documents] == list(
            zip(values, pending, strict=True)
        )
    # up to there it was folded
    assert tables.json("top --by value")[0]["as_of"] == "2027-01-15T08:00:00.000Z"
    assert "read them, up to 5 min behind; --exact is not: " in tables("top").err
    assert "read them: " in tables("top --exact").err
    tables.clock.now_ms += 400_000
    assert [each["value"] for each in tables.json("top --by value")] == [9, 7]


def test_a_prefix_typed_twice_or_as_a_name_is_explained(
    tables: Tables,
) -> None:
    tables.ledger.add("points:ann", 5)
    refused(tables.ctl("top", "points:", "--prefix", "a"), 2, "Give one of them")
    refused(
        tables.ctl("verify", "points:"),
        2,
        "Nobody has added to 'points:'",
        "--prefix points: takes all",
    )
    assert tables.json("verify --prefix points:")[0]["counter"] == "points:ann"


# -- lanes that the directory lacks

YOUNG = ("list", "top", "lag", "verify", "export")


def test_of_a_young_table_every_command_finds_the_counters() -> None:
    """Somebody has added, and no compactor ran yet."""
    young = Tables(Region())
    young.environ |= {
        "LEDGER_REGIONS": f"{A},{B}",
        "LEDGER_LIMITS": json.dumps({"seats:": {"floor": 0}}),
    }
    for name, change in (("a:1", 5), ("a:2", 9), ("seats:1", 4)):
        young.ledger.add(name, change)
    assert [each["counter"] for each in young.json("list")] == ["a:1", "a:2", "seats:1"]
    assert [(each["counter"], each["value"]) for each in young.json("top a:")] == [
        ("a:2", 9),
        ("a:1", 5),
    ]
    assert {each["counter"] for each in young.json("lag")} == {"a:1", "a:2"}
    assert [(each["counter"], each["ok"]) for each in young.json("verify")] == [
        (name, True) for name in ("a:1", "a:2", "seats:1")
    ]
    for command in YOUNG:
        said = young(
            command, says=f"The directory of {A} {B} names no lane: no compactor has listed one yet"
        )
        assert "`ledgerctl compact` without names, in each Region, lists them" in " ".join(
            said.err.split()
        )
    assert young("list").out.splitlines()[0].split() == [
        "counter",
        "Regions",
        "lanes",
        "deltas",
        "held",
    ]
    young("list --prefix none", says="no counter begins with 'none'")
    for region in (A, B):
        young(f"compact --region {region}")
    assert "scanned" not in young("list", says="--scan also finds").err


def test_the_error_of_a_large_table_begins_with_what_to_do() -> None:
    young = Tables(Region(page_size=2))
    for n in range(12):
        young.ledger.add(f"a:{n}", 5)
    for command in YOUNG:
        said = young.ctl(command)
        refused(said, 1, f"The directory of {A} names no lane: no compactor has listed one yet")
        assert " ".join(said.err.split()).startswith(
            "error: Add --scan, which reads the whole table; or first run"
        )
        assert (
            len([request for request in young.table.asked if isinstance(request, Scan)])
            == SCANNED_MAX
        )
        young.table.asked.clear()


def test_of_an_empty_table_the_error_says_that_nobody_has_added(tables: Tables) -> None:
    for command in YOUNG:
        refused(
            tables.ctl(command),
            1,
            "names no lane: nobody has added yet. `ledgerctl add` makes the first counter",
        )


OLD = [
    Lane(region, shard, name)
    for name in ("a", "b", "c")
    for region, shard in ((A, 0), (A, 3), (B, 0))
]


def test_unlisted_lanes_are_found_by_a_scan_and_said() -> None:
    older = Tables(Region(page_size=4))
    older.environ |= {"LEDGER_REGIONS": f"{A},{B}", "LEDGER_SHARDS": '{"": 4, "packed": 1}'}
    older.table.put(
        *(Delta(lane, f"015JGGKGE064BG4X58772SZH{n:02}", 1) for lane in OLD for n in range(3))
    )
    for command in ("list", "top", "lag", "verify", "export"):
        refused(
            older.ctl(command),
            1,
            f"The directory of {A} {B} names no lane",
            "ledgerctl compact",
            "--scan",
        )
        older(f"{command} --scan")
    older.table.store([directory.item_of(OLD[0])])
    lacks = "lanes that no directory has: eu-west-1#0#b, eu-west-1#0#c, eu-west-1#3#a"
    assert lacks in (said := older("list --scan", says="and 3 more")).err, said
    unlisted = ["eu-west-1#3#a", "us-east-1#0#a"]
    first = {"counter": "a", "regions": [A, B], "lanes": 3, "deltas": 9, "unlisted": unlisted}
    assert older.json("list --scan")[0] == first
    assert older.json("list") == [{"counter": "a", "regions": [A], "lanes": 1}]
    older("list", says=f"The directory of {B} names no lane")
    older.table.store([keyed(Key(f"lane#{A}#7", "0#elsewhere"))])
    assert "1 of 1 counters" in older("list", says="pk='lane#eu-west-1#7' sk='0#elsewhere'").out
    older.ledger.add_many([Change("packed", 1)] * 3, pack=True)
    assert older.json("list --prefix packed --scan")[0]["deltas"] == 1, "a pack is one"
    for region in (A, B):
        older(f"compact --region {region}")
    assert [each["lanes"] for each in older.json("list")] == [3, 3, 3, 1]


# -- limits


def test_a_hold_is_listed_captured_or_released_once() -> None:
    tables = limited()
    (hold,) = tables.json(f"hold seats:1 10 --expires 5m {NOW}")
    until, id_ = "2027-01-15T08:05:00.032Z", hold["id"]  # rounded up
    fields = {"id": id_, "counter": "seats:1", "amount": 10, "until": until}
    assert hold == fields | {"key": "k", "at": "2027-01-15T08:00:00.000Z"}
    refused(tables("add seats:1 1", 1), 1, "would pass the limit", "final", "ledgerctl standing")
    assert tables.json("get seats:1")[0]["value"] == 0
    assert tables.json("holds seats:1") == [fields | {"over": False}]
    for outcome in ("recorded", "replayed"):
        captured = {"outcome": outcome, "counter": "seats:1", "change": 4, "id": id_}
        assert tables.json(f"capture seats:1 {id_} 4") == [captured]
    tables("add seats:1 6")
    refused(
        tables(f"capture seats:1 {id_} 5", 1), 1, "was captured: 4 of 10 counts", "A hold ends once"
    )
    refused(tables(f"release seats:1 {id_}", 1), 1, "was captured")
    assert tables("holds seats:1").out.startswith("0 open holds")
    tables("add stock:1 5")
    (released,) = tables.json("hold stock:1 -5 --expires 90s")
    for _ in range(2):
        gone = {"outcome": "released", "counter": "stock:1", "id": released["id"]}
        assert tables.json(f"release stock:1 {released['id']}") == [gone]
    tables(f"hold stock:1 -5 --expires 90s {NOW}")
    tables.clock.now_ms += 91_000
    tables("holds stock:1", says=", of 1 the time is over")
    tables("add stock:1 -5")
    refused(tables(f"hold stock:1 -5 --expires 90s {NOW}", 1), 1, "expired", "A hold ends once")


def test_a_limit_is_shown_and_set_as_far_as_what_counts_allows() -> None:
    tables = limited()
    tables("add seats:1 8")
    assert tables("limit seats:1").out == f"seats:1  limit: ceiling 10; set in {A}\n"
    assert tables.json("limit seats:1 --ceiling 8") == [{"counter": "seats:1", "ceiling": 8}]
    refused(
        tables("limit seats:1 --ceiling 7", 1), 1, "and its holds are beyond", "ledgerctl standing"
    )
    for counter, ceiling in (("seats:1", 8), ("seats:2", 10)):
        shown = {"counter": counter, "floor": None, "ceiling": ceiling, "region": A}
        assert tables.json(f"limit {counter}") == [shown | NO_COST]


def test_standing_shows_what_is_left_here_and_elsewhere() -> None:
    tables = limited(A, B)
    for typed in ("add stock:1 5", f"add stock:1 3 --region {B}", "hold stock:1 -2 --expires 5m"):
        tables(typed)
    amounts = {"available": 6, "here": 3, "moving": 0, "held": 2}
    shown = {
        "counter": "stock:1",
        "value": 8,
        "count": 2,
        "floor": 0,
        "ceiling": None,
        "closed": True,
    }
    shown |= {name: {"down": amount, "up": None} for name, amount in amounts.items()}
    assert tables.json("standing stock:1")[0].items() >= shown.items()
    lines = tables("standing stock:1").out.splitlines()
    assert lines[:2] == ["stock:1  8", "limit: floor 0; 2 changes"]
    assert [line.split() for line in lines[3:]] == [
        [name, str(amount), "-"] for name, amount in amounts.items()
    ]


def test_a_history_of_holds_is_imported_through_the_gates(
    tmp_path: Path,
) -> None:
    tables, other, file = limited(A, B), limited(A, B), tmp_path / "x.jsonl"
    for n in range(30):
        tables.clock.now_ms += 1_000
        tables.ctl("add", "stock:1", "5" if n % 2 else "-5", "--region", (A, B)[n // 2 % 2])
    (hold,) = tables.json("hold stock:1 -5 --expires 5m")
    tables(f"capture stock:1 {hold['id']} 2", says="recorded: -2 to stock:1")
    tables(f"export --out {file}")
    (read,) = tables.json("get stock:1")
    other.clock.now_ms = tables.clock.now_ms
    for outcome in ("recorded", "replayed"):
        (said,) = other.json(f"import {file}")
        assert said[outcome] == said["rows"] == read["count"]
    assert other.json("get stock:1")[0]["value"] == read["value"]
    assert not [key for key in other.held if key.pk.startswith("delta#")]
    other("verify stock:1")
