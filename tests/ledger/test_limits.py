"""Limited counters as their users see them: a Ledger and a Reader in each of two Regions, on tables in memory."""

import pickle
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from compactor import Compactor
from ledger import Change, Hold, Ledger, Limit, Receipt, Settings
from ledger.clocks import instants
from ledger.errors import (
    GateLost,
    HoldEnded,
    InvalidChange,
    InvalidInput,
    InvalidTime,
    LaneUnread,
    LedgerError,
    LimitMismatch,
    LimitReached,
    NoSuchHold,
    OutOfReach,
    SettingsMismatch,
    TokenConflict,
)
from ledger.gate import items, updates
from ledger.gate.updates import GROUP_MAX
from ledger.lane.shape import write
from ledger.memory import MemoryTable
from ledger.requests import At, Delete, Pause, Request, Update, run
from ledger.table import ByRegion
from ledger.values import Lane
from reader import Reader, Room

A, B = "eu-west-1", "us-east-1"
SEATS, STOCK = "seats:gig", "stock:85123A"
LIMITS = {"seats:": Limit(ceiling=10, region=A), "stock:": Limit(floor=0)}
MINUTE = timedelta(minutes=1)


class Table(MemoryTable):
    """Keeps what it was asked, and answers nothing while it is down."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Request] = []
        self.is_down = False

    def answer(self, request: Request, /) -> Any:
        if self.is_down:
            raise LedgerError("It is down. Nothing was written.")
        self.asked.append(request)
        return super().answer(request)


class World:
    def __init__(self, **given: Any) -> None:
        self.tables = {A: Table(), B: Table()}
        self.now_ms = 1_700_000_000_000
        self._keys = count()
        self.given = given
        self.ledgers = {region: self.ledger(region) for region in (A, B)}

    def settings(self, region: str = A, **changed: Any) -> Settings:
        return Settings(**{"table": "counters", "region": region, "regions": (A, B), "limits": LIMITS, **changed})

    def ledger(self, region: str, **changed: Any) -> Ledger:
        return Ledger(self.settings(region, **changed), tables=self.tables, clock=self.clock, **self.given)

    def clock(self) -> int:
        return self.now_ms

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms / 1_000, UTC)

    def key(self) -> dict[str, Any]:
        """A new key and its time."""
        self.now_ms += 10
        return {"idempotency_key": str(next(self._keys)), "at": self.at}

    def add(self, counter: str, change: int, region: str = A) -> Receipt:
        return self.ledgers[region].add(counter, change, **self.key())

    def hold(self, amount: int, expires: timedelta = MINUTE, region: str = A, counter: str = SEATS) -> Hold:
        return self.ledgers[region].hold(counter, amount, expires=expires, **self.key())

    def reader(self, region: str = A) -> Reader:
        return Reader(self.settings(region), table=ByRegion(region, self.tables), clock=self.clock)

    def shape(self, settings: Settings) -> str:
        """What an operator in A did to the table's shape there."""
        return run(write(settings), ByRegion(A, self.tables), instants(self.clock))

    def value(self, counter: str = SEATS) -> int:
        """What all gates hold together."""
        return sum(self.reader(region).read(counter).by_region[region] for region in (A, B))


@pytest.fixture(params=[{}, {"gather": True}], ids=["alone", "gather"])
def world(request: pytest.FixtureRequest) -> World:
    return World(**request.param)


def refused(error: type[LedgerError], call: Callable[[], object], says: str = "Nothing") -> LedgerError:
    with pytest.raises(error, match=says) as raised:
        call()
    return raised.value


def test_a_change_of_a_limited_counter_counts_once_and_a_retry_is_told_so(world: World) -> None:
    key = world.key()
    assert world.ledgers[A].add(SEATS, 4, **key).outcome == "recorded"
    assert world.ledgers[A].add(SEATS, 4, **key).outcome == "replayed"
    assert world.ledgers[B].add(SEATS, 4, region=A, **key).outcome == "replayed"
    error = refused(TokenConflict, lambda: world.ledgers[A].add(SEATS, 5, **key), "stands for a change of 4, not for 5")
    assert error.delta is not None
    assert (error.delta.change, world.value()) == (5, 4)


