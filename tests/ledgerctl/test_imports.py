"""`import` and `export`: bad rows, interruptions, and what comes back."""

import csv
import gzip
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

from ledger.client.message import loads
from ledger.core import tokens
from ledger.core.checks import to_ms
from ledger.core.errors import InvalidMessage, OutcomeUnknown, Throttled
from ledger.core.requests import Key, PutMany, Request
from ledger.core.values import Delta, Lane
from ledgerctl.history import with_strays
from ledgerctl.imports import BATCH
from reader import Entry
from tests.ledgerctl.support import NOW_MS, A, B, Tables, limited, refused
from tests.strategies import changes, counters, effort, keys
from tests.world import writes_of

ROOT = Path(__file__).parents[2]
SHOP = "--counter stock:{code} --change -{quantity} --key {invoice}/{line} --at {at}"
HEADER = "line,invoice,code,quantity,at\n"
AT = datetime(2010, 12, 1, 9, 32, tzinfo=UTC)
GOOD_ROW, BAD_ROW = "{n},5,A,6,2010-12-01T09:32:00Z\n", "{n},5,A,six,2010-12-01T09:32:00Z\n"
BAD_PATH = "shop.bad.csv"


@pytest.fixture
def tables() -> Tables:
    return Tables()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.csv"


def shop(path: Path, count: int) -> dict[str, int]:
    """A file of sales, and the truth about them."""
    path.write_text(
        HEADER + "".join(f"{n},536,{n % 7},{n},2010-12-01T09:32:00Z\n" for n in range(count))
    )
    return {f"stock:{code}": -sum(range(code, count, 7)) for code in range(7)}


def values(tables: Tables) -> dict[str, int]:
    return {each["counter"]: each["value"] for each in tables.json("top --limit 999")}


ROWS = [
    (b"1,5,A,6,2010-12-01T09:32:00Z", ""),
    (b"2,5,A,six,2010-12-01T09:32:00Z", "not a whole number"),
    (b"3,5,A,6,yesterday", "not a time of ISO 8601"),
    (b"4,5,A,6,2010-12-01T09:32:00", "no time zone"),
    (b"5,5,a b,6,2010-12-01T09:32:00Z", "1 to 256 printable ASCII"),
    (b"6,5,A", "has 3 fields, and the header 5"),
    (b"", ""),
    (b"1,5,A,7,2010-12-01T09:32:00Z", "already stands for a change of -6"),
    (b"8,5,\xff,1,2010-12-01T09:32:00Z", "1 to 256 printable ASCII"),
    (b"9,C5,A,-1,2010-12-01T09:32:00Z", ""),
    (b"10,5,A,1_000,2010-12-01T09:32:00Z", "'-1_000', not a whole number"),
    (b"11,5,A, 3,2010-12-01T09:32:00Z", "'- 3', not a whole number"),
]


def test_bad_rows_go_to_a_file_with_the_reason_and_stop_nobody(tables: Tables, path: Path) -> None:
    bad = path.with_name(BAD_PATH)
    path.write_bytes(b"\xef\xbb\xbf" + HEADER.encode() + b"\n".join(row for row, _ in ROWS))
    tables(
        f"import {path} {SHOP} --dry-run",
        1,
        says="changes: 3, bad rows: 8; nothing was written to the table",
    )
    assert tables.held == {}
    said = tables(f"import {path} {SHOP}", 1, says=str(bad))
    assert said.out == "2 recorded, 0 replayed (they were there already), 9 bad\n"
    with bad.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        reasons = {int(row["bad_line"]): row["bad_reason"] for row in csv.DictReader(file)}
    expected = {line: reason for line, (_, reason) in enumerate(ROWS, start=2) if reason}
    assert reasons.keys() == expected.keys()
    assert all(reason in reasons[line] for line, reason in expected.items())
    assert ROWS[8][0] in bad.read_bytes()
    put_right = (
        bad.read_text(errors="surrogateescape")
        .replace("six", "6")
        .replace("yesterday", "2010-12-01T09:32:00Z")
    )
    bad.write_text(put_right, errors="surrogateescape")
    tables(f"import {bad} {SHOP}", 1, says="2 recorded")
    assert values(tables) == {"stock:A": -17}

    path.write_text(HEADER + GOOD_ROW.format(n=1))
    before = bad.read_bytes()
    tables(f"import {path} {SHOP}")
    assert tables.json(f"import {path} {SHOP}")[0]["bad_file"] is None
    assert bad.read_bytes() == before


