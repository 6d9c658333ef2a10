"""`import` and `export`: bad rows, interruptions, and what comes back."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import tokens
from ledger.errors import OutcomeUnknown, Throttled
from ledger.memory import MemoryTable
from ledger.requests import PutMany, Request
from ledger.values import Delta, Lane
from ledgerctl.export import entry_of, with_strays
from ledgerctl.imports import BATCH
from tests.ledgerctl.support import NOW_MS, A, B, Failing, Tables, held, refused
from tests.strategies import changes, counters, effort, keys

ROOT = Path(__file__).parents[2]
SHOP = ("--counter", "stock:{code}", "--change", "-{quantity}", "--key", "{invoice}/{line}", "--at", "{at}")
HEADER = "line,invoice,code,quantity,at\n"
AT = datetime(2010, 12, 1, 9, 32, tzinfo=UTC)
GOOD_ROW, BAD_ROW = "{n},5,A,6,2010-12-01T09:32:00Z\n", "{n},5,A,six,2010-12-01T09:32:00Z\n"


@pytest.fixture
def tables() -> Tables:
    return Tables()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.csv"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return tmp_path / "shop.bad.csv"


def shop(path: Path, count: int) -> dict[str, int]:
    """A file of sales, and the truth about them."""
    truth: dict[str, int] = {}
    with path.open("w") as file:
        file.write(HEADER)
        for n in range(count):
            truth[f"stock:{n % 7}"] = truth.get(f"stock:{n % 7}", 0) - n
            file.write(f"{n},536,{n % 7},{n},2010-12-01T09:32:00Z\n")
    return truth


def values(tables: Tables) -> dict[str, int]:
    return {each["counter"]: each["value"] for each in tables.ctl("top", "--limit", "999", "--json").documents}


def test_templates_make_changes_of_the_rows_of_any_file(tables: Tables, path: Path) -> None:
    rows = "1,536,A,6,2010-12-01T09:32:00Z\n2,C37,A,-2,2010-12-01T10:24:00Z\n"
    path.write_text(f"\ufeff{HEADER}{rows}")
    said = tables.ctl("import", str(path), *SHOP)
    assert (said.code, said.out) == (0, "2 recorded, 0 replayed (they were there already), 0 bad\n")
    assert values(tables) == {"stock:A": -4}


ROWS = [
    (b"1,5,A,6,2010-12-01T09:32:00Z", ""),
    (b"2,5,A,six,2010-12-01T09:32:00Z", "not a whole number"),
    (b"3,5,A,6,yesterday", "not a time of ISO 8601"),
    (b"4,5,A,6,2010-12-01T09:32:00", "no time zone"),
    (b"5,5,a b,6,2010-12-01T09:32:00Z", "1 to 256 printable ASCII"),
    (b"6,5,A", "has 3 fields, the header 5"),
    (b"", ""),
    (b"1,5,A,7,2010-12-01T09:32:00Z", "already stands for a change of -6"),
    (b"8,5,\xff,1,2010-12-01T09:32:00Z", "1 to 256 printable ASCII"),
    (b"9,5,A,1,2010-12-01T09:32:00Z", ""),
    (b"10,5,A,1_000,2010-12-01T09:32:00Z", "'-1_000', not a whole number"),
    (b"11,5,A, 3,2010-12-01T09:32:00Z", "'- 3', not a whole number"),
]


def test_bad_rows_go_to_a_file_with_the_reason_and_stop_nobody(tables: Tables, path: Path, bad: Path) -> None:
    path.write_bytes(HEADER.encode() + b"\n".join(row for row, _ in ROWS))
    said = tables.ctl("import", str(path), *SHOP)
    assert (said.code, said.out) == (1, "2 recorded, 0 replayed (they were there already), 9 bad\n")
    assert str(bad) in said.err
    with bad.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        told = {int(row["bad_line"]): row["bad_reason"] for row in csv.DictReader(file)}
    expected = {line: reason for line, (_, reason) in enumerate(ROWS, start=2) if reason}
    assert told.keys() == expected.keys()
    assert all(reason in told[line] for line, reason in expected.items())
    assert ROWS[8][0] in bad.read_bytes()
    put_right = bad.read_text(errors="surrogateescape").replace("six", "6").replace("yesterday", "2010-12-01T09:32:00Z")
    bad.write_text(put_right, errors="surrogateescape")
    assert tables.ctl("import", str(bad), *SHOP).out.startswith("2 recorded")
    assert values(tables) == {"stock:A": -19}


def test_bad_rows_of_jsonl_keep_what_they_said(tables: Tables, tmp_path: Path) -> None:
    good = {"counter": "c", "change": 5, "idempotency_key": "k", "at": "2010-12-01T09:32:00Z"}
    changed = [json.dumps(good | {"change": change}) for change in (5, 1.5, " 3", "1_000")]
    lines = [changed[0], "{", "[]", changed[1], json.dumps({"counter": "c"}), '{"a":1,"a":2}', *changed[2:]]
    path = tmp_path / "changes.jsonl"
    path.write_text("\n".join(lines))
    (said,) = tables.ctl("import", str(path), "--json").documents
    assert (said["recorded"], said["bad"], said["rows"]) == (1, 7, 8)
    bad = [json.loads(line) for line in Path(said["bad_file"]).read_text().splitlines()]
    assert [each["bad_line"] for each in bad] == [2, 3, 4, 5, 6, 7, 8]
    assert bad[0]["bad_text"] == "{"
    assert bad[2]["change"] == 1.5
    assert "no 'change'" in bad[3]["bad_reason"]
    assert all("not a whole number" in row["bad_reason"] for row in bad[5:])


def second_batch() -> Callable[[Request], bool]:
    batches = iter(range(9))
    return lambda request: isinstance(request, PutMany) and next(batches) == 1


def test_an_import_that_was_cut_off_is_run_again_and_is_exact(path: Path, bad: Path) -> None:
    for failure, after, code, recorded in (
        (KeyboardInterrupt(), False, 130, BATCH),
        (KeyboardInterrupt(), True, 130, BATCH),
        (OutcomeUnknown("No answer."), True, 3, BATCH),
    ):
        table, truth = Failing(), shop(path, 3 * BATCH)
        path.write_text(path.read_text() + BAD_ROW.format(n="bad"))
        table.failure, table.after, table.when = failure, after, second_batch()
        tables = Tables(table)
        said = tables.ctl("import", str(path), *SHOP)
        refused(said, code, f"{recorded} recorded", f"every row before line {BATCH + 2} is done", "Run it again")
        again = tables.ctl("import", str(path), *SHOP)
        there = 2 * BATCH if after else BATCH
        assert again.out.startswith(f"{3 * BATCH - there:,} recorded, {there:,} replayed")
        assert (values(tables), tables.ctl("verify").code) == (truth, 0)
        assert len(bad.read_text().splitlines()) == 2


class Halving(MemoryTable):
    """Takes half of its second batch, and answers an error for each other change."""

    batches = 0

    def answer(self, request: Request, /) -> Any:
        self.batches += isinstance(request, PutMany)
        if isinstance(request, PutMany) and self.batches == 2:
            taken = super().answer(PutMany(request.items[: BATCH // 2]))
            return (*taken, *([Throttled("Slower.")] * (len(request.items) - len(taken))))
        return super().answer(request)


def test_an_import_stops_after_the_rows_that_the_table_took(path: Path) -> None:
    tables, truth = Tables(Halving()), shop(path, 3 * BATCH)
    said = tables.ctl("import", str(path), *SHOP)
    refused(said, 3, "Slower.", f"{BATCH * 3 // 2} recorded", f"every row before line {BATCH + 2} is done")
    assert tables.ctl("import", str(path), *SHOP).out.startswith(
        f"{BATCH * 3 // 2} recorded, {BATCH * 3 // 2} replayed"
    )
    assert values(tables) == truth


ENDED = """
import functools, signal
from ledgerctl import __main__
from ledger.requests import PutMany, Request
from tests.ledgerctl.support import Failing, Tables