def test_what_the_limit_refuses_is_final_for_its_key_and_carries_its_delta(world: World) -> None:
    world.add(SEATS, 8)
    key = world.key()
    error = refused(LimitReached, lambda: world.ledgers[A].add(SEATS, 3, **key), "Nothing counts")
    delta = error.delta
    assert delta is not None
    world.add(SEATS, -8)
    refused(LimitReached, lambda: world.ledgers[A].add(SEATS, 3, **key), "final")
    refused(LimitReached, lambda: world.ledgers[A].apply(delta), "final")
    assert world.add(SEATS, 3).outcome == "recorded"


def test_each_region_decides_alone_while_it_has_rights_and_asks_the_other_when_it_has_none(world: World) -> None:
    world.add(STOCK, 60)
    assert world.add(STOCK, -4, B).outcome == "recorded"  # its gate had none
    asked = len(world.tables[A].asked)
    world.tables[A].is_down = True
    moved = world.reader(B).standing(STOCK).here.down
    assert moved
    assert world.add(STOCK, -moved, B).outcome == "recorded"
    error = refused(OutOfReach, lambda: world.add(STOCK, -57, B), "eu-west-1#0#.* could not be asked")
    assert error.delta is not None
    world.tables[A].is_down = False
    assert len(world.tables[A].asked) == asked
    refused(LimitReached, lambda: world.ledgers[B].apply(error.delta))
    assert world.value(STOCK) == 60 - 4 - moved


def test_an_add_that_the_gate_has_room_for_is_one_update(world: World) -> None:
    world.add(SEATS, 1)
    world.tables[A].asked.clear()
    world.add(SEATS, 1)
    assert [type(request) for request in world.tables[A].asked] == [Update]


def test_many_changes_of_a_lane_travel_together_and_one_refusal_fails_no_other(world: World) -> None:
    key = world.key()
    asked = [Change(SEATS, 1, f"{n}", key["at"]) for n in range(12)]
    twice = [Change(SEATS, 1, "0", key["at"]), Change(SEATS, 2, "0", key["at"])]
    outcomes = world.ledgers[A].add_many([*asked, *twice, Change("likes", 1, **key), Change(STOCK, 2, **key)])
    told = [each.outcome if isinstance(each, Receipt) else type(each).__name__ for each in outcomes]
    assert told[:12].count("recorded") == 10
    assert told[:12].count("LimitReached") == 2
    assert told[12:] == ["replayed", "TokenConflict", "recorded", "recorded"]
    assert all(each.delta is not None for each in outcomes)
    assert [each.delta.change for each in outcomes if each.delta] == [1] * 13 + [2, 1, 2]


@pytest.mark.parametrize("pack", [False, True])
def test_a_batch_is_one_update_for_each_group_of_a_gate(world: World, pack: bool) -> None:
    world.add(STOCK, 1)
    world.tables[A].asked.clear()
    many = [Change(STOCK, 1, f"many {n}", world.at) for n in range(2 * GROUP_MAX)]
    assert {each.outcome for each in world.ledgers[A].add_many(many, pack=pack)} == {"recorded"}  # type: ignore[union-attr]
    updates = [each for each in world.tables[A].asked if isinstance(each, Update)]
    decided = [each for each in updates if any("recent" in str(a) and "Set" in type(a).__name__ for a in each.actions)]
    assert len(decided) == 2
    assert world.value(STOCK) == 1 + 2 * GROUP_MAX


def test_threads_that_want_the_same_gate_gather() -> None:
    world = World(gather=True)
    world.add(STOCK, 1)
    slow = threading.Event()
    answer = world.tables[A].answer

    def wait(request: Request, /) -> Any:
        if isinstance(request, Update) and not slow.is_set():
            slow.wait(5)
        return answer(request)

    world.tables[A].answer = wait  # type: ignore[method-assign]
    deltas = [world.ledgers[A].prepare(STOCK, 1, **world.key()) for _ in range(9)]
    threads = [threading.Thread(target=world.ledgers[A].apply, args=(delta,)) for delta in deltas]
    for thread in threads:
        thread.start()
    slow.set()
    for thread in threads:
        thread.join()
    world.ledgers[A].close()
    assert world.value(STOCK) == 10


