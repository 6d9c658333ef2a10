"""The backstop: it finds what has no mark, page by page, and picks lanes to verify."""

from typing import Any

import pytest

from ledger import items
from ledger.errors import SettingsMismatch, Unavailable
from ledger.gate import items as gates
from ledger.gate.hold_tokens import hold_token
from ledger.limit import Limit
from ledger.requests import GetMany, Key, Scan
from ledger.units import item_bytes
from ledger.values import Lane, Segment, Shape
from service import observe
from service.find.gates_seen import GATES_READ, OVERDUE_MS
from service.find.handler import Finder
from service.find.scan import GRACE_MS, PAGES_OF_RUN, Findings, cursor_item, cursor_key, cursor_of
from service.marks import Mark, Touch, key_of
from service.work import Work
from tests.service.support import Service, never
from tests.support import LANE, LATENESS_MS, NOW_MS, A, B, Region, compactor, delta, settings, token, two_regions

OLD_MS = NOW_MS - LATENESS_MS - GRACE_MS


def finder(service: Service, *, verify_one_in: int = 0, draw: float = 0.0, **changed: Any) -> Finder:
    return Finder(
        settings(**{"fold_min": 3, **changed}),
        service.runtime,
        service.told,  # type: ignore[arg-type]
        service.told,
        verify_one_in=verify_one_in,
        draw=lambda: draw,
    )


def whole_pass(service: Service, **given: Any) -> list[Lane]:
    """The lanes that are found from where the cursor stands to the end of the table."""
    found: list[Lane] = []
    for _ in range(100):
        findings = finder(service, **given)(never)
        found += findings.forgotten
        if findings.ended:
            return found
    raise AssertionError("the pass does not end")


def lane(name: str, region: str = A) -> Lane:
    return Lane(region, 0, name)


@pytest.mark.parametrize("page_size", [1, 2, 3, 4, 5, 7, 1_000])
def test_a_pass_finds_the_lanes_in_need_that_have_no_mark_and_no_others(page_size: int) -> None:
    home, away = two_regions(page_size=page_size)
    service = Service(home)
    names = ("long", "short", "marked", "young", "stray", "waits", "done")
    long, short, marked, young, stray, waits, done = map(lane, names)
    theirs = lane("theirs", B)
    for each in (stray, waits, done):
        home.put(delta(5, each))
        compactor(home, away, clean=False).compact(each.counter)
    home.drop(items.delta_key(delta(5, stray)), items.delta_key(delta(5, done)))
    home.put(delta(1, stray))
    home.put(*(delta(n, each) for n in (1, 2, 3) for each in (long, marked, theirs)))
    home.put(delta(1, short), delta(2, short))
    home.put(*(delta(n, young, OLD_MS + 1) for n in (1, 2, 3)))
    service.runtime.answer(Touch(marked, 1, 1))
    assert sorted(whole_pass(service)) == sorted([long, stray, waits])
    assert service.marks.mark(long) == Mark(long, due_ms=home.now_ms)
    assert service.told.metrics[observe.LANES_FORGOTTEN] == 3
    assert whole_pass(service) == []
    home.now_ms += 1
    assert whole_pass(service) == [young]


def test_a_mark_that_nobody_can_read_is_as_good_as_lost() -> None:
    service = Service(Region())
    service.table.put(*map(delta, (1, 2, 3)))
    key = key_of(LANE)
    service.table.store([{"pk": {"S": key.pk}, "sk": {"S": key.sk}, "due_ms": {"S": "soon"}}])
    assert whole_pass(service) == [LANE]
    assert service.marks.mark(LANE) == Mark(LANE, due_ms=NOW_MS)


@pytest.mark.parametrize("wrong", [Key(items.delta_pk(LANE), "no token"), items.checkpoint_key(LANE)])
@pytest.mark.parametrize("page_size", [1, 1_000])
def test_a_damaged_lane_is_found_so_that_a_visit_can_say_so(wrong: Key, page_size: int) -> None:
    service = Service(Region(page_size=page_size))
    service.table.put(delta(1), delta(1, lane("aaa")), delta(1, lane("zzz")))
    service.table.store([{"pk": {"S": wrong.pk}, "sk": {"S": wrong.sk}}])
    assert whole_pass(service) == [LANE]


