"""The function `sweep`: in each pass every lane of the directory gets a message, whatever becomes of its runs."""

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
from service.sweep.gates import GATES_READ, OVERDUE_MS
from service.sweep.handler import Sweeper
from service.sweep.sweep import PAGE, Place, Swept, place_item, place_key, place_of
from service.work import VERIFY_S, Send, Work
from tests.service.support import Service, never
from tests.support import A, B, Region, settings

DAY_MS, RUN_MS = 86_400_000, 900_000
LIMITS = {"seats:": Limit(ceiling=100, region=A)}
SEATS = Lane(A, 0, "seats:gig")


def in_bucket(bucket: int, number: int) -> list[Lane]:
    """So many lanes of a bucket."""
    found: list[Lane] = []
    n = 0
    while len(found) < number:
        n += 1
        if directory.bucket_of(f"c{n}") == bucket:
            found.append(Lane(A, 0, f"c{n}"))
    return sorted(found, key=lambda lane: directory.key_of(lane).sk)


class Broom(Service):
    """A directory of some lanes, and a pass that began at 0, a day ago: so all of it is due."""

    def __init__(self, *lanes: Lane, page_size: int = 1_000, bucket: int | None = 0, **given: Any) -> None:
        super().__init__(Region(page_size=page_size))
        self.table.now_ms = DAY_MS
        self.table.store(directory.item_of(lane) for lane in lanes)
        if bucket is not None:
            self.table.store([place_item(A, Place(0, bucket))])
        self.sweeper = self.another(**given)

    def another(self, *, verify_one_in: int = 0, draw: float = 0.0, **changed: Any) -> Sweeper:
        return Sweeper(
            settings(**changed),
            self.runtime,
            self.told,  # type: ignore[arg-type]
            self.told,
            verify_one_in=verify_one_in,
            draw=lambda: draw,
        )

    def swept(self, stop: Any = never) -> Swept:
        return self.sweeper(stop)

    def lanes(self) -> list[Lane]:
        """Those that got a message since."""
        sent, self.queue.sent = self.queue.sent, []
        assert {(work, delay) for work, delay in sent} == {(Work(work.lane, sweep=True), 0) for work, _ in sent}
        return [work.lane for work, _ in sent]

    def place(self) -> Place:
        return place_of(self.table.items.get(place_key(A)), self.table.now_ms)


MANY = [Lane(A, n % 3, f"counter{n}") for n in range(2_000)]


