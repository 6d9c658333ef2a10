"""`add_from_queue` ends before Lambda kills it, whatever comes and however slow the table is; a
receive leaves less.
"""

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ledger import Limit
from ledger.core.errors import Unavailable
from ledger.core.requests import Put, Update
from ledger.core.running import run
from ledger.lane import shape
from ledger.tables.boto import CALL_S_MAX
from service.sqs import STOPPED, SqsQueue
from tests.service.support import NOTHING, Service, Sqs, failed, sqs
from tests.service.test_time import FUNCTIONS
from tests.world import A

VOTES, SHOP = "votes:x", "stock:shop"
AT_MS = 1_291_200_000_000
MIDNIGHT = "2010-12-01T00:00:00Z"
TIMEOUT_S = FUNCTIONS["addFromQueue"].get("timeout", 30)


def message(changes: int, counter: str = VOTES, key: str = "k", **more: Any) -> str:
    """Changes of one counter, each with the same time."""
    named = ({"idempotency_key": f"{key}{n}", "at": MIDNIGHT} | more for n in range(changes))
    return json.dumps({"changes": [{"counter": counter, "change": 1} | one for one in named]})


@pytest.fixture(autouse=True)
def _one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of a queue do not overlap, so that their time adds up."""
    monkeypatch.setattr("service.sqs.AT_ONCE", 1_000)


class Slow:
    """A service whose requests of the table and of queues take their time, of which each
    invocation has so much.
    """

    def __init__(
        self, call_ms: float, timeout_s: float = TIMEOUT_S, *, answers: bool = True, **given: Any
    ) -> None:
        limits = {
            "votes:": Limit(ceiling=10**12, region=A),
            "wallet:": Limit(floor=0, ceiling=1_000, region=A),
        }
        self.service = Service(now_ms=AT_MS, limits=limits).start(pack=True, **given)
        run(shape.write(self.service.settings), self.service, self.service.now)
        self.here = threading.local()
        self.call_ms, self.timeout_s, self.left_ms, self.killed = call_ms, timeout_s, 0.0, False
        table, queues = self.service.answer, self.service.sqs.send_message_batch

        def answer(request: Any) -> Any:
            if getattr(self.here, "is_within", False):  # a part of another request
                return table(request)
            self.waits()
            self.here.is_within = True
            try:
                return table(request)
            finally:
                self.here.is_within = False

        def send(**batch: Any) -> Any:
            self.waits()
            return queues(**batch)

        if answers:
            self.service.answer = answer  # type: ignore[method-assign]
            self.service.sqs.send_message_batch = send  # type: ignore[method-assign]
            self.service.sqs.change_message_visibility_batch = send  # type: ignore[method-assign]

    def waits(self) -> None:
        self.left_ms -= self.call_ms
        self.killed |= self.left_ms < 0

    def receive(self, *bodies: str, receives: int = 1) -> list[str]:
        """The messages that one invocation leaves in the queue."""
        self.left_ms, self.killed = self.timeout_s * 1_000, False
        event = sqs(*bodies, attributes={"ApproximateReceiveCount": str(receives)})
        context = SimpleNamespace(get_remaining_time_in_millis=lambda: self.left_ms)
        answer = self.service.adder(event, context)
        assert not self.killed
        left = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        sent = [
            each["MessageBody"]
            for each in self.service.sqs.taken.pop("changes", ())
            if "MessageBody" in each
        ]
        return [body for n, body in enumerate(bodies, start=1) if f"m{n}" in left] + sent

    def receives(self, *bodies: str, most: int) -> list[list[str]]:
        """What stays after each receive, until nothing does."""
        left = [[*bodies]]
        while left[-1]:
            assert len(left) <= most, f"{len(left[-1])} stay for ever"
            left.append(self.receive(*left[-1], receives=len(left)))
            self.service.time_goes(30_000)
        return left[1:]


@pytest.mark.parametrize(
    "queues", [("changes", "dead_letters"), ("outcomes", "changes", "dead_letters")]
)
@pytest.mark.parametrize(
    ("call_ms", "timeout_s"), [(10, TIMEOUT_S), (20, TIMEOUT_S), (10, 30), (20, 15), (100, 10)]
)
def test_a_large_message_ends_after_a_few_receives(
    call_ms: float, timeout_s: float, queues: tuple[str, ...]
) -> None:
    slow = Slow(call_ms, timeout_s, queues=queues)
    huge, small = message(1_000), [message(3, SHOP, "a"), message(2, VOTES, "b")]
    left = slow.receives(small[0], huge, small[1], most=20)
    assert not {*small} & {*left[0]}
    assert (slow.service.value(VOTES), slow.service.value(SHOP)) == (1_002, 3)
    if "outcomes" in queues:
        assert {each["idempotency_key"] for each in slow.service.outcomes()} == {
            *(f"k{n}" for n in range(1_000)),
            *("b0", "b1"),
        }


@pytest.mark.parametrize(("receives", "sizes"), [(1, [200]), (2, [1, 10, 89, 100])])
def test_a_batch_that_came_before_begins_with_little(receives: int, sizes: list[int]) -> None:
    service = Service(now_ms=AT_MS).start(pack=True)
    assert service.adds(message(200, SHOP), receives=receives) == []
    stored = [item for key, item in service.items.items() if key.pk.startswith("delta#")]
    assert (
        sorted(len(item["entries"]["B"]) // 24 if "entries" in item else 1 for item in stored)
        == sizes
    )


@pytest.mark.parametrize("pack", [True, False])
def test_each_receive_leaves_less_of_a_batch_and_all_counts_once(
    pack: bool,
) -> None:
    slow = Slow(250, 10, queues=("outcomes", "changes", "dead_letters"))
    slow.service.start(pack=pack, queues=("outcomes", "changes", "dead_letters"))
    pairs = {"then": {"counter": "wallet:b", "change": 1}, "change": -1}
    bodies = [
        message(1_300, SHOP, "a"),
        message(150, VOTES, "b"),
        message(120, "wallet:a", "in"),
        message(60, "till", "c", **pairs),
    ]
    left = slow.receives(*bodies, most=25)
    assert len(left) > 2
    values = [slow.service.value(name) for name in (SHOP, VOTES, "wallet:a", "till", "wallet:b")]
    assert values == [1_300, 150, 120, -60, 60]
    assert slow.service.lines("error") == []
    assert {each["outcome"] for each in slow.service.outcomes()} == {"counted"}
    assert (
        len({(each["counter"], each["idempotency_key"]) for each in slow.service.outcomes()}) == 330
    )


@pytest.mark.parametrize("call_s", [5, 20, CALL_S_MAX])
@pytest.mark.parametrize("pack", [True, False])
def test_a_table_that_is_silent_returns_every_message_in_time(call_s: float, pack: bool) -> None:
    slow = Slow(1, queues=("outcomes", "changes", "dead_letters"))
    slow.service.start(pack=pack)
    assert slow.receive(message(1, SHOP, "first")) == []  # a process that knows the table's shape
    slow.call_ms = call_s * 1_000
    # each Put of a PutMany fails, too: no table raises for all of them
    slow.service.fails(Unavailable("no answer"), Put, Update)
    slow.service.sqs.down = True
    bodies = [
        message(90),
        message(50, SHOP),
        message(40, "till", then={"counter": SHOP, "change": 1}, change=-1),
        "x",
    ]
    assert slow.receive(*bodies) == bodies


def test_the_rest_of_a_message_is_sent_as_its_sender_sent_it() -> None:
    slow = Slow(1_000, queues=("changes",))
    text = {
        "dataType": "String",
        "stringValue": "abc",
        "stringListValues": [],
        "binaryListValues": [],
    }
    given = {"ApproximateReceiveCount": "1", "MessageGroupId": "tenant-7"}
    event = sqs(message(6_000, SHOP), attributes=given, messageAttributes={"text": text})
    context = SimpleNamespace(get_remaining_time_in_millis=lambda: slow.left_ms)
    for refused in ("idempotency_key", "nothing"):
        slow.left_ms, slow.service.sqs.refuses = 4_500, refused
        assert slow.service.adder(event, context) == (
            failed("m1") if refused != "nothing" else NOTHING
        )
    (sent,) = (each for each in slow.service.sqs.taken.pop("changes") if "MessageBody" in each)
    assert (sent["MessageGroupId"], sent["DelaySeconds"]) == ("tenant-7", 30)
    assert sent["MessageAttributes"] == {"text": {"DataType": "String", "StringValue": "abc"}}
    rest = json.loads(sent["MessageBody"])["changes"]
    assert 0 < len(rest) < 6_000
    assert slow.service.value(SHOP) == 6_000 - len(rest)
    assert slow.receive(sent["MessageBody"]) == []
    assert slow.service.value(SHOP) == 6_000


def test_many_messages_leave_at_once_and_each_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    client = Sqs(refuses="body 137.")
    queue = SqsQueue("url", lambda: client)
    bodies = [f"body {n}." for n in range(205)]
    assert [n for n, why in enumerate(queue.put_each(bodies)) if why is not None] == [137]
    assert (sorted(client.sizes), len(client.taken["url"])) == ([5, *[10] * 20], 204)
    assert {*queue.put_each(bodies, stop=lambda: True)} == {STOPPED}
    assert len(client.taken["url"]) == 204
