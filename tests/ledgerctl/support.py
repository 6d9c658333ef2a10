"""A world for the tests of `ledgerctl`: tables in memory, a clock that is set, answers of AWS
that are made up.
"""

import itertools
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import boto3
import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.credentials import CredentialResolver
from botocore.loaders import create_loader
from typer.testing import CliRunner

from lab.engines.ministack import Engine
from ledger import Ledger, Settings
from ledger.core.requests import Request
from ledgerctl.__main__ import app
from ledgerctl.surroundings import Surroundings
from tests import world
from tests.world import Region, fail

A, B = world.A, world.B
ENVIRON = {"LEDGER_TABLE": "counters", "AWS_REGION": A, "COLUMNS": "80"}
ONCE = Config(retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=10)
LOADER = create_loader()  # reads the models once for all tests
NOW_MS = 1_800_000_000_000  # 2027-01-15 08:00:00Z
LIMITS = {"stock:": {"floor": 0}, "seats:": {"ceiling": 10, "region": A}}
TABLE: dict[str, Any] = {
    "TableName": "counters",
    "TableStatus": "ACTIVE",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    "DeletionProtectionEnabled": True,
    "Replicas": [{"RegionName": region, "ReplicaStatus": "ACTIVE"} for region in (A, B)],
}
BACKUPS = {"PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}}
GOOD: dict[str, Any] = {
    "DescribeTable": {"Table": TABLE},
    "DescribeTimeToLive": {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}},
    "DescribeContinuousBackups": {
        "ContinuousBackupsDescription": {"ContinuousBackupsStatus": "ENABLED", **BACKUPS}
    },
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

    table: Any = field(default_factory=partial(Region, lists=True))
    clock: Clock = field(default_factory=Clock)
    environ: dict[str, str] = field(default_factory=lambda: dict(ENVIRON))
    entropy: Callable[[int], bytes] = bytes
    mended: int = 0

    @property
    def world(self) -> Surroundings:
        outside: Any = {"clock": self.clock, "entropy": self.entropy, "pause": lambda _: None}
        return Surroundings(
            environ=self.environ, tables=dict.fromkeys((A, B), self.table), **outside
        )

    def __call__(self, typed: str, code: int = 0, says: str = "") -> Said:
        """One command, as it is typed, that ends with this code and says this, wherever its
        lines break.
        """
        said = self.ctl(*shlex.split(typed))
        assert (said.code, says in " ".join((said.out + said.err).split())) == (code, True), (
            typed,
            said,
        )
        return said

    def json(self, typed: str, code: int = 0) -> list[Any]:
        return self(f"{typed} --json", code).documents

    def ctl(self, *arguments: str, input: str | None = None) -> Said:
        return ctl(self.world, *arguments, input=input)

    @property
    def held(self) -> Any:
        """What is in the table, by its keys."""
        return self.table.items

    def fails(
        self, kind: Any, error: BaseException, times: int | None = None, *, after: bool = False
    ) -> None:
        """Until it `mends`, requests of a kind are answered by this error, or `after` they were
        applied.
        """
        since = self.mended

        def still(request: Request) -> bool:
            return since == self.mended and (
                isinstance(request, kind) if isinstance(kind, type) else kind(request)
            )

        (self.table.after if after else self.table.before)(still, fail(error), times)

    def mends(self) -> None:
        self.mended += 1

    def settings(self) -> Settings:
        return Settings.from_env(self.environ)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.settings(), table=self.table, clock=self.clock)


def ctl(world: Surroundings, *arguments: str, input: str | None = None) -> Said:
    """One call of the program; an exception that it does not tell of is raised here."""
    result = CliRunner().invoke(
        app, arguments, input=input, obj=world, catch_exceptions=False, prog_name="ledgerctl"
    )
    return Said(result.exit_code, result.stdout, result.stderr)


def refused(said: Said, code: int, *words: str) -> None:
    """The call ended with this code and printed nothing but an error that says so, and no stack
    trace.
    """
    assert (said.code, said.out) == (code, ""), said
    assert "Traceback" not in said.err
    for word in words:
        assert word in " ".join(said.err.split()), said.err


def limited(*regions: str) -> Tables:
    """Tables with LIMITS, whose keys differ; regions: of the settings, if not A alone."""
    drawn = itertools.count()
    environ = {
        **ENVIRON,
        "LEDGER_LIMITS": json.dumps(LIMITS),
        "LEDGER_REGIONS": ",".join(regions or (A,)),
    }
    return Tables(environ=environ, entropy=lambda size: next(drawn).to_bytes(size, "big"))


Answer = Callable[[str, Any], tuple[int, Any]]


def aws(
    answer: Answer, environ: Mapping[str, str] = ENVIRON, in_b: Answer | None = None
) -> Surroundings:
    """An AWS that `answer`s (operation, parameters) of any service with a status and a body; no
    network is asked.

    in_b: how the Region B answers, if not so.
    """

    def respond(request: Any, **_: Any) -> Any:
        operation = request.headers["X-Amz-Target"].decode().partition(".")[2]
        asked = in_b if in_b and f".{B}." in request.url else answer
        sent = json.loads(request.body)
        status, body = asked(operation, sent)
        # DynamoDB says what it cost; nobody else does
        if status == 200 and "ReturnConsumedCapacity" in sent:
            cost = {"TableName": "counters", "CapacityUnits": 1.0}
            body = {
                "ConsumedCapacity": [cost] if operation.startswith(("Batch", "Transact")) else cost
            } | body
        headers: Any = {"date": "Fri, 15 Jan 2027 08:00:00 GMT"}
        raw: Any = SimpleNamespace(stream=lambda **_: [json.dumps(body).encode()])
        return AWSResponse(request.url, status, headers, raw)

    def made(_: str | None) -> boto3.Session:
        answered = signed_in()
        answered.events.register("before-send", respond)
        return answered

    return Surroundings(
        environ=environ,
        session=made,
        config=ONCE,
        clock=Clock(),
        entropy=bytes,
        pause=lambda _: None,
    )


def refusal(code: str, message: str = "said the test") -> tuple[int, dict[str, str]]:
    return 400, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}


def on_engine(engine: Engine, table: str, *regions: str, **more: str) -> Surroundings:
    """A process beside the engine, in the first of these Regions."""
    environ = {
        "LEDGER_TABLE": table,
        "AWS_REGION": regions[0],
        "LEDGER_REGIONS": ",".join(regions),
        "COLUMNS": "80",
    }
    environ |= {"LEDGER_ENDPOINT_URL": engine.endpoint_url} | more
    return Surroundings(
        environ=environ, session=lambda _: signed_in(), config=ONCE, pause=lambda _: None
    )


def signed_in(region: str | None = None, key: str | None = "x") -> boto3.Session:
    """A session that reads nothing of this machine; without a key nobody is signed in."""
    made = botocore.session.Session()
    made.register_component("credential_provider", CredentialResolver([]))
    made.register_component("data_loader", LOADER)
    made.set_config_variable("region", None)
    return boto3.Session(key, key, region_name=region, botocore_session=made)