def test_a_pass_takes_a_day_and_each_run_its_share() -> None:
    broom = Broom(*MANY, bucket=None)
    most = max(Counter(directory.bucket_of(lane.counter) for lane in MANY).values())
    seen: list[Lane] = []
    for run in range(DAY_MS // RUN_MS + 1):
        assert broom.swept().ended == (run == DAY_MS // RUN_MS)
        lanes = broom.lanes()
        assert len(lanes) <= 3 * most  # 256 buckets in 96 runs
        seen += lanes
        assert set(seen) == {lane for lane in MANY if directory.bucket_of(lane.counter) <= 256 * run // 96}
        assert broom.told.metrics[observe.SWEEP_LAG_MS] == 0
        broom.table.now_ms += RUN_MS
    assert len(seen) == len(MANY)
    assert broom.told.metrics[observe.LANES_SWEPT] == len(MANY)


def test_the_next_pass_begins_when_the_day_is_over_and_not_before() -> None:
    first, last = in_bucket(0, 1) + in_bucket(255, 1)
    broom = Broom(first, last)
    broom.table.now_ms = DAY_MS - 1
    assert broom.swept().ended
    assert broom.lanes() == [first, last]
    assert broom.swept().ended
    assert broom.lanes() == []
    broom.table.now_ms = DAY_MS
    assert not broom.swept().ended
    assert (broom.lanes(), broom.place()) == ([first], Place(DAY_MS, 1))


def test_a_run_that_comes_too_late_catches_up_and_what_is_left_is_told() -> None:
    lanes = [lane for bucket in (0, 100, 200) for lane in in_bucket(bucket, 1)]
    broom = Broom(*lanes, bucket=None)
    broom.swept()
    broom.table.now_ms += DAY_MS // 2
    stopped = broom.swept(stop=lambda: True)
    assert stopped.behind_ms == DAY_MS // 2 - DAY_MS // 128
    assert broom.told.metrics[observe.SWEEP_LAG_MS] == stopped.behind_ms
    assert broom.swept().behind_ms == 0
    assert broom.lanes() == lanes[:2]


@pytest.mark.parametrize("hours", [1, 0.25, 48])
def test_a_pass_takes_so_many_hours(hours: float) -> None:
    broom = Broom(*MANY, bucket=None)
    broom.sweeper = Sweeper(
        settings(),
        broom.runtime,
        broom.told,  # type: ignore[arg-type]
        broom.told,
        verify_one_in=0,
        draw=lambda: 0.0,
        hours=hours,
    )
    broom.swept()
    broom.table.now_ms += int(hours * 3_600_000) // 2
    broom.swept()
    assert broom.place().bucket == 129


def test_the_place_is_kept_after_each_page_and_after_its_messages() -> None:
    lanes = in_bucket(255, 3)
    broom, asked = Broom(*lanes, page_size=2, bucket=255), list[Any]()
    broom.before = asked.append
    broom.swept()
    places = (Place(0, 255, directory.key_of(lanes[1]).sk), Place(0, 256))
    pk = directory.bucket_pk(A, 255)
    first, second = Query(pk, None, None, PAGE, False), Query(pk, places[0].after, None, PAGE, False)
    seen = [request for request in asked if isinstance(request, Query | Send | Put)]
    assert [request if not isinstance(request, Send) else len(request.messages) for request in seen] == [
        *(first, 2, Put(place_item(A, places[0]))),
        *(second, 1, Put(place_item(A, places[1]))),
    ]


class Crash(Exception):
    """The process ended."""


@pytest.mark.parametrize("error", [Crash(), Unavailable("away")], ids=repr)
@pytest.mark.parametrize("after", [False, True], ids=["before it is done", "when it is done"])
def test_a_run_that_ends_at_any_request_repeats_a_page_at_most_and_skips_none(error: Exception, after: bool) -> None:
    lanes = [lane for bucket in (250, 253, 255) for lane in in_bucket(bucket, 3)]
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
                if isinstance(request, Send) and isinstance(error, LedgerError):
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
    assert n > 30


def test_a_message_that_the_queue_does_not_confirm_fails_the_run_and_the_place_stays() -> None:
    lanes = in_bucket(3, 3)
    broom = Broom(*lanes)
    broom.queue.refused.add(lanes[1])
    with pytest.raises(Unavailable):
        broom.swept()
    assert broom.place() == Place(0, 3)
    assert (broom.told.metrics[observe.LANES_SWEPT], broom.lanes()) == (0, [lanes[0], lanes[2]])
    broom.queue.refused.clear()
    assert broom.swept().ended
    assert broom.lanes() == lanes


def test_no_page_is_begun_when_time_is_short() -> None:
    broom = Broom(*in_bucket(0, 3), page_size=1)
    broom.swept(stop=lambda: len(broom.queue.sent) == 2)
    assert len(broom.lanes()) == 2
    broom.swept(stop=lambda: True)
    assert (broom.lanes(), broom.place().bucket) == ([], 0)
    broom.swept()
    assert len(broom.lanes()) == 1


GARBAGE: list[dict[str, Any]] = [
    *({}, {"began_ms": {"N": "0"}}, {"bucket": {"N": "3"}}, {"began_ms": {"S": "0"}, "bucket": {"N": "3"}}),
    *({"began_ms": {"N": began}, "bucket": {"N": "3"}} for began in ("-1", "1.5", "1e3", "x", "", "9" * 16)),
    *({"began_ms": {"N": "0"}, "bucket": {"N": bucket}} for bucket in ("-1", "1.5", "257", "x", "9" * 16)),
    {"began_ms": {"N": str(DAY_MS + 1)}, "bucket": {"N": "3"}},
]


@pytest.mark.parametrize("said", GARBAGE, ids=repr)
def test_a_place_that_nobody_can_read_or_of_the_future_is_the_beginning(said: dict[str, Any]) -> None:
    first = in_bucket(0, 1)
    broom = Broom(*first, *in_bucket(1, 1), bucket=None)
    broom.table.store([keyed(place_key(A), **said)])
    broom.swept()
    assert (broom.lanes(), broom.place()) == (first, Place(DAY_MS, 1))


places = st.builds(
    Place, st.integers(0, DAY_MS), st.integers(0, 256), st.none() | st.text(min_size=1, alphabet="0#aé~")
)


@given(places)
def test_a_place_comes_back(place: Place) -> None:
    assert place_of(place_item(A, place), DAY_MS) == place


@given(
    st.dictionaries(st.sampled_from(["began_ms", "bucket", "after"]), st.dictionaries(st.sampled_from("NS"), st.text()))
)
def test_whatever_stands_there_is_a_place(said: Any) -> None:
    place = place_of(keyed(place_key(A), **said), DAY_MS)
    assert 0 <= place.began_ms <= DAY_MS
    assert 0 <= place.bucket <= 256


def test_items_that_name_no_lane_are_passed_by_and_told_by_their_keys() -> None:
    lanes = in_bucket(7, 2)
    broom = Broom(*lanes)
    pk = directory.bucket_pk(A, 7)
    wrong = [Key(pk, sk) for sk in ("", "x", "01#c1", f"0#{in_bucket(8, 1)[0].counter}", "0#a b")]
    broom.table.store(map(keyed, wrong))
    assert set(broom.swept().damaged) == set(wrong)
    assert broom.lanes() == lanes
    assert broom.told.metrics[observe.LANES_DAMAGED] == len(wrong)
    ((level, _, told),) = [line for line in broom.told.lines if line[0] != "info"]
    assert (level, told["items"], len(told["keys"])) == ("error", len(wrong), len(wrong))


def test_lanes_of_another_region_are_its_own_sweeps() -> None:
    broom = Broom(Lane(B, 0, "a"), Lane(A, 0, "a"))
    broom.swept()
    assert broom.lanes() == [Lane(A, 0, "a")]


@pytest.mark.parametrize(
    ("one_in", "draw", "verified"), [(0, 0.0, False), (1, 0.999, True), (100, 0.0099, True), (100, 0.01, False)]
)
def test_some_lanes_are_to_be_verified_too(one_in: int, draw: float, verified: bool) -> None:
    lane = Lane(A, 0, "a")
    broom = Broom(lane, verify_one_in=one_in, draw=draw)
    assert broom.swept().verified == verified
    verify = (Work(lane, fold=False, verify=True), VERIFY_S)  # a message of its own
    assert broom.queue.sent == [(Work(lane, sweep=True), 0), *([verify] if verified else [])]


def test_a_lane_that_no_reader_looks_at_is_told_and_swept_and_one_with_a_limit_is_swept() -> None:
    unread = Lane(A, 1, "a")
    broom = Broom(Lane(A, 0, "a"), unread, SEATS, limits=LIMITS)
    broom.swept()
    assert len(broom.lanes()) == 3
    assert broom.told.metrics[observe.LANES_UNREAD] == 1
    ((_, text, told),) = [line for line in broom.told.lines if line[0] == "error"]
    assert (text, told) == ("lanes that nobody reads", {"unread": 1, "lanes": [str(unread)]})


def test_a_sweeper_with_other_settings_than_the_tables_sweeps_nothing() -> None:
    broom = Broom(Lane(A, 0, "a"))
    broom.table.store([items.shape_item(Shape((A, B), {"a": 4}))])
    with pytest.raises(SettingsMismatch):
        broom.swept()
    assert (broom.lanes(), broom.place()) == ([], Place(0))
    assert broom.told.metrics[observe.LANES_SWEPT] == 0


# -- gates -------------------------------------------------------------------------------------------------------------


def filed(lane: Lane, n: int, end_ms: int) -> Item:
    """The note of a hold that ends then."""
    return gates.hold_item(lane, hold_token(lane.counter, str(n), end_ms - 1_000, 1_000), 1)


def test_filed_holds_an_hour_after_their_time_and_the_largest_gate_are_told() -> None:
    small = gates.new_gate(Lane(A, 0, "seats:a"), LIMITS["seats:"])
    large = {**gates.new_gate(SEATS, LIMITS["seats:"]), "moved": {"BS": [bytes(4)] * 900}}
    broom = Broom(SEATS, Lane(A, 0, "seats:a"), Lane(A, 0, "a"), limits=LIMITS)
    ends = [(SEATS, 5_000), (SEATS, DAY_MS - OVERDUE_MS), (SEATS, DAY_MS - OVERDUE_MS + 1)]
    ends += [(Lane(A, 0, "seats:a"), 6_000), (Lane(A, 0, "a"), 7_000)]  # the last has no gate
    broom.table.store([small, large, *(filed(lane, n, end_ms) for n, (lane, end_ms) in enumerate(ends))])
    broom.swept()
    assert broom.told.metrics[observe.HOLDS_OVERDUE] == 3
    assert broom.told.metrics[observe.GATE_BYTES] == item_bytes(large)
    assert broom.told.lines[-1][2]["gate_bytes"] == item_bytes(large)


def test_where_nothing_has_a_limit_no_metric_says_so() -> None:
    broom = Broom(Lane(A, 0, "a"))
    broom.swept()
    assert not {observe.HOLDS_OVERDUE, observe.GATE_BYTES} & set(broom.told.metrics)


def test_a_gate_that_nobody_asks_is_told_once() -> None:
    unasked = [Lane(A, 0, "a"), Lane(A, 5, "seats:a"), Lane(A, 5, "a")]
    broom = Broom(*unasked, SEATS, limits=LIMITS)
    broom.table.store(gates.new_gate(lane, LIMITS["seats:"]) for lane in (*unasked, SEATS))
    assert set(broom.swept().gates.unasked) == set(unasked)
    assert broom.told.metrics[observe.LANES_UNREAD] == 3


def test_gates_are_asked_for_a_hundred_at_a_time() -> None:
    broom, asked = Broom(*(Lane(A, n, "a") for n in range(GATES_READ + 1))), list[Any]()
    broom.before = asked.append
    broom.swept()
    assert [len(request.keys) for request in asked if isinstance(request, GetMany)] == [GATES_READ, 1]
