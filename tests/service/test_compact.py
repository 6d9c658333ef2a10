"""The worker: what a visit does to its lane's mark, what fails a message, what is told."""

from collections.abc import Callable
from typing import Any

import pytest
from service.compact.visit import CLEAN_AFTER_MS, COMMITS_OF_VISIT, DAMAGED_MS, NOTE_AFTER_MS, next_visit
from service.marks import LEASE_MS, QUIET_MS, Claim, Mark, Touch, key_of

from compactor.outlook import Outlook
from compactor.report import Tally
from ledger import items
from ledger.errors import OutcomeUnknown, SettingsMismatch, Throttled, Unavailable
from ledger.requests import DeleteMany, Get, Put, Query, Request, Transact
from ledger.values import Checkpoint, Delta, Lane, Shape
from service import observe
from service.compact import visit
from service.compact.handler import Worker
from tests.service.support import Service, never, sqs, work
from tests.support import KEEP_MS, LANE, LATENESS_MS, NOW_MS, A, B, Region, delta, settings, token, two_regions, value

NOTHING: dict[str, list[Any]] = {"batchItemFailures": []}
FIRST = {"batchItemFailures": [{"itemIdentifier": "m1"}]}


class Shop(Service):
    """A home Region with another beside it, and a worker."""

    def __init__(self, table: Region | None = None, **changed: Any) -> None:
        home, self.away = two_regions()
        home = table or home
        home.peers, self.away.peers = {A: home, B: self.away}, {A: home, B: self.away}
        super().__init__(home)
        self.worker = Worker(settings(**changed), self.runtime, self.told, self.told)  # type: ignore[arg-type]

    def plan(self, lane: Lane = LANE) -> str:
        """Touch and claim the lane, as if its last delta came a while ago; the message."""
        self.runtime.answer(Touch(lane, self.table.now_ms - QUIET_MS - 1, self.table.now_ms - 7_000))
        self.runtime.answer(Claim(self.mark(lane), self.table.now_ms + LEASE_MS))
        return work(lane, planned=True)

    def visit(self, *bodies: str, stop: Callable[[], bool] = never) -> Any:
        return self.worker(sqs(*bodies), stop)

    def mark(self, lane: Lane = LANE) -> Mark:
        mark = self.marks.mark(lane)
        assert mark is not None
        return mark


def test_a_lane_is_folded_then_noted_then_cleaned_and_then_its_mark_is_gone() -> None:
    shop = Shop()
    shop.table.put(delta(1), delta(2))
    folded_ms = shop.table.now_ms
    assert shop.visit(shop.plan()) == NOTHING
    assert shop.mark() == Mark(LANE, next_ms=folded_ms + NOTE_AFTER_MS, touched_ms=folded_ms - QUIET_MS - 1)
    shop.table.copy_to(shop.away)
    for _ in range(2):
        assert shop.table.items.keys() >= {items.delta_key(delta(1)), items.delta_key(delta(2))}
        shop.table.now_ms = shop.mark().wake_ms
        shop.runtime.answer(Claim(shop.mark(), shop.table.now_ms + LEASE_MS))
        shop.visit(work(LANE, planned=True))
    assert shop.marks.mark(LANE) is None
    assert items.delta_key(delta(1)) not in shop.table.items
    assert value(shop.table) == {1, 2}
    told = shop.told.metrics
    assert (told[observe.DELTAS_FOLDED], told[observe.DELTAS_CLEANED], told[observe.LANES_VISITED]) == (2, 2, 3)
    assert (told[observe.TAIL_DELTAS], told[observe.CLEANS_POSTPONED]) == (2, 0)


def test_a_clean_that_a_region_postpones_is_told_and_tried_again_much_later() -> None:
    shop = Shop()
    shop.table.put(delta(1))
    shop.visit(work(LANE))
    shop.visit(work(LANE))
    assert shop.told.metrics[observe.CLEANS_POSTPONED] == 1
    assert shop.mark().wake_ms == NOW_MS + KEEP_MS + CLEAN_AFTER_MS


def test_a_lane_that_is_folded_at_every_visit_is_cleaned_though_the_other_region_lags() -> None:
    shop = Shop()
    for minute in range(25):
        shop.table.copy_to(shop.away)  # it has what the visit a minute ago committed
        shop.table.now_ms += 60_000
        shop.table.put(delta(minute, at_ms=shop.table.now_ms - LATENESS_MS))
        shop.visit(work(LANE))
    told = shop.told.metrics
    assert (told[observe.DELTAS_FOLDED], told[observe.CLEANS_POSTPONED]) == (25, 0)
    assert told[observe.DELTAS_CLEANED] == 11  # one by the first note, ten more by the second