def test_bad_rows_of_jsonl_keep_what_they_said(tmp_path: Path) -> None:
    tables, path, bad_path = limited(), tmp_path / "changes.jsonl", tmp_path / "changes.bad.jsonl"
    good = {"counter": "c", "change": 5, "idempotency_key": "k", "at": "2010-12-01T09:32:00Z"}
    ahead = [
        tokens.make(NOW_MS + later_ms, bytes(10))
        for later_ms in (299_000, 301_000, 2**48 - 1 - NOW_MS)
    ]
    rows = (
        (good, ""),
        ("{", "not JSON"),
        ([], "not an object"),
        (good | {"change": 1.5}, "not a whole number"),
        ({"counter": "c"}, "no 'change'"),
        ('{"a":1,"a":2}', ""),
        (good | {"change": " 3"}, "not a whole number"),
        (good | {"counter": "stock:1"}, ""),
        (
            good | {"counter": "stock:1", "change": -6, "idempotency_key": "l"},
            "would pass the limit",
        ),
        *(
            ({"counter": "c", "change": 1, "region": A, "token": token}, "five minutes ahead")
            for token in ahead
        ),
        (
            {"counter": "c", "change": 1, "region": "mars-1", "token": ahead[0]},
            "region='mars-1' is not one of",
        ),
        ({"counter": "c", "change": 1, "region": A, "token": "x"}, "is no token"),
        (good | {"change": 10**19}, "10**18"),
        (good | {"change": -5, "then": {"counter": "d", "change": 5}}, "would add half"),
        (good | {"change": -5, "partial": True}, "would add all"),
    )
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row, _ in rows))
    asked = {"requests": 0, "read_units": 0, "write_units": 0}
    counts = {
        "recorded": 3,
        "replayed": 0,
        "bad": 14,
        "rows": 17,
        "bad_file": str(bad_path),
        "dry_run": False,
    }
    assert tables.json(f"import {path}", 1) == [counts | asked]
    bad = {row["bad_line"]: row for row in map(json.loads, bad_path.read_text().splitlines())}
    assert [*bad] == [line for line in range(1, 18) if line not in (1, 8, 10)]
    assert (bad[2]["bad_text"], bad[4]["change"]) == ("{", 1.5)
    assert not [line for line, row in bad.items() if rows[line - 1][1] not in row["bad_reason"]], (
        bad
    )


MESSAGE = {"counter": "c", "change": 5, "idempotency_key": "k", "at": "2010-12-01T09:32:00Z"}
OTHERWISE: dict[str, list[Any]] = {
    "region": [None, A, "", 5],
    "note": ["x"],
    "token": [None],
    "change": [-5, 0, "5", "--5", "-5", "007", 5.0, True, None, [5], 10**18, 10**18 + 1],
    "idempotency_key": [7, True, [1], {}, None, "", " ", "x" * 1_024, "x" * 1_025],
    "counter": [7, None, "a b", "", "a" * 256, ["c"]],
    "at": [
        *(
            f"2010-12-01t09:32:00{zone}"
            for zone in ("z", "Z", "+01:00", ".123456789Z", ",123Z", "+0000", "+00:00:30")
        ),
        *(
            "2010-12-01 09:32:00Z",
            "2010-12-01T09:32Z",
            "2010-12-01T09:32:00",
            "2010-12-01T24:00:00Z",
            "2010-12-01",
            "",
        ),
        *("20101201T093200Z", "2010-W48-3T09:32Z", 1291195920, None, "1969-12-31T23:59:59Z"),
    ],
}
MESSAGES: list[dict[str, Any]] = [
    {name: value} for name, values in OTHERWISE.items() for value in values
]


