"""`restore` on the engine, cut off after each of its steps; `rebuild --all` on a table in memory."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.engines.ministack import Engine
from ledger import items
from ledger.errors import Throttled
from ledger.gate.items import gate_key
from ledger.memory import MemoryTable
from ledger.requests import Delete, DeleteMany, Get, Item, Key, Put, Request, Transact, keyed
from ledger.values import Lane
from ledgerctl import rebuild_all
from ledgerctl.call import Surroundings
from ledgerctl.restore import Steps
from tests.ledgerctl.support import ONCE, A, B, Said, Tables, ctl, signed_in

LIMITS = '{"seats:": {"ceiling": 100, "region": "eu-west-1"}}'
STEPS = ["ready", f"adopted {A}", f"rebuilt {A}", f"adopted {B}", f"rebuilt {B}", "rebuilt gates", "verified"]


class Shop:
    """A table of two Regions on the engine, with folded counters, a tail and a limited one."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = name
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

    def values(self, table: str) -> dict[str, int]:
        return {name: self("get", name, "--json", "--table", table).documents[0]["value"] for name in VALUES}


VALUES = {"c0": 11, "c1": 2, "c2": 3, "c3": 4, "seats:x": 7}


@pytest.fixture
def shop(engine: Engine, table_names: Iterator[str]) -> Shop:
    return Shop(engine, next(table_names))


def test_a_table_is_restored_rebuilt_and_verified_beside_the_old_one(shop: Shop) -> None:
    new = f"{shop.name}-new"
    said = shop("restore", "--to", new).out
    for line in (
        f"began to restore {shop.name} as it was to {new}",
        f"{B}: made a replica",
        f"{A}: lanes that were new in the directory: ",
        f"{A}: counters rebuilt: 2",
        f"{B}: counters rebuilt: 2",
        "counters that add up: 5 of 5",
        f"LEDGER_TABLE={new}",
    ):
        assert line in said
    assert shop.values(new) == VALUES
    again = shop("restore", "--to", new).out
    assert f"done before: {', '.join(STEPS)}" in again
    assert f"LEDGER_TABLE={new}" in again
    (document,) = shop("restore", "--to", new, "--json").documents
    assert (document["to"], document["regions"]) == (new, [A, B])


def test_a_backup_is_restored_with_what_half_of_a_commit_left(shop: Shop) -> None:
    lane = Lane(A, 0, "c1")
    checkpoint = {"pk": {"S": items.fold_pk(lane)}, "sk": {"S": "checkpoint"}}
    shop.client.delete_item(TableName=shop.name, Key=checkpoint)
    arn = shop.client.create_backup(TableName=shop.name, BackupName="half")["BackupDetails"]["BackupArn"]
    assert shop("restore", "--backup", arn, "--to", f"{shop.name}-new").out.count("rebuilt") == 3
    assert shop.values(f"{shop.name}-new") == VALUES


def test_a_restore_that_is_cut_off_before_each_of_its_steps_goes_on_where_it_stopped(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, new = Steps.once, f"{shop.name}-new"
    done: list[str] = []

    def cut_once(self: Steps, name: str, do: Any) -> None:
        def do_and_note() -> None:
            if name not in done:
                done.append(name)
                raise KeyboardInterrupt
            do()
            done.append(name)

        once(self, name, do_and_note)

    monkeypatch.setattr(Steps, "once", cut_once)
    for step in STEPS:
        stopped = shop("restore", "--to", new, code=130)
        assert "Done so far: " in stopped.err
        assert "Run the same command again: it goes on where it stopped." in stopped.err
        assert done[-1] == step
    shop("restore", "--to", new)
    assert done == [each for step in STEPS for each in (step, step)]
    assert shop.values(new) == VALUES


def test_what_cannot_be_restored_is_refused_and_nothing_is_touched(shop: Shop, table_names: Iterator[str]) -> None:
    def refused(*options: str, code: int = 2) -> str:
        said = shop("restore", *options, code=code)
        assert said.out == ""
        return said.err

    assert "two moments" in refused("--to", "new", "--at", "2026-11-01", "--backup", "arn")
    assert "is the table itself" in refused("--to", shop.name)
    other = next(table_names)
    shop("init", "--no-deletion-protection", "--table", other)
    assert f"There is a table {other} already, and it was not restored from this." in refused("--to", other)
    assert "Nothing was restored" in refused("--to", "new-one", "--backup", "arn:aws:dynamodb:x", code=3)
    assert "no table" in refused("--to", "new-one", "--table", "missing-one")
    shop("restore", "--to", f"{shop.name}-new")
    another = refused("--to", f"{shop.name}-new", "--at", "2026-11-01")
    assert f"was restored from {shop.name} as it was, not from {shop.name} at 2026-11-01" in another


# -- rebuild --all -----------------------------------------------------------------------------------------------------


class Shaky(MemoryTable):
    """Throttles whoever asks for the checkpoint of some counters; ends after some commits."""

    throttled: tuple[str, ...] = ()
    writes: int | None = None

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, Get) and request.key.pk in {items.fold_pk(Lane(A, 0, name)) for name in self.throttled}:
            raise Throttled("Slower.")
        if isinstance(request, Put | Transact) and self.writes is not None:
            self.writes -= 1
            if self.writes < 0:
                raise KeyboardInterrupt
        return super().answer(request)


