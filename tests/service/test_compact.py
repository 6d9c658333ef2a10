"""The function `compact`: what becomes of a batch of the work queue, job by job, and what is reported of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from compactor.named import Named
from ledger import items
from ledger.errors import GaveUp, LedgerError, NotAllowed, OutcomeUnknown, Throttled, Unavailable
from ledger.limit import Limit, Shape
from ledger.requests import DeleteMany, Get, GetMany, Now, Put, Query, Request, Transact
from ledger.values import Checkpoint, Delta, Lane, Segment
from service import observe
from service.compact.handler import Worker
from service.compact.serve import COMMITS_OF_VISIT
from service.compact.visits import AHEAD_BACK_MS, FORGOTTEN_MS, FORGOTTEN_TAILS, SWEEP_BACK_MS
from service.job_queue import Enqueue
from service.jobs import VERIFY_S, Evaluate, Job, Look, Settle, Sweep, Verify
from service.messages import message_of
from tests.calls import passed
from tests.service.support import NOTHING, Service, failed, never, sqs
from tests.world import KEEP_MS, LANE, LATENESS_MS, NOW_MS, A, B, Region, delta, settings, token, two_regions, value

OTHER = Lane(A, 0, "other")


class Shop(Service):
    """A home Region with another beside it, and a worker."""

    def __init__(self, table: Region | None = None, **changed: Any) -> None:
        home, self.away = two_regions()
        home = table or home
        home.peers, self.away.peers = {A: home, B: self.away}, {A: home, B: self.away}
        super().__init__(home)
        self.worker = Worker(settings(**changed), self.runtime, self.watch)

    def visit(self, *jobs: str | Job, stop: Callable[[], bool] = never) -> Any:
        return self.worker(sqs(*(job if isinstance(job, str) else message_of(job) for job in jobs)), stop)

    def drain(self) -> None:
        """Serve what was sent, in its time, and what that sends, until nothing is."""
        for _ in range(20):
            sent = self.taken()
            if not sent:
                return
            self.table.now_ms += 1_000 * max(delay_s for _, delay_s in sent)
            assert self.visit(*(job for job, _ in sent)) == NOTHING
        raise AssertionError(f"messages without end: {self.queue.sent}")

    def folded(self, *numbers: int) -> "Shop":
        """With these deltas folded, and nothing noted of it."""
        self.table.put(*map(delta, numbers))
        self.visit(Look(LANE))
        assert self.taken() == []
        self.table.asked.clear()
        self.metrics.clear()
        self.notes.lines.clear()
        return self

    def reads(self) -> list[Request]:
        return [request for request in self.table.asked if not isinstance(request, Now)]

    def commits(self) -> int:
        return sum(isinstance(request, Transact) for request in self.table.asked)


def late(*numbers: int) -> Named:
    return Named.of(map(token, numbers))


# -- look --------------------------------------------------------------------------------------------------------------


def test_a_look_costs_one_get_and_one_query_both_eventually_consistent() -> None:
    shop = Shop(fold_min=3)
    shop.visit(Look(OTHER))  # asks for the table's shape, once
    shop.table.put(delta(1), delta(2))
    shop.table.asked.clear()
    assert shop.visit(Look(LANE), Look(LANE)) == NOTHING  # two messages, one job
    assert shop.reads() == [Get(items.checkpoint_key(LANE), False), Query(items.delta_pk(LANE), None, None, 3, False)]
    assert (shop.taken(), shop.metrics[observe.LANES_VISITED], shop.metrics[observe.LANES_LOOKED]) == ([], 0, 2)
    assert shop.notes.shown("info", "warning", "error") == "[]"
    shop.table.put(delta(3))
    shop.visit(Look(LANE))
    shop.table.asked.clear()
    shop.visit(Look(LANE))  # what was folded waits below the watermark, and is not asked for
    after = items.tail_after(token(3))
    assert shop.reads() == [Get(items.checkpoint_key(LANE), False), Query(items.delta_pk(LANE), after, None, 3, False)]


def test_a_look_passes_through_few_functions() -> None:
    shop = Shop(fold_min=3).folded(1, 2, 3)
    shop.table.put(delta(4), delta(5))
    shop.visit(Look(LANE))
    found = passed(lambda: shop.visit(Look(LANE)), below="service/compact/serve.py:serve")
    assert len(found.functions) <= 35, found.functions
    assert found.depth <= 11


def test_what_can_be_folded_is_folded_and_the_next_visits_note_and_clean_it() -> None:
    shop = Shop().folded(1, 2)
    shop.table.copy_to(shop.away)
    for n, wait_ms in ((3, 0), (4, KEEP_MS)):
        shop.table.now_ms += wait_ms
        shop.table.put(delta(n))
        shop.visit(Look(LANE))
        shop.table.copy_to(shop.away)
    numbers = shop.metrics
    assert (numbers[observe.DELTAS_FOLDED], numbers[observe.DELTAS_CLEANED], numbers[observe.LANES_VISITED]) == (2,) * 3
    assert (value(shop.table), shop.taken(), numbers[observe.TAIL_DELTAS]) == ({1, 2, 3, 4}, [], 2)


def test_a_tail_that_is_not_old_enough_is_left_to_the_message_that_waits_for_it() -> None:
    shop = Shop(fold_min=2)
    shop.table.put(delta(1), delta(2, at_ms=NOW_MS - LATENESS_MS + 1), delta(3, at_ms=2 * 10**9))
    assert shop.visit(Look(LANE, tries=7)) == NOTHING
    assert (shop.taken(), shop.commits()) == ([], 0)
    shop.table.now_ms += 1
    shop.visit(Look(LANE))
    assert shop.metrics[observe.DELTAS_FOLDED] == 2


def busy(shop: Shop, first: int) -> None:
    """Five more changes, a millisecond apart."""
    shop.table.put(*(delta(n, at_ms=1_000 + n) for n in range(first, first + 5)))


def test_the_visits_of_a_busy_lane_follow_each_other_and_of_two_chains_one_ends() -> None:
    shop = Shop().folded(1)
    for version in (2, 3):
        busy(shop, 5 * version - 8)
        shop.visit(Look(LANE, follows=version - 1))
        assert shop.taken() == [(Look(LANE, follows=version), 10)]
    busy(shop, 12)
    shop.table.asked.clear()
    shop.visit(Look(LANE, follows=2))  # somebody committed version 3 since
    assert (shop.taken(), shop.commits(), shop.notes.lines[-1][2]["outcome"]) == ([], 0, "ended")
    shop.visit(Look(LANE))  # a ring folds in any case
    assert shop.taken() == [(Look(LANE, follows=4), 10)]
    shop.visit(Look(LANE, follows=4))  # nothing came: the next change rings
    shop.table.put(delta(17, at_ms=60_000))
    shop.visit(Look(LANE, follows=4))  # less than 100 a second
    assert (shop.taken(), value(shop.table)) == ([], set(range(1, 18)))


class Deleting(Region):
    """Deletes are throttled, or take so long."""

    delete_ms: int | None = None

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, DeleteMany):
            if self.delete_ms is None:
                return (Throttled("slow down"),) * len(request.items)
            self.steady_ms += self.delete_ms
        return super().answer(request)


def test_a_busy_lane_is_visited_at_once_where_a_clean_has_more_to_delete_and_not_where_it_failed() -> None:
    shop = Shop(table := Deleting(page_size=1)).folded(1)
    shop.table.copy_to(shop.away)
    shop.table.put(delta(2, at_ms=1_300))
    shop.visit(Look(LANE))
    shop.table.now_ms += KEEP_MS
    shop.table.put(*(delta(n, at_ms=1_300 + n) for n in range(4, 14)))
    shop.visit(Look(LANE))
    assert (shop.metrics[observe.DELTAS_CLEANED], shop.metrics[observe.CLEANS_POSTPONED]) == (0, 1)
    assert shop.notes.lines[-1][2]["postponed_by"] == ["slow down"]
    assert shop.taken() == [(Look(LANE, follows=3), LATENESS_MS // 1_000)]
    table.delete_ms = 60_001
    shop.table.copy_to(shop.away)
    shop.table.put(*(delta(n, at_ms=1_300 + n) for n in range(14, 24)))
    shop.visit(Look(LANE))
    assert (shop.metrics[observe.DELTAS_CLEANED], shop.taken()[0][1]) == (1, 0)


def test_a_huge_backlog_takes_turns_with_other_lanes() -> None:
    shop = Shop(fold_max=1)
    backlog = range(COMMITS_OF_VISIT + 3)
    shop.table.put(*map(delta, backlog), delta(1, OTHER))
    shop.visit(Look(LANE), Look(OTHER))
    assert (shop.metrics[observe.DELTAS_FOLDED], shop.taken()) == (COMMITS_OF_VISIT + 1, [(Look(LANE), 0)])
    shop.visit(Look(LANE))
    assert (value(shop.table), shop.taken()) == (set(backlog), [])


def test_below_a_watermark_that_is_ahead_changes_that_come_in_time_are_settled_by_the_next_ring() -> None:
    shop, ahead_ms = Shop(clean=False), 3_600_000
    start_ms = NOW_MS + ahead_ms - LATENESS_MS
    shop.table.now_ms += ahead_ms
    shop.table.put(delta(1, at_ms=start_ms))
    shop.visit(Look(LANE))  # by a machine whose clock is ahead, as the producer's was
    shop.table.now_ms -= ahead_ms
    for n in range(2, 4):
        shop.metrics.clear()
        shop.table.put(delta(n, at_ms=shop.table.now_ms))
        shop.table.now_ms += 60_000
        shop.visit(Look(LANE))
        assert value(shop.table) == set(range(1, n + 1))
        assert shop.metrics[observe.STRAYS_SETTLED] == 1
        ahead = shop.metrics[observe.WATERMARK_AHEAD_MS], shop.notes.lines[-1][2]["watermark_ahead_ms"]
        assert ahead == (start_ms - shop.table.now_ms,) * 2


# -- settle ------------------------------------------------------------------------------------------------------------


def test_what_is_named_below_the_watermark_is_settled_and_what_is_above_is_named_again_once() -> None:
    shop = Shop().folded(2)
    shop.table.put(delta(1), delta(5), delta(6))
    shop.visit(Settle(LANE, late(1, 5, 6)))
    assert not [r for r in shop.reads() if isinstance(r, Query) and r.pk == items.delta_pk(LANE)]
    assert (shop.metrics[observe.STRAYS_SETTLED], shop.metrics[observe.LANES_VISITED]) == (1, 0)
    assert shop.taken() == [(Settle(LANE, late(5, 6), again=True), 300)]
    shop.visit(Settle(LANE, late(5, 6), again=True))
    assert shop.taken() == []  # still in the tail: every fold that is under way sees them
    assert value(shop.table) == {1, 2, 5, 6}


def test_more_strays_than_a_visit_settles_are_named_anew_at_once() -> None:
    shop = Shop(fold_max=1).folded(27)
    shop.table.put(*map(delta, range(1, 25)), delta(28))
    for again in (False, True):
        job = Settle(LANE, late(*range(1, 25), 28), again=again, tries=3)
        shop.visit(job)
        assert shop.taken() == ([(replace(job, tries=0), 0)] if not again else [])
        shop.visit(job)
        assert shop.taken() == ([(Settle(LANE, late(28), again=True), 300)] if not again else [])
    assert value(shop.table) == {*range(1, 25), 27, 28}


# -- sweep -------------------------------------------------------------------------------------------------------------


def test_a_sweep_settles_every_stray_and_reports_that_it_was_forgotten() -> None:
    shop = Shop(fold_min=3).folded(2, 4, 6)
    shop.table.put(delta(1), delta(9))
    shop.visit(Look(LANE))
    assert value(shop.table) == {2, 4, 6, 9}
    for _ in range(2):
        shop.visit(Sweep(LANE))
        assert value(shop.table) == {1, 2, 4, 6, 9}
        assert (shop.metrics[observe.LANES_FORGOTTEN], shop.metrics[observe.STRAYS_SETTLED]) == (1, 1)


def test_a_sweep_cleans_a_quiet_lane_and_then_only_looks() -> None:
    shop = Shop().folded(1)
    shop.table.copy_to(shop.away)
    for _ in range(3):
        shop.visit(Sweep(LANE))
        shop.table.now_ms += KEEP_MS
    numbers = shop.metrics
    assert (numbers[observe.DELTAS_CLEANED], numbers[observe.LANES_VISITED], numbers[observe.LANES_LOOKED]) == (1, 2, 1)
    assert (numbers[observe.LANES_FORGOTTEN], shop.taken()) == (0, [])


def test_a_long_and_old_tail_was_forgotten() -> None:
    long, old = FORGOTTEN_TAILS, FORGOTTEN_MS
    for deltas, ago_ms, forgotten in ((long, old, 1), (long - 1, old, 0), (long, old - 1, 0)):
        for job in (Look(LANE), Sweep(LANE)):
            shop = Shop()
            shop.table.put(*(delta(n, at_ms=NOW_MS - LATENESS_MS - ago_ms) for n in range(deltas)))
            shop.visit(job)
            assert shop.metrics[observe.DELTAS_FOLDED] == deltas
            assert shop.metrics[observe.LANES_FORGOTTEN] == (forgotten if isinstance(job, Sweep) else 0)


def test_a_sweep_visits_a_lane_that_was_never_folded_so_one_that_lost_its_checkpoint_is_found() -> None:
    shop = Shop(fold_min=2)
    shop.table.put(delta(1))
    shop.visit(Sweep(LANE))
    assert shop.metrics[observe.LANES_VISITED] == 1
    shop.table.store([items.segment_item(Segment.of(LANE, token(2), 2, [delta(2)]))])
    for job, damaged in ((Look(LANE), 0), (Sweep(LANE), 1)):
        shop.visit(job)
        assert shop.metrics[observe.LANES_DAMAGED] == damaged


def test_where_nothing_is_cleaned_a_visit_looks_back_so_far_and_no_further() -> None:
    for clean, settled in ((True, 2), (False, 1)):
        shop = Shop(clean=clean)
        now_ms = shop.table.now_ms = 10 * 86_400_000
        assert (SWEEP_BACK_MS, AHEAD_BACK_MS) == (7 * 86_400_000, 3_600_000)
        shop.table.put(delta(2, at_ms=now_ms - LATENESS_MS))
        shop.visit(Look(LANE))
        shop.table.put(delta(0, at_ms=now_ms - SWEEP_BACK_MS), delta(1, at_ms=now_ms - SWEEP_BACK_MS + 1))
        shop.visit(Sweep(LANE))
        assert shop.metrics[observe.STRAYS_SETTLED] == settled
        shop.table.now_ms = NOW_MS  # a clock of 1970 looks at everything
        shop.visit(Sweep(LANE))
        assert shop.metrics[observe.STRAYS_SETTLED] == 2
        shop = Shop(clean=clean)
        shop.table.now_ms = now_ms
        shop.table.put(delta(9, at_ms=now_ms - LATENESS_MS))
        shop.visit(Look(LANE))
        now_ms = shop.table.now_ms = now_ms - LATENESS_MS  # so that the watermark is ahead
        shop.table.put(delta(1, at_ms=now_ms - AHEAD_BACK_MS), delta(2, at_ms=now_ms - AHEAD_BACK_MS + 1))
        shop.visit(Look(LANE))
        assert value(shop.table) == ({1, 2, 9} if clean else {2, 9})


def test_more_strays_than_a_sweep_settles_get_another_sweep() -> None:
    for page_size, since in ((1_000, None), (1, 19), (3, 17)):
        shop = Shop(Region(page_size=page_size), fold_max=1).folded(28)
        shop.table.put(*map(delta, range(COMMITS_OF_VISIT + 1)))
        shop.visit(Sweep(LANE))
        ((rest, delay_s),) = shop.taken()
        assert (rest, delay_s) == (Sweep(LANE, since=None if since is None else token(since)), 0)
        shop.visit(rest)
        assert (shop.taken(), value(shop.table)) == ([], {*range(COMMITS_OF_VISIT + 1), 28})


# -- verify ------------------------------------------------------------------------------------------------------------


def test_verify_reports_the_differences_without_their_amounts_and_writes_nothing() -> None:
    shop = Shop().folded(1)
    assert shop.visit(Verify(LANE)) == NOTHING
    assert shop.metrics[observe.VERIFY_DIFFERENCES] == 0
    shop.table.alter(items.checkpoint_key(LANE), total={"N": "31415"}, count={"N": "31415"})
    before = dict(shop.table.items)
    shop.visit(Verify(LANE))
    assert shop.metrics[observe.VERIFY_DIFFERENCES] == 2
    assert [fields["differences"] for level, _, fields in shop.notes.lines if level == "error"] == [2]
    assert "31415" not in shop.notes.shown("info", "warning", "error")
    assert "31415" in shop.notes.shown("debug")
    assert shop.table.items == before


def test_a_verify_that_meets_a_landing_commit_is_left_to_another_pass_and_one_beside_others_is_put_off() -> None:
    shop = Shop().folded(1)
    shop.visit(Verify(LANE), Look(LANE), Verify(OTHER))
    assert shop.taken() == [(Verify(LANE), VERIFY_S)]
    shop.metrics.clear()
    shop.table.drop(items.segment_key(LANE, token(1), 1))
    assert shop.visit(Verify(LANE)) == NOTHING
    assert observe.VERIFY_DIFFERENCES not in shop.metrics
    assert (shop.taken(), shop.metrics[observe.LANES_GAVE_UP]) == ([], 1)


# -- failures ----------------------------------------------------------------------------------------------------------


class Contended(Region):
    """Transactions fail with this; None: another compactor always wins."""

    raises: LedgerError | None = None
    well = False

    def answer(self, request: Any, /) -> Any:
        if self.well or not isinstance(request, Transact):
            return super().answer(request)
        self.asked.append(request)
        if self.raises:
            raise self.raises
        return ({}, None)


def test_no_failure_of_the_table_fails_a_message_its_job_is_sent_again_later_and_later() -> None:
    errors: list[LedgerError | None] = [Throttled("a"), Unavailable("b"), OutcomeUnknown("c"), NotAllowed("d"), None]
    for error in errors:
        table = Contended()
        table.raises = error
        shop = Shop(table)
        shop.table.put(delta(1))
        job: Job = Sweep(LANE)
        waits = []
        for tries in range(1, 8):
            assert shop.visit(job) == NOTHING
            ((job, delay_s),) = shop.taken()
            assert job == Sweep(LANE, tries=tries)
            waits.append(delay_s)
        assert waits == [30, 60, 120, 240, 480, 900, 900]
        ends = [shop.metrics[name] for name in (observe.LANES_FAILED, observe.LANES_GAVE_UP)]
        assert ends == ([7, 0] if error else [0, 7])
        level, _, fields = shop.notes.lines[-1]
        assert (level, fields["error"]) == ("error" if error else "warning", type(error or GaveUp("")).__name__)
        assert (fields["tries"], fields["again"], fields["outcome"]) == (6, 1, "failed" if error else "gave up")
        for follows in (None, 3):  # of a lane that gives up the next ring, or the sweep, stands for a look
            shop.visit(Look(LANE, follows=follows, tries=4))
            assert shop.taken() == [(Look(LANE, follows=follows, tries=5), 480)]
            shop.visit(Look(LANE, follows=follows, tries=5))
            assert shop.taken() == ([(Look(LANE, follows=follows, tries=6), 900)] if error else [])
        table.well = True
        shop.visit(job)
        assert value(shop.table) == {1}


def damaged_lane(shop: Shop, lane: Lane = LANE) -> None:
    """Its last segment is missing, since long."""
    shop.table.store([items.checkpoint_item(Checkpoint(lane, 1, 1, token(5), 1, token(5), 0))])
    shop.table.put(delta(6, lane))


def test_a_job_that_meets_damage_waits_in_the_dlq_for_a_person() -> None:
    shop = Shop()
    damaged_lane(shop)
    for job in (Settle(LANE, late(6), tries=3), Look(LANE), Sweep(LANE)):
        assert shop.visit(job) == NOTHING
        assert (shop.queue.dead.pop(), shop.taken()) == (message_of(job), [])
    assert (shop.metrics[observe.LANES_DAMAGED], shop.metrics[observe.LANES_FAILED]) == (3, 0)


def test_a_damaged_item_is_reported_by_its_key_and_without_its_amount() -> None:
    shop = Shop()
    shop.table.store([{"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": token(1)}, "change": {"N": "271828.5"}}])
    shop.visit(Look(LANE))
    assert f"pk='delta#{LANE}', sk='{token(1)}'" in shop.notes.lines[-1][2]["reason"]
    assert "271828" not in shop.notes.shown("info", "warning", "error")


def test_what_was_above_the_watermark_is_named_again_though_the_settle_then_meets_damage() -> None:
    shop = Shop().folded(2)
    shop.table.put(delta(5))
    shop.table.store([{"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": token(1)}, "change": {"N": "0.5"}}])
    shop.visit(Settle(LANE, late(1, 5)))
    assert shop.taken() == [(Settle(LANE, late(5), again=True), 300)]
    assert shop.queue.dead == [message_of(Settle(LANE, late(1)))]


def test_a_message_whose_rest_could_not_be_sent_stays_on_the_queue() -> None:
    shop = Shop(Contended())
    shop.queue.refused.add(LANE)
    shop.table.put(delta(1))
    assert shop.visit(Look(LANE), Look(OTHER), Look(LANE)) == failed("m1", "m3")
    assert (shop.metrics[observe.LANES_FAILED], shop.notes.lines[0][0]) == (1, "warning")
    shop = Shop()
    shop.queue.down = True
    damaged_lane(shop)
    assert shop.visit(Look(LANE)) == failed("m1")
    assert (shop.metrics[observe.LANES_DAMAGED], shop.metrics[observe.LANES_FAILED]) == (1, 1)


def test_a_failure_or_a_defect_in_one_job_stops_no_other() -> None:
    shop = Shop()
    lanes = [Lane(A, 0, f"lane{n}") for n in range(5)]
    damaged_lane(shop, lanes[1])
    for n in (0, 2, 3, 4):
        shop.table.put(delta(1, lanes[n]))

    def before(request: Any) -> None:
        if isinstance(request, Transact) and "lane2" in request.writes[0].key.pk:
            raise Throttled("slow")
        if isinstance(request, Query) and "lane3" in request.pk:
            raise ZeroDivisionError

    shop.before = before
    assert shop.visit(*map(Look, lanes)) == failed("m4")
    assert [items.checkpoint_key(lane) in shop.table.items for lane in lanes] == [True, True, False, False, True]
    assert shop.taken() == [(Look(lanes[2], tries=1), 30)]
    assert "ZeroDivisionError" in shop.notes.shown("error")
    assert shop.visit(Look(lanes[3]), Evaluate(lanes[3])) == failed("m1")  # of one lane, too


def test_a_message_that_nobody_can_read_is_put_on_the_dlq_as_it_is() -> None:
    shop = Shop()
    shop.table.put(delta(1))
    assert shop.visit("[1]", Look(LANE)) == NOTHING
    assert (shop.queue.dead, shop.metrics[observe.WORK_INVALID]) == (["[1]"], 1)
    assert value(shop.table) == {1}
    assert "A work message is JSON with a job and a lane" in shop.notes.shown("error")
    shop.queue.down = True
    assert shop.visit(Look(LANE), "x", "x") == failed("m2", "m3")


def test_a_worker_with_other_settings_than_the_tables_visits_nothing_and_sends_everything_again() -> None:
    shop = Shop()
    shop.table.store([items.shape_item(Shape((A, B), {"stock:": 4}))])
    shop.table.put(delta(1), delta(1, OTHER))
    before = dict(shop.table.items)
    assert shop.visit(Settle(LANE, late(1)), Sweep(OTHER)) == NOTHING
    assert shop.table.items == before
    assert shop.taken() == [(Settle(LANE, late(1), tries=1), 30), (Sweep(OTHER, tries=1), 30)]
    assert "SettingsMismatch" in shop.notes.shown("error")
    assert shop.reads() == [Get(items.SHAPE_KEY)]


def test_the_queue_is_asked_once_by_a_job_that_leaves_something() -> None:
    shop, asked = Shop(Contended()), []
    shop.table.put(delta(1), delta(1, OTHER))
    shop.before = lambda request: asked.append(request) if isinstance(request, Enqueue) else None
    shop.visit(Look(LANE), Look(OTHER), Look(Lane(A, 0, "quiet")))
    assert [[message.job.lane for message in request.messages] for request in asked] == [[LANE], [OTHER]]


# -- stopped anywhere --------------------------------------------------------------------------------------------------


def everything_to_do(page_size: int = 1_000) -> tuple[Shop, list[Job]]:
    """A lane with something to clean, to fold, to settle by name and to sweep; and the jobs for all of it."""
    shop = Shop(Region(page_size=page_size), regions=(A,)).folded(2, 4)
    shop.table.put(delta(6))
    shop.visit(Look(LANE))
    shop.table.now_ms += KEEP_MS
    shop.table.put(*map(delta, (0, 1, 3, 5, 8, 9)), delta(10, at_ms=shop.table.now_ms))
    shop.table.asked.clear()
    shop.metrics.clear()
    assert shop.taken() == []
    return shop, [Settle(LANE, late(1, 2, 8, 10)), Settle(LANE, late(3), again=True), Sweep(LANE)]


EVERYTHING = {0, 1, 2, 3, 4, 5, 6, 8, 9, 10}


def test_jobs_stopped_before_any_request_go_on_at_once_behind_what_was_done() -> None:
    for page_size in (1, 1_000):
        shop, jobs = everything_to_do(page_size)
        shop.visit(*jobs)
        number, left = len(shop.reads()), set[int]()
        assert {Transact, DeleteMany, GetMany, Put} <= set(map(type, shop.reads()))
        assert value(shop.table) == EVERYTHING
        for n in range(number):
            shop, jobs = everything_to_do(page_size)
            assert shop.visit(*jobs, stop=lambda n=n, shop=shop: len(shop.reads()) >= n) == NOTHING  # type: ignore[misc]
            rest, delay_s = shop.queue.sent[-1]
            assert (type(rest), rest.tries, delay_s) == (Sweep, 1, 0), n
            left.add(sum(len(job.named.keys) for job, _ in shop.queue.sent if isinstance(job, Settle)))
            level, _, fields = shop.notes.lines[-1]
            assert (level, fields["outcome"], fields["dropped"]) == ("warning", "stopped", False)
            assert shop.metrics[observe.STOPPED_TRIES] >= 1
            shop.drain()
            assert value(shop.table) == EVERYTHING
        assert len(left) > 1


# -- what is reported --------------------------------------------------------------------------------------------------


def test_deltas_listed_with_another_change_are_reported() -> None:
    shop = Shop().folded(1)
    shop.table.copy_to(shop.away)
    shop.visit(Sweep(LANE))
    shop.table.store([items.delta_item(Delta(LANE, token(1), 5))])
    shop.table.now_ms += KEEP_MS
    shop.visit(Sweep(LANE))
    assert shop.metrics[observe.DELTAS_CONFLICTING] == 1
    assert shop.notes.lines[-1][2]["conflicts"] == [token(1)]


def test_a_lane_that_nobody_reads_is_reported_with_each_job_that_finds_something_there() -> None:
    shop = Shop(limits={"seats:": Limit(ceiling=9, region=A)})
    gate, sold, unread = Lane(A, 0, "seats:gig"), Lane(A, 0, "seats:sold"), Lane(A, 3, LANE.counter)
    shop.table.put(delta(1), delta(2, unread), delta(1, sold))
    shop.visit(Look(LANE), Look(unread), Sweep(gate), Verify(gate), Sweep(sold))
    assert shop.metrics[observe.LANES_UNREAD] == 2
    shop.visit(Settle(sold, late(1)))  # what is named was there
    errors = [fields for level, _, fields in shop.notes.lines if level == "error"]
    assert errors == [{"lane": str(unread)}, {"lane": str(sold)}, {"lane": str(sold)}]
    assert shop.metrics[observe.LANES_UNREAD] == 3
    shop.visit(Sweep(sold), stop=lambda: True)  # nobody looked
    assert shop.metrics[observe.LANES_UNREAD] == 3


def test_no_line_above_debug_holds_an_amount() -> None:
    shop = Shop().folded(12)
    shop.table.put(delta(13), delta(11), delta(14, Lane(A, 3, LANE.counter)))
    shop.visit(Sweep(LANE), Settle(LANE, late(11)), Look(Lane(A, 3, LANE.counter)), Verify(OTHER))
    shown = shop.notes.shown("info", "warning", "error")
    assert shop.metrics[observe.DELTAS_FOLDED] == 2
    assert not [n for n in range(1, 2**4) if str(sum(4 ** (11 + k) for k in range(4) if n >> k & 1)) in shown]
