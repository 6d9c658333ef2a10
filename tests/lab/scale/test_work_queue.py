"""The queue in memory: when a message comes, and what is billed for it."""

from lab.scale.work_queue import Sqs
from ledger.values import Lane
from service.job_queue import Enqueue, Message, WorkQueue
from service.jobs import Look
from service.messages import message_of

LANE = Lane("eu-west-1", 0, "stock:85123A")


def test_what_the_shipped_queue_sends_comes_after_its_delay_and_each_ten_are_a_request() -> None:
    now_ms = [0]
    sqs = Sqs(lambda: now_ms[0])
    assert WorkQueue("work", sqs).answer(Enqueue(tuple(Message(Look(LANE), n) for n in range(23)))) == (None,) * 23
    now_ms[0] = 11_000
    assert sqs.next_ms == 0
    assert [len(sqs.batch(most)["Records"]) for most in (5, 50, 50)] == [5, 7, 0]
    now_ms[0] = 22_000
    bodies = [record["body"] for record in sqs.batch(50)["Records"]]
    assert bodies == [message_of(Look(LANE))] * 11
    assert sqs.requests == {"send": 3, "receive": 1 + 1 + 2, "delete": 1 + 1 + 2}
    assert (sqs.sent, sqs.received, sqs.longest) == (23, 23, 23)
    assert sqs.waiting() == []


def test_a_large_request_is_billed_by_64_kilobytes() -> None:
    sqs = Sqs(lambda: 0)
    sqs.send_message_batch("work", [{"Id": str(n), "MessageBody": "x" * 20_000, "DelaySeconds": 0} for n in range(10)])
    assert sqs.requests["send"] == 4
