"""`restore` on the engine, and cut off before each of its writes on a table in memory; `rebuild --all`."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lab.engines.ministack import Engine
from ledger import clocks, items
from ledger.errors import Throttled
from ledger.gate.items import gate_key
from ledger.lane.shape import write
from ledger.requests import Delete, DeleteMany, Get, Key, Put, PutMany, Request, Transact, Update, keyed, run
from ledger.values import Delta, Lane
from ledgerctl import rebuild_all
from ledgerctl.call import Surroundings
from tests.ledgerctl.support import GOOD, ONCE, TABLE, A, B, Failing, Said, Tables, aws, ctl, held, refusal, signed_in

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


def copied() -> Tables:
    """Five folded counters whose checkpoints are wrong, of lanes that no directory has, and a limited one."""
    tables = Tables(Failing(lists=False))
    tables.environ |= {"LEDGER_FOLD_MIN": "1", "LEDGER_LIMITS": LIMITS}
    for name in (*NAMES, "seats:x"):
        tables.ledger.add(name, 5)
    tables.clock.now_ms += 600_000
    assert tables.ctl("compact", *NAMES).code == 0
    tables.clock.now_ms += 600_000
    for name in NAMES:
        tables.table.answer(Put({**held(tables)[items.checkpoint_key(Lane(A, 0, name))], "total": {"N": "4"}}))
    gate = gate_key(Lane(A, 0, "seats:x"))
    tables.table.answer(
        Put({**held(tables)[gate], "count": {"N": "2"}, "total": {"N": "2"}})
    )  # what it filed says more
    for key in [key for key in held(tables) if key.pk.startswith("lane#")]:
        tables.table.answer(DeleteMany((keyed(key),)))
    run(write(tables.settings()), tables.table, clocks.instants(tables.clock))
    return tables


def restoring(tables: Tables, *options: str, **described: Any) -> Said:
    """`restore` of an AWS that restores at once to `tables`."""
    summary = {"RestoreSummary": {"SourceTableArn": "arn:aws:dynamodb:eu-west-1:1:table/counters"}}
    there = {"Table": {**TABLE, "Replicas": [], **summary}}
    answers = GOOD | {"DescribeTable": there, "RestoreTableToPointInTime": {}} | described
    world = aws(lambda operation, _: (200, answers[operation]), tables.environ)
    return ctl(replace(world, tables=tables.world.tables, clock=tables.clock), "restore", "--to", "new", *options)


def values(tables: Tables) -> dict[str, int]:
    return {each["counter"]: each["value"] for each in tables.ctl("top", "--json").documents}


def test_a_restore_that_is_cut_off_before_any_of_its_writes_begins_at_the_beginning() -> None:
    cuts = 0
    while True:
        tables, left = copied(), [cuts]
        assert isinstance(tables.table, Failing)

        def cut(request: Request, left: list[int] = left) -> bool:
            left[0] -= isinstance(request, WRITES)
            return left[0] == -1 and isinstance(request, WRITES)

        tables.table.when = cut
        said = restoring(tables)
        if said.code == 0:
            break
        assert said.code == 130
        assert "Run the same command again: it begins at the beginning." in said.err
        assert restoring(tables).code == 0
        assert values(tables) == {**dict.fromkeys(NAMES, 5), "seats:x": 7}
        cuts += 1
    assert cuts > len(NAMES)


def test_a_restore_that_has_ended_changes_nothing_any_more() -> None:
    tables = copied()
    assert "eu-west-1: lanes that were new in the directory: 6" in restoring(tables).out
    assert tables.ctl("verify").code == 0
    tables.ctl("add", "c0", "1")
    before = dict(held(tables))
    again = restoring(tables, "--json")
    assert (again.code, len(again.documents[0]["steps"]), held(tables)) == (0, 1, before)
    refused = restoring(tables, "--at", "2026-11-01")
    assert "was restored from counters as it was, not from counters at 2026-11-01" in refused.err


def test_a_restore_that_does_not_add_up_has_not_ended() -> None:
    tables = copied()
    unread = Delta(Lane(A, 1, "c1"), "015JGGKGE064BG4X58772SZHBM", 1)
    tables.table.answer(Put(items.delta_item(unread)))
    for _ in range(2):
        said = restoring(tables)
        assert (said.code, "1 counter of 6 do not add up: c1." in said.err, "Now switch" in said.out) == (
            1,
            True,
            False,
        )
    lane = Lane(A, 0, "c3")
    for key in [key for key in held(tables) if key.pk == items.fold_pk(lane) and key.sk > "segment"]:
        tables.table.answer(DeleteMany((keyed(key),)))
    tables.table.answer(Put({**held(tables)[items.checkpoint_key(lane)], "version": {"N": "7"}}))
    said = restoring(tables)
    assert (said.code, "1 counter could not be rebuilt: c3: " in said.err) == (1, True)


def test_what_cannot_be_restored_is_refused_and_nothing_is_touched() -> None:
    tables = copied()
    before = dict(held(tables))
    other = {"Table": {**TABLE, "RestoreSummary": {"SourceTableArn": "arn:aws:dynamodb:eu-west-1:1:table/cats"}}}
    for options, described, says in (
        (("--at", "2026-11-01", "--backup", "arn"), {}, "two moments"),
        (("--table", "new"), {}, "is the table itself"),
        ((), {"DescribeTable": other}, "There is a table new already, and it was not restored from this."),
        (("--backup", "arn:x"), {}, "There is a table new already, and it was not restored from this."),
    ):
        said = restoring(tables, *options, **described)
        assert (said.code, says in said.err, held(tables)) == (2, True, before), options
    nothing = aws(lambda operation, _: refusal("ResourceNotFoundException"), tables.environ)
    none = ctl(replace(nothing, tables=tables.world.tables), "restore", "--to", "new", "--backup", "arn:x")
    assert (none.code, "Nothing was restored" in none.err, held(tables)) == (3, True, before)


# -- rebuild --all -----------------------------------------------------------------------------------------------------


@pytest.fixture
def tables() -> Tables:
    """As `copied`, and all lanes are listed."""
    tables = copied()
    assert tables.ctl("compact").code == 0
    return tables


def test_all_counters_are_rebuilt_and_the_gates_of_limited_ones(tables: Tables) -> None:
    tables.table.answer(Put(keyed(Key(f"sweep#{A}", "rebuild"), after={"S": "c4"}, failed={"L": []})))  # an older run's
    before = dict(held(tables))
    dry = tables.ctl("rebuild", "--all", "--dry-run")
    assert "5 lanes of eu-west-1 and 1 limited counter; lanes: write 5, delete 0, nothing 0, fail 0" in dry.out
    (would,) = tables.ctl("rebuild", "--all", "--dry-run", "--json").documents
    assert (would["would"]["write"], would["limited"], would["written"]) == (5, ["seats:x"], False)
    refused = tables.ctl("rebuild", "--all", input="n\n")
    assert (refused.code, held(tables)) == (2, before)
    assert "No compactor may work on these lanes" in refused.err
    said = tables.ctl("rebuild", "--all", "--yes")
    assert (said.code, said.out) == (0, "rebuilt 6 counters in eu-west-1\n")
    assert "seats:x: " in said.err  # what is lost of it
    assert said.err.splitlines()[-1] == "no requests to DynamoDB"  # what it cost, in memory
    assert {name: values(tables)[name] for name in NAMES} == dict.fromkeys(NAMES, 5)
    assert tables.ctl("verify").code == 0


def test_one_counter_that_fails_stops_no_other(tables: Tables) -> None:
    lane = Lane(A, 0, "c3")
    tables.table.answer(Put({**held(tables)[items.checkpoint_key(lane)], "version": {"N": "7"}}))
    for key in [key for key in held(tables) if key.pk == items.fold_pk(lane) and key.sk > "segment"]:
        tables.table.answer(DeleteMany((keyed(key),)))
    said = tables.ctl("rebuild", "--all", "--yes")
    assert (said.code, said.out) == (1, "rebuilt 5 counters in eu-west-1\n")
    assert "c3: eu-west-1#0#c3: there is a checkpoint but no segment" in said.err
    (document,) = tables.ctl("rebuild", "--all", "--yes", "--json").documents
    assert (document["rebuilt"], list(document["failed"])) == (5, ["c3"])
    dry = tables.ctl("rebuild", "--all", "--dry-run")
    assert (dry.code, "fail 1" in dry.out, "eu-west-1#0#c3: " in dry.err) == (1, True, True)


def test_when_so_many_fail_that_it_is_not_about_them_it_ends_and_the_next_run_begins_at_the_beginning(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild_all, "FAILED_MAX", 3)
    table = tables.table
    assert isinstance(table, Failing)
    for failure, code, kind in ((Throttled("Slower."), 3, "Throttled"), (KeyboardInterrupt(), 130, "Interrupted")):
        table.failure = failure
        table.when = lambda request: isinstance(request, Get) and request.key.pk.startswith("fold#")
        said = tables.ctl("rebuild", "--all", "--yes", "--json")
        error = json.loads(said.err)
        assert (said.code, error["error"], "of 6 counters." in error["message"]) == (code, kind, True)
        assert ("Failed: c0, " in error["message"]) == (code == 3)
        assert "it begins at the beginning" in error["remedy"]
    del table.when
    (done,) = tables.ctl("rebuild", "--all", "--yes", "--json").documents
    assert (done["rebuilt"], tables.ctl("verify").code) == (6, 0)


def test_one_counter_or_all_of_them(tables: Tables) -> None:
    for wrong in (("rebuild",), ("rebuild", "c0", "--all")):
        said = tables.ctl(*wrong)
        assert (said.code, "Name one counter, or give --all." in said.err) == (2, True)
