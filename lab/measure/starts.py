"""What a function of the service takes from its start to its first answer, in instructions over
`import boto3` and a DynamoDB client made.

Rule 1: A start is what Lambda does once a process: the module's import, and a first event. The
clients that the event needs are made in it, and it is answered by an engine. The bare interpreter
is taken off both.
Rule 2: Nothing of lab/ is in the process that is measured.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from lab.engines.ministack import ENVIRONMENT as OFFLINE
from lab.engines.ministack import Engine
from lab.measure.figure import Figure
from lab.measure.goals import goal
from lab.measure.instructions import END, counted, ran
from ledger.client.message import dumps
from ledger.core import tokens
from ledger.core.checks import to_datetime
from ledger.core.clocks import wall_clock
from ledger.core.items import delta_item
from ledger.core.settings import Settings
from ledger.core.values import Change, Delta, Lane
from service.api.local import event_of
from service.jobs import Look
from service.messages import message_of

REGION, TABLE = "eu-west-1", "bench"
COUNTER = "stock:85123A"
LANE = Lane(REGION, 0, COUNTER)
LATE_S = 3_600
SETTINGS = Settings(table=TABLE, region=REGION)

ENVIRONMENT = {
    **dict.fromkeys(("LEDGER_TABLE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), TABLE),
    "AWS_REGION": REGION,
    "LEDGER_WORK_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/111122223333/work",
    "PYTHONDONTWRITEBYTECODE": "",
}
"""What a function is started with."""

BARE = """
import boto3
mark("imported")
boto3.client("dynamodb")
"""
LEDGER = """
import ledger
mark("imported")
"""
FUNCTION = """
import json, sys
from importlib import import_module
from types import SimpleNamespace
handler = import_module(sys.argv[1]).handler
mark("imported")
context = SimpleNamespace(
    function_name="bench", memory_limit_in_mb=512, aws_request_id="1",
    invoked_function_arn="arn:aws:lambda:eu-west-1:111122223333:function:bench",
    get_remaining_time_in_millis=lambda: 60_000,
)
print("answer", json.dumps(handler(json.loads(sys.argv[2]), context)))
"""


class First(NamedTuple):
    """A function's first event, and whether an answer is right."""

    event: dict[str, Any]
    is_right: Callable[[Any], bool]


def _of_queue(body: str) -> dict[str, Any]:
    attributes = {"ApproximateReceiveCount": "1", "SentTimestamp": str(wall_clock())}
    record = {"messageId": "1", "eventSource": "aws:sqs", "body": body}
    return {"Records": [record | {"attributes": attributes, "messageAttributes": {}}]}


def _of_stream(now_ms: int) -> dict[str, Any]:
    """The record of a change that came late, so that it rings."""
    item = delta_item(Delta(LANE, tokens.make(now_ms, bytes(tokens.RANDOM_BYTES)), 1))
    keys = {name: item[name] for name in ("pk", "sk")}
    seen = {
        "Keys": keys,
        "NewImage": item,
        "SequenceNumber": "1",
        "ApproximateCreationDateTime": now_ms // 1_000 + LATE_S,
    }
    return {"Records": [{"eventName": "INSERT", "dynamodb": seen}]}


def _whole(answer: Any) -> bool:
    return bool(answer == {"batchItemFailures": []})


def firsts() -> dict[str, First]:
    change = Change(COUNTER, 1, "first", to_datetime(wall_clock()))
    read = event_of("GET", f"/counters?counter={COUNTER}", {}, None)
    return {
        "ring": First(_of_stream(wall_clock()), _whole),
        "compact": First(_of_queue(message_of(Look(LANE))), _whole),
        "sweep": First({}, lambda answer: answer is None),
        "canary": First({}, lambda answer: bool(answer["read"])),
        "add_from_queue": First(_of_queue(dumps(change)), _whole),
        "api": First(read, lambda answer: answer["statusCode"] == 200),
    }


def _answered(first: First, printed: str) -> bool:
    """Whether the last line, behind those of the log, is a right answer."""
    *_, last = printed.splitlines()
    return first.is_right(json.loads(last.removeprefix("answer")))


def started(small: bool) -> Iterator[Figure]:
    """The instructions of each start."""
    with Engine() as engine:
        engine.create_table(TABLE, REGION)
        environ = {
            **OFFLINE,
            **ENVIRONMENT,
            "AWS_ENDPOINT_URL": engine.endpoint_url,
            "AWS_DEFAULT_REGION": REGION,
            "LEDGER_WORK_QUEUE_URL": engine.queue("work", REGION),
        }
        if small:  # one answers; nothing is counted
            first = firsts()["add_from_queue"]
            arguments = "service.add_from_queue.main", json.dumps(first.event)
            ran(FUNCTION, arguments, environ, partial(_answered, first))
            return
        nothing = counted("", environ=environ)[END]
        bare = counted(BARE, environ=environ)
        imported, made = bare["imported"] - nothing, bare[END] - nothing
        ratio = (counted(LEDGER, environ=environ)["imported"] - nothing) / imported
        yield goal("instructions of import ledger / import boto3", ratio)
        for name, first in firsts().items():
            module = f"service.{name}.main"
            arguments = module, json.dumps(first.event)
            at = counted(FUNCTION, arguments, environ, partial(_answered, first))
            yield goal(
                f"instructions of import {module} / import boto3",
                (at["imported"] - nothing) / imported,
            )
            yield goal(
                f"start of {name} to its first answer / boto3 with a client: instructions",
                (at[END] - nothing) / made,
            )


PARTS = (started,)
