"""The stream's consumer: what marks a lane, what is passed by, what is sent again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import items
from ledger.errors import Throttled
from ledger.values import Checkpoint, Lane
from service import observe
from service.mark.handler import Marker
from service.marks import TOUCH_EVERY_MS, Mark, Touch, key_of
from tests.service.support import Service, stored, stream
from tests.support import LANE, LATENESS_MS, NOW_MS, A, B, Region, delta, settings, token


def marker(service: Service) -> Marker:
    return Marker(settings(), service.runtime, service.told, service.told)  # type: ignore[arg-type]


ON_TIME = delta(1, at_ms=NOW_MS)
NOTHING: dict[str, list[Any]] = {"batchItemFailures": []}


def test_a_new_delta_marks_its_lane_due_when_it_may_be_folded() -> None:
    service = Service(Region())
    assert marker(service)(stream([ON_TIME], made_ms=NOW_MS)) == NOTHING
    assert service.marks.mark(LANE) == Mark(LANE, due_ms=NOW_MS + LATENESS_MS, touched_ms=NOW_MS)
    assert service.told.metrics == {observe.LANES_MARKED: 1, observe.LATE_DELTAS: 0, observe.RECORDS_IGNORED: 0}


def test_a_batch_touches_a_lane_once() -> None:
    service = Service(Region())
    other = Lane(A, 0, "b")
    marker(service)(stream([delta(n, lane, NOW_MS) for n in range(5) for lane in (LANE, other)]))
    assert service.told.metrics[observe.LANES_MARKED] == 2


def test_a_lane_touched_a_moment_ago_is_spared_by_the_same_process_only() -> None:
    service = Service(Region())
    mine = marker(service)
    mine(stream([ON_TIME], made_ms=NOW_MS))
    service.table.now_ms += TOUCH_EVERY_MS - 1
    mine(stream([ON_TIME], made_ms=NOW_MS))
    assert service.told.metrics[observe.LANES_MARKED] == 1
    marker(service)(stream([ON_TIME], made_ms=NOW_MS))
    assert service.told.metrics[observe.LANES_MARKED] == 2
    service.table.now_ms += 1
    mine(stream([ON_TIME], made_ms=NOW_MS))
    assert service.told.metrics[observe.LANES_MARKED] == 3


def test_a_clock_that_was_set_back_spares_nothing() -> None:
    service = Service(Region())
    mine = marker(service)
    mine(stream([ON_TIME], made_ms=NOW_MS))
    service.table.now_ms -= 1
    mine(stream([ON_TIME], made_ms=NOW_MS))
    assert service.told.metrics[observe.LANES_MARKED] == 2


def test_a_late_delta_is_noted_and_due_at_once_also_a_moment_after_another() -> None:
    service = Service(Region())
    mine = marker(service)
    late = delta(2, at_ms=NOW_MS - LATENESS_MS - 1)
    mine(stream([ON_TIME, delta(3, at_ms=NOW_MS - LATENESS_MS)], made_ms=NOW_MS))
    assert service.told.metrics[observe.LATE_DELTAS] == 0
    mine(stream([late], made_ms=NOW_MS))
    mark = service.marks.mark(LANE)
    assert mark is not None
    assert mark.late_ms == NOW_MS
    assert service.told.metrics[observe.LATE_DELTAS] == 1
    fresh = Service(Region())
    marker(fresh)(stream([late], made_ms=NOW_MS))
    assert fresh.marks.mark(LANE) == Mark(LANE, due_ms=NOW_MS, touched_ms=NOW_MS, late_ms=NOW_MS)


CHECKPOINT = items.checkpoint_item(Checkpoint(LANE, 1, 1, token(1), 1, token(1), 1))
DELTA = items.delta_item(ON_TIME)


@pytest.mark.parametrize(
    "record",
    [
        stored(DELTA, "REMOVE"),
        stored(DELTA, "MODIFY"),
        stored(items.delta_item(delta(1, Lane(B, 0, "a")))),
        stored(CHECKPOINT),
        stored({"pk": {"S": key_of(LANE).pk}, "sk": {"S": key_of(LANE).sk}}),
        stored({"pk": {"S": f"delta#{A}#0#a b"}, "sk": {"S": token(1)}}),
        stored({"pk": {"S": f"delta#{A}#01#a"}, "sk": {"S": token(1)}}),
        stored({"pk": {"S": f"delta#{A}"}, "sk": {"S": token(1)}}),
        stored({"pk": {"S": f"delta#{A}#0#a"}, "sk": {"S": "no token"}}),
        stored({"pk": {"N": "1"}, "sk": {"B": "AA=="}}),
        {"eventName": "INSERT"},
        {"eventName": "INSERT", "dynamodb": None},
        {"eventName": "INSERT", "dynamodb": {"Keys": {}}},
        {},
        None,
        "record",
    ],
)
def test_what_is_no_new_delta_of_this_region_is_counted_and_passed_by(record: Any) -> None:
    service = Service(Region())
    assert marker(service)({"Records": [record]}) == NOTHING
    assert service.table.items == {}
    assert service.told.metrics[observe.RECORDS_IGNORED] == 1


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(made=JSON, sequence=JSON, more=st.dictionaries(st.text(max_size=8), JSON, max_size=3))
def test_whatever_else_a_record_holds_its_lane_is_marked(made: Any, sequence: Any, more: dict[str, Any]) -> None:
    service = Service(Region())
    record = stored(DELTA)
    record |= {name: value for name, value in more.items() if name not in record}
    record["dynamodb"] |= {"ApproximateCreationDateTime": made, "SequenceNumber": sequence}
    assert marker(service)({"Records": [record]}) == NOTHING
    assert service.marks.mark(LANE) is not None


@given(records=st.lists(JSON, max_size=4))
def test_no_record_fails_a_batch(records: list[Any]) -> None:
    service = Service(Region())
    assert marker(service)({"Records": [*records, stored(DELTA)]}) == NOTHING
    assert service.marks.mark(LANE) is not None


def test_an_empty_event_marks_nothing() -> None:
    service = Service(Region())
    assert marker(service)({}) == marker(service)({"Records": []}) == NOTHING


class Refusing(Service):
    """Touches of one lane fail."""

    def __init__(self, lane: Lane) -> None:
        super().__init__(Region())
        self.failing: Lane | None = lane
        answer = self.marks.answer

        def refuse(request: Any) -> Any:
            if isinstance(request, Touch) and request.lane == self.failing:
                raise Throttled("too fast")
            return answer(request)

        self.marks.answer = refuse  # type: ignore[method-assign]


def test_a_touch_that_failed_sends_the_stream_back_to_its_first_record_and_is_made_then() -> None:
    bad = Lane(A, 0, "bad")
    service = Refusing(bad)
    mine = marker(service)
    event = stream([delta(1, at_ms=NOW_MS), delta(2, bad, NOW_MS), delta(3, at_ms=NOW_MS), delta(4, bad, NOW_MS)])
    assert mine(event) == {"batchItemFailures": [{"itemIdentifier": "2"}]}
    assert service.marks.mark(LANE) is not None
    service.failing = None
    assert mine({"Records": event["Records"][1:]}) == NOTHING  # in the next second: no failed touch is remembered
    assert service.marks.mark(bad) is not None


def test_a_failure_that_cannot_be_named_fails_the_batch() -> None:
    service = Refusing(LANE)
    event = stream([ON_TIME])
    del event["Records"][0]["dynamodb"]["SequenceNumber"]
    with pytest.raises(Throttled):
        marker(service)(event)


def test_no_amount_is_logged() -> None:
    service = Refusing(LANE)
    marker(service)(stream([delta(9, at_ms=NOW_MS), delta(10, Lane(A, 0, "b"), 5)], made_ms=NOW_MS))
    assert str(4**9) not in service.told.shown("info", "warning", "error")
    assert str(4**10) not in service.told.shown("info", "warning", "error")