NAMES = [f"c{n}" for n in range(9)]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Tables:
    """Nine folded counters whose checkpoints are wrong, and a limited one."""
    monkeypatch.setattr(rebuild_all, "CHUNK", 2)
    tables = Tables(Shaky())
    tables.environ |= {"LEDGER_FOLD_MIN": "1", "LEDGER_LIMITS": LIMITS}
    for name in (*NAMES, "seats:x"):
        tables.ledger.add(name, 5)
    tables.clock.now_ms += 600_000
    assert tables.ctl("compact").code == 0
    tables.clock.now_ms += 600_000
    for name in NAMES:
        tables.table.answer(Put({**held(tables)[items.checkpoint_key(Lane(A, 0, name))], "total": {"N": "4"}}))
    return tables


def held(tables: Tables) -> dict[Key, Item]:
    return tables.table.items  # type: ignore[attr-defined, no-any-return]


def values(tables: Tables) -> dict[str, int]:
    return {each["counter"]: each["value"] for each in tables.ctl("top", "--json").documents}


def test_all_counters_are_rebuilt_and_the_gates_of_limited_ones(tables: Tables) -> None:
    gate = gate_key(Lane(A, 0, "seats:x"))
    tables.table.answer(Put({**held(tables)[gate], "count": {"N": "2"}, "total": {"N": "2"}}))
    before = dict(held(tables))
    dry = tables.ctl("rebuild", "--all", "--dry-run")
    assert "9 lanes of eu-west-1 and 1 limited counter; lanes: write 9, delete 0, nothing 0, fail 0" in dry.out
    (would,) = tables.ctl("rebuild", "--all", "--dry-run", "--json").documents
    assert (would["would"]["write"], would["limited"], would["written"]) == (9, ["seats:x"], False)
    refused = tables.ctl("rebuild", "--all", input="n\n")
    assert (refused.code, held(tables)) == (2, before)
    assert "No compactor may work on these lanes" in refused.err
    said = tables.ctl("rebuild", "--all", "--yes")
    assert (said.code, said.out) == (0, "rebuilt 10 counters in eu-west-1\n")
    assert "seats:x: " in said.err  # what is lost of it
    assert {name: values(tables)[name] for name in NAMES} == dict.fromkeys(NAMES, 5)
    assert tables.ctl("verify").code == 0
    assert not any(key.pk.startswith("sweep#") for key in held(tables))


def test_one_counter_that_fails_stops_no_other(tables: Tables) -> None:
    lane = Lane(A, 0, "c3")
    tables.table.answer(Put({**held(tables)[items.checkpoint_key(lane)], "version": {"N": "7"}}))
    for key in [key for key in held(tables) if key.pk == items.fold_pk(lane) and key.sk > "segment"]:
        tables.table.answer(DeleteMany((keyed(key),)))
    said = tables.ctl("rebuild", "--all", "--yes")
    assert (said.code, said.out) == (1, "rebuilt 9 counters in eu-west-1\n")
    assert "c3: eu-west-1#0#c3: there is a checkpoint but no segment" in said.err
    (document,) = tables.ctl("rebuild", "--all", "--yes", "--json").documents
    assert (document["rebuilt"], list(document["failed"])) == (9, ["c3"])
    dry = tables.ctl("rebuild", "--all", "--dry-run")
    assert (dry.code, "fail 1" in dry.out, "eu-west-1#0#c3: " in dry.err) == (1, True, True)


@pytest.mark.parametrize("writes", [0, 3, 9])
def test_a_run_that_was_cut_off_begins_at_the_beginning(tables: Tables, writes: int) -> None:
    table = tables.table
    assert isinstance(table, Shaky)
    table.writes = writes
    stopped = tables.ctl("rebuild", "--all", "--yes")
    assert stopped.code == 130
    assert "Run it again, before a compactor runs: it begins at the beginning." in stopped.err
    table.writes = None
    (done,) = tables.ctl("rebuild", "--all", "--yes", "--json").documents
    assert done["rebuilt"] == 10
    assert tables.ctl("verify").code == 0


def test_no_counter_is_passed_by_because_of_what_an_earlier_run_left(tables: Tables) -> None:
    tables.table.answer(Put(keyed(Key(f"sweep#{A}", "rebuild"), after={"S": "c4"}, failed={"L": []})))
    tables.table.answer(Delete(items.checkpoint_key(Lane(A, 0, "c1"))))
    said = tables.ctl("rebuild", "--all", "--yes")
    assert (said.code, said.out) == (0, "rebuilt 10 counters in eu-west-1\n")
    assert items.checkpoint_key(Lane(A, 0, "c1")) in held(tables)


def test_when_so_many_fail_that_it_is_not_about_them_it_ends(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild_all, "FAILED_MAX", 3)
    table = tables.table
    assert isinstance(table, Shaky)
    table.throttled = tuple(NAMES)
    said = tables.ctl("rebuild", "--all", "--yes", "--json")
    told = json.loads(said.err)
    assert (said.code, told["error"]) == (3, "Throttled")
    assert "Rebuilt 0 of 10 counters, up to c3. Failed: c0, c1, c2, c3." in told["message"]
    table.throttled = ()
    assert tables.ctl("rebuild", "--all", "--yes").code == 0
    assert tables.ctl("verify").code == 0


def test_one_counter_or_all_of_them(tables: Tables) -> None:
    for wrong in (("rebuild",), ("rebuild", "c0", "--all")):
        said = tables.ctl(*wrong)
        assert (said.code, "Name one counter, or give --all." in said.err) == (2, True)