def test_a_row_of_jsonl_is_the_message_of_every_other_door(tmp_path: Path) -> None:
    path, taken = tmp_path / "messages.jsonl", 0
    for changed in MESSAGES:
        text, tables = json.dumps(MESSAGE | changed), Tables()
        path.write_text(text)
        try:
            change = loads(text)
        except InvalidMessage:
            tables(f"import {path}", 1)
            assert tables.held == {}, changed
            continue
        tables(f"import {path}", says="1 recorded")
        (delta,) = tables.held
        assert change.idempotency_key is not None
        assert change.at is not None
        at_ms = to_ms(change.at)
        assert delta.sk == tokens.keyed(change.counter, change.idempotency_key, at_ms), changed
        assert values(tables) == {change.counter: change.change}
        taken += 1
    assert 10 < taken < len(MESSAGES) - 20, taken


ULID, MINTED = "01JGGKGE064BG4X58772SZHBM0", "2025-01-01T09:35:20.070Z"
UUID_V7 = "01942138-3806-7abc-8def-0123456789ab"
IN_KEYS: list[tuple[str, str, str]] = [  # a name, its text, options
    ("a.csv", f"counter,change,idempotency_key\nc,5,{ULID}\nc,6,{UUID_V7}\n", ""),
    ("a.csv", f"counter,change,idempotency_key,at\nc,5,{ULID},\nc,6,{UUID_V7},{MINTED}\n", ""),
    ("a.csv", f"n,k\n5,{ULID}\n6,{UUID_V7}\n", "--counter c --change {n} --key {k}"),
    (
        "a.jsonl",
        f'{{"n": 5, "k": "{ULID}"}}\n{{"n": 6, "k": "{UUID_V7}", "at": "{MINTED}"}}\n',
        "--counter c --change {n} --key {k}",
    ),
    (
        "a.jsonl",
        f'{{"counter": "c", "change": 5, "idempotency_key": "{ULID}"}}\n'
        f'{{"counter": "c", "change": 6, "idempotency_key": "{UUID_V7}"}}\n',
        "",
    ),
]


