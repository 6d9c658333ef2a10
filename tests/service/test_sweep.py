"""The function `sweep`: in each pass every lane of the directory gets a job, whatever becomes of
its runs.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import Keep
from ledger.core import items
from ledger.core.checks import to_ms
from ledger.core.cost import item_bytes
from ledger.core.errors import SettingsMismatch, Unavailable
from ledger.core.limit import Limit, Shape
from ledger.core.requests import GetMany, Item, Key, Put, Query, keyed
from ledger.core.tokens import hold_token
from ledger.core.values import Lane
from ledger.gate import items as gates
from ledger.lane import directory
from service.job_queue import Enqueue
from service.jobs import VERIFY_S, Sweep, Verify
from service.sweep.place import Place, place_item, place_key, place_of
from service.sweep.sweep import GATES_READ, OVERDUE_MS
from tests.service.support import Service, never
from tests.world import A, B

DAY_MS, RUN_MS = 86_400_000, 900_000
LIMITS = {"seats:": Limit(ceiling=100, region=A)}
SEATS = Lane(A, 0, "seats:gig")


def in_bucket(bucket: int, number: int) -> list[Lane]:
    """So many lanes of a bucket."""
    names = (f"c{n}" for n in range(1, 10**6))
    found = (Lane(A, 0, name) for name in names if directory.bucket_of(name) == bucket)
    return sorted((next(found) for _ in range(number)), key=lambda lane: directory.key_of(lane).sk)


def directory_of(
    *lanes: Lane, bucket: int | None = 0, page_size: int = 1_000, **changed: Any
) -> Service:
    """A directory of some lanes, and a pass that began at 0, a day ago: so all of it is due."""
    service = Service(now_ms=DAY_MS, page_size=page_size, **changed)
    service.store(directory.item_of(lane) for lane in lanes)
    if bucket is not None:
        service.store([place_item(A, Place(0, bucket))])
    return service


def swept(service: Service) -> list[Lane]:
    """The lanes that got a job since."""
    sent = service.taken()
    assert sent == [(Sweep(job.lane), 0) for job, _ in sent]
    return [job.lane for job, _ in sent]


def place(service: Service) -> Place:
    return place_of(service.items.get(place_key(A)), service.now_ms)


def test_a_pass_takes_so_many_hours_and_each_run_its_share() -> None:
    lanes = [Lane(A, n % 3, f"counter{n}") for n in range(500)]
    most = max(Counter(directory.bucket_of(lane.counter) for lane in lanes).values())
    for hours in (24, 1):
        service = directory_of(*lanes, bucket=None).start(hours=hours)
        runs = int(hours * 3_600_000) // RUN_MS
        seen: list[Lane] = []
        for run in range(runs + 1):
            assert service.sweep().ended == (run == runs)
            came = swept(service)
            assert len(came) <= (256 // runs + 1) * most
            seen += came
            assert set(seen) == {
                lane for lane in lanes if directory.bucket_of(lane.counter) <= 256 * run // runs
            }
            assert service.counted("SweepLagMs") == 0
            service.now_ms += RUN_MS
        assert (len(seen), service.counted("LanesSwept")) == (len(lanes), len(lanes))


def test_the_next_pass_begins_when_the_day_is_over() -> None:
    first, last = in_bucket(0, 1) + in_bucket(255, 1)
    service = directory_of(first, last)
    service.now_ms = DAY_MS - 1
    assert (service.sweep().ended, swept(service)) == (True, [first, last])
    assert (service.sweep().ended, swept(service)) == (True, [])
    service.now_ms = DAY_MS
    assert (service.sweep().ended, swept(service), place(service)) == (
        False,
        [first],
        Place(DAY_MS, 1),
    )
    # after a long silence a pass begins a day ago at the earliest
    service = directory_of(first, bucket=256)
    service.now_ms = 10 * DAY_MS
    service.sweep()
    assert place(service) == Place(9 * DAY_MS, 256)
    lanes = [lane for bucket in (0, 100, 200) for lane in in_bucket(bucket, 1)]
    service = directory_of(*lanes, bucket=None)
    service.sweep()
    service.now_ms += DAY_MS // 2
    behind_ms = DAY_MS // 2 - DAY_MS // 128
    assert service.sweep(lambda: True).behind_ms == service.counted("SweepLagMs") == behind_ms
    assert (service.sweep().behind_ms, swept(service)) == (0, lanes[:2])


def test_the_place_is_kept_after_each_page_and_its_messages() -> None:
    lanes = in_bucket(255, 3)
    service = directory_of(*lanes, page_size=2, bucket=255)
    service.sweep()
    kept = (Place(0, 255, directory.key_of(lanes[1]).sk), Place(0, 256))
    kinds = [request for request in service.asked if isinstance(request, Query | Enqueue | Put)]
    assert [type(request) for request in kinds] == [Query, Enqueue, Put] * 2
    assert [request.item for request in kinds if isinstance(request, Put)] == [
        place_item(A, each) for each in kept
    ]
    _, second, _ = lanes = in_bucket(0, 3)
    service = directory_of(*lanes, page_size=1)  # no page is begun when time is short
    service.sweep(lambda: place(service).after == directory.key_of(second).sk)
    assert (len(swept(service)), place(service).bucket) == (2, 0)
    service.sweep()
    assert len(swept(service)) == 1


def test_an_unconfirmed_message_fails_the_run_in_its_place() -> None:
    lanes = in_bucket(3, 3)
    service = directory_of(*lanes)
    service.refused.add(lanes[1])
    with pytest.raises(Unavailable):
        service.sweep()
    assert (place(service), service.counted("LanesSwept")) == (Place(0, 3), 0)
    service.refused.clear()
    assert (service.sweep().ended, swept(service)) == (True, [lanes[0], lanes[2], *lanes])
    service = directory_of(*lanes)  # with other settings than the table's it sweeps nothing
    service.store([items.shape_item(Shape((A, B), {"a": 4}))])
    with pytest.raises(SettingsMismatch):
        service.sweep()
    assert (swept(service), place(service)) == ([], Place(0))


UNREADABLE: list[dict[str, Any]] = [
    *(
        {},
        {"began_ms": {"N": "0"}},
        {"bucket": {"N": "3"}},
        {"began_ms": {"S": "0"}, "bucket": {"N": "3"}},
    ),
    *(
        {"began_ms": {"N": began}, "bucket": {"N": "3"}}
        for began in ("-1", "1.5", "1e3", "x", "", "9" * 16)
    ),
    *(
        {"began_ms": {"N": "0"}, "bucket": {"N": bucket}}
        for bucket in ("-1", "1.5", "257", "x", "9" * 16)
    ),
    {"began_ms": {"N": str(DAY_MS + 1)}, "bucket": {"N": "3"}},
]
places = st.builds(
    Place,
    st.integers(0, DAY_MS),
    st.integers(0, 256),
    st.none() | st.text(min_size=1, alphabet="0#aé~"),
)


@given(places)
def test_an_unreadable_place_is_the_beginning(
    place: Place,
) -> None:
    assert place_of(place_item(A, place), DAY_MS) == place
    for said in UNREADABLE:
        assert place_of(keyed(place_key(A), **said), DAY_MS) == Place(DAY_MS)


def test_lanes_that_nobody_reads_are_reported() -> None:
    lanes, unread = in_bucket(7, 2), Lane(A, 1, "a")
    service = directory_of(*lanes, unread, SEATS, Lane(B, 0, "a"), limits=LIMITS)
    pk = directory.bucket_pk(A, 7)
    wrong = [Key(pk, sk) for sk in ("", "x", "01#c1", f"0#{in_bucket(8, 1)[0].counter}", "0#a b")]
    service.store(map(keyed, wrong))
    assert set(service.sweep().damaged) == set(wrong)
    assert set(swept(service)) == {*lanes, unread, SEATS}
    assert service.counted("LanesDamaged", "LanesUnread") == (len(wrong), 1)
    (_, text, fields), (_, _, damaged) = service.lines("error")
    assert (text, fields) == ("lanes that nobody reads", {"unread": 1, "lanes": [str(unread)]})
    assert (damaged["items"], len(damaged["keys"])) == (len(wrong), len(wrong))
    assert not {"HoldsOverdue", "GateBytes"} & set(service.notes.metrics)  # where there is no gate


def test_some_lanes_are_verified_too_by_a_job_of_its_own_later() -> None:
    lane = Lane(A, 0, "a")
    for one_in, draw, verified in (
        (0, 0.0, False),
        (1, 0.999, True),
        (100, 0.0099, True),
        (100, 0.01, False),
    ):
        service = directory_of(lane).start(verify_one_in=one_in, draw=draw)
        assert service.sweep(never).verified == verified
        assert service.taken() == [
            (Sweep(lane), 0),
            *([(Verify(lane), VERIFY_S)] if verified else []),
        ]
        assert (service.lines()[-1][2]["to_verify"], service.lines()[-1][2]["lanes"]) == (
            verified,
            1,
        )


def filed(lane: Lane, n: int, end_ms: int) -> Item:
    """The note of a hold that ends then."""
    return gates.hold_item(lane, hold_token(lane.counter, str(n), end_ms - 1_000, 1_000), 1)


def test_filed_holds_and_gates_that_nobody_asks_are_reported() -> None:
    small = gates.new_gate(Lane(A, 0, "seats:a"), LIMITS["seats:"])
    large = {**gates.new_gate(SEATS, LIMITS["seats:"]), "moved": {"BS": [bytes(4)] * 900}}
    (before,) = in_bucket(directory.bucket_of(SEATS.counter), 1)  # in its page, and without a gate
    service = directory_of(before, SEATS, Lane(A, 0, "seats:a"), Lane(A, 0, "a"), limits=LIMITS)
    ends = [(SEATS, 5_000), (SEATS, DAY_MS - OVERDUE_MS), (SEATS, DAY_MS - OVERDUE_MS + 1)]
    ends += [(Lane(A, 0, "seats:a"), 6_000), (Lane(A, 0, "a"), 7_000)]  # the last has no gate
    service.store(
        [small, large, *(filed(lane, n, end_ms) for n, (lane, end_ms) in enumerate(ends))]
    )
    service.sweep()
    assert service.counted("HoldsOverdue", "GateBytes") == (3, item_bytes(large))
    assert service.lines()[-1][2]["gate_bytes"] == item_bytes(large)
    unasked = [Lane(A, 0, "a"), Lane(A, 5, "seats:a"), Lane(A, 5, "a")]
    service = directory_of(*unasked, SEATS, limits=LIMITS)
    service.store(gates.new_gate(lane, LIMITS["seats:"]) for lane in (*unasked, SEATS))
    assert service.sweep().unread == set(unasked)
    assert service.counted("LanesUnread") == 3
    # so many in one request
    service = directory_of(*(Lane(A, n, "a") for n in range(GATES_READ + 1)))
    service.sweep()
    assert [len(request.keys) for request in service.asked if isinstance(request, GetMany)] == [
        GATES_READ,
        1,
    ]


def test_a_period_kept_no_longer_gets_no_job_and_no_look() -> None:
    kept, retired = Lane(A, 0, "seats:a@2026-11"), Lane(A, 0, "seats:a@2024-11")
    periods = {"seats:": Keep(late=timedelta(days=15), keep=timedelta(days=400))}
    now_ms = to_ms(datetime(2026, 12, 20, tzinfo=UTC))
    for lanes in ([kept, retired], [retired]):
        service = directory_of(*lanes, bucket=None, limits=LIMITS, periods=periods).start(
            verify_one_in=1
        )
        service.store([place_item(A, Place(now_ms - DAY_MS, 0))])
        service.now_ms = now_ms
        assert service.sweep().ended
        assert {job.lane for job, _ in service.taken()} == {*lanes} - {retired}
        read = {
            key.pk
            for request in service.asked
            if isinstance(request, GetMany)
            for key in request.keys
        }
        assert read == {gates.gate_key(lane).pk for lane in lanes if lane != retired}
