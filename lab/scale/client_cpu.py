"""What boto3 takes of a CPU for each request that the functions make: the played functions have no boto3.

Rule 1: The requests are those of the shipped `DynamoTable` and `WorkQueue`, on clients with their Config, and are as
large as a cold lane's. No socket is opened: the answer is there at once, as a body of JSON.
Rule 2: CPU is of this process, on this computer; the least of some rounds is told, because others use it, too.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse

from compactor.commit import NEVER
from ledger import items, tokens
from ledger.dynamo.client import CONFIG
from ledger.entries import Entries, packed
from ledger.requests import DeleteMany, Get, GetMany, Key, Put, Query, Transact
from ledger.settings import Settings
from ledger.table import DynamoTable
from ledger.values import Checkpoint, CleanNote, Delta, Lane, Segment
from service.work import Message, Send, Work, WorkQueue

ROUNDS, EACH = 5, 40
LANE = Lane("eu-west-1", 0, "stock:85123A")
TOKENS = [tokens.make(1_800_000_000_000 + n, bytes(tokens.RANDOM_BYTES)) for n in range(48)]


class Canned:
    """An AWS that has one answer."""

    def __init__(self) -> None:
        self.body: dict[str, Any] = {}
        session = boto3.Session("a", "a", region_name="eu-west-1")
        self.dynamodb, self.sqs = session.client("dynamodb", config=CONFIG), session.client("sqs", config=CONFIG)
        self.dynamodb.meta.events.register("before-send", self._answer)
        self.sqs.meta.events.register("before-send", self._answer)

    def _answer(self, **_: Any) -> Any:
        return AWSResponse("https://aws.test", 200, {}, _Raw(json.dumps(self.body).encode()))  # type: ignore[arg-type]


class _Raw:
    """The little of an HTTP body that botocore reads."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Any:
        yield self._body


def cpu_s(rounds: int = ROUNDS, each: int = EACH) -> dict[str, float]:
    """By operation, one request."""
    canned = Canned()
    table = DynamoTable.of(Settings(table="counters", region="eu-west-1"), {"eu-west-1": canned.dynamodb})
    queue = WorkQueue("https://sqs.eu-west-1.amazonaws.com/111122223333/work", canned.sqs)
    deltas = [items.delta_item(Delta(LANE, token, -6)) for token in TOKENS]
    checkpoint = items.checkpoint_item(Checkpoint(LANE, -600, 100, TOKENS[0], 7, TOKENS[0], 1_800_000_000_000))
    segment = items.segment_item(Segment(LANE, TOKENS[-1], 7, Entries.of(packed(token, -6) for token in TOKENS)))
    found = deltas[:32]
    messages = Send(tuple(Message(Work(LANE), 75) for _ in range(10)))
    keys = tuple(Key(items.delta_pk(LANE), f"{n}") for n in range(100))
    note = items.note_item(CleanNote(LANE, 7, 1_800_000_000_000))
    asked: dict[str, tuple[dict[str, Any], Callable[[], Any]]] = {
        "GetItem": ({"Item": checkpoint}, lambda: table.answer(Get(items.checkpoint_key(LANE)))),
        "Query": ({"Items": found}, lambda: table.answer(Query(items.delta_pk(LANE), TOKENS[0], None, 32, False))),
        "PutItem": ({}, lambda: table.answer(Put(note))),
        "BatchGetItem": ({"Responses": {"counters": []}}, lambda: table.answer(GetMany(keys, False))),
        "BatchExecuteStatement": ({"Responses": [{}] * 25}, lambda: table.answer(DeleteMany(tuple(deltas[:25])))),
        "TransactWriteItems": ({}, lambda: table.answer(Transact((Put(checkpoint, NEVER), Put(segment, NEVER))))),
        "SendMessageBatch": (
            {"Successful": [{"Id": str(n), "MessageId": "m", "MD5OfMessageBody": "m"} for n in range(10)]},
            lambda: queue.answer(messages),
        ),
    }
    return {name: _least(canned, body, ask, rounds, each) for name, (body, ask) in asked.items()}


def _least(canned: Canned, body: dict[str, Any], ask: Callable[[], Any], rounds: int, each: int) -> float:
    canned.body = body
    ask()
    least = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(each):
            ask()
        least = min(least, (time.process_time() - began) / each)
    return least
