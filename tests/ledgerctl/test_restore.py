"""`restore` on the engine, and cut off before each of its writes on a table in memory; `rebuild --all`."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from lab.engines.ministack import Engine
from ledger import clocks, items
from ledger.errors import Throttled
from ledger.gate.items import gate_key
from ledger.lane.shape import write
from ledger.requests import Delete, DeleteMany, Get, Put, PutMany, Transact, Update, run
from ledger.values import Delta, Lane
from ledgerctl import rebuilding
from ledgerctl.call import Surroundings
from tests.ledgerctl.support import GOOD, ONCE, TABLE, A, B, Said, Tables, aws, ctl, refusal, signed_in
from tests.world import Region

LIMITS = '{"seats:": {"ceiling": 100, "region": "eu-west-1"}}'
VALUES = {"c0": 11, "c1": 2, "c2": 3, "c3": 4, "seats:x": 7}


class Shop:
    """A table of two Regions on the engine, with folded counters, a tail and a limited one."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.name, self.new = name, f"{name}-new"
        environ = {"LEDGER_TABLE": name, "AWS_REGION": A, "LEDGER_REGIONS": f"{A},{B}", "COLUMNS": "100"}
        environ |= {"LEDGER_ENDPOINT_URL": engine.endpoint_url, "LEDGER_LIMITS": LIMITS}
        environ |= {"LEDGER_FOLD_MIN": "1", "LEDGER_ALLOWED_LATENESS_MS": "0"}
        self.world = Surroundings(environ=environ, session=lambda _: signed_in(), config=ONCE, pause=lambda _: None)
        self.client = signed_in().client("dynamodb", A, endpoint_url=engine.endpoint_url)
        self("init", "--no-deletion-protection")
        for n, region in enumerate((A, A, B, B)):
            self("add", f"c{n}", str(n + 1), "--region", region)
        for region in (A, B):
            self("compact", "--region", region)
        self("add", "c0", "10")
        self("add", "seats:x", "7")

    def __call__(self, *arguments: str, code: int = 0) -> Said:
        said = ctl(self.world, *arguments)
        assert said.code == code, said
        return said


@pytest.fixture
def shop(engine: Engine, table_names: Iterator[str]) -> Shop:
    return Shop(engine, next(table_names))


def test_a_table_is_restored_rebuilt_and_verified_beside_the_old_one(shop: Shop) -> None:
    said = shop("restore", "--to", shop.new).out
    for line in (
        f"began to restore {shop.name} as it was to {shop.new}",
        f"{B}: made a replica",
        f"{A}: counters rebuilt: 2",
        f"{B}: counters rebuilt: 2",
        "counters that add up: 5 of 5",
        f"LEDGER_TABLE={shop.new}",
    ):
        assert line in said
    assert {name: shop("get", name, "--json", "--table", shop.new).documents[0]["value"] for name in VALUES} == VALUES
    again = shop("restore", "--to", shop.new).out
    assert f"{shop.new} was restored and verified before" in again
    assert f"LEDGER_TABLE={shop.new}" in again
    other = shop("restore", "--to", shop.new, "--at", "2026-11-01", code=2)
    assert f"was restored from {shop.name} as it was, not from {shop.name} at 2026-11-01" in other.err


def test_a_backup_is_restored_with_what_half_of_a_commit_left(shop: Shop) -> None:
    checkpoint = {"pk": {"S": items.fold_pk(Lane(A, 0, "c1"))}, "sk": {"S": "checkpoint"}}
    shop.client.delete_item(TableName=shop.name, Key=checkpoint)
    arn = shop.client.create_backup(TableName=shop.name, BackupName="half")["BackupDetails"]["BackupArn"]
    (document,) = shop("restore", "--backup", arn, "--to", shop.new, "--json").documents
    assert (document["from"], document["to"], document["regions"]) == (arn, shop.new, [A, B])
    assert shop("get", "c1", "--json", "--table", shop.new).documents[0]["value"] == 2


# -- in memory ---------------------------------------------------------------------------------------------------------

