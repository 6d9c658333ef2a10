"""The messages of the work queue, and what answers requests."""

from contextlib import nullcontext
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from compactor.report import Tally
from compactor.visit import visit
from ledger.errors import OutcomeUnknown, Throttled
from ledger.requests import DeleteMany, Get, Transact
from ledger.values import Lane
from service.marks import key_of
from service.runtime import OutOfTime, chunks, until
from service.work import InvalidWork, Send, Work, WorkQueue
from tests.service.support import Service
from tests.support import LANE, A, B, Region, compact_for_long, delta, settings, two_regions


def test_a_message_comes_back_and_may_name_a_lane_alone_and_have_further_fields() -> None:
    for work in (Work(LANE), Work(LANE, verify=True), Work(Lane(A, 7, "a#0#b"), planned=True)):
        assert Work.from_json(work.to_json(), A) == work
    assert Work.from_json(f'{{"lane": "{LANE}", "note": 1}}', A) == Work(LANE)


@pytest.mark.parametrize(
    "body",
    [
        *("", "x", "null", "[]", '"lane"', "{}", '{"lane": null}', '{"lane": 5}'),
        '{"lane": "eu-west-1#0"}',
        '{"lane": "eu-west-1#01#a"}',
        '{"lane": "eu-west-1#0#a b"}',
        '{"lane": "eu-west-1#0#a", "verify": 1}',
        '{"lane": "eu-west-1#0#a", "planned": "yes"}',
        "[" * 100_000,
        Work(Lane(B, 0, "a")).to_json(),
    ],
)
def test_a_message_that_names_no_lane_of_this_region_is_refused(body: str) -> None:
    with pytest.raises(InvalidWork, match=B if B in body else None):
        Work.from_json(body, A)


class Sqs:
    """Puts what does not name a lane it refuses; or fails."""

    def __init__(self, refuses: str = "nothing", failure: Exception | None = None) -> None:
        self.refuses, self.failure = refuses, failure
        self.batches: list[Any] = []

    def send_message_batch(self, **given: Any) -> Any:
        self.batches.append(given)
        if self.failure:
            raise self.failure
        put = [each["Id"] for each in given["Entries"] if self.refuses not in each["MessageBody"]]
        return {"Successful": [{"Id": each} for each in put], "Failed": []}


def test_messages_are_put_in_one_batch_and_the_refused_are_told() -> None:
    sqs = Sqs(refuses="bad")
    good, bad = Work(LANE), Work(Lane(A, 0, "bad"))
    assert WorkQueue("url", sqs).answer(Send(())) == ()
    assert WorkQueue("url", sqs).answer(Send((bad, good))) == (bad,)
    (batch,) = sqs.batches
    assert [each["MessageBody"] for each in batch["Entries"]] == [bad.to_json(), good.to_json()]
    assert batch["QueueUrl"] == "url"


def test_a_queue_that_does_not_answer_is_one_of_our_errors() -> None:
    with pytest.raises(OutcomeUnknown):
        WorkQueue("url", Sqs(failure=EndpointConnectionError(endpoint_url="x"))).answer(Send((Work(LANE),)))


# -- what answers requests ---------------------------------------------------------------------------------------------


def test_a_visit_is_stopped_before_any_of_its_requests_and_asks_nothing_more() -> None:
    def visited(requests_max: int = 10**6) -> Region:
        """A lane with deltas to delete, to fold and to settle is visited, for so many requests."""
        home, away = two_regions()
        for n in (2, 4):
            home.put(delta(n))
            compact_for_long(home, away, 2)
        home.put(delta(1), delta(3), delta(5), delta(6))
        home.asked.clear()
        program = until(visit(LANE, Tally(), settings(fold_max=1)), lambda: len(home.asked) >= requests_max)
        with pytest.raises(OutOfTime) if requests_max < 10**6 else nullcontext():
            home.run(program)
        return home

    asked = visited().asked
    assert [kind for kind in (DeleteMany, Transact) if kind not in map(type, asked)] == []
    assert len(asked) > 30
    for number in range(len(asked)):
        assert visited(number).asked == asked[:number]


def test_programs_run_at_once_give_their_results_in_order_and_an_error_in_its_place() -> None:
    class Throttling(Region):
        def answer(self, request: Any, /) -> Any:
            if request == Get(key_of(LANE)):
                raise Throttled("too fast")
            return super().answer(request)

    def get(lane: Lane) -> Any:
        return (yield Get(key_of(lane)))

    world = Service(Throttling()).runtime
    answers = world.run_each(get(lane) for lane in (Lane(A, 0, "a"), LANE, Lane(A, 0, "b")))
    assert [type(answer) for answer in answers] == [type(None), Throttled, type(None)]


def test_chunks_keep_the_order_and_lose_nothing() -> None:
    assert chunks([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
    assert chunks([], 2) == []
