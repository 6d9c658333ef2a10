"""A world for the tests of `ledgerctl`: tables in memory, a clock that is set, answers of AWS that are made up."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import boto3
import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.credentials import CredentialResolver
from botocore.loaders import create_loader
from typer.testing import CliRunner

from ledger import Ledger, Settings
from ledger.memory import MemoryTable
from ledger.requests import Item, Key, Request, Table
from ledgerctl.__main__ import app
from ledgerctl.call import Surroundings

A, B = "eu-west-1", "us-east-1"
ENVIRON = {"LEDGER_TABLE": "counters", "AWS_REGION": A, "COLUMNS": "80"}
ONCE = Config(retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=10)
LOADER = create_loader()  # reads the models once for all tests
NOW_MS = 1_800_000_000_000  # 2027-01-15 08:00:00Z
LIMITS = {"stock:": {"floor": 0}, "seats:": {"ceiling": 10, "region": A}}
KEYED = ("--key", "k", "--at", "2027-01-15T08:00:00Z")
TABLE: dict[str, Any] = {
    "TableName": "counters",
    "TableStatus": "ACTIVE",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    "DeletionProtectionEnabled": True,
    "Replicas": [{"RegionName": region, "ReplicaStatus": "ACTIVE"} for region in (A, B)],
}
BACKUPS = {"PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}}
GOOD: dict[str, Any] = {
    "DescribeTable": {"Table": TABLE},
    "DescribeTimeToLive": {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}},
    "DescribeContinuousBackups": {"ContinuousBackupsDescription": {"ContinuousBackupsStatus": "ENABLED", **BACKUPS}},
}
"""How AWS describes a table of two Regions that is as it should be."""


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(slots=True)
class Clock:
    now_ms: int = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


@dataclass(slots=True)
class Tables:
    """Two Regions in memory that are one table: what is written in one is in the other at once."""

    table: Table = field(default_factory=MemoryTable)
    clock: Clock = field(default_factory=Clock)
    environ: dict[str, str] = field(default_factory=lambda: dict(ENVIRON))

    @property
    def world(self) -> Surroundings:
        tables = {A: self.table, B: self.table}
        return Surroundings(environ=self.environ, tables=tables, clock=self.clock, entropy=bytes, pause=lambda _: None)

    def ctl(self, *arguments: str, input: str | None = None) -> Said:
        return ctl(self.world, *arguments, input=input)

    def settings(self, **changed: Any) -> Settings:
        return Settings.from_env(self.environ, **changed)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.settings(), table=self.table, clock=self.clock)


def ctl(world: Surroundings, *arguments: str, input: str | None = None) -> Said:
    """One call of the program; an exception that it does not tell of is raised here."""
    result = CliRunner().invoke(app, arguments, input=input, obj=world, catch_exceptions=False, prog_name="ledgerctl")
    return Said(result.exit_code, result.stdout, result.stderr)


def refused(said: Said, code: int, *words: str) -> None:
    """The call ended with this code and printed nothing but an error that says so, and no stack trace."""
    assert (said.code, said.out) == (code, ""), said
    assert "Traceback" not in said.err
    for word in words:
        assert word in " ".join(said.err.split()), said.err


@dataclass(slots=True)
class Limited(Tables):
    """As Tables, with limits; `there` stands in for the table as the Region B sees it."""

    there: Table | None = None
    drawn: Iterator[int] = field(default_factory=itertools.count)
    environ: dict[str, str] = field(default_factory=lambda: {**ENVIRON, "LEDGER_LIMITS": json.dumps(LIMITS)})

    @property
    def world(self) -> Surroundings:
        return replace(
            Tables(environ=self.environ, clock=self.clock).world,
            entropy=lambda size: next(self.drawn).to_bytes(size, "big"),
            tables={A: self.table, B: self.there or self.table},
        )


class Failing(MemoryTable):
    """Raises `failure` instead of the answer, or with `after` set behind it, where `when` says so of a request."""

    when: Callable[[Request], bool] = staticmethod(lambda request: False)
    failure: BaseException = KeyboardInterrupt()
    after = False

    def answer(self, request: Request, /) -> Any:
        fails = self.when(request)
        if fails and not self.after:
            raise self.failure
        answer = super().answer(request)
        if fails:
            raise self.failure
        return answer


def held(tables: Tables) -> dict[Key, Item]:
    """What is in the table."""
    assert isinstance(tables.table, MemoryTable)
    return tables.table.items


Answer = Callable[[str, Any], tuple[int, Any]]


def aws(answer: Answer, environ: Mapping[str, str] = ENVIRON, in_b: Answer | None = None) -> Surroundings:
    """An AWS that `answer`s (operation, parameters) with a status and a body, and is never asked by a network.

    in_b: how the Region B answers, if not so.
    """

    def respond(request: Any, **_: Any) -> Any:
        operation = request.headers["X-Amz-Target"].decode().partition(".")[2]
        asked = in_b if in_b and f".{B}." in request.url else answer
        status, body = asked(operation, json.loads(request.body))
        headers: Any = {"date": "Fri, 15 Jan 2027 08:00:00 GMT"}
        raw: Any = SimpleNamespace(stream=lambda **_: [json.dumps(body).encode()])
        return AWSResponse(request.url, status, headers, raw)

    def session(_: str | None) -> boto3.Session:
        made = signed_in()
        made.events.register("before-send.dynamodb", respond)
        return made

    fixed: Any = {"clock": Clock(), "entropy": bytes, "pause": lambda _: None}
    return Surroundings(environ=environ, session=session, config=ONCE, **fixed)


def refusal(code: str, message: str = "said the test") -> tuple[int, dict[str, str]]:
    return 400, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}


def signed_in(region: str | None = None) -> boto3.Session:
    """A session that reads nothing of this machine."""
    return boto3.Session("x", "x", region_name=region, botocore_session=_session())


def no_credentials(_: str | None = None) -> boto3.Session:
    """A session on a machine where nobody is signed in, and no Region is named."""
    return boto3.Session(botocore_session=_session())


def _session() -> botocore.session.Session:
    session = botocore.session.Session()
    session.register_component("credential_provider", CredentialResolver([]))
    session.register_component("data_loader", LOADER)
    session.set_config_variable("region", None)
    return session