@pytest.mark.parametrize(("name", "text", "options"), IN_KEYS)
def test_a_row_whose_key_brings_its_time_needs_no_at(
    name: str, text: str, options: str, tables: Tables, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    tables(f"import {path} {options}", says="2 recorded")
    for key, change in ((ULID, 5), (UUID_V7, 6)):
        tables(f"add c {change} --key {key} --at {MINTED}", says="replayed")
        tables(f"add c {change} --key {key}", says="replayed")
    # beside these a row with another key is a bad row, with the reason
    path.write_text(text + text.splitlines()[-1].replace(UUID_V7, "k").replace(MINTED, "") + "\n")
    tables(f"import {path} {options}", 1, says="2 replayed")
    bad = path.with_name(f"a.bad{path.suffix}").read_text()
    assert "There is no 'at'." in bad
    assert "needs no `at`" in bad


def test_a_file_without_times_needs_keys_that_bring_them(tables: Tables, path: Path) -> None:
    for key in ("k", ULID.lower()):
        path.write_text(f"counter,change,idempotency_key\nc,5,{key}\nc,6,{ULID}\n")
        refused(tables(f"import {path}", 2), 2, "there is no column 'at'")
    assert tables.held == {}


def test_a_row_of_an_export_is_no_laxer(tmp_path: Path) -> None:
    path, good = (
        tmp_path / "changes.jsonl",
        {"counter": "c", "change": 5, "token": tokens.make(5, bytes(10))},
    )
    for changed in (
        {"change": "--5"},
        {"change": "5"},
        {"change": True},
        {"counter": 7},
        {"note": 1},
        {"region": ""},
    ):
        path.write_text(json.dumps(good | changed))
        tables = Tables()
        tables(f"import {path}", 1)
        assert tables.held == {}, changed
    path.write_text(json.dumps(good))
    Tables()(f"import {path}", says="1 recorded")


def test_a_templates_minus_alone_turns_a_sign(
    tmp_path: Path,
) -> None:
    for text, options, counted in (
        ("counter,change,idempotency_key,at\nc,--5,k,2010-12-01T09:32:00Z\n", "", None),
        ("counter,change,idempotency_key,at\nc,-5,k,2010-12-01T09:32:00Z\n", "", -5),
        (
            "counter,change,idempotency_key,at\nc,-5,k,2010-12-01T09:32:00Z\n",
            "--change -{change}",
            5,
        ),
        (
            "counter,change,idempotency_key,at\nc,--5,k,2010-12-01T09:32:00Z\n",
            "--change -{change}",
            None,
        ),
        ("counter,change,idempotency_key,at\nc,5,k,2010-12-01t09:32:00z\n", "", 5),
    ):
        (tmp_path / "a.csv").write_text(text)
        (said,) = (tables := Tables()).json(
            f"import {tmp_path / 'a.csv'} {options}", 0 if counted else 1
        )
        assert (said["recorded"], tables.held and values(tables)["c"]) == (
            (1, counted) if counted else (0, {})
        )
    named = "--counter c --change {n} --key {k} --at {at}"
    keys_of: list[tuple[Any, bool]] = [
        ("a", True),
        (7, True),
        ([1], False),
        (True, False),
        (1.5, False),
        ({}, False),
    ]
    for key, good in keys_of:
        (tmp_path / "a.jsonl").write_text(
            json.dumps({"k": key, "n": "5", "at": "2010-12-01T09:32:00Z"})
        )
        Tables()(
            f"import {tmp_path / 'a.jsonl'} {named}",
            0 if good else 1,
            says="1 recorded" if good else "",
        )


SOLD, SALE = "line,invoice,code,quantity,at\n", "1,536,A,6,2010-12-01T09:32:00Z\n"
OF_A_MESSAGE = json.dumps(MESSAGE) + "\n"
FILES: list[tuple[str, str, str]] = [  # a name, its text, options
    ("sales.csv", SOLD + SALE, SHOP),
    ("sales.CSV", SOLD + SALE, SHOP),
    ("sales.csv", (SOLD + SALE).replace(",", ";"), f"{SHOP} --separator ';'"),
    ("sales.csv", (SOLD + SALE).replace(",", "\t"), f"{SHOP} --separator tab"),
    ("sales.tsv", (SOLD + SALE).replace(",", "\t"), SHOP),
    ("sales.tsv", (SOLD + SALE).replace(",", "|"), f"{SHOP} --separator '|'"),
    ("sales.txt", SOLD + SALE, SHOP),
    ("sales.txt", (SOLD + SALE).replace(",", "\t"), rf"{SHOP} --separator '\t'"),
    ("sales", "\n" + SOLD + SALE, f"{SHOP} --format csv"),
    ("messages.txt", OF_A_MESSAGE, ""),
    ("messages.txt", "\n  " + OF_A_MESSAGE, ""),
    ("messages.ndjson", OF_A_MESSAGE, ""),
    ("messages.csv", OF_A_MESSAGE, "--format jsonl"),
    (
        "bill.csv",
        "id!,user:Project,n}a,at\nI1,web,6,2010-12-01T09:32:00Z\n".replace("}", ""),
        "--counter 'use:{user:Project}' --change {na} --key '{id!}' --at {at}",
    ),
    (
        "braces.csv",
        "id,n,at\nI1,6,2010-12-01T09:32:00Z\n",
        "--counter 'a{{{id}}}' --change {n} --key {id} --at {at}",
    ),
]
COUNTERS = {"bill.csv": {"use:web": 6}, "braces.csv": {"a{I1}": 6}}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize(("name", "text", "options"), FILES)
def test_a_file_is_what_its_name_or_its_first_line_says(
    name: str, text: str, options: str, packed: bool, tmp_path: Path
) -> None:
    if name == "sales":
        text = text.removeprefix("\n")
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()) if packed else text.encode())
    tables = Tables()
    tables(f"import {path} {options}", says="1 recorded")
    usual = {"c": 5} if text.lstrip().startswith("{") else {"stock:A": -6}
    assert values(tables) == COUNTERS.get(name, usual)
    assert [*tmp_path.iterdir()] == [path]