def test_a_hold_sets_aside_and_what_is_not_captured_goes_back(world: World) -> None:
    with world.hold(8) as hold:
        assert (hold.counter, hold.amount, hold.until) == (SEATS, 8, world.at + MINUTE)
        refused(LimitReached, lambda: world.add(SEATS, 3))
        assert hold.capture(5) == Receipt("recorded", hold.delta.__class__(hold.delta.lane, hold.delta.token, 5))
    assert world.value() == 5
    assert world.add(SEATS, 5).outcome == "recorded"
    assert world.ledgers[B].capture(hold, 5).outcome == "replayed"
    error = refused(HoldEnded, lambda: world.ledgers[A].capture(hold), "5 of 8 counts")
    assert isinstance(error, HoldEnded)
    assert (error.state, error.actual) == ("captured", 5)
    refused(HoldEnded, lambda: world.ledgers[A].release(hold), "captured")


def test_leaving_without_a_capture_releases_also_when_the_block_fails(world: World) -> None:
    with world.hold(8) as hold:
        pass
    error = refused(HoldEnded, lambda: world.ledgers[A].capture(hold), "released")
    assert isinstance(error, HoldEnded)
    assert (error.state, error.actual) == ("released", 0)
    world.ledgers[A].release(hold)
    with pytest.raises(KeyError), world.hold(10):
        raise KeyError

    def fails() -> None:
        with world.hold(10):
            world.tables[A].is_down = True
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    world.tables[A].is_down = False
    refused(LimitReached, lambda: world.add(SEATS, 1))
    world.now_ms += 60_100
    assert world.add(SEATS, 1).outcome == "recorded"


def test_a_hold_ends_at_its_time_and_whoever_is_short_takes_it(world: World) -> None:
    key = world.key()
    hold = world.ledgers[A].hold(SEATS, 10, expires=MINUTE, **key)
    assert world.ledgers[B].hold(SEATS, 10, expires=MINUTE, region=A, **key) == hold
    world.now_ms += 30_000
    refused(LimitReached, lambda: world.add(SEATS, 1, B))
    world.now_ms += 30_100
    assert world.add(SEATS, 1, B).outcome == "recorded"
    error = refused(HoldEnded, lambda: world.ledgers[A].capture(hold), "expired: nothing of it counts")
    assert isinstance(error, HoldEnded)
    assert (error.state, error.actual) == ("expired", 0)
    refused(HoldEnded, lambda: world.ledgers[A].hold(SEATS, 10, expires=MINUTE, **key), "expired")
    with world.hold(1) as late:
        world.now_ms += 60_100
        world.add(SEATS, 9)
    assert world.value() == 10
    refused(HoldEnded, lambda: world.ledgers[A].capture(late), "expired")


def test_a_hold_is_a_value_that_travels_as_its_id_or_pickled(world: World) -> None:
    hold = world.hold(4)
    same = Hold.parse(SEATS, hold.id)
    assert same == hold == pickle.loads(pickle.dumps(hold))
    assert len({same, hold}) == 1
    assert hold.id == f"{hold.delta.token}.{A}.0.4"
    for call in (same.release, same.capture, same.__enter__):
        refused(InvalidInput, call, r"came from elsewhere: ask Ledger\.parse_hold\(counter, id\) for one that can")
    assert world.reader().holds(SEATS) == [hold]
    assert world.ledgers[B].capture(same).outcome == "recorded"
    with hold:  # another process has captured it
        pass
    assert world.reader().holds(SEATS) == []
    assert (world.value(), hold != "another", repr(hold).startswith(f"Hold('{SEATS}', 4, until=")) == (4, True, True)


@pytest.mark.parametrize("spoiled", ["", "x", "01.a.0.4", "{token}.eu-west-1.0.0x4", "{token}.eu-west-1.00.4", 5, None])
def test_an_id_that_was_spoiled_is_the_id_of_no_hold(spoiled: Any) -> None:
    hold = World().hold(4)
    given = spoiled.format(token=hold.delta.token) if isinstance(spoiled, str) else spoiled
    refused(InvalidInput, lambda: Hold.parse(SEATS, given), "is the id of no hold")


def test_what_is_wrong_at_the_end_of_an_id_is_shown() -> None:
    hold = World().hold(4)
    refused(InvalidInput, lambda: Hold.parse(SEATS, f"{hold.id} "), f"'{hold.id} ' is the id of no hold; {hold.id} is")


