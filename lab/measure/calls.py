"""What a call takes in instructions, over what its bare requests take, and the queue's handler over
`json.loads`.

Rule 1: Everything is made and warm before the first mark, and the collector is off: its runs would
fall into whichever call comes then.
Rule 2: botocore's calls have canned answers. FastClient's, and those beside it, go through a socket
to a server that keeps nothing.
"""

import gc
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

from lab.engines.null import Null
from lab.measure import canned
from lab.measure.canned import LIMITED, PLAIN, REGION, SETTINGS
from lab.measure.figure import Figure
from lab.measure.goals import goal
from lab.measure.instructions import between, counted, ran
from ledger import Change, Ledger
from ledger.client.message import dumps_many
from ledger.core.checks import to_datetime
from ledger.core.clocks import wall_clock
from ledger.tables.boto import CONFIG
from ledger.tables.fast import FastClient
from ledger.tables.memory import MemoryTable
from reader import Reader
from service.add_from_queue.handler import AddFromQueue
from service.observe import Watch

CALLS, WARM = 100, 5
MESSAGES, CHANGES = 100, 10
"""Of a batch of the handler, and of a message."""

HOUR = timedelta(hours=1)
PROGRAM = "import sys; from lab.measure.calls import main; main(mark, *sys.argv[1:])"
EMPTY = "a mark"

Way = tuple[str, Callable[[Any], object], Sequence[Any]]
"""A name, a call, and what it is given, each time."""

Ours = Callable[[Any, Any], Any]
"""Of a ledger and a reader, or of both for asyncio."""

OURS: dict[str, Ours] = {
    "add": lambda ledger, _: ledger.add(PLAIN, -6),
    "limited add": lambda ledger, _: ledger.add(LIMITED, 1),
    "hold": lambda ledger, _: ledger.hold(LIMITED, 1, expires=HOUR),
    "read": lambda _, reader: reader.read(PLAIN),
}
BARE = {
    "add": "bare put_item",
    "limited add": "bare update_item showing the gate",
    "hold": "bare update_item showing the gate",
    "read": "bare requests of the same",
}


def main(mark: Callable[[str], None], url: str, calls: str) -> None:
    """In the process that is counted: so many `calls` of each way, each between two marks."""
    gc.disable()
    with closing(FastClient(REGION, url, session=canned.session())) as fast:
        ways = [*_ways(fast, url, int(calls)), *_handled()]
        for _, call, given in ways:
            for each in given[:WARM]:
                call(each)
        mark("warm")
        mark(EMPTY)
        for name, call, given in ways:
            for each in given[WARM:]:
                call(each)
            mark(name)


def _ways(fast: FastClient, url: str, calls: int) -> Iterator[Way]:
    client = canned.client(CONFIG)
    ledger, reader = Ledger(SETTINGS, client=client), Reader(SETTINGS, client=client)
    plain = canned.session().create_client("dynamodb", region_name=REGION, endpoint_url=url)
    faster = Ledger(SETTINGS, client=fast), Reader(SETTINGS, client=fast)
    nothing = [None] * (calls + WARM)
    for name, call in OURS.items():
        requests = canned.showing(canned.asked(call, calls + WARM))
        yield f"bare {name}", partial(canned.replay, client), requests
        yield name, given(call, ledger, reader), nothing
        yield f"plain {name}", partial(canned.replay, plain), requests
        yield f"fast {name}", given(call, *faster), nothing


def given(call: Ours, ledger: object, reader: object) -> Callable[[object], object]:
    """The call, by these two, whatever it is asked with."""
    return lambda _: call(ledger, reader)


def _handled() -> Iterator[Way]:
    now_ms, bodies = wall_clock(), list[list[str]]()
    for batch in range(WARM + 1):
        first = batch * MESSAGES * CHANGES
        made = [
            Change(PLAIN, 1, f"key-{number}", to_datetime(now_ms + number % 1_000))
            for number in range(first, first + MESSAGES * CHANGES)
        ]
        bodies.append([dumps_many(made[at : at + CHANGES]) for at in range(0, len(made), CHANGES)])
    table = MemoryTable(lists=False)
    handler = AddFromQueue(
        Ledger(SETTINGS, table=table), Watch.here("bench", io.StringIO()), pack=True
    )
    yield "json.loads", lambda batch: [json.loads(body) for body in batch], bodies
    yield "handler", lambda batch: handler({"Records": _records(batch)}), bodies


def _records(bodies: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"messageId": str(number), "eventSource": "aws:sqs", "body": body}
        for number, body in enumerate(bodies)
    ]


def called(small: bool) -> Iterator[Figure]:
    """Each call over its bare requests."""
    with Null(0) as null:
        if small:  # each is called; nothing is counted
            ran(PROGRAM, [null.url, "2"], None, lambda printed: "handler" in printed)
            return
        at = counted(PROGRAM, [null.url, str(CALLS)])
    empty = between(at)[EMPTY]
    took = between(at, empty)
    for name, bare in BARE.items():
        yield goal(f"instructions of {_a(name)} / {bare}", took[name] / took[f"bare {name}"])
    for name, bare in BARE.items():
        ratio = took[f"fast {name}"] / took[f"plain {name}"]
        same = bare.replace("showing the gate", "of the same")
        yield goal(f"instructions of {_a(name)} by FastClient / boto3's {same}", ratio)
    ratio = took["handler"] / took["json.loads"]
    yield goal("instructions of the queue's handler / json.loads of its messages", ratio)


def _a(name: str) -> str:
    return f"an {name}" if name == "add" else f"a {name}"


PARTS = (called,)
