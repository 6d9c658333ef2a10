"""The messages of the work queue, the queue itself, and what answers requests."""

import json
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st

from compactor.named import BETWEEN_MAX, Named
from compactor.report import Tally
from compactor.visit import visit
from ledger import items
from ledger.errors import LedgerError, OutcomeUnknown, Throttled, Unavailable
from ledger.lane.add import pack_of
from ledger.ranges import VERSION_MAX
from ledger.requests import DeleteMany, Get, Transact
from ledger.values import Lane
from service.runtime import OutOfTime, until
from service.work import (
    DELAY_S_MAX,
    KEY_MAX,
    NAMES_MAX,
    TRIES_MAX,
    Bury,
    InvalidWork,
    Message,
    NotPut,
    Send,
    Work,
    WorkQueue,
)
from tests.service.support import Service
from tests.strategies import counters
from tests.support import LANE, A, B, Region, compact_for_long, delta, settings, token, two_regions

DELTA, OTHER, PACK = token(1), token(2), pack_of([delta(1), delta(3)]).name

sort_keys = st.builds(token, st.integers(0, 10**6)) | st.just(PACK)
named = st.builds(
    lambda keys, between: Named.of(keys) | Named((), tuple(between)),
    st.lists(sort_keys, max_size=5) | st.just([token(n) for n in range(2 * NAMES_MAX + 1)]),
    st.lists(st.tuples(sort_keys, sort_keys), max_size=3),
)
works = st.builds(
    Work,
    st.builds(Lane, st.just(A), st.integers(0, 999), counters),
    late=named,
    again=named,
    fold=st.booleans(),
    sweep=st.booleans(),
    verify=st.booleans(),
    follows=st.none() | st.integers(0, VERSION_MAX),
    since=st.none() | sort_keys,
    tries=st.integers(0, TRIES_MAX),
)


@given(works)
def test_a_message_comes_back_with_every_field(work: Work) -> None:
    assert Work.from_json(work.to_json(), A) == work


def test_a_message_may_name_a_lane_alone_and_have_fields_that_nobody_knows() -> None:
    said = {"lane": str(LANE)}
    assert json.loads(Work(LANE).to_json()) == said
    assert Work.from_json(json.dumps(said), A) == Work(LANE)
    for old in ({"planned": True}, {"planned": "yes", "note": 1}):  # of an older version: a plain look
        assert Work.from_json(json.dumps(said | old), A) == Work(LANE)


def test_what_is_named_stands_in_a_message_as_other_programs_are_told() -> None:
    late = Named((DELTA, PACK), ((DELTA, OTHER),))
    work = Work(LANE, late=late, again=Named((OTHER,)), fold=False, verify=True, follows=0, tries=2)
    assert json.loads(work.to_json()) == {
        "lane": "eu-west-1#0#stock:85123A",
        "late": [DELTA, PACK],
        "late_between": [[DELTA, OTHER]],
        "again": [OTHER],
        "fold": False,
        "verify": True,
        "follows": 0,
        "tries": 2,
    }


REFUSED: dict[str, list[Any]] = {
    "lane": [None, 5, [], "", "eu-west-1#0", "eu-west-1#01#a", "eu-west-1#0#a b", "eu-west-1#0#"],
    "late": [None, 1, True, "", {}, "x", [1], [None], [""], ["x"], [DELTA.lower()], [[DELTA]], {"a": 1}, [DELTA, 5]],
    "late_between": [
        None,
        1,
        "",
        {},
        [1],
        [{DELTA: 1, OTHER: 2}],
        [[]],
        [[DELTA]],
        [[DELTA, OTHER, DELTA]],
        [[DELTA, None]],
        [DELTA],
        [["x", "y"]],
    ],
    "fold": [None, 0, 1, "yes", []],
    "follows": [True, -1, 1.0, "1", VERSION_MAX + 1, []],
    "since": [True, 1, [], "", "x", DELTA.lower()],
    "tries": [None, True, -1, 1.5, "1", TRIES_MAX + 1],
}
REFUSED |= {"again": REFUSED["late"], "again_between": REFUSED["late_between"]}
REFUSED |= {"sweep": REFUSED["fold"], "verify": REFUSED["fold"]}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in REFUSED for value in REFUSED[name]], ids=repr)
def test_a_field_that_is_not_as_described_refuses_the_message(name: str, value: Any) -> None:
    with pytest.raises(InvalidWork):
        Work.from_json(json.dumps({"lane": str(LANE), name: value}), A)


def test_the_longest_sort_key_that_may_be_named_is_longer_than_any_packs() -> None:
    assert len(PACK) < KEY_MAX == 64
    longest = PACK + "#" * (KEY_MAX - len(PACK))
    assert Work.from_json(json.dumps({"lane": str(LANE), "late": [longest]}), A).late == Named((longest,))
    for name, given_ in (("late", [longest + "#"]), ("again_between", [[DELTA, longest + "#"]])):
        with pytest.raises(InvalidWork):
            Work.from_json(json.dumps({"lane": str(LANE), name: given_}), A)


