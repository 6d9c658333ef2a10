"""The messages of the work queue, and the queues themselves."""

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.ranges import VERSION_MAX
from ledger.core.values import Lane
from ledger.lane.add import pack_of
from ledger.lane.named import Named
from service.job_queue import DeadLetter, Enqueue, Message, NotPut, WorkQueue
from service.jobs import KEYS_MAX, Evaluate, Job, Look, Settle, Sweep, Verify
from service.messages import KEY_MAX, TRIES_MAX, InvalidWork, job_of, message_of
from service.sqs import DELAY_S_MAX, SqsQueue
from tests.service.support import Sqs
from tests.strategies import counters
from tests.world import LANE, A, B, delta, settings, token

ONE, TWO, PACK = token(1), token(2), pack_of([delta(1), delta(3)]).name
OWN = settings()

lanes = st.builds(Lane, st.just(A), st.integers(0, 999), counters)
sort_keys = st.builds(token, st.integers(0, 10**6)) | st.just(PACK)
named = st.builds(
    lambda keys, between: Named.of(keys) | Named((), tuple(between)),
    st.lists(sort_keys, max_size=5) | st.just([token(n) for n in range(KEYS_MAX)]),
    st.lists(st.tuples(sort_keys, sort_keys), max_size=3),
)
tries, since = st.integers(0, TRIES_MAX), st.none() | sort_keys
jobs: st.SearchStrategy[Job] = (
    st.builds(
        Look, lanes, follows=st.none() | st.integers(0, VERSION_MAX), since=since, tries=tries
    )
    | st.builds(Settle, lanes, named, again=st.booleans(), tries=tries)
    | st.builds(Sweep, lanes, since=since, tries=tries)
    | st.builds(Verify, lanes, tries)
    | st.builds(Evaluate, lanes, tries)
)


@given(jobs)
def test_a_job_comes_back_from_its_message_which_is_small(job: Job) -> None:
    assert job_of(message_of(job), OWN) == job
    assert len(message_of(job)) < 10_000


def test_the_pages_messages_are_those_that_are_sent() -> None:
    both = Named((ONE, PACK), ((ONE, TWO),))
    written: list[tuple[Job, dict[str, Any]]] = [
        (Look(LANE), {"job": "look"}),
        (Look(LANE, follows=0, since=ONE), {"job": "look", "follows": 0, "since": ONE}),
        (Settle(LANE, both), {"job": "settle", "keys": [ONE, PACK], "between": [[ONE, TWO]]}),
        (Settle(LANE, Named((ONE,)), again=True), {"job": "settle", "keys": [ONE], "again": True}),
        (Sweep(LANE, since=ONE, tries=2), {"job": "sweep", "since": ONE, "tries": 2}),
        (Verify(LANE), {"job": "verify"}),
        (Evaluate(LANE, 3), {"job": "evaluate", "tries": 3}),
    ]
    for job, message in written:
        assert json.loads(message_of(job)) == {"lane": str(LANE)} | message
        assert job_of(json.dumps({"lane": str(LANE), "note": 1} | message), OWN) == job
    assert job_of(json.dumps({"lane": str(LANE)}), OWN) == Look(LANE)
    job = job_of(message_of(Look(LANE)), settings(shards={"": 4}))
    assert job.lane.shards == 4  # so that a pack of another shard shows as damage


