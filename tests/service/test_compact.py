"""The function `compact`: what becomes of a batch of the work queue, job by job, and what is
reported of it.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from ledger import Keep
from ledger.core import items
from ledger.core.checks import to_ms
from ledger.core.errors import (
    GaveUp,
    LaneDamaged,
    NotAllowed,
    OutcomeUnknown,
    Throttled,
    Unavailable,
)
from ledger.core.limit import Limit, Shape
from ledger.core.requests import DeleteMany, Get, Query, Transact
from ledger.core.values import Checkpoint, Delta, Lane, Segment
from ledger.lane.named import Named
from service.compact.result import Done
from service.compact.serve import COMMITS_OF_VISIT, by_lane
from service.compact.visits import AHEAD_BACK_MS, SWEEP_BACK_MS
from service.job_queue import Enqueue
from service.jobs import VERIFY_S, Evaluate, Job, Look, Settle, Sweep, Verify
from service.messages import message_of
from tests.calls import passed
from tests.service.support import NOTHING, Service, failed, never
from tests.world import KEEP_MS, LANE, LATENESS_MS, NOW_MS, A, B, delta, fail, token, value

OTHER = Lane(A, 0, "other")


def late(*numbers: int) -> Named:
    return Named.of(map(token, numbers))


def folded(*numbers: int, **given: Any) -> Service:
    """A service with these deltas folded, and nothing noted of it."""
    service = Service(**given)
    service.put(*map(delta, numbers))
    assert service.visited(Look(LANE)) == []
    return service.forget()


def test_a_look_costs_one_get_and_one_query() -> None:
    service = Service(fold_min=3)
    service.visit(Look(OTHER))  # asks for the table's shape, once
    service.put(delta(1), delta(2))
    service.forget()
    assert service.visit(Look(LANE), Look(LANE)) == NOTHING  # two messages, one job
    assert service.kinds == [Get, Query]
    assert {
        Get(items.checkpoint_key(LANE), False),
        Query(items.delta_pk(LANE), None, None, 3, False),
    } < {*service.asked}
    assert (service.taken(), service.counted("LanesVisited", "LanesLooked")) == ([], (0, 1))
    assert service.lines() == []
    service.put(delta(3))
    service.visit(Look(LANE))
    service.asked.clear()
    service.visit(Look(LANE))  # what was folded waits below the watermark, and is not asked for
    assert service.kinds == [Get, Query]
    assert Query(items.delta_pk(LANE), items.tail_after(token(3)), None, 3, False) in service.asked


def test_a_look_passes_through_few_functions() -> None:
    for more, most, depth in ((0, 39, 11), (1, 99, 13)):  # one that folds
        service = folded(1, 2, 3, fold_min=3)
        service.put(*map(delta, range(4, 6 + more)))
        found = passed(partial(service.visit, Look(LANE)), below="service/compact/serve.py:serve")
        assert (len(found.functions) <= most, found.depth <= depth) == (True, True), found.functions
        assert service.counted("DeltasFolded") == 3 * more


def test_a_busy_lanes_visits_follow_each_other_in_one_chain() -> None:
    service = folded(1)
    for version in (2, 3):
        service.put(*(delta(n, at_ms=1_000 + n) for n in range(5 * version - 8, 5 * version - 3)))
        assert service.visited(Look(LANE, follows=version - 1)) == [
            (Look(LANE, follows=version), 10)
        ]
    service.put(*(delta(n, at_ms=1_000 + n) for n in range(12, 17)))
    service.asked.clear()
    service.visit(Look(LANE, follows=2))  # somebody committed version 3 since
    assert (service.taken(), Transact in service.kinds) == ([], False)
    assert service.notes.lines[-1][2]["outcome"] == "ended"
    assert service.visited(Look(LANE)) == [(Look(LANE, follows=4), 10)]  # a ring folds in any case
    service.visit(Look(LANE, follows=4))  # nothing came: the next change rings
    service.put(delta(17, at_ms=60_000))
    service.visit(Look(LANE, follows=4))  # less than 100 a second
    assert (service.taken(), value(service)) == ([], set(range(1, 18)))


def test_a_busy_lane_is_visited_at_once_to_clean_on() -> None:
    service = folded(1, page_size=1)

    def refuses(request: DeleteMany, _: Any) -> Any:
        service.store(request.items)
        return (Throttled("slow down"),) * len(request.items)

    service.after(DeleteMany, refuses, times=1)
    for first, wait_ms in ((2, 0), (4, KEEP_MS), (14, 0)):
        service.copy_to(service.away)
        service.now_ms += wait_ms
        service.put(
            *(delta(n, at_ms=1_300 + n) for n in range(first, first + (10 if first > 2 else 1)))
        )
        service.visit(Look(LANE))
        if first == 4:
            assert service.counted("DeltasCleaned", "CleansPostponed") == (0, 1)
            assert service.notes.lines[-1][2]["postponed_by"] == ["slow down"]
            assert service.taken() == [(Look(LANE, follows=3), LATENESS_MS // 1_000)]
            service.before(DeleteMany, lambda _: service.time_goes(0, 60_001))
    assert service.taken()[0][1] == 0


def test_a_huge_backlog_takes_turns_with_other_lanes() -> None:
    service = Service(fold_max=1)
    backlog = range(COMMITS_OF_VISIT + 3)
    service.put(*map(delta, backlog), delta(1, OTHER))
    service.visit(Look(LANE), Look(OTHER))
    assert service.counted("DeltasFolded", "TailDeltas", "LanesVisited") == (
        *(COMMITS_OF_VISIT + 1,) * 2,
        2,
    )
    assert service.taken() == [(Look(LANE), 0)]
    service.visit(Look(LANE))
    assert (value(service), service.taken()) == (set(backlog), [])


def test_changes_below_a_watermark_that_is_ahead_are_settled() -> None:
    service, ahead_ms = Service(clean=False), 3_600_000
    start_ms = NOW_MS + ahead_ms - LATENESS_MS
    service.now_ms += ahead_ms
    service.put(delta(1, at_ms=start_ms))
    service.visit(Look(LANE))  # by a machine whose clock is ahead, as the producer's was
    service.now_ms -= ahead_ms
    for n in range(2, 4):
        service.forget()
        service.put(delta(n, at_ms=service.now_ms))
        service.now_ms += 60_000
        service.visit(Look(LANE))
        assert value(service) == set(range(1, n + 1))
        assert service.counted("StraysSettled", "WatermarkAheadMs") == (
            1,
            start_ms - service.now_ms,
        )
        assert service.lines()[-1][2]["watermark_ahead_ms"] == start_ms - service.now_ms


def test_what_is_named_above_the_watermark_is_named_again_once() -> None:
    service = folded(2)
    service.put(delta(1), delta(5), delta(6))
    service.visit(Settle(LANE, late(1, 5, 6)))
    assert not [
        request for request in service.asked if getattr(request, "pk", "") == items.delta_pk(LANE)
    ]
    assert service.counted("StraysSettled", "LanesVisited") == (1, 0)
    assert service.taken() == [(Settle(LANE, late(5, 6), again=True), 300)]
    # Still in the tail: every fold that is under way sees them.
    assert service.visited(Settle(LANE, late(5, 6), again=True)) == []
    assert (value(service), service.lines()[-1][:2]) == ({1, 2, 5, 6}, ("info", "settled"))


def test_more_strays_than_a_visit_settles_are_named_anew_at_once() -> None:
    service = folded(27, fold_max=1)
    service.put(*map(delta, range(1, 25)), delta(28))
    for again in (False, True):
        job = Settle(LANE, late(*range(1, 25), 28), again=again, tries=3)
        assert service.visited(job) == ([(replace(job, tries=0), 0)] if not again else [])
        assert service.visited(job) == (
            [(Settle(LANE, late(28), again=True), 300)] if not again else []
        )
    assert value(service) == {*range(1, 25), 27, 28}


def test_a_sweep_settles_every_stray_and_reports_it() -> None:
    service = folded(2, 4, 6, fold_min=3)
    service.put(delta(1), delta(9))
    service.visit(Look(LANE))
    assert value(service) == {2, 4, 6, 9}
    for _ in range(2):
        service.visit(Sweep(LANE))
        assert value(service) == {1, 2, 4, 6, 9}
        assert service.counted("LanesForgotten", "StraysSettled") == (1, 1)


def test_a_sweep_cleans_a_quiet_lane_and_then_only_looks() -> None:
    service = folded(1)
    service.copy_to(service.away)
    for _ in range(3):
        service.visit(Sweep(LANE))
        service.now_ms += KEEP_MS
    assert service.counted("DeltasCleaned", "LanesVisited", "LanesLooked") == (1, 2, 1)
    assert (service.counted("LanesForgotten"), service.taken()) == (0, [])


def test_a_sweep_finds_a_lane_that_lost_its_checkpoint() -> None:
    service = Service(fold_min=2)
    service.put(delta(1))
    service.visit(Sweep(LANE))
    assert service.counted("LanesVisited") == 1
    short = [asked for asked in service.in_short if asked.startswith(("get ch", "query"))]
    assert short == [
        *("get checkpoint", "query delta 2"),  # the look
        *("get checkpoint strongly", "query segment 2 strongly"),
    ]
    service.store([items.segment_item(Segment.of(LANE, token(2), 2, [delta(2)]))])
    for job, damaged in ((Look(LANE), 0), (Sweep(LANE), 1)):
        service.visit(job)
        assert service.counted("LanesDamaged") == damaged


def test_a_visit_that_cleans_nothing_looks_back_so_far() -> None:
    assert (SWEEP_BACK_MS, AHEAD_BACK_MS) == (7 * 86_400_000, 3_600_000)
    now_ms = 10 * 86_400_000
    for clean, settled in ((True, 2), (False, 1)):
        for job, back_ms, ago_ms in (
            (Sweep(LANE), SWEEP_BACK_MS, 0),
            (Look(LANE), AHEAD_BACK_MS, LATENESS_MS),
        ):
            service = Service(clean=clean, now_ms=now_ms)
            service.put(delta(2, at_ms=now_ms - LATENESS_MS))
            service.visit(Look(LANE))
            # for the look: so that the watermark is ahead
            from_ms = service.now_ms = now_ms - ago_ms
            service.put(delta(0, at_ms=from_ms - back_ms), delta(1, at_ms=from_ms - back_ms + 1))
            service.visit(job)
            assert service.counted("StraysSettled") == settled
        service.now_ms = NOW_MS  # a clock of 1970 looks at everything
        service.visit(Sweep(LANE))
        assert service.counted("StraysSettled") == 2


def test_more_strays_than_a_sweep_settles_get_another_sweep() -> None:
    for page_size, since in ((1_000, None), (1, 19), (3, 17)):
        service = folded(28, page_size=page_size, fold_max=1)
        service.put(*map(delta, range(COMMITS_OF_VISIT + 1)))
        service.visit(Sweep(LANE))
        ((rest, delay_s),) = service.taken()
        assert (rest, delay_s) == (Sweep(LANE, since=None if since is None else token(since)), 0)
        service.visit(rest)
        assert (service.taken(), value(service)) == ([], {*range(COMMITS_OF_VISIT + 1), 28})


def test_verify_reports_differences_without_amounts() -> None:
    service = folded(1)
    assert service.visit(Verify(LANE)) == NOTHING
    assert (service.counted("VerifyDifferences"), service.lines()[-1][:2]) == (
        0,
        ("info", "verified"),
    )
    service.forget_days(total={"N": "31415"}, count={"N": "31415"})
    before = dict(service.items)
    service.visit(Verify(LANE))
    assert service.counted("VerifyDifferences") == 2
    assert [fields["differences"] for _, _, fields in service.lines("error")] == [2]
    assert ("31415" in repr(service.lines()), "31415" in repr(service.lines("debug"))) == (
        False,
        True,
    )
    assert service.items == before


def test_a_verify_that_meets_a_landing_commit_is_put_off() -> None:
    service = folded(1)
    assert service.visited(Verify(LANE), Look(LANE), Verify(OTHER)) == [(Verify(LANE), VERIFY_S)]
    service.forget()
    service.drop(items.segment_key(LANE, token(1), 1))
    assert service.visit(Verify(LANE)) == NOTHING
    assert "VerifyDifferences" not in service.notes.metrics
    assert (service.taken(), service.counted("LanesGaveUp")) == ([], 1)


def test_a_failed_job_is_sent_again_later_and_later() -> None:
    for error in (
        Throttled("a"),
        Unavailable("b"),
        OutcomeUnknown("c"),
        NotAllowed("d"),
        GaveUp("e"),
    ):
        service = Service()
        service.before(Transact, fail(error))
        service.put(delta(1))
        job: Job = Sweep(LANE)
        for tries, wait_s in enumerate((30, 60, 120, 240, 480, 900, 900), 1):
            assert service.visit(job) == NOTHING
            job = Sweep(LANE, tries=tries)
            assert service.taken() == [(job, wait_s)]
        gave_up = isinstance(error, GaveUp)
        assert service.counted("LanesFailed", "LanesGaveUp") == ((0, 7) if gave_up else (7, 0))
        level, _, fields = service.lines()[-1]
        assert (level, fields["error"]) == ("warning" if gave_up else "error", type(error).__name__)
        assert (fields["tries"], fields["outcome"]) == (6, "gave up" if gave_up else "failed")
        # of a lane that gives up the next ring, or the sweep, stands for a look
        for follows in (None, 3):
            for tries, wait_s in ((4, 480), (5, 900)):
                service.visit(Look(LANE, follows=follows, tries=tries))
                again = [(Look(LANE, follows=follows, tries=tries + 1), wait_s)]
                assert service.taken() == ([] if gave_up and tries == 5 else again)
        service.fails(None)
        service.visit(job)
        assert value(service) == {1}


def damaged_lane(service: Service, lane: Lane = LANE) -> None:
    """Its last segment is missing, since long."""
    service.store([items.checkpoint_item(Checkpoint(lane, 1, 1, token(5), 1, token(5), 0))])
    service.put(delta(6, lane))


def test_a_job_that_meets_damage_waits_in_the_dlq_for_a_person() -> None:
    service = Service()
    damaged_lane(service)
    for job in (Settle(LANE, late(6), tries=3), Look(LANE), Sweep(LANE)):
        assert service.visit(job) == NOTHING
        assert (service.dead.pop(), service.taken()) == (message_of(job), [])
    assert service.counted("LanesDamaged", "LanesFailed") == (3, 0)
    # by its key and without its amount; what was above the watermark is named again all the same
    service = folded(2)
    service.put(delta(5))
    service.store(
        [{"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": token(1)}, "change": {"N": "271828.5"}}]
    )
    assert service.visited(Settle(LANE, late(1, 5))) == [(Settle(LANE, late(5), again=True), 300)]
    assert service.dead == [message_of(Settle(LANE, late(1)))]
    assert f"pk='delta#{LANE}', sk='{token(1)}'" in service.lines()[-1][2]["reason"]
    assert "271828" not in repr(service.lines())


def test_a_message_whose_rest_was_not_sent_stays() -> None:
    service = Service()
    service.before(Transact, fail(Throttled("slow")))
    service.refused.add(LANE)
    service.put(delta(1), delta(1, OTHER))
    assert service.visit(Look(LANE), Look(OTHER), Look(LANE)) == failed("m1", "m3")
    assert service.counted("LanesFailed") == 2
    assert service.kinds.count(Enqueue) == 2  # once a job
    service = Service()
    service.queue_down = True
    damaged_lane(service)
    assert service.visit(Look(LANE)) == failed("m1")
    assert service.counted("LanesDamaged", "LanesFailed") == (1, 1)


def test_a_failure_or_a_defect_in_one_job_stops_no_other() -> None:
    service = Service()
    lanes = [Lane(A, 0, f"lane{n}") for n in range(5)]
    damaged_lane(service, lanes[1])
    service.put(*(delta(1, lanes[n]) for n in (0, 2, 3, 4)))

    def slow(request: Any) -> bool:
        return isinstance(request, Transact) and "lane2" in request.writes[0].key.pk

    service.before(slow, fail(Throttled("slow")))
    service.before(
        lambda request: isinstance(request, Query) and "lane3" in request.pk,
        fail(ZeroDivisionError()),
    )
    assert service.visit(*map(Look, lanes)) == failed("m4")
    assert [items.checkpoint_key(lane) in service.items for lane in lanes] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert service.taken() == [(Look(lanes[2], tries=1), 30)]
    assert "ZeroDivisionError" in repr(service.lines("error"))
    assert service.visit(Look(lanes[3]), Evaluate(lanes[3])) == failed("m1")  # of one lane, too


def test_an_unreadable_message_goes_to_the_dlq_as_it_is() -> None:
    service = Service()
    service.put(delta(1))
    assert service.visit("[1]", Look(LANE)) == NOTHING
    assert (service.dead, service.counted("WorkInvalid"), value(service)) == (["[1]"], 1, {1})
    assert "Send JSON with a job and a lane" in repr(service.lines("error"))
    service.queue_down = True
    assert service.visit(Look(LANE), "x", "x") == failed("m2", "m3")


def test_a_worker_with_other_settings_sends_everything_again() -> None:
    service = Service()
    service.store([items.shape_item(Shape((A, B), {"stock:": 4}))])
    service.put(delta(1), delta(1, OTHER))
    before = dict(service.items)
    again = [(Settle(LANE, late(1), tries=1), 30), (Sweep(OTHER, tries=1), 30)]
    assert service.visited(Settle(LANE, late(1)), Sweep(OTHER)) == again
    assert "SettingsMismatch" in repr(service.lines("error"))
    assert (service.items, service.kinds) == (before, [Get, Enqueue, Enqueue])


def stopped(service: Service, requests: int) -> bool:
    return len(service.kinds) >= requests


def serve(service: Service, *jobs: Job, stop: Callable[[], bool] = never) -> int:
    """Serve these and what they send, each message alone; after how many calls nothing was left."""
    for calls in range(20):
        if not jobs:
            return calls
        assert service.visit(jobs[0], stop=stop) == NOTHING
        jobs = (*jobs[1:], *(job for job, _ in service.taken()))
    raise AssertionError(f"messages without end: {jobs}")


def test_a_job_behind_a_key_settles_what_is_behind_it() -> None:
    service = folded(9)
    service.put(delta(1), delta(5))
    for tries, wait_s in enumerate((0, 30, 60, 120)):
        job = Sweep(LANE, since=token(3), tries=tries)
        assert service.visited(job, stop=lambda: True) == [(replace(job, tries=tries + 1), wait_s)]
    assert service.counted("VerifiesDropped", "StoppedTries") == (0, 1 + 2 + 3 + 4)
    service.visit(job)
    assert value(service) == {5, 9}


def test_a_verify_that_does_not_fit_is_dropped_and_counted() -> None:
    service = folded(1)
    assert serve(service, Verify(LANE), stop=lambda: Query in service.kinds) == 1
    assert (service.counted("VerifiesDropped"), "StoppedTries" in service.notes.metrics) == (
        1,
        False,
    )
    level, _, fields = service.lines()[-1]
    assert (level, fields["outcome"]) == ("warning", "stopped")


def test_deltas_listed_with_another_change_are_reported() -> None:
    service = folded(1)
    service.copy_to(service.away)
    service.visit(Sweep(LANE))
    service.store([items.delta_item(Delta(LANE, token(1), 5))])
    service.now_ms += KEEP_MS
    service.visit(Sweep(LANE))
    assert service.counted("DeltasConflicting") == 1
    assert service.lines()[-1][2]["conflicts"] == [token(1)]


def test_a_lane_that_nobody_reads_is_reported_with_each_job() -> None:
    service = Service(limits={"seats:": Limit(ceiling=9, region=A)})
    gate, sold, unread = Lane(A, 0, "seats:gig"), Lane(A, 0, "seats:sold"), Lane(A, 3, LANE.counter)
    service.put(delta(1), delta(2, unread), delta(1, sold))
    service.visit(Look(LANE), Look(unread), Sweep(gate), Verify(gate), Sweep(sold))
    assert service.counted("LanesUnread") == 2
    service.visit(Settle(sold, late(1)))  # what is named was there
    assert [fields["lane"] for _, _, fields in service.lines("error")] == [
        str(unread),
        str(sold),
        str(sold),
    ]
    service.visit(Sweep(sold), stop=lambda: True)  # nobody looked
    assert service.counted("LanesUnread") == 3


def test_no_line_above_debug_holds_an_amount() -> None:
    service = folded(12)
    service.put(delta(13), delta(11), delta(14, Lane(A, 3, LANE.counter)))
    service.visit(
        Sweep(LANE), Settle(LANE, late(11)), Look(Lane(A, 3, LANE.counter)), Verify(OTHER)
    )
    assert service.counted("DeltasFolded") == 2
    shown = repr(service.lines())
    assert not [
        n
        for n in range(1, 2**4)
        if str(sum(4 ** (11 + k) for k in range(4) if n >> k & 1)) in shown
    ]


def test_no_line_above_debug_has_an_amount_of_a_damaged_item() -> None:
    for name in ("total", "count"):  # the days' sums are others
        service = folded(1)
        service.store([{**service.items[items.checkpoint_key(LANE)], name: {"N": "31415"}}])
        assert service.visit(Sweep(LANE)) == NOTHING
        ((_, _, fields),) = service.lines("error")
        assert (fields["error"], "checkpoint" in fields["reason"]) == ("DamagedItem", True)
        assert ("31415" in repr(service.lines()), "31415" in repr(service.lines("debug"))) == (
            False,
            True,
        )
    twice = LaneDamaged(
        f"{LANE}: two segments list the delta {token(1)}, once as 31415 and once as 27182."
    )
    assert "31415" not in repr(Done(job=Look(LANE), error=twice).fields())
    service = folded()
    service.store([{**items.delta_item(delta(1)), "change": {"N": "31415.5"}}])
    service.visit(Look(LANE))
    assert [fields["error"] for _, _, fields in service.lines("error")] == ["DamagedItem"]
    assert "31415" not in repr(service.lines())


def test_an_evaluation_sees_what_the_batch_settled() -> None:
    jobs: list[Job] = [Verify(LANE), Evaluate(LANE), Look(LANE), Sweep(LANE), Settle(LANE, late(1))]
    (lane,) = by_lane((str(n), job) for n, job in enumerate(jobs))
    assert [type(done.job) for done in lane] == [Settle, Sweep, Look, Evaluate, Verify]


def test_a_job_of_a_period_kept_no_longer_is_not_served() -> None:
    lane = Lane(A, 0, "plain:a@2026-11")
    jobs = (Look(lane), Settle(lane, late(1)), Sweep(lane), Verify(lane), Evaluate(lane))
    for year, retired in ((2026, False), (2028, True)):
        for job in jobs:
            periods = {"plain:": Keep(late=timedelta(days=15), keep=timedelta(days=400))}
            service = Service(now_ms=to_ms(datetime(year, 12, 20, tzinfo=UTC)), periods=periods)
            assert service.visit(job) == NOTHING
            outcomes = [fields["outcome"] for _, _, fields in service.notes.lines]
            asked = [request for request in service.asked if lane.counter in repr(request)]
            assert (outcomes == ["retired"]) is retired
            # there are no thresholds
            assert (asked == []) is (retired or isinstance(job, Evaluate))
            assert not (retired and service.taken())