@pytest.mark.parametrize("body", ["", "x", "null", "[]", "1", '"lane"', "{}", "NaN", "[" * 100_000, "\ud800", "\0"])
def test_what_is_no_message_is_refused(body: str) -> None:
    with pytest.raises(InvalidWork):
        Work.from_json(body, A)


def test_a_lane_of_another_region_is_refused_by_name() -> None:
    with pytest.raises(InvalidWork, match=B):
        Work.from_json(Work(Lane(B, 0, "a")).to_json(), A)


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | sort_keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
FIELDS = ("late", "late_between", "again", "again_between", "fold", "sweep", "verify", "follows", "since", "tries")


@given(st.dictionaries(st.sampled_from(FIELDS), anything), st.just(str(LANE)) | anything)
def test_whatever_a_message_holds_it_is_work_that_can_be_sent_again_or_refused(said: dict[str, Any], lane: Any) -> None:
    try:
        work = Work.from_json(json.dumps({**said, "lane": lane}), A)
    except InvalidWork:
        return
    assert Work.from_json(work.to_json(), A) == work


@given(st.text())
def test_any_text_is_work_or_refused(body: str) -> None:
    with suppress(InvalidWork):
        Work.from_json(body, A)


def test_two_messages_of_a_lane_are_one_that_asks_for_all() -> None:
    a, b = Named((DELTA,)), Named((OTHER,), ((DELTA, PACK),))
    both = Named((DELTA, OTHER), ((DELTA, PACK),))
    late, again = Work(LANE, late=a, again=b, fold=False, tries=3), Work(LANE, late=b, again=a, sweep=True)
    assert late | again == again | late == Work(LANE, late=both, again=both, sweep=True, tries=3)
    assert Work(LANE, verify=True, fold=False) | Work(LANE, late=a, fold=False) == Work(
        LANE, late=a, fold=False, verify=True
    )


@pytest.mark.parametrize(
    ("one", "other", "follows"),
    [
        (Work(LANE, follows=3), Work(LANE, follows=5), 5),
        (Work(LANE, follows=3), Work(LANE), None),  # a plain one folds in any case
        (Work(LANE, follows=3), Work(LANE, fold=False), 3),
        (Work(LANE, follows=0), Work(LANE, follows=0), 0),
        (Work(LANE, fold=False), Work(LANE, fold=False), None),
    ],
)
def test_what_follows_a_visit_joined_with_another(one: Work, other: Work, follows: int | None) -> None:
    assert (one | other).follows == (other | one).follows == follows


def test_however_much_is_joined_a_message_stays_small_and_names_all() -> None:
    def keys(n: int) -> list[str]:
        return [f"{token(k)}#{'0' * 32}" for k in range(n * 1_000, n * 1_000 + NAMES_MAX)]

    work = Work(LANE, fold=False)
    for n in range(60):
        late = Named.of(keys(n)) | Named((), ((token(n * 1_000), token(n * 1_000 + 5)),))
        work |= Work(LANE, late=late, again=late, fold=False)
        assert len(work.late.between) <= BETWEEN_MAX
    parts = work.apart()
    assert max(len(part.to_json()) for part in parts) < 20_000
    for key in (key for n in range(60) for key in keys(n)):
        assert any(key in part.late.keys for part in parts) or any(a <= key <= b for a, b in parts[0].late.between)


@given(works)
def test_a_work_comes_apart_into_small_ones_that_ask_for_all_of_it(work: Work) -> None:
    first, *others = work.apart()
    named = [(*part.late.keys, *part.again.keys) for part in (first, *others)]
    assert all(len(part.late.keys) <= NAMES_MAX >= len(part.again.keys) for part in (first, *others))
    assert sorted(key for part in named for key in part) == sorted((*work.late.keys, *work.again.keys))
    assert all(part.apart() == [part] for part in (first, *others))
    assert replace(first, late=work.late, again=work.again) == work
    assert not [part for part in others if part.fold or part.sweep or part.verify or part.lane != work.lane]


@pytest.mark.parametrize(
    ("one", "other", "since"),
    [
        (Work(LANE, sweep=True, since=OTHER), Work(LANE, sweep=True, since=DELTA), DELTA),  # the lower loses nothing
        (Work(LANE, sweep=True, since=OTHER), Work(LANE, sweep=True), None),
        (Work(LANE, sweep=True, since=OTHER), Work(LANE), None),  # it may look at all, where the watermark is ahead
        (Work(LANE, sweep=True, since=OTHER), Work(LANE, late=Named((DELTA,)), fold=False), OTHER),
        (Work(LANE, since=PACK), Work(LANE, since=PACK), PACK),
        (Work(LANE, fold=False), Work(LANE, fold=False), None),
    ],
)
def test_two_visits_that_go_on_joined_go_on_where_nothing_is_passed_by(one: Work, other: Work, since: str) -> None:
    assert (one | other).since == (other | one).since == since