def test_a_watermark_ahead_of_the_clock_is_told_at_each_visit() -> None:
    shop = Shop()
    shop.table.put(delta(1, at_ms=NOW_MS + 3_600_000))
    shop.table.now_ms += 7_200_000
    shop.visit(work(LANE))
    shop.table.now_ms = NOW_MS
    shop.visit(work(LANE))
    assert shop.told.metrics[observe.WATERMARK_AHEAD_MS] == 3_600_000
    assert shop.told.lines[-1][2]["watermark_ahead_ms"] == 3_600_000


def test_a_throttled_clean_is_told_and_the_lane_is_folded_all_the_same() -> None:
    class Hot(Region):
        def answer(self, request: Request, /) -> Any:
            if isinstance(request, DeleteMany):
                return (Throttled("slow down"),) * len(request.items)
            return super().answer(request)

    shop = Shop(Hot())
    shop.table.put(delta(1))
    for _ in range(3):
        shop.visit(work(LANE))
        shop.table.copy_to(shop.away)
    shop.table.now_ms += KEEP_MS
    shop.table.put(delta(2))
    shop.visit(work(LANE))
    told = shop.told.metrics
    assert (told[observe.DELTAS_FOLDED], told[observe.DELTAS_CLEANED], told[observe.CLEANS_POSTPONED]) == (2, 0, 1)
    assert shop.told.lines[-1][2]["postponed_by"] == ["slow down"]


def test_a_visit_tells_how_long_the_lane_was_due_and_no_amount() -> None:
    shop = Shop()
    shop.table.put(delta(12), delta(13))
    shop.visit(shop.plan())
    assert shop.told.metrics[observe.FOLD_LAG_MS] == 7_000
    assert not [n for n in (4**12, 4**13, 4**12 + 4**13) if str(n) in shop.told.shown("info", "warning", "error")]


def test_a_cold_lane_has_its_mark_removed_at_the_first_visit_unless_it_was_touched_lately() -> None:
    shop = Shop(fold_min=2)
    shop.table.put(delta(1))
    shop.visit(shop.plan())
    assert shop.marks.mark(LANE) is None
    shop.runtime.answer(Touch(LANE, NOW_MS - QUIET_MS, NOW_MS))
    shop.visit(work(LANE))
    assert shop.mark() == Mark(LANE, due_ms=NOW_MS + QUIET_MS, touched_ms=NOW_MS - QUIET_MS)


def test_a_mark_touched_during_the_visit_stays_and_is_due_soon() -> None:
    class Busy(Region):
        """A delta comes, and is marked, when the visit has looked at what is left."""

        shop: Shop

        def answer(self, request: Any, /) -> Any:
            answer = super().answer(request)
            if request == Query(items.delta_pk(LANE), None, None, 2):
                self.put(delta(9, at_ms=self.now_ms))
                self.shop.runtime.answer(Touch(LANE, self.now_ms, self.now_ms + LATENESS_MS))
            return answer

    table = Busy()
    shop = table.shop = Shop(table, fold_min=2)
    message = shop.plan()
    shop.visit(message)
    assert shop.mark() == Mark(LANE, due_ms=NOW_MS + QUIET_MS, touched_ms=NOW_MS)


def test_a_lane_with_a_young_tail_is_visited_when_it_may_be_folded() -> None:
    shop = Shop(fold_min=2)
    shop.table.put(delta(1, at_ms=NOW_MS - 5_000), delta(2, at_ms=NOW_MS - 4_000), delta(3, at_ms=NOW_MS))
    shop.visit(shop.plan())
    assert shop.mark().wake_ms == NOW_MS - 4_000 + LATENESS_MS


def test_a_huge_backlog_takes_turns_with_other_lanes() -> None:
    shop = Shop(fold_max=1)
    other = Lane(A, 0, "other")
    shop.table.put(*map(delta, range(COMMITS_OF_VISIT + 3)), delta(1, other))
    bodies = shop.plan(), shop.plan(other)
    shop.visit(*bodies)
    assert shop.told.metrics[observe.DELTAS_FOLDED] == COMMITS_OF_VISIT + 1
    assert shop.mark().wake_ms == NOW_MS
    assert shop.mark(other).wake_ms > NOW_MS
    shop.visit(work(LANE))
    assert value(shop.table) == set(range(COMMITS_OF_VISIT + 3))
    assert shop.mark().wake_ms > NOW_MS