@pytest.mark.parametrize("page_size", [1, 2, 3, 1_000])
@pytest.mark.parametrize("cold", [True, False])
def test_a_lane_that_lost_its_checkpoint_is_found_once_a_pass_unless_it_has_a_mark(page_size: int, cold: bool) -> None:
    home, away = two_regions(page_size=page_size)
    service = Service(home)
    for each in (lost := lane("lost"), lane("whole"), theirs := lane("theirs", B)):
        home.put(delta(1, each), delta(2, each))
        compactor(*((home, away) if each.region == A else (home, home)), fold_max=1, clean=False).run()
        home.drop(items.delta_key(delta(1, each)), *([items.delta_key(delta(2, each))] if cold else []))
    home.store([items.segment_item(Segment.of(theirs, token(2), 1, []))])
    home.drop(items.checkpoint_key(lost))
    assert [each for each in whole_pass(service) if each != lane("whole")] == [lost]
    assert service.marks.mark(lost) == Mark(lost, due_ms=home.now_ms)
    assert lost not in whole_pass(service)


def test_a_lane_that_lost_its_checkpoint_is_drawn_to_be_verified_too() -> None:
    service = folded()
    service.table.drop(items.checkpoint_key(lane("b")))
    whole_pass(service, verify_one_in=1)
    assert lane("b") in [work.lane for work in service.queue.sent]


def test_a_run_reads_some_pages_and_the_next_goes_on() -> None:
    service = Service(Region(page_size=1))
    service.table.put(*(delta(1, lane(f"c{n:02}")) for n in range(PAGES_OF_RUN + 5)))
    first = finder(service)(never)
    assert (first.pages, first.ended) == (PAGES_OF_RUN, False)
    second = finder(service)(never)
    assert second.ended
    scans = [request.after for request in service.table.asked if isinstance(request, Scan)]
    assert len(scans) == len(set(scans)) == first.pages + second.pages
    assert finder(service)(never).pages == PAGES_OF_RUN  # from the beginning again


def test_a_run_that_crashed_repeats_a_page_at_most() -> None:
    class Fails(Region):
        left = 3

        def answer(self, request: Any, /) -> Any:
            if isinstance(request, Scan):
                self.left -= 1
                if self.left == 0:
                    raise Unavailable("down")
            return super().answer(request)

    service = Service(Fails(page_size=1))
    service.table.put(*(delta(1, lane(f"c{n}")) for n in range(5)))
    with pytest.raises(Unavailable):
        finder(service)(never)
    assert cursor_of(service.table.items[cursor_key(A)]) == items.delta_key(delta(1, lane("c1")))
    assert finder(service)(never).pages == 5 - 2 + 1  # the three that were left, and the cursor's own


def test_no_page_is_begun_when_time_is_up() -> None:
    service = Service(Region())
    assert finder(service)(lambda: True) == Findings()
    assert not [request for request in service.table.asked if isinstance(request, Scan)]


def test_an_empty_table_is_a_pass() -> None:
    assert whole_pass(Service(Region())) == []


@pytest.mark.parametrize("after", [None, Key("a", "b")])
def test_the_cursor_comes_back(after: Key | None) -> None:
    assert cursor_of(cursor_item(A, after)) == after


@pytest.mark.parametrize("item", [None, {}, {"after_pk": {"S": "a"}}, {"after_pk": {"N": "1"}, "after_sk": {"S": "b"}}])
def test_a_cursor_that_nobody_can_read_is_the_beginning(item: Any) -> None:
    assert cursor_of(item) is None


def test_the_cursor_is_in_no_bucket_of_marks() -> None:
    assert items.lane_of(cursor_key(A).pk) is None
    service = Service(Region())
    whole_pass(service)
    assert service.table.items.keys() == {cursor_key(A)}


def folded(page_size: int = 1_000) -> Service:
    home, away = two_regions(page_size=page_size)
    for name in ("a", "b", "c"):
        home.put(delta(1, lane(name)), delta(2, lane(name)))
        compactor(home, away, fold_max=1).compact(name)
    home.put(delta(1, lane("x", B)))
    home.store([{"pk": {"S": items.fold_pk(lane("x", B))}, "sk": {"S": "checkpoint"}}])
    return Service(home)


@pytest.mark.parametrize("page_size", [1, 2, 1_000])
def test_a_lane_is_drawn_once_a_pass_to_be_verified(page_size: int) -> None:
    service = folded(page_size)
    whole_pass(service, verify_one_in=10, draw=0.0999)
    assert sorted(work.lane for work in service.queue.sent) == [lane("a"), lane("b"), lane("c")]
    assert {work.verify for work in service.queue.sent} == {True}


@pytest.mark.parametrize(("one_in", "draw"), [(10, 0.1), (0, 0.0)])
def test_a_lane_that_is_not_drawn_is_not_verified(one_in: int, draw: float) -> None:
    service = folded()
    whole_pass(service, verify_one_in=one_in, draw=draw)
    assert service.queue.sent == []


def test_a_queue_that_refuses_does_not_end_a_pass() -> None:
    service = folded()
    service.queue.refused = {lane("b")}
    findings = finder(service, verify_one_in=1)(never)
    assert (findings.picked, findings.unsent, findings.ended) == (2, 1, True)
    assert Work(lane("b"), verify=True) not in service.queue.sent
    assert token(1)