def test_a_hold_that_was_never_granted_is_told_from_one_that_ended(world: World) -> None:
    hold = world.hold(4)
    for other in (
        Hold.parse("seats:other", hold.id),
        Hold.parse(SEATS, hold.id.replace(A, B)),
        Hold.parse(SEATS, hold.id[:-1] + "5"),
    ):
        refused(NoSuchHold, lambda other=other: world.ledgers[A].capture(other), "Nothing was written")  # type: ignore[misc]
        refused(NoSuchHold, lambda other=other: world.ledgers[A].release(other), "Nothing was written")  # type: ignore[misc]
    refused(InvalidInput, lambda: world.ledgers[A].capture(Hold.parse(SEATS, hold.id.replace(A, "ap-south-1"))))
    refused(InvalidInput, lambda: world.ledgers[A].capture(Hold.parse("likes", hold.id)), "has no limit")
    assert world.ledgers[A].capture(hold).outcome == "recorded"


@pytest.mark.parametrize("amount", [5, -1, -4, 10**19, 1.0, True, "4"])
def test_a_capture_is_of_what_was_held_or_less_and_of_its_sign(amount: Any) -> None:
    world = World()
    hold = world.hold(4)
    refused(InvalidChange, lambda: world.ledgers[A].capture(hold, amount))
    assert world.ledgers[A].capture(hold, 0).outcome == "recorded"
    assert world.value() == 0


@pytest.mark.parametrize("amounts", [(3, -3), (-3, 3)])
def test_of_a_hold_below_0_a_capture_takes_the_magnitude_or_the_sign(amounts: tuple[int, int]) -> None:
    world = World()
    world.add(STOCK, 5)
    lower = world.hold(-4, counter=STOCK)
    for amount in (5, -5, 10**19):
        refused(InvalidChange, lambda amount=amount: world.ledgers[A].capture(lower, amount))  # type: ignore[misc]
    refused(InvalidChange, lambda: lower.capture(5), r"A hold of -4 is captured from 0 to -4 \(or to 4\), not 5\.")
    receipts = [lower.capture(amount) for amount in amounts]
    assert [(receipt.outcome, receipt.delta.change) for receipt in receipts] == [("recorded", -3), ("replayed", -3)]
    assert world.value(STOCK) == 2
    refused(HoldEnded, lambda: lower.capture(2), "-3 of -4 counts")
    assert world.value(STOCK) == 2


@pytest.mark.parametrize(
    "expires", [timedelta(0), timedelta(-1), timedelta.min, timedelta(days=401), timedelta.max, 60, None, "PT5M"]
)
def test_how_long_a_hold_holds_is_above_0_and_at_most_400_days(expires: Any) -> None:
    world = World()
    refused(InvalidTime, lambda: world.hold(4, expires), "expires")
    assert not world.tables[A].items
    assert world.hold(4, timedelta(days=400)).until >= world.at + timedelta(days=400)
    assert world.hold(4, timedelta(microseconds=1)).until == world.at + timedelta(milliseconds=1)


def test_a_hold_that_would_be_over_already_is_not_granted_and_one_that_was_is_told(world: World) -> None:
    key = world.key()
    world.now_ms += 60_000
    refused(InvalidTime, lambda: world.ledgers[A].hold(SEATS, 4, expires=MINUTE, **key), "over already")
    assert world.reader().standing(SEATS).held == Room(None, 0)
    early = world.ledgers[A].hold(SEATS, 4, expires=2 * MINUTE, **key)
    world.now_ms += 120_000
    assert world.ledgers[A].hold(SEATS, 4, expires=2 * MINUTE, **key) == early  # nobody has ended it
    assert early.capture().outcome == "recorded"


def test_a_key_of_a_hold_is_not_that_of_a_change_and_another_amount_is_a_conflict(world: World) -> None:
    key = world.key()
    hold = world.ledgers[A].hold(SEATS, 4, expires=MINUTE, **key)
    assert world.ledgers[A].add(SEATS, 4, **key).outcome == "recorded"
    refused(TokenConflict, lambda: world.ledgers[A].hold(SEATS, 3, expires=MINUTE, **key), "a hold of 4, not for 3")
    refused(TokenConflict, lambda: world.ledgers[A].apply(hold.delta), "a hold of 4")
    hold.release()
    refused(TokenConflict, lambda: world.ledgers[A].apply(hold.delta), "a hold that was released")
    refused(HoldEnded, lambda: world.ledgers[A].hold(SEATS, 4, expires=MINUTE, **key), "released")
    full = world.key()
    refused(LimitReached, lambda: world.ledgers[A].hold(SEATS, 7, expires=MINUTE, **full))
    refused(LimitReached, lambda: world.ledgers[A].hold(SEATS, 7, expires=MINUTE, **full), "final")