KEYS: list[Any] = [
    None,
    1,
    True,
    "",
    {},
    "x",
    [1],
    [None],
    [""],
    ["x"],
    [ONE.lower()],
    [[ONE]],
    {"a": 1},
    [ONE, 5],
]
PAIRS: list[Any] = [
    None,
    1,
    "",
    {},
    [1],
    [{ONE: 1, TWO: 2}],
    [[]],
    [[ONE]],
    [[ONE, TWO, ONE]],
    [[ONE, None]],
    [ONE],
]
NO_LANE: list[Any] = [
    None,
    5,
    [],
    "",
    "eu-west-1#0",
    "eu-west-1#01#a",
    "eu-west-1#0#a b",
    "eu-west-1#0#",
    f"{B}#0#a",
]
NO_FLAG: list[Any] = [None, 0, 1, "yes", []]
NO_TRIES: list[Any] = [None, True, -1, 1.5, "1", TRIES_MAX + 1]
NO_VERSION: list[Any] = [True, -1, 1.0, "1", VERSION_MAX + 1, []]
NO_KEY: list[Any] = [True, 1, [], "", "x", ONE.lower(), ONE + "#" * (KEY_MAX - len(ONE) + 1)]
NO_MESSAGES = (
    "",
    "x",
    "null",
    "[]",
    "[1]",
    "1",
    '"lane"',
    "{}",
    "NaN",
    "[" * 100_000,
    "\ud800",
    "\0",
)
REFUSED: list[tuple[dict[str, Any], dict[str, list[Any]]]] = [
    (
        {"job": "look"},
        {
            "lane": NO_LANE,
            "follows": [None, *NO_VERSION],
            "since": [None, *NO_KEY],
            "tries": NO_TRIES,
        },
    ),
    ({"job": "settle"}, {"keys": KEYS, "between": [*PAIRS, [["x", "y"]]], "again": NO_FLAG}),
    ({"job": "sweep"}, {"job": [None, 1, [], {}, "", "Look", "fold", "work"]}),
    ({}, {"lane": NO_LANE, "fold": [False], "sweep": [True], "late": [[ONE]], "tries": [0]}),
]


def test_a_field_that_is_not_as_described_refuses_the_message() -> None:
    wrong = [
        whole | {name: value}
        for whole, fields in REFUSED
        for name in fields
        for value in fields[name]
    ]
    for body in (*NO_MESSAGES, *(json.dumps({"lane": str(LANE)} | said) for said in wrong)):
        with pytest.raises(InvalidWork):
            print(body, job_of(body, OWN))
    with pytest.raises(InvalidWork, match="wrote such flags"):
        job_of(json.dumps({"lane": str(LANE), "late": [ONE], "fold": False}), OWN)
    with pytest.raises(InvalidWork, match=f"not a lane of {A}"):
        job_of(message_of(Look(Lane(B, 0, "a"))), OWN)
    longest = Settle(LANE, Named((PACK + "#" * (KEY_MAX - len(PACK)),)))
    assert job_of(message_of(longest), OWN) == longest


def test_jobs_are_put_in_tens_with_their_delays() -> None:
    client = Sqs()
    queue = WorkQueue("url", lambda: client, "dlq")
    assert (queue.answer(Enqueue(())), client.sizes) == ((), [])
    messages = tuple(Message(Look(Lane(A, n, "a")), 890 + n) for n in range(23))
    assert queue.answer(Enqueue(messages)) == (None,) * 23
    assert client.sizes == [10, 10, 3]
    assert [(entry["MessageBody"], entry["DelaySeconds"]) for entry in client.taken["url"]] == [
        (message_of(message.job), min(message.delay_s, DELAY_S_MAX)) for message in messages
    ]
    queue.answer(DeadLetter("not JSON"))
    assert [entry["MessageBody"] for entry in client.taken["dlq"]] == ["not JSON"]
    client = Sqs("bad")
    assert SqsQueue("url", lambda: client).hide(["a", "bad"], [3, 4]) == [
        None,
        "The queue refused it (InternalError).",
    ]
    assert client.taken["url"] == [{"Id": "0", "ReceiptHandle": "a", "VisibilityTimeout": 3}]


def test_what_a_queue_does_not_confirm_is_an_error_in_its_place() -> None:
    good, bad = Message(Look(LANE)), Message(Look(Lane(A, 0, "bad")))
    answers = WorkQueue("url", partial(Sqs, "bad")).answer(Enqueue((bad, good, bad)))
    assert list(map(type, answers)) == [NotPut, type(None), NotPut]
    for client in (partial(Sqs, down=True), partial(Sqs, silent=True)):
        assert [
            type(answer) for answer in WorkQueue("url", client).answer(Enqueue((good,) * 11))
        ] == [NotPut] * 11
    assert SqsQueue("url", partial(Sqs, down=True)).hide(["a"], [3]) != [None]
    with pytest.raises(NotPut):
        WorkQueue("url", partial(Sqs, down=True), "dlq").answer(DeadLetter("body"))
