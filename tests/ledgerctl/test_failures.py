"""What a user, a role or a network does wrong: a sentence, a remedy, an exit code, never a stack trace."""

import json
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ProfileNotFound

from ledger import __version__
from ledger.memory import MemoryTable
from ledger.requests import Request
from ledgerctl.call import Surroundings
from tests.ledgerctl.support import ENVIRON, Said, Tables, aws, ctl, no_credentials, refusal, signed_in

READS = {"BatchGetItem": {"Responses": {}}, "Query": {"Items": []}, "GetItem": {}, "Scan": {"Items": []}}


def read_only(operation: str, _: Any) -> tuple[int, Any]:
    if operation in READS:
        return 200, READS[operation]
    return refusal("AccessDeniedException", f"User is not authorized to perform: dynamodb:{operation}")


def told(said: Said, code: int, *words: str) -> None:
    assert said.code == code
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert len(said.err.splitlines()) >= 2, "no remedy"
    assert "Traceback" not in said.err
    for word in words:
        assert word in said.err


def refusing(code: str) -> Surroundings:
    return aws(lambda *_: refusal(code))


def no_profile(profile: str | None) -> boto3.Session:
    raise ProfileNotFound(profile=str(profile))


NOBODY = replace(aws(read_only), session=no_credentials)
ANYBODY = replace(aws(read_only), session=lambda _: signed_in())
DOWN = ("--endpoint-url", "http://127.0.0.1:1")
ADD, GET = ("add", "c", "1"), ("get", "c")


@pytest.mark.parametrize(
    ("world", "arguments", "code", "words"),
    [
        (refusing("ResourceNotFoundException"), GET, 2, ("There is no table counters in eu-west-1.", "ledgerctl init")),
        (aws(read_only), ADD, 3, ("not authorized to perform: dynamodb:PutItem", "docs/security.md#roles")),
        (NOBODY, GET, 3, ("Unable to locate credentials", "--profile")),
        (refusing("ExpiredTokenException"), GET, 3, ("Sign in again",)),
        (ANYBODY, (*GET, *DOWN), 3, ("http://127.0.0.1:1", "Is the endpoint up")),
        (ANYBODY, (*ADD, *DOWN), 3, ("http://127.0.0.1:1", "Nothing was written", "Is the endpoint up")),
        (
            replace(aws(read_only), session=no_profile),
            (*GET, "--profile", "nope"),
            2,
            ("(nope) could not be found", "aws configure list-profiles"),
        ),
        (refusing("ThrottlingException"), ("init",), 3, ("Run it again",)),
    ],
    ids=["no-table", "read-only", "nobody", "expired", "read-of-nothing", "add-to-nothing", "no-profile", "throttled"],
)
def test_what_aws_refuses_is_told_with_a_remedy(
    world: Surroundings, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    told(ctl(world, *arguments), code, *words)


def test_a_role_that_may_not_write_reads_and_its_import_stops_at_once(tmp_path: Any) -> None:
    assert ctl(aws(read_only), "get", "c").code == 0
    path = tmp_path / "x.jsonl"
    path.write_text('{"counter":"c","change":1,"idempotency_key":"k","at":"2010-12-01T08:26:00Z"}\n')
    told(ctl(aws(read_only), "import", str(path)), 3, "not authorized", "0 recorded", "Run it again")


@pytest.mark.parametrize(
    ("arguments", "changed", "says"),
    [
        (("get", "c"), {"LEDGER_TABLE": ""}, "--table"),
        (("get", "c"), {"LEDGER_SHARDS": "four"}, "LEDGER_SHARDS='four' cannot be read"),
        (("get", "c", "--regions", "us-east-1"), {}, "region='eu-west-1' is not one of"),
        (("get", "c", "--endpoint-url", "ftp://x"), {}, "does not start with http"),
        (("add", "c", "1", "--key", "k"), {}, "--key and --at go together"),
        (("cost", "--changes", "many"), {}, "'many' is no amount"),
    ],
)
def test_what_was_typed_wrong_is_told(arguments: tuple[str, ...], changed: dict[str, str], says: str) -> None:
    told(ctl(aws(read_only, ENVIRON | changed), *arguments), 2, says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("get", "a b"), "printable ASCII characters without spaces"),
        (("add", "c", "1" * 30), "at most 10**18"),
        (("add", "c", "1_000"), "'1_000' is not a whole number such as 12 or -6"),
        (("add", "c", " 3"), "' 3' is not a whole number"),
        (("add", "c", "٣"), "is not a whole number"),
        (("add", "c", "--3"), "'--3' is not a whole number"),
        (("add", "c", "1.0"), "'1.0' is not a whole number"),
        (("history", "c", "--since", "yesterday"), "such as 2010-12-01T08:26:00Z"),
        (("add", "c", "1", "--home-region", "mars-1"), "is not one of regions"),
    ],
)
def test_a_name_a_number_or_a_time_that_cannot_be_is_told(arguments: tuple[str, ...], says: str) -> None:
    said = Tables().ctl(*arguments)
    assert said.code == 2
    assert says in said.err
    assert "Traceback" not in said.err


def test_a_region_is_taken_from_the_profile_when_nobody_names_one() -> None:
    session = signed_in("ap-south-1")
    world = replace(aws(read_only, {"LEDGER_TABLE": "counters"}), session=lambda _: session)
    told(ctl(world, "get", "c", "--endpoint-url", "http://127.0.0.1:1"), 3, "counters in ap-south-1")
    told(ctl(replace(world, session=no_credentials), "get", "c"), 2, "No Region is named", "--region")


def test_an_error_is_json_where_json_was_asked_for() -> None:
    said = ctl(refusing("ResourceNotFoundException"), "get", "c", "--json")
    assert said.out == ""
    assert json.loads(said.err) == {
        "error": "TableMissing",
        "message": "There is no table counters in eu-west-1.",
        "remedy": "Name another with --table, --region or --endpoint-url, or make it: `ledgerctl init`.",
    }


class Failing(MemoryTable):
    def __init__(self, failure: BaseException) -> None:
        super().__init__()
        self._failure = failure

    def answer(self, request: Request, /) -> Any:
        raise self._failure


def test_ctrl_c_says_that_nothing_counts_twice() -> None:
    said = Tables(Failing(KeyboardInterrupt())).ctl("get", "c")
    told(said, 130, "Interrupted", "nothing counts twice", "`add` without --key")


def test_a_mistake_of_ours_is_no_stack_trace_either() -> None:
    broken = Tables(Failing(ZeroDivisionError("a mistake of ours")))
    told(broken.ctl("get", "c"), 70, "ZeroDivisionError", "Please report it", "LEDGERCTL_TRACE=1")
    broken.environ["LEDGERCTL_TRACE"] = "1"
    with pytest.raises(ZeroDivisionError):
        broken.ctl("get", "c")


def test_the_program_tells_its_version_without_a_table() -> None:
    assert ctl(replace(aws(read_only), environ={}), "--version") == Said(0, f"ledgerctl {__version__}\n", "")