def test_a_counter_without_a_limit_has_no_holds_and_no_standing() -> None:
    world = World()
    for call in (
        lambda: world.hold(4, counter="likes"),
        lambda: world.ledgers[A].set_limit("likes", floor=0),
        lambda: world.reader().standing("likes"),
        lambda: world.reader().holds("likes"),
    ):
        refused(InvalidInput, call, "has no limit in limits=")
    refused(InvalidInput, lambda: world.ledgers[A].release("a hold"), "takes a Hold")  # type: ignore[arg-type]
    refused(InvalidChange, lambda: world.hold(0), "0 sets nothing aside")


def test_a_limit_is_set_for_one_counter_and_the_other_side_stays(world: World) -> None:
    world.add(SEATS, 8)
    world.ledgers[B].set_limit(SEATS, ceiling=12)
    assert world.add(SEATS, 4).outcome == "recorded"
    refused(LimitReached, lambda: world.ledgers[A].set_limit(SEATS, ceiling=11), "beyond")
    refused(InvalidInput, lambda: world.ledgers[A].set_limit(SEATS, floor=0), "limits another side")
    refused(InvalidInput, lambda: world.ledgers[A].set_limit(SEATS), "a floor, a ceiling or both")
    refused(InvalidInput, lambda: world.ledgers[A].set_limit(STOCK, floor=-1), "names no region")
    assert world.reader().standing(SEATS).ceiling == 12
    assert world.reader().standing("seats:other").ceiling == 10


def test_a_standing_tells_what_is_left_here_and_everywhere_what_is_held_and_on_its_way() -> None:
    world = World()
    nothing = world.reader().standing(SEATS)
    assert (nothing.value, nothing.count, nothing.floor, nothing.ceiling, nothing.closed) == (0, 0, None, 10, True)
    assert (nothing.here, nothing.available, nothing.held) == (Room(None, 10), Room(None, 10), Room(None, 0))
    assert world.reader(B).standing(SEATS).here == Room(None, 0)
    world.add(SEATS, 2)
    world.hold(3)
    world.add(SEATS, 1, B)
    for table, other in ((A, B), (B, A)):  # each Region's gate arrives in the other
        world.tables[table].answer(world_put(world, Lane(other, 0, SEATS)))
    seen = world.reader().standing(SEATS)
    assert (seen.value, seen.count, seen.available, seen.held) == (3, 2, Room(None, 4), Room(None, 3))
    assert seen.here.up is not None
    there = world.reader(B).standing(SEATS).here.up
    assert there is not None
    assert (seen.here.up + there, seen.moving, seen.closed) == (4, Room(None, 0), True)
    gate = items.gate_of(Lane(A, 0, SEATS), world.tables[A].items[items.gate_key(Lane(A, 0, SEATS))])
    world.tables[A].answer(updates.give(gate, (f"{B}#0", "up"), 2))
    assert gate.rights["up"] - 2 == world.reader().standing(SEATS).here.up
    assert world.reader().standing(SEATS).moving == Room(None, 2)
    assert world.reader().standing(SEATS).available == Room(None, 4)


def world_put(world: World, lane: Lane) -> Any:
    from ledger.requests import Put

    return Put(world.tables[lane.region].items[items.gate_key(lane)])


def test_a_read_a_history_and_its_pages_are_of_what_counts(world: World) -> None:
    for change in (4, -1, 2):
        world.add(SEATS, change)
    world.hold(2).release()
    world.hold(2).capture(1)
    refused(LimitReached, lambda: world.add(SEATS, 9))
    balance = world.reader().read(SEATS)
    assert (balance.value, balance.count, balance.pending, balance.by_region) == (6, 4, 0, {A: 6, B: 0})
    history = list(world.reader().history(SEATS))
    assert [entry.change for entry in history] == [4, -1, 2, 1]
    assert {entry.region for entry in history} == {A}
    first = world.reader().history_page(SEATS, limit=3)
    rest = world.reader().history_page(SEATS, limit=3, after=first.next)
    assert [*first.entries, *rest.entries] == history
    assert rest.next is None
    since = history[1].at
    assert [e.change for e in world.reader().history_page(SEATS, since=since, until=history[3].at).entries] == [-1, 2]
    world.add("likes", 5)
    assert world.reader().values([SEATS, "likes", STOCK]) == {SEATS: 6, "likes": 5, STOCK: 0}
    assert world.reader().value(SEATS) == 6