@pytest.mark.parametrize("more", [{}, {"follows": 3}, {"since": DELTA, "tries": 9}])
def test_what_only_folds_or_verifies_asks_for_nothing_else(more: dict[str, Any]) -> None:
    assert Work(LANE, **more).only_folds
    assert Work(LANE, fold=False, verify=True, **more).only_verifies
    name = Named((DELTA,))
    some: list[dict[str, Any]] = [{"late": name}, {"again": name}, {"sweep": True}, {"thresholds": True}]
    for asked in (*some, {"verify": True}, {"fold": False}):
        assert not Work(LANE, **asked, **more).only_folds
    for asked in (*some, {"fold": True}):
        assert not Work(LANE, verify=True, **{"fold": False, **asked}, **more).only_verifies


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

    def send_message(self, **given: Any) -> Any:
        self.batches.append(given)
        if self.failure:
            raise self.failure
        return {"MessageId": "1"}


GOOD, BAD = Message(Work(LANE), 75), Message(Work(Lane(A, 0, "bad")))


def test_messages_are_put_in_batches_of_ten_each_with_its_delay() -> None:
    sqs = Sqs()
    assert WorkQueue("url", sqs).answer(Send(())) == ()
    assert sqs.batches == []
    messages = tuple(Message(Work(Lane(A, n, "a")), n) for n in range(23))
    assert WorkQueue("url", sqs).answer(Send(messages)) == (None,) * 23
    assert [(batch["QueueUrl"], len(batch["Entries"])) for batch in sqs.batches] == [("url", n) for n in (10, 10, 3)]
    entries = [entry for batch in sqs.batches for entry in batch["Entries"]]
    assert [(entry["MessageBody"], entry["DelaySeconds"]) for entry in entries] == [
        (message.work.to_json(), message.delay_s) for message in messages
    ]
    assert all(len({entry["Id"] for entry in batch["Entries"]}) == len(batch["Entries"]) for batch in sqs.batches)


def test_no_delay_is_longer_than_sqs_takes() -> None:
    sqs = Sqs()
    WorkQueue("url", sqs).answer(Send((Message(Work(LANE), DELAY_S_MAX + 1),)))
    assert sqs.batches[0]["Entries"][0]["DelaySeconds"] == DELAY_S_MAX == 900


def test_what_the_queue_does_not_confirm_is_an_error_in_its_place() -> None:
    answers = WorkQueue("url", Sqs(refuses="bad")).answer(Send((BAD, GOOD, BAD)))
    assert list(map(type, answers)) == [NotPut, type(None), NotPut]
    assert issubclass(NotPut, LedgerError)


def test_a_queue_that_does_not_answer_is_one_of_our_errors() -> None:
    queue = WorkQueue("url", Sqs(failure=EndpointConnectionError(endpoint_url="x")), "dlq")
    assert [type(answer) for answer in queue.answer(Send((GOOD,) * 11))] == [OutcomeUnknown] * 11
    with pytest.raises(OutcomeUnknown):
        queue.answer(Bury("body"))


def test_what_is_buried_is_put_on_the_dlq_as_it_came() -> None:
    sqs = Sqs()
    assert WorkQueue("url", sqs, "dlq").answer(Bury("not JSON")) is None
    assert sqs.batches == [{"QueueUrl": "dlq", "MessageBody": "not JSON"}]


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


def get(lane: Lane) -> Any:
    return (yield Get(items.checkpoint_key(lane)))


def test_programs_run_at_once_give_their_results_in_order_and_an_error_in_its_place() -> None:
    class Throttling(Region):
        def answer(self, request: Any, /) -> Any:
            if request == Get(items.checkpoint_key(LANE)):
                raise Throttled("too fast")
            return super().answer(request)

    world = Service(Throttling()).runtime
    answers = world.run_each(get(lane) for lane in (Lane(A, 0, "a"), LANE, Lane(A, 0, "b")))
    assert [type(answer) for answer in answers] == [type(None), Throttled, type(None)]


def test_a_request_to_the_queue_goes_to_the_queue_and_any_other_to_the_table() -> None:
    service = Service(Region())
    assert service.runtime.answer(Send((GOOD,))) == (None,)
    service.runtime.answer(Bury("x"))
    service.queue.refused.add(LANE)
    assert isinstance(service.runtime.answer(Send((GOOD,)))[0], Unavailable)
    assert (service.queue.sent, service.queue.buried) == ([(Work(LANE), 75)], ["x"])
    assert service.runtime.run(get(LANE)) is None
    assert service.table.asked == [Get(items.checkpoint_key(LANE))]