@pytest.mark.parametrize("page_size", [1, 2, 1_000])
def test_lanes_that_nobody_reads_are_told_wherever_their_region_is(page_size: int) -> None:
    service = Service(Region(page_size=page_size))
    unread = [Lane("ap-south-1", 0, "a"), Lane(A, 3, "b"), Lane(B, 1, "b")]
    service.table.put(*(delta(n, each) for each in unread for n in (1, 2)))
    service.table.put(delta(1), delta(1, Lane(A, 3, "c")), delta(1, lane("d", B)))
    findings = finder(service, shards={"c": 4})(never)
    assert findings.unread == set(unread)
    assert service.told.metrics[observe.LANES_UNREAD] == 3
    (line,) = [extra for level, _, extra in service.told.lines if level == "error"]
    assert line == {"unread": 3, "lanes": [str(each) for each in sorted(unread)]}


def test_a_pass_over_lanes_that_are_read_says_so() -> None:
    service = Service(Region())
    service.table.put(delta(1))
    finder(service)(never)
    assert service.told.metrics[observe.LANES_UNREAD] == 0
    assert service.told.shown("error") == "[]"


LIMITS = {"seats:": Limit(ceiling=100, region=A)}
SEATS = Lane(A, 0, "seats:gig")


@pytest.mark.parametrize("page_size", [1, 2, 1_000])
def test_filed_holds_an_hour_after_their_time_and_the_largest_gate_are_told(page_size: int) -> None:
    home = Region(page_size=page_size)
    home.now_ms += 2 * OVERDUE_MS
    service, small = Service(home), gates.new_gate(lane("seats:a"), LIMITS["seats:"])
    large = {**gates.new_gate(SEATS, LIMITS["seats:"]), "moved": {"BS": [bytes(4)] * 900}}
    since = home.now_ms - OVERDUE_MS
    ends = [(SEATS, since - 1), (SEATS, since), (SEATS, since + 1), (Lane(B, 0, "seats:gig"), since - 1)]
    tokens = [hold_token("seats:gig", str(n), end_ms - 1_000, 1_000) for n, (_, end_ms) in enumerate(ends)]
    home.store([small, large])
    home.store([gates.hold_item(each, token, 1) for (each, _), token in zip(ends, tokens, strict=True)])
    whole_pass(service, limits=LIMITS)
    assert service.told.metrics[observe.HOLDS_OVERDUE] == 2
    assert service.told.metrics[observe.GATE_BYTES] == item_bytes(large) > item_bytes(small)
    assert service.told.shown("error") == "[]"


def test_gates_that_nobody_asks_are_told_as_lanes_that_nobody_reads() -> None:
    service = Service(Region())
    unasked = [Lane("ap-south-1", 0, "seats:gig"), Lane(A, 1, "seats:gig"), Lane(A, 0, "other")]
    service.table.store([gates.new_gate(each, LIMITS["seats:"]) for each in (*unasked, SEATS)])
    service.table.store([{"pk": {"S": "gate#nonsense"}, "sk": {"S": "gate"}}])
    assert finder(service, limits=LIMITS)(never).gates.unasked == set(unasked)
    assert service.told.metrics[observe.LANES_UNREAD] == 3
    assert str(unasked[0]) in service.told.shown("error")


def test_of_many_gates_some_are_read_in_each_run_and_others_in_the_next() -> None:
    service = Service(Region())
    lanes = [Lane(A, 0, f"seats:{n:03}") for n in range(GATES_READ + 1)]
    service.table.store([gates.new_gate(each, LIMITS["seats:"]) for each in lanes])
    read = list[list[Key]]()
    for _ in range(2):
        service.table.asked.clear()
        finder(service, limits=LIMITS)(never)
        read.append([key for each in service.table.asked if isinstance(each, GetMany) for key in each.keys])
        service.table.now_ms += 1_000
    assert max(map(len, read)) <= GATES_READ
    assert sorted([*read[0], *read[1]]) == [gates.gate_key(each) for each in lanes]


def test_where_nothing_has_a_limit_no_metric_is_of_limits() -> None:
    service = Service(Region())
    service.table.put(delta(1))
    finder(service)(never)
    assert not {observe.HOLDS_OVERDUE, observe.GATE_BYTES} & service.told.metrics.keys()


def test_a_search_under_other_settings_than_the_tables_does_nothing() -> None:
    service = Service(Region())
    service.table.store([items.shape_item(Shape((A, B), {"stock:": 4}))])
    service.table.put(*map(delta, (1, 2, 3)))
    before = dict(service.table.items)
    with pytest.raises(SettingsMismatch):
        finder(service)(never)
    assert service.table.items == before
    assert finder(service, shards={"stock:": 4})(never).forgotten == [LANE]
