"""`restore` on the engine, and cut off before each of its writes on a table in memory; `rebuild
--all`.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from compactor import Compactor, Verification
from lab.engines.ministack import Engine
from ledger.core import clocks, items
from ledger.core.errors import GaveUp
from ledger.core.requests import Delete, DeleteMany, Key, Put, PutMany, Transact, Update, keyed
from ledger.core.running import run
from ledger.core.values import Delta, Lane
from ledger.gate.items import gate_key
from ledger.lane.shape import write
from tests.ledgerctl.support import GOOD, TABLE, A, B, Said, Tables, aws, ctl, on_engine, refusal
from tests.world import Region

LIMITS = '{"seats:": {"ceiling": 100, "region": "eu-west-1"}}'
SOON = {
    "LEDGER_FOLD_MIN": "1",
    "LEDGER_ALLOWED_LATENESS_MS": "0",
    "LEDGER_LIMITS": LIMITS,
    "COLUMNS": "100",
}


def test_a_table_of_two_regions_is_restored_and_verified(
    engine: Engine, table_names: Iterator[str]
) -> None:
    name = next(table_names)
    new, world = f"{name}-new", on_engine(engine, name, A, B, **SOON)

    def shop(typed: str, code: int = 0) -> Said:
        said = ctl(world, *typed.split())
        assert said.code == code, said
        return said

    def values(table: str) -> dict[str, int]:
        names = ("c0", "c1", "c2", "c3", "seats:x")
        return {
            name: shop(f"get {name} --json --table {table}").documents[0]["value"] for name in names
        }

    shop("init --no-deletion-protection")
    for n, region in enumerate((A, A, B, B)):
        shop(f"add c{n} {n + 1} --region {region}")
    for region in (A, B):
        shop(f"compact --region {region}")
    shop("add c0 10")
    shop("add seats:x 7")
    said = shop(f"restore --to {new}").out
    for line in (
        f"began to restore {name} as it was to {new}",
        f"{B}: made a replica",
        f"{A}: counters rebuilt: 2",
        f"{B}: counters rebuilt: 2",
        "counters that add up: 5 of 5",
        f"LEDGER_TABLE={new}",
    ):
        assert line in said
    assert values(new) == {"c0": 11, "c1": 2, "c2": 3, "c3": 4, "seats:x": 7}
    again = shop(f"restore --to {new}").out
    assert f"{new} was restored and verified before" in again
    assert f"LEDGER_TABLE={new}" in again
    other = shop(f"restore --to {new} --at 2026-11-01", code=2)
    assert f"was restored from {name} as it was, not from {name} at 2026-11-01" in other.err

    client, half = engine.client(A), f"{name}-half"  # a backup with what half of a commit left
    checkpoint = {"pk": {"S": items.fold_pk(Lane(A, 0, "c1"))}, "sk": {"S": "checkpoint"}}
    client.delete_item(TableName=name, Key=checkpoint)
    arn = client.create_backup(TableName=name, BackupName="half")["BackupDetails"]["BackupArn"]
    (document,) = shop(f"restore --backup {arn} --to {half} --json").documents
    assert (document["from"], document["to"], document["regions"]) == (arn, half, [A, B])
    assert values(half) == values(new)


# -- in memory

NAMES = [f"c{n}" for n in range(5)]
WRITES = (Put, PutMany, Transact, Update, Delete, DeleteMany)
BROKEN = Lane(A, 0, "c3")


def copied() -> Tables:
    """Five folded counters whose checkpoints are wrong, of lanes that no directory has, and a
    limited one.
    """
    tables = Tables(Region())
    tables.environ |= {"LEDGER_FOLD_MIN": "1", "LEDGER_LIMITS": LIMITS}
    for name in (*NAMES, "seats:x"):
        tables.ledger.add(name, 5)
    tables.clock.now_ms += 600_000
    tables(f"compact {' '.join(NAMES)}")
    tables.clock.now_ms += 600_000
    for name in NAMES:
        tables.table.forget_days(Lane(A, 0, name), total={"N": "4"})
    # what it filed says more
    tables.table.alter(gate_key(Lane(A, 0, "seats:x")), count={"N": "2"}, total={"N": "2"})
    tables.table.drop(*[key for key in tables.held if key.pk.startswith("lane#")])
    run(write(tables.settings()), tables.table, clocks.instants(tables.clock))
    return tables


def break_a_lane(tables: Tables) -> None:
    """It has a checkpoint, and nothing to rebuild it from."""
    tables.table.drop(
        *[key for key in tables.held if key.pk == items.fold_pk(BROKEN) and key.sk > "segment"]
    )
    tables.table.alter(items.checkpoint_key(BROKEN), version={"N": "7"})


def described(source: str) -> dict[str, Any]:
    summary = {"SourceTableArn": f"arn:aws:dynamodb:eu-west-1:1:table/{source}"}
    return {"Table": {**TABLE, "Replicas": [], "RestoreSummary": summary}}


def restoring(tables: Tables, options: str = "", source: str = "counters") -> Said:
    """`restore` of an AWS that restores at once to `tables`."""
    answers = GOOD | {"DescribeTable": described(source), "RestoreTableToPointInTime": {}}
    world = aws(lambda operation, _: (200, answers[operation]), tables.environ)
    world = replace(world, tables=tables.world.tables, clock=tables.clock)
    return ctl(world, "restore", "--to", "new", *options.split())


def values(tables: Tables) -> dict[str, int]:
    return {each["counter"]: each["value"] for each in tables.json("top")}


def test_a_restore_cut_off_before_its_writes_begins_anew() -> None:
    for cut in count():
        tables, writes = copied(), count()
        tables.fails(
            lambda r, cut=cut, writes=writes: isinstance(r, WRITES) and next(writes) == cut,
            KeyboardInterrupt(),
        )
        said = restoring(tables)
        if said.code == 0:
            break
        assert (
            said.code,
            "Run the same command again: it begins at the beginning." in said.err,
        ) == (130, True)
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


def test_a_counter_that_cannot_be_verified_does_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    verify = Compactor.verify

    def failing(compactor: Compactor, counter: str) -> Verification:
        if counter == "c2":
            raise GaveUp("c2: a commit may still be landing.")
        return verify(compactor, counter)

    tables = copied()
    monkeypatch.setattr(Compactor, "verify", failing)
    said = restoring(tables)
    assert (said.code, "Now switch" in said.out) == (1, False)
    assert "may still be landing" in said.err
    assert "1 counter of 6 do not add up: c2." in said.err
    monkeypatch.undo()
    assert restoring(tables).code == 0


def test_a_note_of_another_table_is_none_of_this_one() -> None:
    """A restored table is restored again."""
    for done in ((), ("verified",)):
        tables = copied()
        steps = {"L": [{"S": step} for step in done]}
        note = keyed(
            Key(f"sweep#{A}", "restore"),
            table={"S": "counters"},
            source={"S": "an older one"},
            done=steps,
        )
        tables.table.store([note])
        said = restoring(tables)
        assert (said.code, "counters that add up: 6 of 6" in said.out) == (0, True), said
        assert values(tables) == {**dict.fromkeys(NAMES, 5), "seats:x": 7}
        assert "nothing to do" in restoring(tables).out


def test_what_cannot_be_restored_is_refused_untouched() -> None:
    tables = copied()
    before = dict(tables.held)
    for options, source, says in (
        ("--at 2026-11-01 --backup arn", "counters", "two moments"),
        ("--table new", "counters", "is the table itself"),
        ("", "cats", "There is a table new already, and it was not restored from this."),
        (
            "--backup arn:x",
            "counters",
            "There is a table new already, and it was not restored from this.",
        ),
    ):
        said = restoring(tables, options, source)
        assert (said.code, says in said.err, tables.held) == (2, True, before), options
    denied = aws(
        lambda operation, _: refusal(
            "ResourceNotFoundException" if operation == "DescribeTable" else "AccessDeniedException"
        ),
        tables.environ,
    )
    narrow = ctl(replace(denied, tables=tables.world.tables), "restore", "--to", "new")
    assert (narrow.code, "docs/security.md#roles" in narrow.err, "--at" in narrow.err) == (
        3,
        True,
        False,
    )
    nothing = aws(lambda operation, _: refusal("ResourceNotFoundException"), tables.environ)
    none = ctl(
        replace(nothing, tables=tables.world.tables), "restore", "--to", "new", "--backup", "arn:x"
    )
    assert (none.code, "Nothing was restored" in none.err, tables.held) == (3, True, before)


# -- rebuild --all


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
    assert (refused.code, "no compactor may work on these lanes" in refused.err, tables.held) == (
        2,
        True,
        before,
    )
    said = tables("rebuild --all --yes", says="seats:x: ")  # what is lost of it
    assert said.out == "rebuilt 6 counters in eu-west-1\n"
    assert said.err.splitlines()[-1] == "no requests to DynamoDB"  # what it cost, in memory
    assert {name: values(tables)[name] for name in NAMES} == dict.fromkeys(NAMES, 5)
    tables("verify")
    for wrong in ("rebuild", "rebuild c0 --all"):
        tables(wrong, 2, says="Name one counter, or give --all.")


def test_one_counter_that_fails_stops_no_other(tables: Tables) -> None:
    break_a_lane(tables)
    said = tables(
        "rebuild --all --yes", 1, says="c3: eu-west-1#0#c3: it has a checkpoint, and no segment"
    )
    assert said.out == "rebuilt 5 counters in eu-west-1\n"
    (document,) = tables.json("rebuild --all --yes", 1)
    assert (document["rebuilt"], list(document["failed"])) == (5, ["c3"])
    assert "fail 1" in tables("rebuild --all --dry-run", 1, says="eu-west-1#0#c3: ").out
