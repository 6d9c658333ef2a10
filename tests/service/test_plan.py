"""The planner: due lanes are sent, each by one run only, the longest waiting first."""

from typing import Any

import pytest

from ledger.errors import OutcomeUnknown, Throttled, Unavailable
from ledger.requests import Query
from ledger.values import Lane
from service import observe
from service.marks import LEASE_MS, Again, Claim, Hold, Rest, Touch, key_of
from service.plan.handler import Planner, due_marks, send_due
from service.work import Send, Work
from tests.service.support import Service, never
from tests.support import LANE, NOW_MS, A, B, Region, settings


def planner(service: Service) -> Planner:
    return Planner(settings(), service.runtime, service.told, service.told)  # type: ignore[arg-type]


def lanes(count: int) -> list[Lane]:
    return [Lane(A, 0, f"c{n}") for n in range(count)]


def due(service: Service, *which: Lane, ms: int = NOW_MS) -> None:
    for lane in which:
        service.runtime.answer(Touch(lane, ms, ms))


def test_a_due_lane_is_sent_and_held() -> None:
    service = Service(Region())
    due(service, LANE)
    assert planner(service)(never).sent == 1
    assert service.queue.sent == [Work(LANE, planned=True)]
    mark = service.marks.mark(LANE)
    assert mark is not None
    assert mark.held_ms == NOW_MS + LEASE_MS
    assert service.told.metrics == {observe.LANES_PLANNED: 1}


def test_what_is_not_due_is_held_or_belongs_to_another_region_is_left() -> None:
    service = Service(Region())
    later, held, planned, theirs = Lane(A, 0, "later"), Lane(A, 0, "held"), Lane(A, 0, "planned"), Lane(B, 0, "x")
    due(service, later, ms=NOW_MS + 1)
    due(service, held, theirs)
    service.runtime.answer(Hold(held, NOW_MS + 1))
    service.runtime.answer(Rest(planned, None, NOW_MS + 1))
    assert planner(service)(never).sent == 0
    service.table.now_ms += 1
    planner(service)(never)
    assert {work.lane for work in service.queue.sent} == {later, held, planned}


def test_a_visit_that_was_planned_is_made_though_nothing_touches_the_lane() -> None:
    service = Service(Region())
    service.runtime.answer(Again(LANE, NOW_MS + 700_000, NOW_MS))
    assert planner(service)(never).sent == 1


@pytest.mark.parametrize("page_size", [1, 3, 1_000])
def test_every_lane_of_every_page_is_sent_once(page_size: int) -> None:
    service = Service(Region(page_size=page_size))
    due(service, *lanes(35))
    assert planner(service)(never).sent == 35
    assert planner(service)(never).sent == 0
    assert sorted(work.lane for work in service.queue.sent) == sorted(lanes(35))


def test_two_schedule_events_at_once_send_each_lane_once() -> None:
    service = Service(Region())
    due(service, *lanes(12))
    seen = [service.runtime.run(due_marks(A)) for _ in range(2)]  # both have read before either claims
    first, second = (send_due(marks, never) for marks in seen)
    running = {first: next(first), second: next(second)}
    while running:  # claim by claim in turn
        for program, request in tuple(running.items()):
            answer = service.runtime.now() if type(request).__name__ == "Now" else service.runtime.answer(request)
            try:
                running[program] = program.send(answer)
            except StopIteration:
                del running[program]
    assert sorted(work.lane for work in service.queue.sent) == sorted(lanes(12))


@pytest.mark.parametrize("page_size", [1, 1_000])
def test_the_longest_waiting_go_first_and_no_more_than_a_run_may_send(page_size: int) -> None:
    service = Service(Region(page_size=page_size))
    for age, lane in enumerate(lanes(9)):
        due(service, lane, ms=NOW_MS - age)
    assert [mark.lane for mark in service.runtime.run(due_marks(A))] == lanes(9)[::-1]
    assert [mark.lane for mark in service.runtime.run(due_marks(A, 2))] == [Lane(A, 0, "c8"), Lane(A, 0, "c7")]


def test_a_lane_that_was_not_sent_is_due_again_after_the_lease() -> None:
    service = Service(Region())
    due(service, LANE, Lane(A, 0, "bad"))
    service.queue.refused = {Lane(A, 0, "bad")}
    with pytest.raises(RuntimeError, match="1 lanes"):
        planner(service)(never)
    assert service.told.metrics == {observe.LANES_PLANNED: 1}
    service.queue.refused = set()
    service.table.now_ms += LEASE_MS - 1
    assert planner(service)(never).sent == 0
    service.table.now_ms += 1
    assert planner(service)(never).sent == 2  # also the one that was sent: nobody came for it


class Failing(Service):
    def __init__(self, kind: type, error: Exception) -> None:
        super().__init__(Region())
        answer = self.runtime.answer

        def fail(request: Any) -> Any:
            if isinstance(request, kind):
                raise error
            return answer(request)

        self.failing = fail

    def run(self) -> Any:
        self.runtime.answer = self.failing  # type: ignore[method-assign]
        return planner(self)(never)


@pytest.mark.parametrize("kind", [Claim, Send])
def test_a_failure_of_a_claim_or_of_the_queue_is_told_by_the_run(kind: type) -> None:
    service = Failing(kind, OutcomeUnknown("lost"))
    due(service, *lanes(3))
    with pytest.raises(RuntimeError, match="3 lanes"):
        service.run()


def test_a_failure_of_one_claim_sends_the_others() -> None:
    service = Service(Region())
    due(service, *lanes(3))
    program = send_due(service.runtime.run(due_marks(A)), never)
    request = next(program)
    claims = 0
    while not isinstance(request, Send):
        if isinstance(request, Claim):
            claims += 1
        try:
            if claims == 2 and isinstance(request, Claim):
                request = program.throw(Throttled("too fast"))
            else:
                request = program.send(service.runtime.now() if not isinstance(request, Claim) else True)
        except StopIteration:
            break
    assert len(request.messages) == 2


def test_a_bucket_that_cannot_be_read_fails_the_run_before_anything_is_claimed() -> None:
    service = Failing(Query, Unavailable("down"))
    due(service, LANE)
    with pytest.raises(Unavailable):
        service.run()
    assert service.queue.sent == []


def test_nothing_new_is_claimed_when_time_is_up_and_what_is_claimed_is_sent() -> None:
    service = Service(Region())
    due(service, *lanes(5))
    calls = iter([False, False, True, True, True, True])
    assert planner(service)(lambda: next(calls)).sent == 2
    held = [mark for lane in lanes(5) if (mark := service.marks.mark(lane)) and mark.held_ms]
    assert len(held) == len(service.queue.sent) == 2


def test_an_item_that_is_no_mark_is_passed_by() -> None:
    service = Service(Region())
    key = key_of(LANE)
    service.table.store([{"pk": {"S": key.pk}, "sk": {"S": "what is this"}, "due_ms": {"N": "1"}}])
    due(service, LANE)
    assert planner(service)(never).sent == 1
