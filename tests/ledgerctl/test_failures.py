"""What a user, a role or a network does wrong: a sentence, a remedy, an exit code, never a stack
trace.
"""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ProfileNotFound

from ledger import __version__
from ledger.core import errors
from ledgerctl.__main__ import app
from ledgerctl.failures import meaning
from ledgerctl.surroundings import Surroundings
from tests.ledgerctl.support import (
    ENVIRON,
    A,
    Said,
    Tables,
    aws,
    ctl,
    limited,
    refusal,
    refused,
    signed_in,
)

READS = {
    "BatchGetItem": {"Responses": {}},
    "Query": {"Items": []},
    "GetItem": {},
    "Scan": {"Items": []},
}


def read_only(operation: str, _: Any) -> tuple[int, Any]:
    if operation in READS:
        return 200, READS[operation]
    return refusal(
        "AccessDeniedException", f"User is not authorized to perform: dynamodb:{operation}"
    )


def refusing(code: str) -> Surroundings:
    return aws(lambda *_: refusal(code))


def no_profile(profile: str | None) -> boto3.Session:
    raise ProfileNotFound(profile=str(profile))


ANYBODY = replace(aws(read_only), session=lambda _: signed_in())
NOBODY = replace(
    aws(read_only, {"LEDGER_TABLE": "counters"}), session=lambda _: signed_in("ap-south-1")
)
NO_KEYS = replace(ANYBODY, session=lambda _: signed_in(key=None))
DOWN = "--endpoint-url http://127.0.0.1:1"
OF_AWS = [
    (
        refusing("ResourceNotFoundException"),
        "get c",
        2,
        ("There is no table counters in eu-west-1.", "ledgerctl init"),
    ),
    (
        aws(read_only),
        "add c 1",
        3,
        ("not authorized to perform: dynamodb:PutItem", "docs/security.md#roles"),
    ),
    (NO_KEYS, "get c", 3, ("Unable to locate credentials", "--profile")),
    (refusing("ExpiredTokenException"), "get c", 3, ("Sign in again",)),
    (
        refusing("UnrecognizedClientException"),
        "get c",
        3,
        ("Check this process's credentials.", "Give credentials that AWS accepts"),
    ),
    (ANYBODY, f"get c {DOWN}", 3, ("http://127.0.0.1:1", "Check that the endpoint is up")),
    (ANYBODY, f"add c 1 {DOWN}", 3, ("Nothing was written", "Check that the endpoint is up")),
    (
        replace(aws(read_only), session=no_profile),
        "get c --profile no",
        2,
        ("(no) could not be", "list-profiles"),
    ),
    (refusing("ThrottlingException"), "init", 3, ("Run it again",)),
    (NOBODY, f"get c {DOWN}", 3, ("counters in ap-south-1",)),
    (replace(NOBODY, session=NO_KEYS.session), "get c", 2, ("No Region is named", "--region")),
    (aws(read_only, ENVIRON | {"LEDGER_TABLE": ""}), "get c", 2, ("No table is named", "--table")),
    (
        aws(read_only, ENVIRON | {"LEDGER_SHARDS": "four"}),
        "get c",
        2,
        ("LEDGER_SHARDS='four' cannot be read",),
    ),
]


def test_a_refusal_has_a_sentence_a_remedy_and_an_exit_code() -> None:
    for world, typed, code, words in OF_AWS:
        said = ctl(world, *typed.split())
        refused(said, code, *words)
        assert len(said.err.splitlines()) >= 2, "no remedy"
    assert json.loads(ctl(refusing("ResourceNotFoundException"), "get", "c", "--json").err) == {
        "error": "TableMissing",
        "message": "There is no table counters in eu-west-1.",
        "remedy": (
            "Name another with --table, --region or --endpoint-url, or make it: `ledgerctl init`."
        ),
    }