def test_bad_rows_keep_their_files_form_and_can_be_imported(
    tmp_path: Path,
) -> None:
    for name, separator, option, bad_name in (
        ("s.tsv", "\t", "", "s.bad.tsv"),
        ("s.tsv.gz", "\t", "", "s.bad.tsv"),
        ("s.csv", ";", "--separator ;", "s.bad.csv"),
        ("s.txt", "\t", "--separator tab", "s.bad.csv"),
    ):
        text, tables = (
            (SOLD + SALE.replace(",6,", ",six,")).replace(",", separator).encode(),
            Tables(),
        )
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        tables(f"import {tmp_path / name} {SHOP} {option}".replace(" ;", " ';'"), 1)
        bad = tmp_path / bad_name
        bad.write_text(bad.read_text().replace("six", "6"))
        tables(f"import {bad} {SHOP} {option}".replace(" ;", " ';'"), says="1 recorded")
        assert values(tables) == {"stock:A": -6}
        bad.unlink()


def test_a_header_that_does_not_fit_says_what_to_do(tables: Tables, tmp_path: Path) -> None:
    for name, text, options, says in (
        ("a.csv", SOLD.replace(",", ";"), SHOP, "separated by ';': give --separator ';'"),
        ("a.csv", SOLD.replace(",", "; "), SHOP, "separated by ';': give --separator ';'"),
        ("a.csv", SOLD.replace(",", "\t"), SHOP, "separated by tab: give --separator tab"),
        ("a.tsv", SOLD, SHOP, "separated by ',': give --separator ','"),
        ("a.csv", SOLD.replace(",", "|"), SHOP, "separated by '|': give --separator '|'"),
        ("a.csv", "sep=;\n" + SOLD.replace(",", ";"), SHOP, "delete it, and give --separator ';'"),
        ("a.csv", OF_A_MESSAGE, SHOP, "give --format jsonl"),
        (
            "a.csv",
            SOLD,
            f"{SHOP} --counter {{colour}}",
            "no column 'colour'; the header has line, invoice",
        ),
        ("a.csv", SOLD, f"{SHOP} --separator ab", "is not one character"),
        ("a.csv", SOLD, f"{SHOP} --separator '\"'", "is not one character"),
        ("a.jsonl", OF_A_MESSAGE, "--separator ';'", "is JSONL, which has no separator"),
        ("a.csv.gz", SOLD, SHOP, "cannot be read to its end"),
    ):
        (tmp_path / name).write_text(text)
        refused(tables(f"import {tmp_path / name} {options}", 2), 2, says)
        assert tables.held == {}