def test_a_long_history_is_read_in_pages_that_are_all_of_it() -> None:
    world = World()
    rising = [world.add(STOCK, n + 1).delta for n in range(200)]
    late = [world.ledgers[A].add(STOCK, 1_000, idempotency_key=f"late {n}", at=rising[n].at) for n in range(5)]
    everything = sorted([(d.token, d.change) for d in (*rising, *(each.delta for each in late))])
    assert any(key.sk.startswith(items.LATE_FROM) for key in world.tables[A].items)
    assert any(key.sk.startswith(items.SEGMENTS_FROM) for key in world.tables[A].items)
    reader = world.reader()
    assert [(entry.token, entry.change) for entry in reader.history(STOCK)] == everything
    for limit in (1, 7, 64, 1_000):
        found, after = [], None
        while True:
            page = reader.history_page(STOCK, limit=limit, after=after)
            assert len(page.entries) <= limit
            found += [(entry.token, entry.change) for entry in page.entries]
            after = page.next
            if after is None:
                break
        assert found == everything


def test_verify_recounts_a_limited_counter_and_finds_what_no_gate_can_have_come_to(world: World) -> None:
    compactor = Compactor(world.settings(), tables=world.tables, clock=world.clock)
    for n in range(40):
        world.add(STOCK, n)
    world.add(STOCK, -7, B)
    found = compactor.verify(STOCK)
    assert (found.ok, found.value) == (True, sum(range(40)) - 7)
    segment = next(key for key in world.tables[A].items if key.sk.startswith(items.SEGMENTS_FROM))
    world.tables[A].answer(Delete(segment))
    assert "are listed, and its gate says" in compactor.verify(STOCK).differences[0]


def test_changes_that_came_past_the_gate_are_told_and_in_no_value() -> None:
    world = World()
    world.add(SEATS, 2)
    world.ledger(B, limits={}).add(SEATS, 5, **world.key())
    compactor = Compactor(world.settings(), tables=world.tables, clock=world.clock)
    found = compactor.verify(SEATS)
    assert (found.value, found.ok, found.unread) == (2, False, (Lane(B, 0, SEATS),))
    assert "without its limit" in found.differences[0]
    away = Compactor(world.settings(B), tables=world.tables, clock=world.clock)
    assert isinstance(away.run().problems[Lane(B, 0, SEATS)], LaneUnread)
    assert world.value() == 2


def test_a_counter_that_has_changes_without_a_limit_gets_no_gate() -> None:
    world = World()
    world.ledger(A, limits={}).add(SEATS, 5, **world.key())
    error = refused(LimitMismatch, lambda: world.add(SEATS, 1), "from before the counter had a limit")
    assert error.delta is not None
    folded = World()
    folded.ledger(A, limits={}).add(SEATS, 5, **folded.key())
    folded.now_ms += 10**6
    Compactor(folded.settings(limits={}, fold_min=1), tables=folded.tables, clock=folded.clock).compact(SEATS)
    folded.tables[A].items = {k: v for k, v in folded.tables[A].items.items() if not k.pk.startswith("delta#")}
    folded.tables[A]._sort_keys = {k: v for k, v in folded.tables[A]._sort_keys.items() if not k.startswith("delta#")}
    refused(LimitMismatch, lambda: folded.add(SEATS, 1), "from before the counter had a limit")


def test_a_gate_that_was_deleted_decides_nothing_until_it_is_back() -> None:
    world = World()
    for _ in range(20):
        world.add(STOCK, 1)
    key = items.gate_key(Lane(A, 0, STOCK))
    kept = world.tables[A].items[key]
    world.tables[A].answer(Delete(key))
    assert any(each.sk.startswith(items.SEGMENTS_FROM) for each in world.tables[A].items)
    error = refused(GateLost, lambda: world.add(STOCK, -1), "its gate is gone")
    assert error.delta is not None
    world.tables[A].answer(world_put_item(kept))
    assert world.add(STOCK, -1).outcome == "recorded"