NAMES = [f"c{n}" for n in range(5)]
WRITES = (Put, PutMany, Transact, Update, Delete, DeleteMany)
BROKEN = Lane(A, 0, "c3")


def copied() -> Tables:
    """Five folded counters whose checkpoints are wrong, of lanes that no directory has, and a limited one."""
    tables = Tables(Region())
    tables.environ |= {"LEDGER_FOLD_MIN": "1", "LEDGER_LIMITS": LIMITS}
    for name in (*NAMES, "seats:x"):
        tables.ledger.add(name, 5)
    tables.clock.now_ms += 600_000
    tables(f"compact {' '.join(NAMES)}")
    tables.clock.now_ms += 600_000
    for name in NAMES:
        tables.table.alter(items.checkpoint_key(Lane(A, 0, name)), total={"N": "4"})
    tables.table.alter(gate_key(Lane(A, 0, "seats:x")), count={"N": "2"}, total={"N": "2"})  # what it filed says more
    tables.table.drop(*[key for key in tables.held if key.pk.startswith("lane#")])
    run(write(tables.settings()), tables.table, clocks.instants(tables.clock))
    return tables


def break_a_lane(tables: Tables) -> None:
    """It has a checkpoint, and nothing to rebuild it from."""
    tables.table.drop(*[key for key in tables.held if key.pk == items.fold_pk(BROKEN) and key.sk > "segment"])
    tables.table.alter(items.checkpoint_key(BROKEN), version={"N": "7"})


def restoring(tables: Tables, options: str = "", **described: Any) -> Said:
    """`restore` of an AWS that restores at once to `tables`."""
    summary = {"RestoreSummary": {"SourceTableArn": "arn:aws:dynamodb:eu-west-1:1:table/counters"}}
    there = {"Table": {**TABLE, "Replicas": [], **summary}}
    answers = GOOD | {"DescribeTable": there, "RestoreTableToPointInTime": {}} | described
    world = aws(lambda operation, _: (200, answers[operation]), tables.environ)
    return ctl(
        replace(world, tables=tables.world.tables, clock=tables.clock), "restore", "--to", "new", *options.split()
    )


def values(tables: Tables) -> dict[str, int]:
    return {each["counter"]: each["value"] for each in tables.json("top")}


def test_a_restore_that_is_cut_off_before_any_of_its_writes_begins_at_the_beginning() -> None:
    for cut in count():
        tables, writes = copied(), count()
        tables.fails(
            lambda r, cut=cut, writes=writes: isinstance(r, WRITES) and next(writes) == cut, KeyboardInterrupt()
        )
        said = restoring(tables)
        if said.code == 0:
            break
        assert (said.code, "Run the same command again: it begins at the beginning." in said.err) == (130, True)
        assert restoring(tables).code == 0
        assert values(tables) == {**dict.fromkeys(NAMES, 5), "seats:x": 7}
    assert cut > len(NAMES)


def test_a_restore_that_has_ended_changes_nothing_any_more() -> None:
    tables = copied()
    assert "eu-west-1: lanes that were new in the directory: 6" in restoring(tables).out
    tables("verify")
    tables("add c0 1")
    before = dict(tables.held)
    again = restoring(tables, "--json")
    assert (again.code, len(again.documents[0]["steps"]), tables.held) == (0, 1, before)
    refused = restoring(tables, "--at 2026-11-01")
    assert "was restored from counters as it was, not from counters at 2026-11-01" in refused.err


def test_a_restore_that_does_not_add_up_has_not_ended() -> None:
    tables = copied()
    tables.table.put(Delta(Lane(A, 1, "c1"), "015JGGKGE064BG4X58772SZHBM", 1))  # nobody reads it
    for _ in range(2):
        said = restoring(tables)
        assert (said.code, "Now switch" in said.out) == (1, False)
        assert "1 counter of 6 do not add up: c1." in said.err
    break_a_lane(tables)
    said = restoring(tables)
    assert (said.code, "1 counter could not be rebuilt: c3: " in said.err) == (1, True)