HOLD = f"{'0' * 26}.{A}.0.1"
TYPED = [
    ("get a b", "printable ASCII characters without spaces"),
    ("get c\t--regions\tus-east-1", "region='eu-west-1' is not one of"),
    ("get c\t--endpoint-url\tftp://x", "is no URL such as http"),
    (f"add c\t{'1' * 30}", "at most 10**18"),
    *(
        (f"add c\t{number}", "is not a whole number")
        for number in ("1_000", " 3", "٣", "--3", "1.0")
    ),
    ("add c\t1\t--key\tk", "--key and --at go together"),
    ("add c\t1\t--key\tk", "a ULID or a UUIDv7, in its canonical spelling, needs no `at`"),
    ("add c\t1\t--key\tk", "the key 'k' needs --at. Nothing was sent."),
    ("add c\t1\t--at\t2026-11-28T00:00:00Z", "--at came alone. Nothing was sent."),
    (f"add c\t1\t--key\t{'0' * 25}z", "This key is a ULID in small letters."),
    (f"add c\t1\t--key\t{'7' * 26}", "set this machine's clock"),
    (f"add c\t1\t--key\t{'7' * 26}", "more than five minutes ahead"),
    ("add c\t1\t--home-region\tmars-1", "is not one of regions"),
    ("history c\t--since\tyesterday", "such as 2010-12-01T08:26:00Z"),
    ("verify stok:1", "Nobody has added to 'stok:1'. `ledgerctl list` names the counters"),
    ("export stok:1", "Nobody has added to 'stok:1'"),
    (
        "import /no/such/file.csv",
        "error: /no/such/file.csv: No such file or directory. Name another file.",
    ),
    ("hold stock:1\t-2\t--expires\t5", "not a length of time"),
    ("hold stock:1\t-2\t--expires\t401d", "at most 400 days"),
    ("hold stock:1\t-2\t--expires\t5m\t--key\tk", "--key and --at go together"),
    ("hold c\t-2\t--expires\t5m", "has no limit"),
    ("hold c\t-2\t--expires\t5m", "Nothing was written"),
    *((f"{command} c", "has no limit") for command in ("holds", "standing", "limit")),
    ("limit stock:1\t--floor\t1", "names no region"),
    ("limit seats:1\t--floor\t1", "has no such side"),
    ("limit seats:1\t--ceiling\tten", "is not a whole number"),
    ("capture seats:1\tx", "is the id of no hold"),
    (f"capture seats:1\t{HOLD}\t2", "captured from 0 to 1"),
    (f"release seats:1\t{HOLD}", "there is no hold"),
    (f"release seats:1\t{'0' * 26}.mars-1.0.1", "No reader looks at the lane"),
]


def test_what_was_typed_wrong_ends_with_2_and_does_nothing() -> None:
    for typed, says in TYPED:
        command, _, words = typed.partition(" ")
        said = limited().ctl(command, *words.split("\t"))
        shown = " ".join(re.sub("[│╭╮╰╯─]", " ", said.err).split())
        assert (said.code, said.out, says in shown) == (2, "", True), (typed, said)


def test_unknown_words_are_refused_before_anything_is_done() -> None:
    wrong = (
        "gett c",
        "get",
        "get c d",
        "get c --tabel x",
        "hold c 1",
        "list --limit 0",
        "top --by size",
        "add c 1 2",
    )
    for typed in wrong:
        assert Tables()(typed, 2, says="--help").out == ""
    for command in app.registered_commands:
        assert f"Usage: ledgerctl {command.name}" in Tables().ctl(str(command.name), "--help").out


MEANT = (
    (errors.InvalidSettings("why."), 2, "--help` names both"),
    (errors.InvalidCounter("why."), 2, ""),
    (errors.TableMissing("counters"), 2, "ledgerctl init"),
    (errors.TableMismatch("keys"), 1, "`ledgerctl doctor` looks at the table's shape"),
    (errors.DamagedItem("pk", "sk", "why."), 1, "`ledgerctl verify`"),
    (errors.LaneDamaged("why."), 1, "`ledgerctl verify`"),
    (errors.SettingsMismatch("shards"), 2, "`ledgerctl doctor` shows both"),
    (errors.LimitMismatch("limits"), 2, "LEDGER_LIMITS"),
    (errors.GateLost("gone"), 1, "docs/limits.md#when-a-gate-is-gone"),
    (errors.OutOfReach("down"), 3, "Run it again."),
    (errors.ReadTooSlow("slow"), 3, "Run it again."),
    (errors.GaveUp("others"), 3, "Run it again."),
    (errors.Unavailable("no answer"), 3, "Run it again: nothing counts twice."),
    (errors.NotAllowed("no"), 3, "docs/security.md#roles"),
)


def test_each_error_of_the_library_has_an_exit_code_and_a_remedy() -> None:
    for error, code, says in MEANT:
        wrong = meaning(error, lambda: "counters")
        assert (wrong.kind, wrong.code, says in wrong.remedy) == (
            type(error).__name__,
            code,
            True,
        ), error
        assert wrong.message


def test_ctrl_c_and_a_defect_print_no_stack_trace() -> None:
    tables = Tables()
    tables.fails(object, KeyboardInterrupt())
    refused(
        tables.ctl("get", "c"), 130, "Interrupted", "nothing counts twice", "`add` without --key"
    )
    tables.mends()
    tables.fails(object, ZeroDivisionError("a mistake of ours"))
    refused(
        tables.ctl("get", "c"), 70, "ZeroDivisionError", "Please report it", "LEDGERCTL_TRACE=1"
    )
    tables.environ["LEDGERCTL_TRACE"] = "1"
    with pytest.raises(ZeroDivisionError):
        tables.ctl("get", "c")


def test_the_program_prints_its_version_without_a_table() -> None:
    assert ctl(replace(aws(read_only), environ={}), "--version") == Said(
        0, f"ledgerctl {__version__}\n", ""
    )
    bare = "import sys; sys.modules['typer'] = None; import ledgerctl.__main__"
    root = Path(__file__).parents[2]
    said = subprocess.run(
        [sys.executable, "-c", bare], cwd=root, capture_output=True, text=True, check=False
    )
    assert said.returncode == 2
    assert (
        said.stderr
        == "ledgerctl needs typer, which is not installed: pip install 'exact-counter[cli]', or "
        "in a clone pip install '.[cli]'\n"
    )