def test_a_limited_counter_that_was_restored_is_rebuilt_in_every_region() -> None:
    world = World()
    for _ in range(20):
        world.add(STOCK, 1)
    older = dict(world.tables[A].items)
    world.add(STOCK, -3, B)
    world.tables[A].answer(world_put_item(older[items.gate_key(Lane(A, 0, STOCK))]))
    compactor = Compactor(world.settings(B), tables=world.tables, clock=world.clock)
    assert not compactor.verify(STOCK).ok
    rebuilt = compactor.rebuild(STOCK)
    assert (rebuilt, compactor.verify(STOCK).ok) == ({Lane(A, 0, STOCK): 20, Lane(B, 0, STOCK): -3}, True)
    assert world.value(STOCK) == 17
    refused(LimitReached, lambda: world.add(STOCK, -18, B), "Nothing counts")
    assert world.add(STOCK, -17, B).outcome == "recorded"


def world_put_item(item: Any) -> Any:
    from ledger.requests import Put

    return Put(item)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"stock:": LIMITS["stock:"]},
        {**LIMITS, "seats:": Limit(ceiling=11, region=A)},
        {**LIMITS, "seats:": Limit(ceiling=10, region=B)},
        {**LIMITS, "stock:": Limit(floor=0, ceiling=9, region=A)},
    ],
    ids=["none", "one less", "another ceiling", "another region", "another side"],
)
def test_a_process_without_the_limits_of_the_table_is_refused(limits: dict[str, Limit]) -> None:
    world = World()
    world.shape(world.settings())
    before = dict(world.tables[A].items)
    wrong = world.ledger(A, limits=limits)
    refused(SettingsMismatch, lambda: wrong.add(SEATS, 1), "LEDGER_LIMITS")
    refused(SettingsMismatch, lambda: world.shape(world.settings(limits=limits)), "as it is")
    assert world.tables[A].items == before
    more = {**LIMITS, "wallet:": Limit(floor=0)}
    assert world.ledger(A, limits=more).add(SEATS, 1).outcome == "recorded"
    assert world.shape(world.settings(limits=more)) == "grown"
    refused(SettingsMismatch, lambda: world.ledger(A).add(SEATS, 1), "wallet:")


def test_a_shape_takes_no_limit_for_some_of_the_counters_of_another() -> None:
    world = World()
    world.shape(world.settings())
    narrower = world.settings(limits={**LIMITS, "seats:gig": Limit(ceiling=5, region=B)})
    refused(SettingsMismatch, lambda: world.shape(narrower), "would change the limit")


def test_a_gate_of_other_sides_than_the_settings_say_decides_nothing() -> None:
    world = World()
    world.ledger(A, unshared_limits=True).add(SEATS, 1, **world.key())
    other = world.ledger(A, limits={"seats:": Limit(floor=0)}, unshared_limits=True)
    refused(LimitMismatch, lambda: other.add(SEATS, 1, **world.key()), "its gate has rights of up")


def test_who_is_short_waits_a_moment_before_it_asks_another_region_and_remembers_what_is_sold_out() -> None:
    world = World()
    world.add(SEATS, 10)
    world.tables[B].asked.clear()
    world.tables[A].asked.clear()
    refused(LimitReached, lambda: world.add(SEATS, 1, B))
    assert [type(request) for request in world.tables[B].asked].count(Pause) == 1
    asked = len(world.tables[A].asked)
    assert asked > 0
    refused(LimitReached, lambda: world.add(SEATS, 1, B))
    refused(LimitReached, lambda: world.add(SEATS, 2, B))
    assert len(world.tables[A].asked) == asked
    assert not any(isinstance(request, At) for request in world.tables[B].asked[-2:])
    world.ledgers[B].add(SEATS, -1, **world.key())  # what comes back here is known at once
    assert world.add(SEATS, 1, B).outcome == "recorded"
    refused(LimitReached, lambda: world.add(SEATS, 1, B))
    world.add(SEATS, -1, A)
    refused(LimitReached, lambda: world.add(SEATS, 1, B))
    world.now_ms += 1_000
    assert world.add(SEATS, 1, B).outcome == "recorded"