def test_what_cannot_be_restored_is_refused_and_nothing_is_touched() -> None:
    tables = copied()
    before = dict(tables.held)
    other = {"Table": {**TABLE, "RestoreSummary": {"SourceTableArn": "arn:aws:dynamodb:eu-west-1:1:table/cats"}}}
    for options, described, says in (
        ("--at 2026-11-01 --backup arn", {}, "two moments"),
        ("--table new", {}, "is the table itself"),
        ("", {"DescribeTable": other}, "There is a table new already, and it was not restored from this."),
        ("--backup arn:x", {}, "There is a table new already, and it was not restored from this."),
    ):
        said = restoring(tables, options, **described)
        assert (said.code, says in said.err, tables.held) == (2, True, before), options
    nothing = aws(lambda operation, _: refusal("ResourceNotFoundException"), tables.environ)
    none = ctl(replace(nothing, tables=tables.world.tables), "restore", "--to", "new", "--backup", "arn:x")
    assert (none.code, "Nothing was restored" in none.err, tables.held) == (3, True, before)


# -- rebuild --all -----------------------------------------------------------------------------------------------------


@pytest.fixture
def tables() -> Tables:
    """As `copied`, and all lanes are listed."""
    tables = copied()
    tables("compact")
    return tables


def test_all_counters_are_rebuilt_and_the_gates_of_limited_ones(tables: Tables) -> None:
    before = dict(tables.held)
    lanes = "lanes: write 5, delete 0, nothing 0, fail 0"
    tables("rebuild --all --dry-run", says=f"5 lanes of eu-west-1 and 1 limited counter; {lanes}")
    would = {"write": 5, "delete": 0, "nothing": 0, "fail": 0}
    dry = {"region": A, "would": would, "limited": ["seats:x"], "failing": {}, "written": False}
    assert tables.json("rebuild --all --dry-run") == [dry]
    refused = tables.ctl("rebuild", "--all", input="n\n")
    assert (refused.code, "No compactor may work on these lanes" in refused.err, tables.held) == (2, True, before)
    said = tables("rebuild --all --yes", says="seats:x: ")  # what is lost of it
    assert said.out == "rebuilt 6 counters in eu-west-1\n"
    assert said.err.splitlines()[-1] == "no requests to DynamoDB"  # what it cost, in memory
    assert {name: values(tables)[name] for name in NAMES} == dict.fromkeys(NAMES, 5)
    tables("verify")
    for wrong in ("rebuild", "rebuild c0 --all"):
        tables(wrong, 2, says="Name one counter, or give --all.")


def test_one_counter_that_fails_stops_no_other(tables: Tables) -> None:
    break_a_lane(tables)
    said = tables("rebuild --all --yes", 1, says="c3: eu-west-1#0#c3: there is a checkpoint but no segment")
    assert said.out == "rebuilt 5 counters in eu-west-1\n"
    (document,) = tables.json("rebuild --all --yes", 1)
    assert (document["rebuilt"], list(document["failed"])) == (5, ["c3"])
    dry = tables("rebuild --all --dry-run", 1, says="eu-west-1#0#c3: ")
    assert "fail 1" in dry.out


def test_when_so_many_fail_that_it_is_not_about_them_it_ends_and_the_next_run_begins_at_the_beginning(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "FAILED_MAX", 3)
    for failure, code, kind in ((Throttled("Slower."), 3, "Throttled"), (KeyboardInterrupt(), 130, "Interrupted")):
        tables.fails(lambda request: isinstance(request, Get) and request.key.pk.startswith("fold#"), failure)
        error = json.loads(tables("rebuild --all --yes --json", code).err)
        assert (error["error"], "of 6 counters." in error["message"]) == (kind, True)
        assert ("Failed: c0, " in error["message"]) == (code == 3)
        assert "it begins at the beginning" in error["remedy"]
        tables.mends()
    assert tables.json("rebuild --all --yes")[0]["rebuilt"] == 6
    tables("verify")