table, batches = Failing(), iter(range(9))
table.when = lambda request: isinstance(request, PutMany) and next(batches) == 1 and signal.raise_signal(signal.SIGTERM)
__main__.app = functools.partial(__main__.app, obj=Tables(table).world)
__main__.main()
"""


def test_an_import_that_gets_a_sigterm_says_what_is_done(path: Path) -> None:
    shop(path, 3 * BATCH)
    command = [sys.executable, "-c", ENDED, "import", str(path), *SHOP]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 130
    assert f"every row before line {BATCH + 2} is done" in said.stderr


def test_a_run_without_bad_rows_says_that_the_bad_file_is_old(tables: Tables, path: Path, bad: Path) -> None:
    path.write_text(HEADER + BAD_ROW.format(n=1))
    assert tables.ctl("import", str(path), *SHOP).code == 1
    before = bad.read_text()
    path.write_text(HEADER + GOOD_ROW.format(n=1))
    said = tables.ctl("import", str(path), *SHOP)
    assert (said.code, f"{bad} is of an earlier run; in this one no row was bad" in said.err) == (0, True)
    assert tables.ctl("import", str(path), *SHOP, "--json").documents[0]["bad_file"] is None
    assert bad.read_text() == before


def test_what_an_open_quote_has_swallowed_is_in_the_bad_file(tables: Tables, path: Path, bad: Path) -> None:
    lines = [GOOD_ROW.format(n=n) for n in range(6_000)]
    lines[10] = '10,5,"A,6,2010-12-01T09:32:00Z\n'
    path.write_text(HEADER + "".join(lines))
    (said,) = tables.ctl("import", str(path), *SHOP, "--json").documents
    assert said["recorded"] + said["bad"] == said["rows"] == len(lines)
    assert said["recorded"] > 10
    with bad.open(newline="") as file:
        refused = list(csv.reader(file))[1:]
    assert "never closed" in refused[0][1]
    assert [row[2] for row in refused] == [line.rstrip("\n") for line in lines[10 : 10 + said["bad"]]]
    assert [int(row[0]) for row in refused] == list(range(12, 12 + said["bad"]))


def test_a_row_of_an_export_may_be_no_further_ahead_than_an_add(tables: Tables, tmp_path: Path) -> None:
    path, row = tmp_path / "x.jsonl", {"counter": "c", "change": 1, "region": A}
    ahead = [tokens.make(NOW_MS + later_ms, bytes(10)) for later_ms in (299_000, 301_000, 2**48 - 1 - NOW_MS)]
    path.write_text("".join(json.dumps(row | {"token": token}) + "\n" for token in ahead))
    assert tables.ctl("import", str(path)).out == "1 recorded, 0 replayed (they were there already), 2 bad\n"
    assert "more than five minutes ahead" in (tmp_path / "x.bad.jsonl").read_text()


def test_a_dry_run_writes_nothing_and_says_which_rows_are_bad(tables: Tables, path: Path) -> None:
    path.write_text(HEADER + "1,5,A,6,2010-12-01T09:32:00Z\n2,5,A,six,2010-12-01T09:32:00Z\n")
    said = tables.ctl("import", str(path), *SHOP, "--dry-run")
    assert (said.code, said.out) == (1, "changes: 1, bad rows: 1; nothing was written to the table\n")
    assert tables.ctl("list", "--scan").out.startswith("no counter yet")


def test_a_template_that_fits_no_row_is_refused_before_the_first(tables: Tables, path: Path, bad: Path) -> None:
    for text, options, says in (
        ("", (), "no header"),
        ("a,b\n", (), "there is no column 'counter'; the header has a, b"),
        ("a,a\n", ("--counter", "{a}"), "several columns 'a'"),
        ("a\n", ("--counter", "{a!r}"), "put a name alone in braces"),
        ("a\n", ("--counter", "{a"), "not a template such as {column}"),
        ("a\n", ("--counter", "{}"), "put a name alone in braces"),
    ):
        path.write_text(text)
        refused(tables.ctl("import", str(path), *options), 2, says)
        assert not bad.exists()


drawn = st.lists(
    st.tuples(counters, changes, keys, st.timedeltas(timedelta(0), timedelta(days=9)), st.sampled_from([A, B])),
    max_size=12,
    unique_by=lambda each: (each[0], each[2], each[3]),
)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_what_was_exported_is_imported_as_the_same_deltas(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @effort(0.2)
    @given(drawn)
    def round_trip(rows: list[tuple[str, int, str, timedelta, str]]) -> None:
        path = tmp_path_factory.mktemp("exported") / f"all.{kind}"
        source, target = Tables(), Tables()
        for each in (source, target):
            each.environ |= {"LEDGER_REGIONS": f"{A},{B}", "LEDGER_SHARDS": '{"": 3}'}
        for counter, change, key, later, region in rows:
            source.ledger.add(counter, change, idempotency_key=key, at=AT + later, region=region)
        empty = () if rows else ("--scan",)  # the directory of a table that nobody added to is empty
        exported = source.ctl("export", "--out", str(path), "--format", kind, *empty)
        assert exported.code == 0
        assert f"{len(rows)} change" in exported.err
        recorded, replayed = (target.ctl("import", str(path), "--json").documents[0] for _ in range(2))
        assert (recorded["recorded"], replayed["replayed"], recorded["bad"]) == (len(rows), len(rows), 0)
        assert held(source) == held(target)

    round_trip()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_whatever_the_file_holds_every_row_is_recorded_or_bad(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    odd = (b'"', b"\n", b"\r\n", b",", b"{", b'{"counter":"c"}', b"\x00", b'"\n')
    piece = st.binary(max_size=30) | st.sampled_from(odd)

    @effort(0.2)
    @given(st.lists(piece, max_size=12))
    def swallow(pieces: list[bytes]) -> None:
        path = tmp_path_factory.mktemp("odd") / f"odd.{kind}"
        path.write_bytes(b"counter,change,idempotency_key,at\n" * (kind == "csv") + b"".join(pieces))
        said = Tables().ctl("import", str(path), "--json")
        assert said.code in (0, 1)
        (document,) = said.documents
        assert document["rows"] == document["bad"] + document["recorded"]

    swallow()


def test_an_export_holds_strays_too_and_each_change_once(tmp_path: Path) -> None:
    source, target, path = Tables(), Tables(), tmp_path / "all.jsonl"
    source.environ["LEDGER_FOLD_MIN"] = "1"
    for _ in range(3):
        source.ledger.add("c", 1)
    source.clock.now_ms += 60_000
    assert source.ctl("compact").code == 0  # the folded deltas are still there as items
    stray = source.ledger.add("c", 100, idempotency_key="late", at=AT).delta
    source.ledger.add("c", 10)
    said = source.ctl("export", "--out", str(path))
    assert (said.code, said.err.splitlines()[-1].startswith("5 changes of 1 counter")) == (0, True)
    assert "strays among them, which no read counts yet: 1" in said.err
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(row["change"] for row in rows) == [1, 1, 1, 10, 100]
    assert rows[0]["token"] == stray.token
    assert target.ctl("import", str(path)).out.startswith("5 recorded")
    assert values(target) == {"c": 113}


def test_a_stray_that_is_settled_while_it_is_exported_is_there_once() -> None:
    deltas = [Delta(Lane(A, 0, "c"), tokens.make(n, bytes(10)), n) for n in (1, 2, 3)]
    first, second, third = (entry_of(delta) for delta in deltas)
    assert list(with_strays(iter([first, second]), deltas[1:])) == [first, second, third]


def test_an_export_replaces_no_file_and_half_of_one_is_no_file(tables: Tables, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("precious")
    tables.ctl("add", "c", "5")
    assert tables.ctl("export", "--out", str(path)).code == 2
    assert path.read_text() == "precious"
    path.unlink()
    assert tables.ctl("export", "c", "not a name", "--out", str(path)).code == 2
    assert not path.exists()
    assert tables.ctl("export", "c", "--out", str(path)).code == 0


def test_rows_come_from_standard_input_too_and_those_of_a_region_that_nobody_reads_are_bad(
    tables: Tables, tmp_path: Path
) -> None:
    tables.environ["LEDGER_REGIONS"] = f"{A},{B}"
    tables.ctl("add", "c", "5", "--region", B)
    exported, path = tables.ctl("export", "c").out, tmp_path / "x.jsonl"
    both, one = Tables(environ=tables.environ), Tables()
    assert both.ctl("import", "-", input=exported).out.startswith("1 recorded")
    assert values(both) == {"c": 5}
    path.write_text(exported)
    assert one.ctl("import", str(path)).out.endswith("1 bad\n")
    assert "region='us-east-1' is not one of" in (tmp_path / "x.bad.jsonl").read_text()
