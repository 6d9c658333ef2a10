"""The function `compact`: what becomes of a batch of the work queue, lane by lane, and what is told of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compactor.named import KEYS_READ, Named
from ledger import items
from ledger.errors import (
    GaveUp,
    LedgerError,
    NotAllowed,
    OutcomeUnknown,
    Throttled,
    TransactionConflict,
    Unavailable,
)
from ledger.limit import Limit, Shape
from ledger.requests import DeleteMany, Get, GetMany, Now, Put, Query, Request, Transact
from ledger.values import Checkpoint, Delta, Lane, Segment
from service import observe
from service.compact.handler import Worker
from service.compact.serve import AHEAD_BACK_MS, COMMITS_OF_VISIT, FORGOTTEN_MS, FORGOTTEN_TAILS, SWEEP_BACK_MS
from service.work import NAMES_MAX, Send, Work
from tests.service.support import Service, never, sqs, work
from tests.support import KEEP_MS, LANE, LATENESS_MS, NOW_MS, A, B, Region, delta, settings, token, two_regions, value

NOTHING: dict[str, list[Any]] = {"batchItemFailures": []}
OTHER = Lane(A, 0, "other")


def failed(*names: str) -> dict[str, list[Any]]:
    return {"batchItemFailures": [{"itemIdentifier": name} for name in names]}


class Shop(Service):
    """A home Region with another beside it, and a worker."""

    def __init__(self, table: Region | None = None, **changed: Any) -> None:
        home, self.away = two_regions()
        home = table or home
        home.peers, self.away.peers = {A: home, B: self.away}, {A: home, B: self.away}
        super().__init__(home)
        self.worker = Worker(settings(**changed), self.runtime, self.told, self.told)  # type: ignore[arg-type]

    def visit(self, *bodies: str | Work, stop: Callable[[], bool] = never) -> Any:
        return self.worker(sqs(*(each if isinstance(each, str) else each.to_json() for each in bodies)), stop)

    def taken(self) -> list[tuple[Work, int]]:
        """What was sent since, with its delays."""
        sent, self.queue.sent = self.queue.sent, []
        return sent

    def drain(self) -> None:
        """Serve what was sent, in its time, and what that sends, until nothing is."""
        for _ in range(20):
            sent = self.taken()
            if not sent:
                return
            self.table.now_ms += 1_000 * max(delay_s for _, delay_s in sent)
            assert self.visit(*(each for each, _ in sent)) == NOTHING
        raise AssertionError(f"messages without end: {self.queue.sent}")

    def folded(self, *numbers: int) -> "Shop":
        """With these deltas folded, and nothing told of it."""
        self.table.put(*map(delta, numbers))
        self.visit(Work(LANE))
        assert self.taken() == []
        self.table.asked.clear()
        self.told.metrics.clear()
        self.told.lines.clear()
        return self

    def reads(self) -> list[Request]:
        return [request for request in self.table.asked if not isinstance(request, Now)]

    def commits(self) -> int:
        return sum(isinstance(request, Transact) for request in self.table.asked)


def late(*numbers: int) -> Named:
    return Named.of(map(token, numbers))


# -- look first --------------------------------------------------------------------------------------------------------


def test_a_look_costs_one_get_and_one_query_both_eventually_consistent() -> None:
    shop = Shop(fold_min=3)
    shop.visit(Work(OTHER))  # asks for the table's shape, once
    shop.table.put(delta(1), delta(2))
    shop.table.asked.clear()
    assert shop.visit(Work(LANE)) == NOTHING
    assert shop.reads() == [Get(items.checkpoint_key(LANE), False), Query(items.delta_pk(LANE), None, None, 3, False)]
    assert (shop.taken(), shop.told.metrics[observe.LANES_VISITED]) == ([], 0)
    assert shop.told.metrics[observe.LANES_LOOKED] == 2
    assert not shop.told.shown("info", "warning", "error").strip("[]")
    shop.table.put(delta(3))
    shop.visit(Work(LANE))
    shop.table.asked.clear()
    shop.visit(Work(LANE))  # what was folded waits below the watermark, and is not asked for
    after = items.tail_after(token(3))
    assert shop.reads() == [Get(items.checkpoint_key(LANE), False), Query(items.delta_pk(LANE), after, None, 3, False)]


def test_what_can_be_folded_is_folded_and_the_next_visits_note_and_clean_it() -> None:
    shop = Shop().folded(1, 2)
    shop.table.copy_to(shop.away)
    for n, wait_ms in ((3, 0), (4, KEEP_MS)):
        shop.table.now_ms += wait_ms
        shop.table.put(delta(n))
        shop.visit(Work(LANE))
        shop.table.copy_to(shop.away)
    told = shop.told.metrics
    assert (told[observe.DELTAS_FOLDED], told[observe.DELTAS_CLEANED], told[observe.LANES_VISITED]) == (2, 2, 2)
    assert value(shop.table) == {1, 2, 3, 4}
    assert shop.taken() == []


def test_a_tail_that_is_not_old_enough_is_left_to_the_message_that_waits_for_it() -> None:
    shop = Shop(fold_min=2)
    shop.table.put(delta(1), delta(2, at_ms=NOW_MS - LATENESS_MS + 1), delta(3, at_ms=2 * 10**9))
    assert shop.visit(Work(LANE, tries=7)) == NOTHING
    assert (shop.taken(), shop.commits()) == ([], 0)
    shop.table.now_ms += 1
    shop.visit(Work(LANE))
    assert shop.told.metrics[observe.DELTAS_FOLDED] == 2


# -- what is named -----------------------------------------------------------------------------------------------------


def test_a_late_item_below_the_watermark_is_settled_and_nothing_more_is_read() -> None:
    shop = Shop().folded(2)
    shop.table.put(delta(1), delta(9))
    shop.visit(Work(LANE, late=late(1), fold=False))
    assert [r for r in shop.reads() if isinstance(r, Query) and r.pk == items.delta_pk(LANE)] == []
    assert (shop.told.metrics[observe.STRAYS_SETTLED], shop.told.metrics[observe.LANES_VISITED]) == (1, 0)
    assert value(shop.table) == {1, 2, 9}
    assert shop.taken() == []


def test_a_late_item_above_the_watermark_is_named_again_once_after_300_seconds() -> None:
    shop = Shop().folded(2)
    shop.table.put(delta(1), delta(5), delta(6))
    shop.visit(Work(LANE, late=late(1, 5, 6), fold=False))
    ((again, delay_s),) = shop.taken()
    assert (again, delay_s) == (Work(LANE, again=late(5, 6), fold=False), 300)
    shop.visit(again)
    assert shop.taken() == []  # still in the tail: every fold that is under way sees them


def test_what_was_named_twice_is_settled_when_a_fold_passed_it_meanwhile() -> None:
    shop = Shop().folded(2)
    shop.table.put(delta(5))
    shop.visit(Work(LANE, late=late(5), fold=False))
    ((again, _),) = shop.taken()
    shop.table.drop(items.delta_key(delta(5)))
    shop.table.put(delta(6))
    shop.visit(Work(LANE))  # a fold that does not see 5
    shop.table.put(delta(5))
    shop.visit(again)
    assert value(shop.table) == {2, 5, 6}
    assert shop.told.metrics[observe.STRAYS_SETTLED] == 1


def test_more_strays_than_a_visit_settles_are_named_anew_at_once() -> None:
    shop = Shop(fold_max=1)
    shop.table.put(delta(27))
    shop.visit(Work(LANE))
    shop.table.put(*map(delta, range(1, 25)), delta(28))
    both = Work(LANE, late=late(*range(1, 25), 28), again=late(3), fold=False)
    shop.visit(both)
    assert shop.taken() == [(both, 0)]
    shop.visit(both)
    assert shop.taken() == [(Work(LANE, again=late(28), fold=False), 300)]
    assert value(shop.table) == {*range(1, 25), 27, 28}


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


ERRORS = [Throttled("a"), Unavailable("b"), OutcomeUnknown("c"), NotAllowed("d"), TransactionConflict("e"), None]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_no_failure_of_the_table_fails_a_message_it_is_sent_again_later_and_later(error: LedgerError | None) -> None:
    table = Contended()
    table.raises = error
    shop = Shop(table)
    shop.table.put(delta(1))
    message, waits = Work(LANE, sweep=True), []
    for tries in range(1, 8):
        assert shop.visit(message) == NOTHING
        ((message, delay_s),) = shop.taken()
        assert message == Work(LANE, sweep=True, tries=tries)
        waits.append(delay_s)
    assert waits == [30, 60, 120, 240, 480, 900, 900]
    outcome = observe.LANES_FAILED if error else observe.LANES_GAVE_UP
    assert shop.told.metrics[outcome] == 7
    assert shop.told.metrics[observe.LANES_FAILED] + shop.told.metrics[observe.LANES_GAVE_UP] == 7
    level, _, told = shop.told.lines[-1]
    assert (level, told["error"]) == ("error" if error else "warning", type(error or GaveUp("")).__name__)
    assert told["tries"] == 6
    table.well = True
    shop.visit(message)
    assert value(shop.table) == {1}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_only_folds_in_a_lane_that_gives_up_is_dropped_where_it_would_wait_longest(
    error: LedgerError | None,
) -> None:
    table = Contended()
    table.raises = error
    shop = Shop(table)
    shop.table.put(delta(1))
    for follows in (None, 3):
        shop.visit(Work(LANE, follows=follows, tries=4))
        assert shop.taken() == [(Work(LANE, follows=follows, tries=5), 480)]
        shop.visit(Work(LANE, follows=follows, tries=5))  # the next ring, or the sweep, stands for it
        assert shop.taken() == ([(Work(LANE, follows=follows, tries=6), 900)] if error else [])
    for message in (Work(LANE, sweep=True, tries=10**3), Work(LANE, thresholds=True, tries=10**3)):
        shop.visit(message)
        assert shop.taken() == [(replace(message, tries=10**3 + 1), 900)]


def test_what_was_settled_by_name_is_not_named_again_though_the_fold_then_gives_up() -> None:
    table = Contended()
    table.well = True
    shop = Shop(table).folded(2)
    shop.table.put(delta(1), delta(5))
    shop.before = lambda _: setattr(table, "well", shop.commits() == 0)
    shop.visit(Work(LANE, late=late(1, 5), sweep=True, tries=1))
    assert (shop.told.metrics[observe.STRAYS_SETTLED], shop.told.metrics[observe.LANES_GAVE_UP]) == (1, 1)
    assert shop.taken() == [(Work(LANE, again=late(5), fold=False), 300), (Work(LANE, sweep=True, tries=2), 60)]


def damaged_lane(shop: Shop, lane: Lane = LANE) -> None:
    """Its last segment is missing, since long."""
    shop.table.store([items.checkpoint_item(Checkpoint(lane, 1, 1, token(5), 1, token(5), 0))])
    shop.table.put(delta(6, lane))


def test_a_message_of_a_damaged_lane_waits_in_the_dlq_for_a_person() -> None:
    shop = Shop()
    damaged_lane(shop)
    message = Work(LANE, late=late(6), verify=False, tries=3)
    assert shop.visit(message) == NOTHING
    assert (shop.queue.buried, shop.taken()) == ([message.to_json()], [])
    assert (shop.told.metrics[observe.LANES_DAMAGED], shop.told.metrics[observe.LANES_FAILED]) == (1, 0)


def test_a_damaged_item_is_told_by_its_key_and_without_its_amount() -> None:
    shop = Shop()
    shop.table.store([{"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": token(1)}, "change": {"N": "271828.5"}}])
    assert shop.visit(Work(LANE)) == NOTHING
    assert shop.queue.buried == [Work(LANE).to_json()]
    assert token(1) in shop.told.shown("error")
    shop.table.store([items.checkpoint_item(Checkpoint(OTHER, 1, 1, token(5), 1, token(5), 0))])
    shop.table.alter(items.checkpoint_key(OTHER), total={"N": "271828000000000000000"})
    shop.visit(Work(OTHER))
    assert "checkpoint" in shop.told.shown("error")
    assert "271828" not in shop.told.shown("info", "warning", "error")


def test_what_was_above_the_watermark_is_named_again_though_the_fold_then_meets_damage() -> None:
    shop = Shop().folded(2)
    shop.table.put(delta(5))
    shop.table.store([{"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": token(4)}, "change": {"N": "0.5"}}])
    shop.visit(Work(LANE, late=late(5)))
    assert shop.taken() == [(Work(LANE, again=late(5), fold=False), 300)]
    assert len(shop.queue.buried) == 1


def test_a_message_whose_rest_could_not_be_sent_stays_on_the_queue() -> None:
    shop = Shop(Contended())
    shop.queue.refused.add(LANE)
    shop.table.put(delta(1))
    assert shop.visit(Work(LANE), Work(OTHER), Work(LANE, verify=True)) == failed("m1", "m3")
    assert shop.told.metrics[observe.LANES_FAILED] == 1
    shop = Shop()
    shop.queue.down = True
    damaged_lane(shop)
    assert shop.visit(Work(LANE)) == failed("m1")
    assert (shop.told.metrics[observe.LANES_DAMAGED], shop.told.metrics[observe.LANES_FAILED]) == (1, 1)


def test_a_failure_in_one_lane_stops_no_other() -> None:
    shop = Shop()
    lanes = [Lane(A, 0, f"lane{n}") for n in range(4)]
    damaged_lane(shop, lanes[1])
    for n in (0, 2, 3):
        shop.table.put(delta(1, lanes[n]))

    def before(request: Any) -> None:
        if isinstance(request, Transact) and "lane2" in request.writes[0].key.pk:
            raise Throttled("slow")

    shop.before = before
    assert shop.visit(*map(Work, lanes)) == NOTHING
    assert [items.checkpoint_key(lane) in shop.table.items for lane in lanes] == [True, True, False, True]
    assert shop.taken() == [(Work(lanes[2], tries=1), 30)]


def test_a_defect_fails_the_message_of_its_lane_alone_and_is_told() -> None:
    class Broken(Region):
        def answer(self, request: Any, /) -> Any:
            if isinstance(request, Query) and str(LANE) in request.pk:
                raise ZeroDivisionError
            return super().answer(request)

    shop = Shop(Broken())
    shop.table.put(delta(1, OTHER))
    assert shop.visit(Work(LANE), Work(OTHER)) == failed("m1")
    assert "ZeroDivisionError" in shop.told.shown("error")
    assert items.checkpoint_key(OTHER) in shop.table.items


@pytest.mark.parametrize("body", ["", "not JSON", "{}", work(Lane(B, 0, "x")), "[1]", work(LANE, late=["x"])])
def test_a_message_that_nobody_can_read_is_put_on_the_dlq_as_it_is(body: str) -> None:
    shop = Shop()
    shop.table.put(delta(1))
    assert shop.visit(body, Work(LANE)) == NOTHING
    assert (shop.queue.buried, shop.told.metrics[observe.WORK_INVALID]) == ([body], 1)
    assert value(shop.table) == {1}
    shop.queue.down = True
    assert shop.visit(Work(LANE), body, body) == failed("m2", "m3")


def test_a_worker_with_other_settings_than_the_tables_visits_nothing_and_sends_everything_again() -> None:
    shop = Shop()
    shop.table.store([items.shape_item(Shape((A, B), {"stock:": 4}))])
    shop.table.put(delta(1), delta(1, OTHER))
    before = dict(shop.table.items)
    assert shop.visit(Work(LANE, late=late(1)), Work(OTHER, sweep=True)) == NOTHING
    assert shop.table.items == before
    assert shop.taken() == [(Work(LANE, late=late(1), tries=1), 30), (Work(OTHER, sweep=True, tries=1), 30)]
    assert "SettingsMismatch" in shop.told.shown("error")
    assert shop.reads() == [Get(items.SHAPE_KEY)]


# -- interrupted anywhere ----------------------------------------------------------------------------------------------


def everything_to_do(sweep: bool, page_size: int = 1_000) -> tuple[Shop, Work]:
    """A lane with something to clean, to fold and to settle by name, and for a sweep strays that nobody names; and the
    message that asks for all."""
    shop = Shop(Region(page_size=page_size), regions=(A,)).folded(2, 4)
    shop.table.put(delta(6))
    shop.visit(Work(LANE))
    shop.table.now_ms += KEEP_MS
    shop.table.put(
        *map(delta, (1, 3, 8, 9)), delta(10, at_ms=shop.table.now_ms), *(map(delta, (0, 5)) if sweep else ())
    )
    shop.table.asked.clear()
    assert shop.taken() == []
    return shop, Work(LANE, late=late(1, 2, 8, 10), again=late(3), sweep=sweep)


def everything(sweep: bool) -> set[int]:
    return {1, 2, 3, 4, 6, 8, 9, 10} | ({0, 5} if sweep else set())


def requests(sweep: bool, page_size: int = 1_000) -> int:
    shop, message = everything_to_do(sweep, page_size)
    shop.visit(message)
    asked = shop.reads()
    assert {Transact, DeleteMany, GetMany, Put} <= set(map(type, asked))
    assert value(shop.table) == everything(sweep)
    return len(asked)


@pytest.mark.parametrize("page_size", [1, 1_000])
@pytest.mark.parametrize("sweep", [False, True])
def test_a_visit_stopped_before_any_request_goes_on_at_once_behind_what_was_done(sweep: bool, page_size: int) -> None:
    number, left = requests(sweep, page_size), set[tuple[int, int]]()
    for n in range(number):
        shop, message = everything_to_do(sweep, page_size)
        assert shop.visit(message, stop=lambda n=n, shop=shop: len(shop.reads()) >= n) == NOTHING  # type: ignore[misc]
        rest, delay_s = shop.queue.sent[-1]
        assert (rest.sweep, rest.fold, rest.tries, delay_s) == (sweep, True, 1, 0), n
        left.add((len(rest.late.keys), len(rest.again.keys)))
        assert shop.told.lines[-1][0] == "warning"
        assert shop.told.lines[-1][2]["outcome"] == "stopped"
        assert shop.told.metrics[observe.STOPPED_TRIES] == 1
        shop.drain()
        assert value(shop.table) == everything(sweep)
    assert number > 30
    assert left == {(4, 1), (0, 1), (0, 0)}


def test_what_a_message_found_above_the_watermark_before_it_was_stopped_is_named_again() -> None:
    shop = Shop().folded(2)
    above = [delta(3 + n % 20, at_ms=10_000 + n) for n in range(KEYS_READ + 5)]
    shop.table.put(*above)
    names = tuple(each.token for each in above)
    stop = lambda: any(isinstance(request, GetMany) for request in shop.table.asked)  # noqa: E731
    shop.visit(Work(LANE, late=Named(names), fold=False), stop=stop)
    assert shop.taken() == [
        (Work(LANE, again=Named(names[:KEYS_READ]), fold=False), 300),
        (Work(LANE, late=Named(names[KEYS_READ:]), fold=False, tries=1), 0),
    ]


def test_a_message_that_fails_with_many_names_is_sent_again_as_several() -> None:
    shop = Shop(Contended()).folded()
    names = tuple(token(n) for n in range(2 * NAMES_MAX + 1))
    works = [Work(LANE, late=Named(names[n : n + NAMES_MAX]), fold=False) for n in range(0, len(names), NAMES_MAX)]

    def before(request: Any) -> None:
        if isinstance(request, Get) and request.key == items.checkpoint_key(LANE):
            raise Throttled("slow")

    shop.before = before
    shop.visit(*works)
    assert shop.taken() == [(replace(work, tries=1), 30) for work in works]


def test_a_message_that_is_stopped_again_and_again_waits_longer_and_tells_how_often() -> None:
    shop, message = everything_to_do(True)
    message, waits = Work(LANE, sweep=True), []
    for tries in range(1, 9):
        shop.told.metrics.clear()
        shop.visit(message, stop=lambda: True)
        ((message, delay_s),) = shop.taken()
        assert message == Work(LANE, sweep=True, tries=tries)
        assert shop.told.metrics[observe.STOPPED_TRIES] == tries
        waits.append(delay_s)
    assert waits == [0, 30, 60, 120, 240, 480, 900, 900]
    shop.told.metrics.clear()
    shop.visit(message)
    assert observe.STOPPED_TRIES not in shop.told.metrics


@pytest.mark.parametrize("error", [Throttled("slow"), OutcomeUnknown("lost"), ZeroDivisionError()], ids=repr)
@pytest.mark.parametrize("after", [False, True], ids=["before it is done", "when it is done"])
@pytest.mark.parametrize("sweep", [False, True])
def test_a_visit_that_fails_at_any_request_comes_to_its_end_later(error: Exception, after: bool, sweep: bool) -> None:
    for n in range(requests(sweep)):
        shop, message = everything_to_do(sweep)
        answer, left = shop.table.answer, [n]

        def failing(request: Any, /, answer: Any = answer, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] != -1:
                return answer(request)
            if after:
                answer(request)
            raise error

        shop.table.answer = failing  # type: ignore[method-assign]
        if isinstance(error, LedgerError):
            assert shop.visit(message) == NOTHING
        else:
            assert shop.visit(message) == failed("m1")
            shop.visit(message)  # it is received again
        shop.drain()
        assert value(shop.table) == everything(sweep), n
        assert shop.queue.buried == []


# -- a batch -----------------------------------------------------------------------------------------------------------


def test_the_messages_of_a_lane_are_one_visit() -> None:
    shop = Shop().folded(4)
    shop.table.put(*map(delta, (1, 2, 3, 5, 9)))
    shop.table.put(delta(1, OTHER))
    some = (Work(LANE, late=late(1), fold=False), Work(OTHER), Work(LANE, again=late(3), fold=False), Work(LANE))
    assert shop.visit(*some, Work(LANE, late=late(2, 9))) == NOTHING
    assert [each["lane"] for _, _, each in shop.told.lines] == [str(LANE), str(OTHER)]
    assert value(shop.table) == {1, 2, 3, 4, 5, 9}
    assert shop.told.metrics[observe.LANES_VISITED] == 2
    assert shop.taken() == [(Work(LANE, again=late(9), fold=False), 300)]
    shop = Shop(Contended())
    shop.table.put(delta(1), delta(1, OTHER))
    shop.visit(Work(LANE, late=late(1), tries=2), Work(LANE, sweep=True), Work(LANE, again=late(3), follows=9))
    assert shop.taken() == [
        (Work(LANE, again=late(1), fold=False), 300),
        (Work(LANE, sweep=True, tries=3), 120),
    ]


# -- busy lanes --------------------------------------------------------------------------------------------------------


def busy(shop: Shop, first: int, number: int = 10) -> None:
    """So many more changes, a millisecond apart."""
    shop.table.put(*(delta(n, at_ms=1_000 + n) for n in range(first, first + number)))


def test_the_visits_of_a_busy_lane_follow_each_other() -> None:
    shop = Shop().folded(1)
    busy(shop, 2)
    shop.visit(Work(LANE))
    assert shop.taken() == [(Work(LANE, follows=2), 10)]
    busy(shop, 12)
    shop.visit(Work(LANE, follows=2))
    assert shop.taken() == [(Work(LANE, follows=3), 10)]
    shop.visit(Work(LANE, follows=3))  # nothing came: the next change rings
    assert shop.taken() == []
    shop.table.put(delta(22, at_ms=60_000))
    shop.visit(Work(LANE, follows=3))  # less than 100 a second
    assert shop.taken() == []
    assert value(shop.table) == set(range(1, 23))


def test_of_two_chains_of_visits_one_ends() -> None:
    shop = Shop().folded(1)
    busy(shop, 2)
    shop.visit(Work(LANE))
    busy(shop, 12)
    shop.taken()
    shop.table.asked.clear()
    shop.visit(Work(LANE, follows=1))  # somebody committed version 2 since
    assert shop.taken() == []
    assert (shop.commits(), shop.told.metrics[observe.LANES_LOOKED]) == (0, 1)
    shop.visit(Work(LANE, follows=1), Work(LANE))  # a ring folds in any case
    assert shop.taken() == [(Work(LANE, follows=3), 10)]


def test_a_huge_backlog_takes_turns_with_other_lanes() -> None:
    shop = Shop(fold_max=1)
    backlog = range(COMMITS_OF_VISIT + 3)
    shop.table.put(*map(delta, backlog), delta(1, OTHER))
    shop.visit(Work(LANE), Work(OTHER))
    assert shop.told.metrics[observe.DELTAS_FOLDED] == COMMITS_OF_VISIT + 1
    assert shop.taken() == [(Work(LANE), 0)]
    shop.visit(Work(LANE))
    assert value(shop.table) == set(backlog)
    assert shop.taken() == []


@pytest.mark.parametrize("error", [None, Throttled("slow"), OutcomeUnknown("lost")], ids=repr)
def test_a_backlog_whose_visit_ended_between_two_commits_goes_on(error: LedgerError | None) -> None:
    shop = Shop(fold_max=1)
    shop.table.put(*map(delta, range(COMMITS_OF_VISIT + 5)))
    shop.visit(Work(LANE))
    ((rest, _),) = shop.taken()
    commits = shop.commits()

    def before(request: Any) -> None:
        if error is not None and isinstance(request, Transact) and shop.commits() == commits + 2:
            raise error

    shop.before = before
    shop.visit(rest, stop=lambda: error is None and shop.commits() == commits + 2)
    shop.before = lambda request: None
    shop.drain()
    assert shop.told.metrics[observe.DELTAS_FOLDED] == COMMITS_OF_VISIT + 5


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
    shop.visit(Work(LANE))
    shop.table.now_ms += KEEP_MS
    shop.table.put(delta(3, at_ms=9_000))
    shop.visit(Work(LANE))
    told = shop.told.metrics
    assert (told[observe.DELTAS_FOLDED], told[observe.DELTAS_CLEANED], told[observe.CLEANS_POSTPONED]) == (2, 0, 1)
    assert shop.told.lines[-1][2]["postponed_by"] == ["slow down"]
    assert shop.taken() == []  # not busy
    shop.table.put(*(delta(n, at_ms=9_000 + n) for n in range(4, 14)))
    shop.visit(Work(LANE))
    assert shop.taken() == [(Work(LANE, follows=4), LATENESS_MS // 1_000)]
    table.delete_ms = 60_001
    shop.table.copy_to(shop.away)
    shop.table.put(*(delta(n, at_ms=9_000 + n) for n in range(14, 24)))
    shop.visit(Work(LANE))
    assert shop.told.metrics[observe.DELTAS_CLEANED] == 1
    ((_, delay_s),) = shop.taken()
    assert delay_s == 0


# -- the sweep's messages ----------------------------------------------------------------------------------------------


def test_a_sweep_settles_every_stray_and_tells_that_it_was_forgotten() -> None:
    shop = Shop(fold_min=3).folded(2, 4, 6)
    shop.table.put(delta(1), delta(9))
    shop.visit(Work(LANE))
    assert value(shop.table) == {2, 4, 6, 9}
    shop.visit(Work(LANE, sweep=True))
    assert value(shop.table) == {1, 2, 4, 6, 9}
    assert (shop.told.metrics[observe.LANES_FORGOTTEN], shop.told.metrics[observe.STRAYS_SETTLED]) == (1, 1)
    shop.visit(Work(LANE, sweep=True))
    assert shop.told.metrics[observe.LANES_FORGOTTEN] == 1


def test_a_sweep_cleans_a_quiet_lane_and_then_only_looks() -> None:
    shop = Shop().folded(1)
    shop.table.copy_to(shop.away)
    for _ in range(3):
        shop.visit(Work(LANE, sweep=True))
        shop.table.now_ms += KEEP_MS
    told = shop.told.metrics
    assert (told[observe.DELTAS_CLEANED], told[observe.LANES_VISITED], told[observe.LANES_LOOKED]) == (1, 2, 1)
    assert (told[observe.LANES_FORGOTTEN], shop.taken()) == (0, [])


@pytest.mark.parametrize(
    ("deltas", "ago_ms", "forgotten"),
    [
        (FORGOTTEN_TAILS, FORGOTTEN_MS, 1),
        (FORGOTTEN_TAILS - 1, FORGOTTEN_MS, 0),
        (FORGOTTEN_TAILS, FORGOTTEN_MS - 1, 0),
    ],
)
def test_a_long_and_old_tail_was_forgotten(deltas: int, ago_ms: int, forgotten: int) -> None:
    for sweep in (False, True):
        shop = Shop()
        shop.table.put(*(delta(n, at_ms=NOW_MS - LATENESS_MS - ago_ms) for n in range(deltas)))
        shop.visit(Work(LANE, sweep=sweep))
        assert shop.told.metrics[observe.DELTAS_FOLDED] == deltas
        assert shop.told.metrics[observe.LANES_FORGOTTEN] == (forgotten if sweep else 0)


def test_a_sweep_visits_a_lane_that_was_never_folded_so_one_that_lost_its_checkpoint_is_found() -> None:
    shop = Shop(fold_min=2)
    shop.table.put(delta(1))
    shop.visit(Work(LANE, sweep=True))
    assert shop.told.metrics[observe.LANES_VISITED] == 1
    shop.table.store([items.segment_item(Segment.of(LANE, token(2), 2, [delta(2)]))])
    shop.visit(Work(LANE))
    assert shop.told.metrics[observe.LANES_DAMAGED] == 0
    shop.visit(Work(LANE, sweep=True))
    assert shop.told.metrics[observe.LANES_DAMAGED] == 1


@pytest.mark.parametrize(("clean", "settled"), [(True, 2), (False, 1)])
def test_where_nothing_is_cleaned_a_sweep_looks_back_seven_days(clean: bool, settled: int) -> None:
    shop = Shop(clean=clean)
    now_ms = shop.table.now_ms = 10 * 86_400_000
    assert SWEEP_BACK_MS == 7 * 86_400_000
    shop.table.put(delta(2, at_ms=now_ms - LATENESS_MS))
    shop.visit(Work(LANE))
    shop.table.put(delta(0, at_ms=now_ms - SWEEP_BACK_MS), delta(1, at_ms=now_ms - SWEEP_BACK_MS + 1))
    shop.visit(Work(LANE, sweep=True))
    assert shop.told.metrics[observe.STRAYS_SETTLED] == settled
    shop.table.now_ms = NOW_MS  # a clock of 1970 looks at everything
    shop.visit(Work(LANE, sweep=True))
    assert shop.told.metrics[observe.STRAYS_SETTLED] == 2


@pytest.mark.parametrize(("page_size", "since"), [(1_000, None), (1, 19), (3, 17)])
def test_more_strays_than_a_sweep_settles_get_another_sweep(page_size: int, since: int | None) -> None:
    shop = Shop(Region(page_size=page_size), fold_max=1).folded(28)
    shop.table.put(*map(delta, range(COMMITS_OF_VISIT + 1)))
    shop.visit(Work(LANE, sweep=True))
    ((rest, delay_s),) = shop.taken()
    assert (rest, delay_s) == (Work(LANE, sweep=True, since=None if since is None else token(since)), 0)
    shop.visit(rest)
    assert shop.taken() == []
    assert value(shop.table) == {*range(COMMITS_OF_VISIT + 1), 28}


# -- verify ------------------------------------------------------------------------------------------------------------


def test_verify_tells_the_differences_without_their_amounts_and_writes_nothing() -> None:
    shop = Shop().folded(1)
    message = Work(LANE, verify=True, fold=False)
    assert shop.visit(message) == NOTHING
    assert shop.told.metrics[observe.VERIFY_DIFFERENCES] == 0
    shop.table.alter(items.checkpoint_key(LANE), total={"N": "31415"}, count={"N": "31415"})
    before = dict(shop.table.items)
    assert shop.visit(message) == NOTHING
    assert shop.told.metrics[observe.VERIFY_DIFFERENCES] == 2
    assert "31415" not in shop.told.shown("info", "warning", "error")
    assert "31415" in shop.told.shown("debug")
    assert shop.table.items == before
    assert not [request for request in shop.table.asked if isinstance(request, Put | Transact)]


def test_a_verify_that_meets_a_landing_commit_is_left_to_another_pass() -> None:
    shop = Shop().folded(1)
    shop.table.drop(items.segment_key(LANE, token(1), 1))
    assert shop.visit(Work(LANE, verify=True, fold=False)) == NOTHING
    assert observe.VERIFY_DIFFERENCES not in shop.told.metrics
    assert (shop.taken(), shop.told.metrics[observe.LANES_GAVE_UP]) == ([], 1)


# -- what is told ------------------------------------------------------------------------------------------------------


def test_a_visit_tells_how_long_the_tail_was() -> None:
    shop = Shop(fold_min=2)
    shop.table.put(delta(12, at_ms=1_000), delta(13, at_ms=NOW_MS - LATENESS_MS))
    shop.visit(Work(LANE))
    assert shop.told.metrics[observe.TAIL_DELTAS] == 2


def test_no_line_above_debug_holds_an_amount() -> None:
    shop = Shop().folded(12)
    shop.table.put(delta(13), delta(11), delta(14, Lane(A, 3, LANE.counter)))
    shop.visit(Work(LANE, sweep=True, verify=True, late=late(11)), Work(Lane(A, 3, LANE.counter)))
    shown = shop.told.shown("info", "warning", "error")
    assert shop.told.metrics[observe.DELTAS_FOLDED] == 2
    assert not [n for n in range(1, 2**4) if str(sum(4 ** (11 + k) for k in range(4) if n >> k & 1)) in shown]


def test_deltas_listed_with_another_change_are_told() -> None:
    shop = Shop().folded(1)
    shop.table.copy_to(shop.away)
    shop.visit(Work(LANE, sweep=True))
    shop.table.store([items.delta_item(Delta(LANE, token(1), 5))])
    shop.table.now_ms += KEEP_MS
    shop.visit(Work(LANE, sweep=True))
    assert shop.told.metrics[observe.DELTAS_CONFLICTING] == 1
    assert shop.told.lines[-1][2]["conflicts"] == [token(1)]


def test_a_watermark_ahead_of_the_clock_is_told_at_each_visit() -> None:
    shop = Shop()
    shop.table.put(delta(1, at_ms=NOW_MS + 3_600_000))
    shop.table.now_ms += 7_200_000
    shop.visit(Work(LANE))
    shop.table.now_ms = NOW_MS
    shop.table.put(delta(2))
    shop.visit(Work(LANE, sweep=True))
    assert shop.told.metrics[observe.WATERMARK_AHEAD_MS] == 3_600_000
    assert shop.told.lines[-1][2]["watermark_ahead_ms"] == 3_600_000


@pytest.mark.parametrize("clean", [True, False])
def test_below_a_watermark_that_is_ahead_changes_that_come_in_time_are_settled_by_the_next_ring(clean: bool) -> None:
    shop, ahead_ms = Shop(clean=clean), 3_600_000
    start_ms = NOW_MS + ahead_ms - LATENESS_MS
    shop.table.now_ms += ahead_ms
    shop.table.put(delta(1, at_ms=start_ms))
    shop.visit(Work(LANE))  # by a machine whose clock is ahead, as the producer's was
    shop.table.now_ms -= ahead_ms
    counted = {1}
    for n in range(2, 6):
        shop.told.metrics.clear()
        shop.table.put(delta(n, at_ms=shop.table.now_ms))
        shop.table.now_ms += 60_000
        shop.visit(Work(LANE))
        counted.add(n)
        assert value(shop.table) == counted
        assert shop.told.metrics[observe.STRAYS_SETTLED] == 1
        assert shop.told.metrics[observe.WATERMARK_AHEAD_MS] == start_ms - shop.table.now_ms
    assert shop.taken() == []


def test_a_watermark_ahead_is_told_also_where_nothing_is_below_it() -> None:
    shop = Shop().folded(1)
    shop.table.drop(items.delta_key(delta(1)))
    shop.visit(Work(LANE))
    assert observe.WATERMARK_AHEAD_MS not in shop.told.metrics
    shop.table.now_ms = 400
    shop.visit(Work(LANE))
    assert (shop.told.metrics[observe.LANES_LOOKED], shop.told.metrics[observe.WATERMARK_AHEAD_MS]) == (2, 600)
    assert shop.told.lines[-1][2]["watermark_ahead_ms"] == 600


def test_where_nothing_is_cleaned_a_look_at_a_watermark_ahead_goes_back_an_hour() -> None:
    shop = Shop(clean=False)
    now_ms = shop.table.now_ms = 10 * 86_400_000
    shop.table.put(delta(9, at_ms=now_ms - LATENESS_MS))
    shop.visit(Work(LANE))
    now_ms = shop.table.now_ms = now_ms - LATENESS_MS
    shop.table.put(delta(1, at_ms=now_ms - AHEAD_BACK_MS), delta(2, at_ms=now_ms - AHEAD_BACK_MS + 1))
    shop.visit(Work(LANE))
    assert value(shop.table) == {2, 9}
    shop.visit(Work(LANE, sweep=True))
    assert value(shop.table) == {1, 2, 9}


def test_a_lane_that_nobody_reads_is_told_with_each_batch() -> None:
    shop = Shop()
    unread = Lane(A, 3, LANE.counter)
    shop.table.put(delta(1), delta(2, unread))
    for _ in range(2):
        shop.visit(Work(LANE), Work(unread), Work(unread))
    assert shop.told.metrics[observe.LANES_UNREAD] == 2
    assert [extra for level, _, extra in shop.told.lines if level == "error"] == [{"lane": str(unread)}] * 2


def test_a_lane_with_a_limit_is_told_only_if_it_holds_changes_that_nobody_reads() -> None:
    shop = Shop(limits={"seats:": Limit(ceiling=9, region=A)})
    gate, unread = Lane(A, 0, "seats:gig"), Lane(A, 0, "seats:sold")
    shop.table.put(delta(1, unread))
    shop.visit(Work(gate, sweep=True), Work(unread, sweep=True))
    assert shop.told.metrics[observe.LANES_UNREAD] == 1
    assert [extra for level, _, extra in shop.told.lines if level == "error"] == [{"lane": str(unread)}]


@pytest.mark.parametrize("error", [None, Throttled("slow"), NotAllowed("no")], ids=repr)
def test_a_lane_with_a_limit_whose_look_fails_or_is_stopped_is_not_told_as_unread(error: LedgerError | None) -> None:
    shop = Shop(limits={"seats:": Limit(ceiling=9, region=A)})
    gate, unread = Lane(A, 0, "seats:gig"), Lane(A, 0, "seats:sold")
    shop.visit(Work(OTHER))  # asks for the table's shape, once

    def before(request: Any) -> None:
        if error is not None and isinstance(request, Get):
            raise error

    shop.before = before
    for message in (Work(gate), Work(gate, sweep=True), Work(gate, verify=True, fold=False)):
        shop.visit(message, stop=lambda: error is None)
    assert shop.told.metrics[observe.LANES_UNREAD] == 0
    shop.before = lambda _: None
    shop.table.put(delta(1, unread))
    shop.visit(Work(unread, late=late(1), fold=False))  # what is named was there
    assert shop.told.metrics[observe.LANES_UNREAD] == 1


def test_the_queue_is_asked_once_for_each_lane_that_leaves_something() -> None:
    shop, asked = Shop(Contended()), []
    shop.table.put(delta(1), delta(1, OTHER))
    shop.before = lambda request: asked.append(request) if isinstance(request, Send) else None
    shop.visit(Work(LANE), Work(OTHER), Work(Lane(A, 0, "quiet")))
    assert [[message.work.lane for message in request.messages] for request in asked] == [[LANE], [OTHER]]