def test_a_visit_stops_between_two_requests_when_time_is_short_and_keeps_what_it_committed() -> None:
    shop = Shop(fold_max=1)
    shop.table.put(*map(delta, range(6)))

    def commits() -> int:
        return sum(isinstance(request, Transact) for request in shop.table.asked)

    assert shop.visit(shop.plan(), stop=lambda: commits() >= 2) == NOTHING
    assert (commits(), shop.told.metrics[observe.DELTAS_FOLDED]) == (2, 2)
    assert shop.mark().wake_ms <= NOW_MS
    assert shop.mark().held_ms is None
    assert value(shop.table) == set(range(6))


def test_a_lane_that_time_does_not_reach_is_due_at_once_and_its_message_is_done_with() -> None:
    shop = Shop()
    shop.table.put(delta(1))
    assert shop.visit(shop.plan(), stop=lambda: True) == NOTHING
    assert shop.mark().is_due(NOW_MS)
    assert shop.told.metrics[observe.DELTAS_FOLDED] == 0


def test_a_second_message_for_the_same_claim_does_nothing_and_one_by_hand_needs_no_mark() -> None:
    shop = Shop()
    shop.table.put(delta(1))
    message = shop.plan()
    shop.visit(message)
    shop.table.asked.clear()
    assert shop.visit(message) == NOTHING
    assert shop.table.asked == [Get(key_of(LANE))]
    assert shop.told.metrics[observe.LANES_VISITED] == 1
    by_hand = Shop()
    by_hand.table.put(delta(1))
    by_hand.visit(work(LANE))
    assert value(by_hand.table) == {1}
    assert by_hand.mark().wake_ms == NOW_MS + NOTE_AFTER_MS


class Contended(Region):
    """Another compactor always wins; or the transaction fails."""

    raises: Exception | None = None
    wins = True

    def answer(self, request: Any, /) -> Any:
        if isinstance(request, Transact):
            self.asked.append(request)
            if self.raises:
                raise self.raises
            return False if self.wins else super().answer(request)
        return super().answer(request)


def test_a_visit_that_gave_up_is_a_success_and_the_lane_is_due_again() -> None:
    shop = Shop(Contended())
    shop.table.put(delta(1))
    assert shop.visit(shop.plan()) == NOTHING
    assert shop.told.metrics[observe.LANES_GAVE_UP] == 1
    assert shop.mark().is_due(NOW_MS)


@pytest.mark.parametrize("error", [Throttled("a"), Unavailable("b"), OutcomeUnknown("c")])
def test_a_failure_of_the_table_fails_the_message_and_leaves_the_mark_to_the_lease(error: Exception) -> None:
    table = Contended()
    table.raises = error
    shop = Shop(table)
    shop.table.put(delta(1))
    message = shop.plan()
    before = shop.mark()
    assert shop.visit(message, work(Lane(A, 0, "other"))) == FIRST
    assert shop.mark() == before
    table.raises, table.wins = None, False
    assert shop.visit(message) == NOTHING
    assert value(shop.table) == {1}


def test_a_damaged_lane_fails_its_message_every_time_and_is_left_alone_for_a_while() -> None:
    shop = Shop()
    checkpoint = Checkpoint(LANE, 1, 1, token(5), 1, token(5), 0)  # its segment is missing, since long
    shop.table.store([items.checkpoint_item(checkpoint)])
    message = shop.plan()
    for receives in (1, 2, 3):
        assert shop.visit(message) == FIRST
        assert shop.told.metrics[observe.LANES_DAMAGED] == receives
    shop.runtime.answer(Touch(LANE, NOW_MS, NOW_MS))
    assert not shop.mark().is_due(NOW_MS + DAMAGED_MS - 1)
    assert shop.mark().is_due(NOW_MS + DAMAGED_MS)


def test_a_damaged_delta_is_told_by_its_key_and_without_its_amount() -> None:
    shop = Shop()
    shop.table.store([{"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": token(1)}, "change": {"N": "271828.5"}}])
    assert shop.visit(shop.plan())["batchItemFailures"]
    assert token(1) in shop.told.shown("error")
    assert "271828" not in shop.told.shown("info", "warning", "error")


@pytest.mark.parametrize("body", ["", "not JSON", "{}", work(Lane(B, 0, "x")), "[1]"])
def test_a_message_that_nobody_can_read_fails_alone(body: str) -> None:
    shop = Shop()
    shop.table.put(delta(1))
    assert shop.visit(body, work(LANE)) == FIRST
    assert value(shop.table) == {1}
    assert len(shop.visit(body, body)["batchItemFailures"]) == 2