def test_a_compressed_file_that_is_cut_off_says_what_is_done(
    tables: Tables, tmp_path: Path
) -> None:
    truth = shop(tmp_path / "shop.csv", 3 * BATCH)
    packed, path = gzip.compress((tmp_path / "shop.csv").read_bytes()), tmp_path / "again.csv.gz"
    path.write_bytes(packed[: len(packed) * 9 // 10])
    said = tables(f"import {path} {SHOP}", 2)
    refused(
        said,
        2,
        "cannot be read to its end",
        "recorded",
        "is done",
        "Copy the file again",
        "Run it again",
    )
    assert tables.held
    path.write_bytes(packed)
    tables(f"import {path} {SHOP}", says="replayed")
    assert values(tables) == truth


def second() -> Callable[[Request], bool]:
    """Of the second batch."""
    batches = iter(range(9))
    return lambda request: isinstance(request, PutMany) and next(batches) == 1


def test_an_import_that_was_cut_off_is_run_again_and_is_exact(path: Path) -> None:
    for failure, after, code in (
        (KeyboardInterrupt(), False, 130),
        (KeyboardInterrupt(), True, 130),
        (OutcomeUnknown("No answer."), True, 3),
    ):
        tables, truth = Tables(), shop(path, 3 * BATCH)
        path.write_text(path.read_text() + BAD_ROW.format(n="bad"))
        tables.fails(second(), failure, after=after)
        said = tables(f"import {path} {SHOP}", code)
        refused(
            said,
            code,
            f"{BATCH} recorded",
            f"every row before line {BATCH + 2} is done",
            "Run it again",
        )
        there = 2 * BATCH if after else BATCH
        tables(
            f"import {path} {SHOP}", 1, says=f"{3 * BATCH - there:,} recorded, {there:,} replayed"
        )
        assert values(tables) == truth
        assert len(path.with_name(BAD_PATH).read_text().splitlines()) == 2


def test_an_import_stops_after_the_rows_that_the_table_took(tables: Tables, path: Path) -> None:
    truth, half = shop(path, 3 * BATCH), BATCH // 2

    def half_taken(request: PutMany, _: object) -> tuple[Any, ...]:
        tables.table.drop(*(Key(item["pk"]["S"], item["sk"]["S"]) for item in request.items[half:]))
        return (*[None] * half, *[Throttled("Slower.")] * (len(request.items) - half))

    tables.table.after(second(), half_taken)
    said = tables(f"import {path} {SHOP}", 3)
    refused(
        said, 3, "Slower.", f"{BATCH + half} recorded", f"every row before line {BATCH + 2} is done"
    )
    tables(f"import {path} {SHOP}", says=f"{2 * BATCH - half} recorded, {BATCH + half} replayed")
    assert values(tables) == truth


def test_after_a_failure_an_import_sends_no_later_row(path: Path) -> None:
    """A later sale must not come before the delivery that failed."""
    path.write_text(
        "counter,change,idempotency_key,at,region\n"
        + "".join(
            f"stock:1,{change},{change},2010-12-01T09:32:00Z,{region}\n"
            for change, region in ((5, A), (7, B), (-2, A))
        )
    )
    tables = limited(A, B)
    tables.fails(
        lambda request: writes_of("stock:1")(request) and B in repr(request), Throttled("Slower.")
    )
    refused(tables(f"import {path}", 3), 3, "Slower.", "1 recorded")
    assert tables.json("get stock:1")[0]["value"] == 5
    tables.mends()
    tables(f"import {path}", says="2 recorded, 1 replayed")
    assert tables.json("get stock:1")[0]["value"] == 10


def test_a_sale_follows_its_delivery_in_another_lane(path: Path) -> None:
    rows = [(5, A), (-5, B), (4, B), (-4, A), (3, A), (-1, B), (-2, A)]
    path.write_text(
        "counter,change,idempotency_key,at,region\n"
        + "".join(
            f"stock:1,{change},{n},2010-12-01T09:32:00Z,{region}\n"
            for n, (change, region) in enumerate(rows)
        )
    )
    tables = limited(A, B)
    tables(f"import {path}", says=f"{len(rows)} recorded")
    assert tables.json("get stock:1")[0]["value"] == 0


ENDED = """
import functools, signal
from ledgerctl import __main__
from tests.ledgerctl.support import Tables
from tests.ledgerctl.test_imports import second

tables = Tables()
tables.table.before(second(), lambda _: signal.raise_signal(signal.SIGTERM))
__main__.app = functools.partial(__main__.app, obj=tables.world)
__main__.main()
"""


def test_an_import_that_gets_a_sigterm_says_what_is_done(path: Path) -> None:
    shop(path, 3 * BATCH)
    command = [sys.executable, "-c", ENDED, "import", str(path), *SHOP.split()]
    said = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (said.returncode, f"every row before line {BATCH + 2} is done" in said.stderr) == (
        130,
        True,
    ), said.stderr


def test_what_an_open_quote_has_swallowed_is_in_the_bad_file(tables: Tables, path: Path) -> None:
    lines = [GOOD_ROW.format(n=n) for n in range(6_000)]
    lines[10] = '10,5,"A,6,2010-12-01T09:32:00Z\n'
    path.write_text(HEADER + "".join(lines))
    (said,) = tables.json(f"import {path} {SHOP}", 1)
    assert said["recorded"] + said["bad"] == said["rows"] == len(lines)
    assert said["recorded"] > 10
    with path.with_name(BAD_PATH).open(newline="") as file:
        bad = list(csv.reader(file))[1:]
    assert "never closed" in bad[0][1]
    assert [row[2] for row in bad] == [line.rstrip("\n") for line in lines[10 : 10 + said["bad"]]]
    assert [int(row[0]) for row in bad] == list(range(12, 12 + said["bad"]))


def test_a_template_that_fits_no_row_is_refused_before_the_first(
    tables: Tables, path: Path
) -> None:
    for text, options, says in (
        ("", "", "no header"),
        ("a,b\n", "", "there is no column 'counter'; the header has a, b"),
        ("a,a\n", "--counter {a}", "several columns 'a'"),
        ("a\n", "--counter {a!r}", "put a name alone in braces"),
        ("a\n", "--counter {a", "not a template such as {column}"),
        ("a\n", "--counter {}", "put a name alone in braces"),
        ("counter,change,token\n", "--home-region {home}", "there is no column 'home'"),
    ):
        path.write_text(text)
        refused(tables(f"import {path} {options}", 2), 2, says)
        assert not path.with_name(BAD_PATH).exists()


drawn = st.lists(
    st.tuples(
        counters,
        changes,
        keys,
        st.timedeltas(timedelta(0), timedelta(days=9)),
        st.sampled_from([A, B]),
    ),
    max_size=12,
    unique_by=lambda each: (each[0], each[2], each[3]),
)


kinds = st.sampled_from(["csv", "jsonl"])


@effort(0.4)
@given(kind=kinds, rows=drawn)
def test_what_was_exported_is_imported_as_the_same_deltas(
    kind: str,
    rows: list[tuple[str, int, str, timedelta, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("exported") / f"all.{kind}"
    source, target = Tables(), Tables()
    for each in (source, target):
        each.environ |= {"LEDGER_REGIONS": f"{A},{B}", "LEDGER_SHARDS": '{"": 3}'}
    for counter, change, key, later, region in rows:
        source.ledger.add(counter, change, idempotency_key=key, at=AT + later, region=region)
    empty = "" if rows else "--scan"  # the directory of a table that nobody added to is empty
    source(f"export --out {path} --format {kind} {empty}", says=f"{len(rows)} change")
    recorded, replayed = (target.json(f"import {path}")[0] for _ in range(2))
    assert (recorded["recorded"], replayed["replayed"], recorded["bad"]) == (
        len(rows),
        len(rows),
        0,
    )
    assert source.held == target.held


odd = st.sampled_from((b'"', b"\n", b"\r\n", b",", b"{", b'{"counter":"c"}', b"\x00", b'"\n'))


@effort(0.4)
@given(kind=kinds, pieces=st.lists(st.binary(max_size=30) | odd, max_size=12))
def test_whatever_the_file_holds_every_row_is_recorded_or_bad(
    kind: str, pieces: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("odd") / f"odd.{kind}"
    path.write_bytes(b"counter,change,idempotency_key,at\n" * (kind == "csv") + b"".join(pieces))
    said = Tables().ctl("import", str(path), "--json")
    assert said.code in (0, 1)
    (document,) = said.documents
    assert document["rows"] == document["bad"] + document["recorded"]


def test_an_export_holds_strays_too_and_each_change_once(tmp_path: Path) -> None:
    source, target, path = Tables(), Tables(), tmp_path / "all.jsonl"
    source.environ["LEDGER_FOLD_MIN"] = "1"
    for _ in range(3):
        source.ledger.add("c", 1)
    source.clock.now_ms += 60_000
    source("compact")  # the folded deltas are still there as items
    stray = source.ledger.add("c", 100, idempotency_key="late", at=AT).delta
    source.ledger.add("c", 10)
    said = source(f"export --out {path}", says="of these, strays that no read counts yet: 1")
    assert said.err.splitlines()[-1].startswith("5 changes of 1 counter")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(row["change"] for row in rows) == [1, 1, 1, 10, 100]
    assert rows[0]["token"] == stray.token
    target(f"import {path}", says="5 recorded")
    assert values(target) == {"c": 113}

    deltas = [Delta(Lane(A, 0, "c"), tokens.make(n, bytes(10)), n) for n in (1, 2, 3)]
    first, second, third = (Entry(each.token, each.at, each.change, A) for each in deltas)
    assert list(with_strays(iter([first, second]), deltas[1:])) == [first, second, third], (
        "settled while it is read"
    )


def test_an_export_replaces_no_file_and_leaves_no_half(tables: Tables, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("precious")
    tables("add c 5")
    tables(f"export --out {path}", 2)
    assert path.read_text() == "precious"
    path.unlink()
    tables(f"export c 'not a name' --out {path}", 2)
    assert not path.exists()
    tables(f"export c --out {path}")
    other = Tables()
    assert other.ctl(
        "import", "-", "--home-region", "{region}", input=tables("export c").out
    ).out.startswith("1 recorded")
    assert values(other) == {"c": 5}
