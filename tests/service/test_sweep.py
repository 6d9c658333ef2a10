"""The function `sweep`: in each pass every lane of the directory gets a job, whatever becomes of its runs."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import items
from ledger.cost import item_bytes
from ledger.errors import LedgerError, SettingsMismatch, Unavailable
from ledger.gate import items as gates
from ledger.lane import directory
from ledger.limit import Limit, Shape
from ledger.requests import GetMany, Item, Key, Put, Query, keyed
from ledger.tokens import hold_token
from ledger.values import Lane
from service import observe
from service.job_queue import Enqueue
from service.jobs import VERIFY_S, Sweep, Verify
from service.sweep.gates import GATES_READ, OVERDUE_MS
from service.sweep.handler import Sweeper
from service.sweep.sweep import PAGE, Place, Swept, place_item, place_key, place_of
from tests.service.support import Service, never
from tests.world import A, B, Region, settings

DAY_MS, RUN_MS = 86_400_000, 900_000
LIMITS = {"seats:": Limit(ceiling=100, region=A)}
SEATS = Lane(A, 0, "seats:gig")


def in_bucket(bucket: int, number: int) -> list[Lane]:
    """So many lanes of a bucket."""
    names = (f"c{n}" for n in range(1, 10**6))
    found = (Lane(A, 0, name) for name in names if directory.bucket_of(name) == bucket)
    return sorted((next(found) for _ in range(number)), key=lambda lane: directory.key_of(lane).sk)


class Broom(Service):
    """A directory of some lanes, and a pass that began at 0, a day ago: so all of it is due."""

    def __init__(
        self,
        *lanes: Lane,
        page_size: int = 1_000,
        bucket: int | None = 0,
        verify_one_in: int = 0,
        draw: float = 0.0,
        hours: float = 24,
        **changed: Any,
    ) -> None:
        super().__init__(Region(page_size=page_size))
        self.table.now_ms = DAY_MS
        self.table.store(directory.item_of(lane) for lane in lanes)
        if bucket is not None:
            self.table.store([place_item(A, Place(0, bucket))])
        self.sweeper = Sweeper(
            settings(**changed),
            self.runtime,
            self.watch,
            verify_one_in=verify_one_in,
            draw=lambda: draw,
            hours=hours,
        )

    def swept(self, stop: Any = never) -> Swept:
        return self.sweeper(stop)

    def lanes(self) -> list[Lane]:
        """Those that got a job since."""
        sent = self.taken()
        assert {(job, delay) for job, delay in sent} == {(Sweep(job.lane), 0) for job, _ in sent}
        return [job.lane for job, _ in sent]

    def place(self) -> Place:
        return place_of(self.table.items.get(place_key(A)), self.table.now_ms)


MANY = [Lane(A, n % 3, f"counter{n}") for n in range(2_000)]


def test_a_pass_takes_so_many_hours_and_each_run_its_share() -> None:
    most = max(Counter(directory.bucket_of(lane.counter) for lane in MANY).values())
    for hours in (24, 1):
        broom = Broom(*MANY, bucket=None, hours=hours)
        runs = int(hours * 3_600_000) // RUN_MS
        seen: list[Lane] = []
        for run in range(runs + 1):
            assert broom.swept().ended == (run == runs)
            lanes = broom.lanes()
            assert len(lanes) <= (256 // runs + 1) * most
            seen += lanes
            assert set(seen) == {lane for lane in MANY if directory.bucket_of(lane.counter) <= 256 * run // runs}
            assert broom.metrics[observe.SWEEP_LAG_MS] == 0
            broom.table.now_ms += RUN_MS
        assert (len(seen), broom.metrics[observe.LANES_SWEPT]) == (len(MANY), len(MANY))


def test_the_next_pass_begins_when_the_day_is_over_and_not_before() -> None:
    first, last = in_bucket(0, 1) + in_bucket(255, 1)
    broom = Broom(first, last)
    broom.table.now_ms = DAY_MS - 1
    assert (broom.swept().ended, broom.lanes()) == (True, [first, last])
    assert (broom.swept().ended, broom.lanes()) == (True, [])
    broom.table.now_ms = DAY_MS
    assert (broom.swept().ended, broom.lanes(), broom.place()) == (False, [first], Place(DAY_MS, 1))
    broom = Broom(first, bucket=256)  # a pass that ended before a long silence begins a day ago at the earliest
    broom.table.now_ms = 10 * DAY_MS
    broom.swept()
    assert broom.place() == Place(9 * DAY_MS, 256)


def test_a_run_that_comes_too_late_catches_up_and_how_late_it_is_is_published() -> None:
    lanes = [lane for bucket in (0, 100, 200) for lane in in_bucket(bucket, 1)]
    broom = Broom(*lanes, bucket=None)
    broom.swept()
    broom.table.now_ms += DAY_MS // 2
    stopped = broom.swept(stop=lambda: True)
    assert stopped.behind_ms == broom.metrics[observe.SWEEP_LAG_MS] == DAY_MS // 2 - DAY_MS // 128
    assert (broom.swept().behind_ms, broom.lanes()) == (0, lanes[:2])


def test_the_place_is_kept_after_each_page_and_after_its_messages() -> None:
    lanes = in_bucket(255, 3)
    broom, asked = Broom(*lanes, page_size=2, bucket=255), list[Any]()
    broom.before = asked.append
    broom.swept()
    places = (Place(0, 255, directory.key_of(lanes[1]).sk), Place(0, 256))
    pk = directory.bucket_pk(A, 255)
    first, second = Query(pk, None, None, PAGE, False), Query(pk, places[0].after, None, PAGE, False)
    seen = [request for request in asked if isinstance(request, Query | Enqueue | Put)]
    assert [request if not isinstance(request, Enqueue) else len(request.messages) for request in seen] == [
        *(first, 2, Put(place_item(A, places[0]))),
        *(second, 1, Put(place_item(A, places[1]))),
    ]


class Crash(Exception):
    """The process ended."""


@pytest.mark.parametrize("error", [Crash(), Unavailable("away")], ids=repr)
@pytest.mark.parametrize("after", [False, True], ids=["before it is done", "when it is done"])
def test_a_run_that_ends_at_any_request_repeats_a_page_at_most_and_skips_none(error: Exception, after: bool) -> None:
    lanes = [lane for bucket in (250, 255) for lane in in_bucket(bucket, 3)]
    for n in range(1_000):
        broom = Broom(*lanes, page_size=2, bucket=249)
        broom.table.now_ms -= 1
        left = [n]

        def failing(answer: Any, left: list[int] = left) -> Any:
            def answered(request: Any, /) -> Any:
                left[0] -= 1
                if left[0] != -1:
                    return answer(request)
                if after:
                    answer(request)
                if isinstance(request, Enqueue) and isinstance(error, LedgerError):
                    return (error,) * len(request.messages)
                raise error

            return answered

        broom.table.answer, broom.queue.answer = failing(broom.table.answer), failing(broom.queue.answer)  # type: ignore[method-assign]
        try:
            broom.swept()
        except (Crash, Unavailable):
            assert broom.swept().ended
        else:
            assert left[0] >= 0
            break
        seen = Counter(broom.lanes())
        assert set(seen) == set(lanes)
        twice = [lane for lane, times in seen.items() if times > 1]
        assert len(twice) <= 2 and len({directory.bucket_of(lane.counter) for lane in twice}) <= 1  # noqa: PT018
    assert n > 25


def test_a_message_that_the_queue_does_not_confirm_fails_the_run_and_the_place_stays() -> None:
    lanes = in_bucket(3, 3)
    broom = Broom(*lanes)
    broom.queue.refused.add(lanes[1])
    with pytest.raises(Unavailable):
        broom.swept()
    assert (broom.place(), broom.metrics[observe.LANES_SWEPT]) == (Place(0, 3), 0)
    broom.queue.refused.clear()
    assert (broom.swept().ended, broom.lanes()) == (True, [lanes[0], lanes[2], *lanes])


def test_no_page_is_begun_when_time_is_short() -> None:
    broom = Broom(*in_bucket(0, 3), page_size=1)
    broom.swept(stop=lambda: len(broom.queue.sent) == 2)
    assert (len(broom.lanes()), broom.place().bucket) == (2, 0)
    broom.swept()
    assert len(broom.lanes()) == 1


GARBAGE: list[dict[str, Any]] = [
    *({}, {"began_ms": {"N": "0"}}, {"bucket": {"N": "3"}}, {"began_ms": {"S": "0"}, "bucket": {"N": "3"}}),
    *({"began_ms": {"N": began}, "bucket": {"N": "3"}} for began in ("-1", "1.5", "1e3", "x", "", "9" * 16)),
    *({"began_ms": {"N": "0"}, "bucket": {"N": bucket}} for bucket in ("-1", "1.5", "257", "x", "9" * 16)),
    {"began_ms": {"N": str(DAY_MS + 1)}, "bucket": {"N": "3"}},
]
places = st.builds(
    Place, st.integers(0, DAY_MS), st.integers(0, 256), st.none() | st.text(min_size=1, alphabet="0#aé~")
)


@given(places)
def test_a_place_comes_back_and_one_that_nobody_can_read_or_of_the_future_is_the_beginning(place: Place) -> None:
    assert place_of(place_item(A, place), DAY_MS) == place
    for said in GARBAGE:
        assert place_of(keyed(place_key(A), **said), DAY_MS) == Place(DAY_MS)


def test_items_that_name_no_lane_are_reported_by_their_keys_and_other_regions_lanes_are_theirs() -> None:
    lanes = in_bucket(7, 2)
    broom = Broom(*lanes, Lane(B, 0, "a"))
    pk = directory.bucket_pk(A, 7)
    wrong = [Key(pk, sk) for sk in ("", "x", "01#c1", f"0#{in_bucket(8, 1)[0].counter}", "0#a b")]
    broom.table.store(map(keyed, wrong))
    assert set(broom.swept().damaged) == set(wrong)
    assert (broom.lanes(), broom.metrics[observe.LANES_DAMAGED]) == (lanes, len(wrong))
    ((level, _, fields),) = [line for line in broom.notes.lines if line[0] != "info"]
    assert (level, fields["items"], len(fields["keys"])) == ("error", len(wrong), len(wrong))


def test_some_lanes_are_verified_too_by_a_job_of_its_own_later() -> None:
    lane = Lane(A, 0, "a")
    for one_in, draw, verified in ((0, 0.0, False), (1, 0.999, True), (100, 0.0099, True), (100, 0.01, False)):
        broom = Broom(lane, verify_one_in=one_in, draw=draw)
        assert broom.swept().verified == verified
        assert broom.taken() == [(Sweep(lane), 0), *([(Verify(lane), VERIFY_S)] if verified else [])]
        assert (broom.notes.lines[-1][2]["to_verify"], broom.notes.lines[-1][2]["lanes"]) == (verified, 1)


def test_a_lane_that_no_reader_looks_at_is_reported_and_swept_and_one_with_a_limit_is_swept() -> None:
    unread = Lane(A, 1, "a")
    broom = Broom(Lane(A, 0, "a"), unread, SEATS, limits=LIMITS)
    broom.swept()
    assert (len(broom.lanes()), broom.metrics[observe.LANES_UNREAD]) == (3, 1)
    ((_, text, fields),) = [line for line in broom.notes.lines if line[0] == "error"]
    assert (text, fields) == ("lanes that nobody reads", {"unread": 1, "lanes": [str(unread)]})
    assert not {observe.HOLDS_OVERDUE, observe.GATE_BYTES} & set(broom.metrics)  # where there is no gate


def test_a_sweeper_with_other_settings_than_the_tables_sweeps_nothing() -> None:
    broom = Broom(Lane(A, 0, "a"))
    broom.table.store([items.shape_item(Shape((A, B), {"a": 4}))])
    with pytest.raises(SettingsMismatch):
        broom.swept()
    assert (broom.lanes(), broom.place(), broom.metrics[observe.LANES_SWEPT]) == ([], Place(0), 0)


# -- gates -------------------------------------------------------------------------------------------------------------


def filed(lane: Lane, n: int, end_ms: int) -> Item:
    """The note of a hold that ends then."""
    return gates.hold_item(lane, hold_token(lane.counter, str(n), end_ms - 1_000, 1_000), 1)


def test_filed_holds_an_hour_after_their_time_and_the_largest_gate_are_published() -> None:
    small = gates.new_gate(Lane(A, 0, "seats:a"), LIMITS["seats:"])
    large = {**gates.new_gate(SEATS, LIMITS["seats:"]), "moved": {"BS": [bytes(4)] * 900}}
    broom = Broom(SEATS, Lane(A, 0, "seats:a"), Lane(A, 0, "a"), limits=LIMITS)
    ends = [(SEATS, 5_000), (SEATS, DAY_MS - OVERDUE_MS), (SEATS, DAY_MS - OVERDUE_MS + 1)]
    ends += [(Lane(A, 0, "seats:a"), 6_000), (Lane(A, 0, "a"), 7_000)]  # the last has no gate
    broom.table.store([small, large, *(filed(lane, n, end_ms) for n, (lane, end_ms) in enumerate(ends))])
    broom.swept()
    assert broom.metrics[observe.HOLDS_OVERDUE] == 3
    assert broom.metrics[observe.GATE_BYTES] == broom.notes.lines[-1][2]["gate_bytes"] == item_bytes(large)


def test_a_gate_that_nobody_asks_is_reported_once_and_gates_are_asked_for_a_hundred_at_a_time() -> None:
    unasked = [Lane(A, 0, "a"), Lane(A, 5, "seats:a"), Lane(A, 5, "a")]
    broom = Broom(*unasked, SEATS, limits=LIMITS)
    broom.table.store(gates.new_gate(lane, LIMITS["seats:"]) for lane in (*unasked, SEATS))
    assert set(broom.swept().gates.unasked) == set(unasked)
    assert broom.metrics[observe.LANES_UNREAD] == 3
    broom, asked = Broom(*(Lane(A, n, "a") for n in range(GATES_READ + 1))), list[Any]()
    broom.before = asked.append
    broom.swept()
    assert [len(request.keys) for request in asked if isinstance(request, GetMany)] == [GATES_READ, 1]