def test_a_defect_fails_the_message_and_is_told() -> None:
    class Broken(Region):
        def answer(self, request: Any, /) -> Any:
            if isinstance(request, Query):
                raise ZeroDivisionError
            return super().answer(request)

    shop = Shop(Broken())
    assert shop.visit(work(LANE))["batchItemFailures"]
    assert "ZeroDivisionError" in shop.told.shown("error")


def test_deltas_listed_with_another_change_are_told_and_their_lane_is_not_visited_without_end() -> None:
    shop = Shop()
    shop.table.put(delta(1))
    shop.visit(work(LANE))
    shop.table.copy_to(shop.away)
    shop.visit(work(LANE))
    shop.table.store([items.delta_item(Delta(LANE, token(1), 5))])
    shop.table.now_ms += KEEP_MS + CLEAN_AFTER_MS
    shop.visit(work(LANE))
    assert shop.told.metrics[observe.DELTAS_CONFLICTING] == 1
    assert shop.mark().wake_ms == shop.table.now_ms + KEEP_MS + CLEAN_AFTER_MS


def test_verify_tells_the_differences_and_writes_nothing() -> None:
    shop = Shop()
    shop.table.put(delta(1))
    shop.visit(work(LANE))
    item = dict(shop.table.items[items.checkpoint_key(LANE)])
    assert shop.visit(work(LANE, verify=True), stop=lambda: True) == NOTHING
    assert observe.VERIFY_DIFFERENCES not in shop.told.metrics, "that is left to another pass"
    assert shop.visit(work(LANE, verify=True)) == NOTHING
    assert shop.told.metrics[observe.VERIFY_DIFFERENCES] == 0
    shop.table.store([item | {"total": {"N": "31415"}, "count": {"N": "31415"}}])
    before = dict(shop.table.items)
    assert shop.visit(work(LANE, verify=True)) == NOTHING
    assert shop.told.metrics[observe.VERIFY_DIFFERENCES] == 2
    assert "31415" not in shop.told.shown("info", "warning", "error")
    assert "31415" in shop.told.shown("debug")
    assert shop.table.items == before
    assert not [request for request in shop.table.asked if isinstance(request, Put)]


SOON, KEPT, DONE = NOW_MS + 1, KEEP_MS + CLEAN_AFTER_MS, Tally()


@pytest.mark.parametrize(
    ("found", "tally", "clean", "expected"),
    [
        (Outlook(), DONE, True, None),
        (Outlook(tail=31), DONE, True, None),
        (Outlook(), Tally(unsettled=True), True, NOW_MS),
        (Outlook(32, SOON), DONE, True, SOON),
        (Outlook(32, NOW_MS - 5), DONE, True, NOW_MS),
        (Outlook(below=True), DONE, True, NOW_MS + NOTE_AFTER_MS),
        (Outlook(below=True), DONE, False, None),
        (Outlook(below=True, noted_ms=NOW_MS - 9), DONE, True, NOW_MS - 9 + KEPT),
        (Outlook(below=True, noted_ms=NOW_MS - KEPT), DONE, True, NOW_MS + KEPT),
        (Outlook(below=True, noted_ms=NOW_MS + 10**10), DONE, True, NOW_MS + KEPT),
        (Outlook(32, SOON, True), DONE, True, SOON),
        (Outlook(32, NOW_MS + 2 * KEPT, True, NOW_MS), DONE, True, NOW_MS + KEPT),
        (Outlook(below=True, noted_ms=NOW_MS - 2 * KEPT), Tally(uncleaned=True), True, NOW_MS + visit.CLEAN_AGAIN_MS),
    ],
)
def test_the_next_visit_is_when_there_is_something_to_do(
    found: Outlook, tally: Tally, clean: bool, expected: int | None
) -> None:
    assert next_visit(found, tally, settings(clean=clean), NOW_MS) == expected


def test_a_visit_to_a_lane_that_nobody_reads_is_told_each_time() -> None:
    shop = Shop()
    unread = Lane(A, 3, LANE.counter)
    shop.table.put(delta(1), delta(2, unread))
    shop.visit(work(LANE), work(unread), work(unread))
    assert shop.told.metrics[observe.LANES_UNREAD] == 2
    assert [extra for level, _, extra in shop.told.lines if level == "error"] == [{"lane": str(unread)}] * 2


def test_a_worker_with_other_settings_than_the_tables_visits_nothing() -> None:
    shop = Shop()
    shop.table.store([items.shape_item(Shape((A, B), {"stock:": 4}))])
    shop.table.put(delta(1))
    before = dict(shop.table.items)
    with pytest.raises(SettingsMismatch):
        shop.worker.work(work(LANE), never)
    assert shop.table.items == before
    assert "SettingsMismatch" in shop.told.shown("error")
