"""Starts an embedded DynamoDB (MiniStack, in an environment of its own) as a process, and ends it.

Rule 1: Loopback only, a free port, a state directory that is new and is removed: runs never meet
each other, nor another MiniStack.
Rule 2: Every client gets its endpoint, credentials, time-outs, retries, pool and "no proxy" here,
so no account or environment is needed.
Rule 3: However the program ends short of SIGKILL, the process ends with it: `with`, and
`end_on_signals` in a main program. The engine has a session of its own, so that Ctrl-C stops the
program first and the engine after it.
Rule 4: An engine that dies says so, with the end of its log, and not as a connection error
somewhere else.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

HOST = "127.0.0.1"
ENVIRONMENT = {
    **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "embedded"),
    **dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull),
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": f"{HOST},localhost",
}
"""So that boto3 clients need no account, and find none."""

START_TIMEOUT_MS = 30_000
STOP_TIMEOUT_MS = 5_000
PROBE_EVERY_MS = 50
LOG_TAIL_LINES = 15
POOL_CONNECTIONS = 64
CONFIG = Config(
    connect_timeout=2,
    read_timeout=30,  # seconds; a request waits its turn in one process
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=POOL_CONNECTIONS,
    parameter_validation=False,  # the engine validates; in one process every request's CPU counts
)


def end_on_signals() -> None:
    """Makes SIGTERM and SIGHUP end this program as Ctrl-C does, so that its engine ends with it.

    For a main program.
    """

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # SIGHUP is not on Windows
            signal.signal(getattr(signal, name), end)


class EngineMissing(Exception):
    """The embedded DynamoDB is not installed. Nothing was started. `make dev` installs it."""


class EngineDied(Exception):
    """The embedded DynamoDB could not be started, or ended by itself; the message has the last
    lines of its log.
    """


class Engine:
    """One DynamoDB process that serves every Region; `with Engine() as engine:`. Its data is gone
    when it ends.

    It does about 1,000 requests a second on one core. A Region is the Region a client was made for:
    a table exists in one Region only.
    """

    name = "MiniStack"
    # the path to try until it answers, and the status that says that it is up
    _probed, _up = "/_ministack/health", 200
    _process: subprocess.Popen[bytes]
    _log: Path
    endpoint_url: str
    """`http://127.0.0.1:<port>`"""

    def __init__(self) -> None:
        self._session = boto3.session.Session()
        # clients may be shared by threads; the session that makes them may not
        self._lock = threading.Lock()
        self._held = ExitStack()

    def __enter__(self) -> Self:
        """Starts the engine and waits until it answers.

        Raises EngineMissing if it is not installed, EngineDied if it ends or is not up within
        START_TIMEOUT_MS.
        """
        executable = self.executable()
        with ExitStack() as held:  # Ctrl-C ends it, too
            folder = held.enter_context(
                tempfile.TemporaryDirectory(prefix="ledger-engine-", ignore_cleanup_errors=True)
            )
            # Free now, and taken again in a moment: the engine says so in its log if another
            # program was quicker.
            with socket.socket() as probe:
                probe.bind((HOST, 0))
                port: int = probe.getsockname()[1]
            self.endpoint_url, self._log = f"http://{HOST}:{port}", Path(folder) / "engine.log"
            given = {
                "BIND_HOST": HOST,
                "GATEWAY_PORT": str(port),
                "STATE_DIR": f"{folder}/state",
                "TMPDIR": folder,  # its pid file
                "LOG_LEVEL": "WARNING",  # a log line for every request costs more than the request
                "PERSIST_STATE": "0",
                # it would look for containers to clean up
                "DOCKER_HOST": f"unix://{folder}/no-docker",
            }
            log = held.enter_context(self._log.open("wb"))
            streams: Any = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
            self._process = subprocess.Popen(
                [executable], env=os.environ | given, cwd=folder, start_new_session=True, **streams
            )
            held.callback(_end, self._process)
            self._wait_until_up(port)
            self._held = held.pop_all()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._held:
            # A dead engine explains whatever went wrong in the block, except that somebody ended
            # the program.
            if error is None or isinstance(error, Exception):
                self.check()

    def executable(self) -> Path:
        """The ministack program: LEDGER_ENGINE if set, else beside this Python: in the `engine` of
        `.venv`, whether this is the Python of `.venv` or of `.venv/small`.

        Raises EngineMissing where it is not.
        """
        prefix, named = Path(sys.prefix), os.environ.get("LEDGER_ENGINE")
        installed = [each / "engine" / "bin" / "ministack" for each in (prefix, prefix.parent)]
        places = [Path(named)] if named else installed
        for found in places:
            if found.is_file():
                return found
        raise EngineMissing(f"the embedded DynamoDB is not installed ({places[0]}). Run `make dev`")

    def check(self) -> None:
        """Raises EngineDied, with the end of its log, if the engine is not running."""
        if (code := self._process.poll()) is not None:
            raise self._died(f"is not running (exit code {code})")

    def client(self, region: str, config: Config | None = CONFIG) -> DynamoDBClient:
        """A new boto3 DynamoDB client for a Region, of this `config` (None: boto3's own);
        threads may share it.
        """
        client: DynamoDBClient = self._client("dynamodb", region, config)
        return client

    def stream_client(self, region: str) -> Any:
        """The same for DynamoDB Streams, whose types are a package of their own."""
        return self._client("dynamodbstreams", region, CONFIG)

    def create_table(self, name: str, region: str, client: DynamoDBClient | None = None) -> None:
        """Creates an empty table in one Region: string keys pk and sk, on demand, a stream of new
        and old images.

        `name` has 3 to 255 characters; `client` saves making one. Raises the client's
        ResourceInUseException if it exists there.
        """
        (client or self.client(region)).create_table(
            TableName=name,
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
            ],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )

    def queue(self, name: str, region: str) -> str:
        """The URL of an SQS queue, made where it is not there."""
        url: str = self._client("sqs", region, CONFIG).create_queue(QueueName=name)["QueueUrl"]
        return url

    def _client(self, service: Any, region: str, config: Config | None) -> Any:
        self.check()
        with self._lock:
            return self._session.client(
                service,
                region_name=region,
                endpoint_url=self.endpoint_url,
                aws_access_key_id="embedded",
                aws_secret_access_key="embedded",
                config=(config or Config()).merge(Config(proxies={})),
            )

    def _wait_until_up(self, port: int) -> None:
        for _ in range(START_TIMEOUT_MS // PROBE_EVERY_MS):
            self.check()
            connection = HTTPConnection(HOST, port, timeout=2)
            with closing(connection), suppress(OSError, HTTPException):
                connection.request("GET", self._probed)
                if connection.getresponse().status == self._up:
                    return
            time.sleep(PROBE_EVERY_MS / 1_000)
        raise self._died(f"did not answer within {START_TIMEOUT_MS} ms")

    def _died(self, how: str) -> EngineDied:
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        return EngineDied("\n".join([f"the embedded DynamoDB {how}; its log ends:", *lines]))


def _end(process: subprocess.Popen[bytes]) -> None:
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            # its own session, so the group is the engine and its children
            os.killpg(process.pid, sent)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_MS / 1_000)
            return
