"""Limited counters as their users see them, in two Regions that do not replicate; and whom a
limit holds.
"""

import hashlib
import logging
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from compactor import Compactor
from compactor.verify import LaneCheck
from ledger import Change, Hold, Ledger, Limit, Receipt
from ledger.budgets import Budgets
from ledger.core import errors, tokens
from ledger.core.actions import Set
from ledger.core.checks import to_ms
from ledger.core.items import SHAPE_KEY, shape_of
from ledger.core.limit import Shape
from ledger.core.requests import GetMany, Put, Query, Resent, Scan, Together, Update, Written
from ledger.core.values import Lane
from ledger.gate import items, updates
from ledger.gate.updates import GROUP_MAX
from ledger.lane import directory
from ledger.lane.shape import write
from reader import Reader, Room
from tests.world import A, B, Region, World, fail, outcomes_of, refused

SEATS, STOCK = "seats:gig", "stock:85123A"
LIMITS = {"seats:": Limit(ceiling=10, region=A), "stock:": Limit(floor=0)}
MINUTE = timedelta(minutes=1)


class Pair:
    """A World whose limits are in the table's shape, and a Ledger in each Region."""

    def __init__(self, *, gather: bool = False) -> None:
        self.world = World(limits=LIMITS)
        self.world.shape()
        self.here, self.there = (self.world.ledger(region, gather=gather) for region in (A, B))
        self.home, self.away = self.world.home, self.world.away
        self.key = self.world.key

    def add(self, counter: str, change: int, ledger: Ledger | None = None) -> str:
        return (ledger or self.here).add(counter, change, **self.key()).outcome

    def hold(self, amount: int, expires: Any = MINUTE, counter: str = SEATS) -> Hold:
        return self.here.hold(counter, amount, expires=expires, **self.key())

    def value(self, counter: str = SEATS) -> int:
        """What all gates hold together."""
        return sum(self.world.reader(region).read(counter).by_region[region] for region in (A, B))


def raised(
    error: type[errors.LedgerError],
    says: str,
    call: Callable[..., object],
    *args: Any,
    **given: Any,
) -> Any:
    with pytest.raises(error, match=says) as caught:
        call(*args, **given)
    return caught.value


@pytest.fixture
def sale() -> Pair:
    return Pair()


def test_a_limited_change_counts_once_and_a_refusal_is_final() -> None:
    for gather in (False, True):
        sale = Pair(gather=gather)
        key, other = sale.key(), sale.key()
        assert [sale.here.add(SEATS, 4, **key).outcome for _ in range(2)] == [
            "recorded",
            "replayed",
        ]
        assert sale.there.add(SEATS, 4, region=A, **key).outcome == "replayed"
        error = raised(
            errors.TokenConflict,
            "stands for a change of 4, not for 5",
            sale.here.add,
            SEATS,
            5,
            **key,
        )
        assert (error.delta.change, sale.value()) == (5, 4)
        error = raised(errors.LimitReached, "Nothing counts", sale.here.add, SEATS, 7, **other)
        sale.add(SEATS, -4)
        raised(errors.LimitReached, "final", sale.here.add, SEATS, 7, **other)
        raised(errors.LimitReached, "final", sale.here.apply, error.delta)
        assert sale.add(SEATS, 7) == "recorded"
        sale.here.close()


def test_a_region_decides_alone_while_it_has_rights(
    sale: Pair,
) -> None:
    sale.add(STOCK, 60)
    assert sale.add(STOCK, -4, sale.there) == "recorded"  # its gate had none
    sale.home.down = True
    moved = sale.world.reader(B).standing(STOCK).here.down
    assert moved
    assert sale.add(STOCK, -moved, sale.there) == "recorded"
    error = raised(
        errors.OutOfReach, "eu-west-1#0#.* did not answer", sale.add, STOCK, -57, sale.there
    )
    sale.home.down = False
    sale.world.now_ms += 1_001
    raised(errors.LimitReached, "Nothing", sale.there.apply, error.delta)
    assert sale.value(STOCK) == 60 - 4 - moved


def test_changes_travel_together_and_a_refusal_fails_no_other() -> None:
    for gather in (False, True):
        sale = Pair(gather=gather)
        key = sale.key()
        many = [Change(SEATS, 1, f"{n}", key["at"]) for n in range(12)]
        twice = [Change(SEATS, 1, "0", key["at"]), Change(SEATS, 2, "0", key["at"])]
        outcomes = sale.here.add_many(
            [*many, *twice, Change("likes", 1, **key), Change(STOCK, 2, **key)]
        )
        names = outcomes_of(outcomes)
        assert (names[:12].count("recorded"), names[:12].count("LimitReached")) == (10, 2)
        assert names[12:] == ["replayed", "TokenConflict", "recorded", "recorded"]
        assert [each.delta.change for each in outcomes if each.delta] == [1] * 13 + [2, 1, 2]
        for pack in (False, True):
            sale.home.asked.clear()
            lots = [Change(STOCK, 1, f"{pack} {n}", key["at"]) for n in range(2 * GROUP_MAX)]
            assert all(isinstance(each, Receipt) for each in sale.here.add_many(lots, pack=pack))
            made = [each.actions for each in sale.home.asked if isinstance(each, Update)]
            decided = [sum(isinstance(action, Set) for action in actions) for actions in made]
            assert [number for number in decided if number >= GROUP_MAX] == [GROUP_MAX] * 2
        sale.here.close()


def test_a_limit_that_may_have_been_set_is_not_denied(sale: Pair) -> None:
    """The SDK sends the Update again; between both somebody sets a wider limit, and sells what
    that allows.
    """

    def lost(_: Any, answer: Any) -> Resent:
        assert isinstance(answer, Written)
        sale.there.set_limit(SEATS, ceiling=12)
        sale.add(SEATS, 8, sale.there)
        return Resent(answer.item)

    sale.add(SEATS, 3)
    sale.home.after(
        lambda request: isinstance(request, Update) and "ceiling" in repr(request.actions),
        lost,
        times=1,
    )
    raised(
        errors.OutcomeUnknown,
        "may or may not have been applied",
        sale.here.set_limit,
        SEATS,
        ceiling=8,
    )
    assert sale.world.reader(A).standing(SEATS).ceiling == 12


# -- what a refusal carries


def test_a_refusal_says_the_limit_and_what_was_left(sale: Pair) -> None:
    def carried(
        says: str, call: Any, *args: Any, **given: Any
    ) -> tuple[int | None, int | None, bool]:
        error = raised(errors.LimitReached, says, call, *args, **given)
        return error.limit, error.available, error.remembered

    key, refused_hold = sale.key(), sale.key()
    assert carried("would pass", sale.here.add, SEATS, 11, **key) == (10, 10, False)
    repeated = (
        r"seats:gig: this key was refused before\. The reason then: 11 would pass the limit\. "
        r"Nothing .* The limit is 10 now, and all Regions together "
        r"have 10 left\."
    )
    assert carried(repeated, sale.here.add, SEATS, 11, **key) == (10, 10, False)
    sale.world.now_ms += 1_001
    assert carried("would pass", sale.here.hold, SEATS, 12, expires=MINUTE, **refused_hold) == (
        10,
        10,
        False,
    )
    sale.add(SEATS, 3)
    sale.add(SEATS, 5, sale.there)
    sale.world.now_ms += 120_000
    assert carried("refused before", sale.here.hold, SEATS, 12, expires=MINUTE, **refused_hold) == (
        10,
        7,
        False,
    )
    sale.world.replicate()
    assert carried("would pass", sale.here.hold, SEATS, 12, expires=MINUTE, **refused_hold) == (
        10,
        2,
        False,
    )
    assert carried("limit of 10; all Regions together had 2 left.", sale.add, SEATS, 3) == (
        10,
        2,
        False,
    )
    assert carried("left up to a second ago.", sale.add, SEATS, 4) == (10, 2, True)
    sale.add(STOCK, 60, sale.there)
    assert carried("would pass", sale.hold, -61, counter=STOCK) == (0, 60, False)
    assert carried("value is 8 once all", sale.here.set_limit, SEATS, ceiling=7) == (10, 2, False)
    sale.hold(1)
    sale.here.set_limit(SEATS, ceiling=9)
    assert carried("would pass", sale.add, SEATS, 1, sale.there) == (9, 0, False)
    many = sale.here.add_many([Change(SEATS, 11), Change(SEATS, 12)])
    assert [
        (each.limit, each.available) for each in many if isinstance(each, errors.LimitReached)
    ] == [(9, 0)] * 2
    assert (
        raised(errors.LimitReached, "beyond", sale.here.set_limit, SEATS, ceiling=7).counter
        == SEATS
    )
    error = errors.LimitReached("no", counter=SEATS, limit=10, available=2, remembered=True)
    assert pickle.loads(pickle.dumps(error)).__dict__ == error.__dict__


def test_a_refusal_says_whether_it_was_refused_before(sale: Pair) -> None:
    """A transfer goes on to the next refund after a replayed refusal, and stops after a new one."""
    key, of_hold = sale.key(), sale.key()
    for before in (False, True):
        assert (
            raised(errors.LimitReached, "pass", sale.here.add, SEATS, 11, **key).replayed is before
        )
        held = raised(
            errors.LimitReached, "pass", sale.here.hold, SEATS, 12, expires=MINUTE, **of_hold
        )
        assert held.replayed is before
    many = sale.here.add_many([Change(SEATS, 11, **key), *[Change(SEATS, 13, **sale.key())] * 2])
    assert [each.replayed for each in many if isinstance(each, errors.LimitReached)] == [
        True,
        False,
        True,
    ]


def test_a_repeated_refusal_says_what_is_left_now(sale: Pair) -> None:
    key = sale.key()
    many = [Change(SEATS, 11 + n, str(n), key["at"]) for n in range(50)]
    sale.here.add_many(many)
    sale.add(SEATS, 4)
    sale.home.asked.clear()
    again = sale.here.add_many([*many, many[0]])
    assert {
        (each.limit, each.available, each.replayed)
        for each in again
        if isinstance(each, errors.LimitReached)
    } == {(10, 6, True)}
    reads = [each.keys for each in sale.home.asked if isinstance(each, GetMany)]
    assert sum(keys[0].pk.startswith("gate#") for keys in reads) == 1
    sale.add(STOCK, 3)
    refused_sale = sale.key()
    for left in (3, 7):
        error = raised(errors.LimitReached, "would pass", sale.here.add, STOCK, -9, **refused_sale)
        assert (error.limit, error.available) == (0, left)
        sale.add(STOCK, 4)
    sale.home.before(GetMany, fail(errors.Throttled("Slower.")))
    error = raised(
        errors.LimitReached,
        "pass the limit. Nothing counts",
        sale.here.add,
        STOCK,
        -9,
        **refused_sale,
    )
    assert (error.limit, error.available, error.replayed) == (None, None, True)


def test_a_hold_that_is_over_is_left_for_who_is_refused(sale: Pair) -> None:
    key = sale.key()
    raised(errors.LimitReached, "would pass", sale.here.add, SEATS, 11, **key)
    sale.hold(4)
    for wait_ms, left in ((0, 6), (120_000, 10)):
        sale.world.now_ms += wait_ms
        assert (
            raised(errors.LimitReached, "would pass", sale.here.add, SEATS, 11, **key).available
            == left
        )


# -- holds


def test_a_hold_sets_aside_and_what_is_not_captured_goes_back(sale: Pair) -> None:
    with sale.hold(8) as hold:
        assert (hold.counter, hold.amount) == (SEATS, 8)
        raised(errors.LimitReached, "Nothing", sale.add, SEATS, 3)
        receipt = hold.capture(5)
        sale.home.asked.clear()
    assert (receipt.outcome, receipt.delta.change, sale.home.asked) == ("recorded", 5, [])
    assert (sale.value(), sale.add(SEATS, 5)) == (5, "recorded")
    assert sale.there.capture(hold, 5).outcome == "replayed"
    error = raised(errors.HoldEnded, "captured: 5 of 8 counts", sale.here.capture, hold)
    assert (error.state, error.actual) == ("captured", 5)
    raised(errors.HoldEnded, "captured", sale.here.release, hold)


def test_a_block_releases_its_hold_also_when_it_fails(sale: Pair) -> None:
    def left(fails: bool, down: bool) -> Hold:
        with sale.hold(10) as hold:
            sale.home.down = down
            if fails:
                raise KeyError
        return hold

    hold = left(fails=False, down=False)
    error = raised(errors.HoldEnded, "released: nothing of it counts", sale.here.capture, hold)
    assert (error.state, error.actual) == ("released", 0)
    sale.here.release(hold)  # as before
    with pytest.raises(KeyError):
        left(fails=True, down=False)
    with pytest.raises(errors.Unavailable):
        left(fails=False, down=True)
    sale.home.down = False
    sale.world.now_ms += 61_000
    with pytest.raises(KeyError):  # and not that it could not be released
        left(fails=True, down=True)
    sale.home.down = False
    raised(errors.LimitReached, "Nothing", sale.add, SEATS, 1)
    sale.world.now_ms += 61_000
    assert sale.add(SEATS, 1) == "recorded"


def test_a_hold_ends_at_its_time_and_whoever_is_short_takes_it(sale: Pair) -> None:
    key = sale.key()
    hold = sale.here.hold(SEATS, 10, expires=MINUTE, **key)
    assert hold.until == key["at"] + MINUTE
    assert sale.there.hold(SEATS, 10, expires=MINUTE, region=A, **key) == hold
    sale.world.now_ms += 60_001
    assert sale.here.hold(SEATS, 10, expires=MINUTE, **key) == hold  # nobody has ended it
    assert sale.add(SEATS, 1, sale.there) == "recorded"
    error = raised(errors.HoldEnded, "expired: nothing of it counts", sale.here.capture, hold)
    assert (error.state, error.actual) == ("expired", 0)
    raised(errors.HoldEnded, "expired", sale.here.hold, SEATS, 10, expires=MINUTE, **key)
    late = sale.key()
    sale.world.now_ms += 60_000
    raised(errors.InvalidTime, "over already", sale.here.hold, SEATS, 4, expires=MINUTE, **late)
    assert sale.here.hold(SEATS, 4, expires=2 * MINUTE, **late).capture().outcome == "recorded"


def test_a_hold_is_a_value_that_travels_as_its_id_or_pickled(sale: Pair) -> None:
    hold, other = sale.hold(4), sale.hold(2)
    same = Hold.parse(SEATS, hold.id)
    assert same == hold == pickle.loads(pickle.dumps(hold))
    assert (len({same, hold, other}), hold != "another") == (2, True)
    assert hold.id == f"{hold.delta.token}.{A}.0.4"
    assert repr(hold).startswith(f"Hold('{SEATS}', 4, until=")
    for call in (same.release, same.capture, same.__enter__):
        raised(
            errors.InvalidInput,
            r"elsewhere.* Make it anew with Ledger\.parse_hold\(counter, id\)",
            call,
        )
    assert sorted(each.amount for each in sale.world.reader().holds(SEATS)) == [2, 4]
    with sale.there.parse_hold(SEATS, other.id) as parsed:
        assert parsed == other
    assert sale.there.capture(same).outcome == "recorded"
    with hold:  # another process has captured it
        pass
    assert (sale.world.reader().holds(SEATS), sale.value()) == ([], 4)
    raised(errors.InvalidInput, "A Hold takes a Delta", Hold, hold)


def test_a_spoiled_id_is_the_id_of_no_hold(
    sale: Pair,
) -> None:
    hold = sale.hold(4)
    token = hold.delta.token
    for spoiled in (
        "",
        "x",
        "01.a.0.4",
        f"{token}.eu-west-1.0.0x4",
        f"{token}.eu-west-1.00.4",
        5,
        None,
        f"{hold.id} ",
    ):
        for parse in (Hold.parse, sale.here.parse_hold):
            raised(errors.InvalidInput, "is the id of no hold", parse, SEATS, spoiled)
    raised(
        errors.InvalidInput,
        f"'{hold.id} ' is the id of no hold; {hold.id} is",
        Hold.parse,
        SEATS,
        f"{hold.id} ",
    )
    others = ("seats:other", hold.id), (SEATS, hold.id.replace(A, B)), (SEATS, hold.id[:-1] + "5")
    for other in (Hold.parse(*each) for each in others):
        for call in (sale.here.capture, sale.here.release):
            raised(errors.NoSuchHold, "Nothing was written", call, other)
    raised(
        errors.InvalidInput,
        "Nothing",
        sale.here.capture,
        Hold.parse(SEATS, hold.id.replace(A, "ap-south-1")),
    )
    raised(errors.InvalidInput, "has no limit", sale.here.capture, Hold.parse("likes", hold.id))
    raised(errors.InvalidInput, "takes a Hold", sale.here.release, "a hold")


def test_a_capture_is_at_most_what_was_held(
    sale: Pair,
) -> None:
    hold = sale.hold(4)
    for amount in (5, -1, -4, 10**19, 1.0, True, "4"):
        raised(errors.InvalidChange, "Nothing", sale.here.capture, hold, amount)
    assert sale.here.capture(hold, 0).outcome == "recorded"
    error = raised(errors.HoldEnded, "0 of 4 counts", sale.here.capture, hold, 4)
    assert (error.state, error.actual, sale.value()) == ("captured", 0, 0)
    sale.add(STOCK, 8)
    for amounts, left in (((3, -3), 5), ((-3, 3), 2)):
        lower = sale.hold(-4, counter=STOCK)
        raised(
            errors.InvalidChange, r"captured from 0 to -4 \(or to 4\), not 5\.", lower.capture, 5
        )
        receipts = [lower.capture(amount) for amount in amounts]
        assert [(each.outcome, each.delta.change) for each in receipts] == [
            ("recorded", -3),
            ("replayed", -3),
        ]
        raised(errors.HoldEnded, "-3 of -4 counts", lower.capture, 2)
        assert sale.value(STOCK) == left


def test_how_long_a_hold_holds_is_above_0_and_at_most_400_days(sale: Pair) -> None:
    days = timedelta(-1), timedelta.min, timedelta(0), timedelta(days=401), timedelta.max
    for expires in (*days, 60, None, "PT5M"):
        raised(errors.InvalidTime, "expires", sale.hold, 4, expires)
    raised(errors.InvalidChange, "0 sets nothing aside", sale.hold, 0)
    assert not any(key.pk.startswith("gate#") for key in sale.home.items)
    at = sale.world.now_ms
    assert sale.hold(4, timedelta(days=400)).until.timestamp() * 1_000 >= at + 400 * 86_400_000
    assert (
        sale.hold(4, timedelta(microseconds=1)).until.timestamp() * 1_000 == sale.world.now_ms + 1
    )


def test_a_hold_of_the_side_without_a_limit_is_refused(sale: Pair) -> None:
    """It would set nothing aside, and its capture would count: of a wallet of 100, a hold of 50
    makes 150.
    """
    sale.add(STOCK, 100)
    aside, nothing = "sets nothing aside", r"Nothing was written\."
    of_stock = (
        rf"A hold of \+50 {aside}: {STOCK} has only a floor\. {nothing} To reserve 50 pass -50\."
    )
    of_seats = (
        rf"A hold of -5 {aside}: {SEATS} has only a ceiling\. {nothing} To reserve 5 pass 5\."
    )
    shelves = [STOCK, "stock:other"]
    sale.home.asked.clear()
    raised(errors.InvalidInput, of_stock, sale.hold, 50, counter=STOCK)
    raised(errors.InvalidInput, of_seats, sale.hold, -5)
    raised(errors.InvalidInput, of_stock, sale.here.hold_all, shelves, 50, expires=MINUTE)
    raised(errors.InvalidInput, of_stock, Budgets(sale.here).reserve(shelves, 50).open)
    assert sale.home.asked == []
    sale.here.hold_all(shelves[:1], -50, expires=MINUTE).capture()
    assert (sale.hold(5).amount, sale.value(STOCK)) == (5, 50)


def test_a_holds_token_is_what_the_data_model_says_of_its_key(sale: Pair) -> None:
    key = sale.key()
    held = sale.here.hold(SEATS, 1, expires=MINUTE, **key)
    hashed = hashlib.sha256(f"hold:{len(SEATS)}:{SEATS}{key['idempotency_key']}".encode()).digest()
    token = tokens.to_bytes(held.delta.token)
    assert token[:14] == to_ms(key["at"]).to_bytes(6, "big") + hashed[:8]


def test_a_holds_key_is_no_changes_key(
    sale: Pair,
) -> None:
    key = sale.key()
    hold = sale.here.hold(SEATS, 4, expires=MINUTE, **key)
    assert sale.here.add(SEATS, 4, **key).outcome == "recorded"
    raised(
        errors.TokenConflict,
        "a hold of 4, not for 3",
        sale.here.hold,
        SEATS,
        3,
        expires=MINUTE,
        **key,
    )
    raised(errors.TokenConflict, "a hold of 4", sale.here.apply, hold.delta)
    hold.release()
    raised(errors.TokenConflict, "a hold that was released", sale.here.apply, hold.delta)
    raised(errors.HoldEnded, "released", sale.here.hold, SEATS, 4, expires=MINUTE, **key)


# -- another limit, reads and repairs


def test_a_limit_is_set_for_one_counter_and_the_other_side_stays(sale: Pair) -> None:
    sale.add(SEATS, 8)
    sale.there.set_limit(SEATS, ceiling=12)
    assert sale.add(SEATS, 4) == "recorded"
    assert [
        sale.world.reader().standing(counter).ceiling for counter in (SEATS, "seats:other")
    ] == [12, 10]
    both = World(limits={SEATS: Limit(floor=-1, ceiling=1, region=A)}).ledger()
    for ledger, counter, bounds, says in (
        (sale.here, SEATS, {"floor": 0}, "has no such side"),
        (sale.here, SEATS, {}, "a floor, a ceiling or both"),
        (sale.here, SEATS, {"ceiling": 0.5}, "int of magnitude"),
        (sale.here, SEATS, {"ceiling": 10**18 + 1}, "int of magnitude"),
        (sale.here, STOCK, {"floor": -1}, "names no region"),
        (sale.here, "likes", {"floor": 0}, "has no limit.*in limits="),
        (both, SEATS, {"floor": 2}, "above the ceiling"),
        (both, SEATS, {"floor": 2, "ceiling": 1}, "above the ceiling"),
    ):
        raised(errors.InvalidInput, says, ledger.set_limit, counter, **bounds)
    both.set_limit(SEATS, floor=0, ceiling=0)


def test_a_standing_says_what_is_left_held_and_on_its_way(
    sale: Pair,
) -> None:
    nothing = sale.world.reader().standing(SEATS)
    assert (nothing.value, nothing.count, nothing.floor, nothing.ceiling, nothing.closed) == (
        0,
        0,
        None,
        10,
        True,
    )
    assert (nothing.here, nothing.available, nothing.held) == (
        Room(None, 10),
        Room(None, 10),
        Room(None, 0),
    )
    sale.add(SEATS, 2)
    sale.hold(3)
    sale.add(SEATS, 1, sale.there)
    lanes = Lane(A, 0, SEATS), Lane(B, 0, SEATS)
    gates = [
        items.gate_of(lane, sale.world[lane.region].items[items.gate_key(lane)]) for lane in lanes
    ]
    sale.home.copy_to(sale.away, items.gate_key(lanes[0]))
    sale.away.copy_to(sale.home, items.gate_key(lanes[1]))
    seen = sale.world.reader().standing(SEATS)
    assert (seen.value, seen.count, seen.available, seen.held) == (
        3,
        2,
        Room(None, 4),
        Room(None, 3),
    )
    assert (seen.moving, seen.closed, seen.here.up) == (
        Room(None, 0),
        True,
        4 - gates[1].rights["up"],
    )
    sale.home.answer(updates.give(gates[0], (f"{B}#0", "up"), 2))
    moved = sale.world.reader().standing(SEATS)
    assert (moved.here.up, moved.moving, moved.available) == (
        gates[0].rights["up"] - 2,
        Room(None, 2),
        Room(None, 4),
    )
    for call in (sale.world.reader().standing, sale.world.reader().holds):
        raised(errors.InvalidInput, "has no limit.*in limits=", call, "likes")


def test_a_read_a_history_and_its_pages_are_of_what_counts(sale: Pair) -> None:
    for change in (4, -1, 2):
        sale.add(SEATS, change)
    sale.hold(2).release()
    sale.hold(2).capture(1)
    raised(errors.LimitReached, "Nothing", sale.add, SEATS, 9)
    reader = sale.world.reader()
    balance = reader.read(SEATS)
    assert (balance.value, balance.count, balance.pending, balance.by_region) == (
        6,
        4,
        0,
        {A: 6, B: 0},
    )
    assert [(entry.change, entry.region) for entry in reader.history(SEATS)] == [
        (n, A) for n in (4, -1, 2, 1)
    ]
    rising = [sale.here.add(STOCK, n + 1, **sale.key()).delta for n in range(200)]
    late = [
        sale.here.add(STOCK, 1_000, idempotency_key=f"late {n}", at=rising[n].at).delta
        for n in range(5)
    ]
    everything = sorted((delta.token, delta.change) for delta in (*rising, *late))
    assert [(entry.token, entry.change) for entry in reader.history(STOCK)] == everything
    for limit in (7, 64, 1_000):
        found, page = list[Any](), reader.history_page(STOCK, limit=limit)
        while page.next is not None:
            found += page.entries
            page = reader.history_page(STOCK, limit=limit, after=page.next)
        assert [(entry.token, entry.change) for entry in (*found, *page.entries)] == everything
    some = reader.history_page(STOCK, since=rising[7].at, until=rising[9].at).entries
    assert [entry.change for entry in some] == [8, 9]
    sale.add("likes", 5)
    assert reader.values([SEATS, "likes", STOCK]) == {
        SEATS: 6,
        "likes": 5,
        STOCK: sum(n for _, n in everything),
    }


def test_a_restored_counter_is_found_and_rebuilt_everywhere(
    sale: Pair,
) -> None:
    for _ in range(40):
        sale.add(STOCK, 1)
    key = items.gate_key(Lane(A, 0, STOCK))
    older = sale.home.items[key]
    sale.home.drop(key)
    assert raised(errors.GateLost, "its gate is gone", sale.add, STOCK, -1).delta.change == -1
    sale.home.store([older])
    sale.add(STOCK, -3, sale.there)
    compactor = sale.world.compactor(B)
    here, there = (
        LaneCheck(Lane(region, 0, STOCK), value, 0, 0, ()) for region, value in ((A, 40), (B, -3))
    )
    assert (compactor.verify(STOCK).ok, compactor.verify(STOCK).lanes) == (True, (here, there))
    sale.home.store([older])
    assert "which gave 0" in compactor.verify(STOCK).differences[0]
    assert compactor.rebuild(STOCK) == {Lane(A, 0, STOCK): 40, Lane(B, 0, STOCK): -3}
    assert compactor.verify(STOCK).ok
    raised(errors.LimitReached, "Nothing counts", sale.add, STOCK, -38, sale.there)
    assert sale.add(STOCK, -37, sale.there) == "recorded"


def test_changes_past_the_gate_are_in_no_value(
    sale: Pair,
) -> None:
    sale.add(SEATS, 2)
    bare = sale.world.ledger(B, limits={}, unshared_limits=True)
    sale.away.drop(SHAPE_KEY)
    bare.add(SEATS, 5, **sale.key())
    found = sale.world.compactor().verify(SEATS)
    assert (found.value, found.ok, found.unread) == (2, False, (Lane(B, 0, SEATS),))
    assert "without its limit" in found.differences[0]
    assert isinstance(sale.world.compactor(B).run().problems[Lane(B, 0, SEATS)], errors.LaneUnread)
    error = raised(
        errors.LimitMismatch, "from before the counter had a limit", sale.add, SEATS, 1, sale.there
    )
    assert (error.delta.change, sale.value()) == (1, 2)


# -- a limit that the table's shape lacks, or has

OTHERS = {
    "none": {},
    "one less": {"stock:": LIMITS["stock:"]},
    "another ceiling": {**LIMITS, "seats:": Limit(ceiling=11, region=A)},
    "another region": {**LIMITS, "seats:": Limit(ceiling=10, region=B)},
    "another side": {**LIMITS, "stock:": Limit(floor=0, ceiling=9, region=A)},
    "some of the counters of another": {**LIMITS, "seats:gig": Limit(ceiling=5, region=B)},
}


def is_of_shape(request: object) -> bool:
    return isinstance(request, Put) and request.key == SHAPE_KEY


def shaped(world: World, **changed: Any) -> str:
    return world.home.run(write(world.settings(**changed)))


def test_a_process_without_the_tables_limits_is_refused() -> None:
    world = World(limits=LIMITS)
    world.shape()
    for name, limits in OTHERS.items():
        with refused(
            world.home, errors.SettingsMismatch, "LEDGER_LIMITS" if "some" not in name else "limits"
        ):
            world.ledger(limits=limits).add(SEATS, 1)
        with refused(world.home, errors.SettingsMismatch, "as it is|would change the limit"):
            shaped(world, limits=limits)
    more = {**LIMITS, "wallet:": Limit(floor=0)}
    assert world.ledger(limits=more).add(SEATS, 1).outcome == "recorded"
    assert shaped(world, limits=more) == "grown"
    with refused(world.home, errors.SettingsMismatch, "wallet:"):
        world.ledger().add(SEATS, 1)


USES: dict[str, Callable[[Ledger, Reader, Compactor], Any]] = {
    "add": lambda ledger, _, __: ledger.add(SEATS, 1),
    "hold": lambda ledger, _, __: ledger.hold(SEATS, 1, expires=timedelta(minutes=1)).release(),
    "set_limit": lambda ledger, _, __: ledger.set_limit(SEATS, ceiling=11),
    "read": lambda _, reader, __: reader.read(SEATS),
    "values": lambda _, reader, __: reader.values(["plain", SEATS]),
    "history": lambda _, reader, __: list(reader.history(SEATS)),
    "history_page": lambda _, reader, __: reader.history_page(SEATS),
    "standing": lambda _, reader, __: reader.standing(SEATS),
    "holds": lambda _, reader, __: reader.holds(SEATS),
    "verify": lambda _, __, compactor: compactor.verify(SEATS),
    "rebuild": lambda _, __, compactor: compactor.rebuild(SEATS),
}


def test_a_limit_that_the_shape_lacks_is_refused_at_each_use() -> None:
    for name, use in USES.items():
        world = World(limits=LIMITS)
        shaped(world, limits={"stock:": LIMITS["stock:"]})
        process = world.ledger(), world.reader(), world.compactor()
        for _ in range(2):
            with refused(
                world.home, errors.SettingsMismatch, r"'seats:'.*ledgerctl init.*LEDGER_LIMITS="
            ):
                use(*process)
        assert process[0].add("plain", 1).outcome == process[0].add(STOCK, 1).outcome == "recorded"
        assert [process[1].read(counter).value for counter in ("plain", STOCK)] == [1, 1], name
        shaped(world)
        use(*process)
        unshared = World(limits=LIMITS, unshared_limits=True)
        use(unshared.ledger(), unshared.reader(), unshared.compactor())
        assert SHAPE_KEY not in unshared.home.items


def test_in_a_batch_the_changes_below_other_prefixes_go_on() -> None:
    world = World(limits=LIMITS)
    shaped(world, limits={"stock:": LIMITS["stock:"]})
    for gather in (False, True):
        ledger = world.ledger(gather=gather)
        outcomes = ledger.add_many([Change(name, 1) for name in (SEATS, STOCK, "plain", SEATS)])
        assert [type(each).__name__ for each in outcomes] == [
            "SettingsMismatch",
            *["Receipt"] * 2,
            "SettingsMismatch",
        ]
        with pytest.raises(errors.SettingsMismatch) as raised:
            ledger.add(SEATS, 1)
        assert raised.value.delta is not None
        ledger.close()


def test_the_first_use_of_a_limit_writes_the_shape() -> None:
    world = World(limits=LIMITS)
    world.reader().read(SEATS)
    ledger = world.ledger()
    assert ledger.add("plain", 1).outcome == "recorded"
    assert SHAPE_KEY not in world.home.items
    for counter in (SEATS, STOCK):
        ledger.add(counter, 1)
    assert shape_of(world.home.items[SHAPE_KEY]) == Shape((A, B), {}, limits=LIMITS)
    world.home.asked.clear()
    for counter in (SEATS, STOCK, "plain"):
        ledger.add(counter, 1)
    ledger.add_many([Change(SEATS, 1)])
    assert world.home.kinds == [Update, Update, Put, Update]


def test_a_shape_that_cannot_be_written_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It had no answer; or counters below the prefix have changes, and they alone are refused."""
    silent, denied, before = (World(limits=LIMITS, allowed_lateness_ms=0) for _ in range(3))
    silent.home.before(is_of_shape, fail(errors.Unavailable("No answer.")))
    denied.home.before(is_of_shape, fail(errors.NotAllowed("This role may not write that.")))
    before.ledger(limits={}).add("seats:old", 1)
    before.now_ms += 3_600_000
    before.compactor(limits={}).compact("seats:old")  # which lists it
    no_shape = "the table has no shape"
    for world, says in (
        (silent, no_shape),
        (denied, no_shape),
        (before, "counters seats:old have changes"),
    ):
        caplog.clear()
        ledger = world.ledger()
        with caplog.at_level(logging.WARNING, logger="ledger"):
            assert [ledger.add(counter, 1).outcome for counter in (SEATS, STOCK) * 2] == [
                "recorded"
            ] * 4
        (line,) = caplog.messages
        assert says in line
        assert SHAPE_KEY not in world.home.items
    with refused(before.home, errors.LimitMismatch, "from before the counter had a limit"):
        before.ledger().add("seats:old", 1)


def test_the_first_shape_sees_the_same_however_it_looks(caplog: pytest.LogCaptureFixture) -> None:
    """By one page of a Scan; or by Queries, where a page is not all, or the role may not scan."""
    denied = errors.NotAllowed("This role may not scan.")
    denied.is_denied = True
    for has_changes in (False, True):
        for queries in (False, True, None):
            world = World(limits=LIMITS)
            if has_changes:  # in another Region; they have arrived, and so has what lists them
                lane = world.ledger(B, limits={}).add("seats:old", 1).delta.lane
                world.away.store([directory.item_of(lane)])
                world.away.copy_to(world.home)
            if queries:
                world.home.page_size = 1
                world.home.store([directory.item_of(Lane(A, 0, name)) for name in "ab"])
            if queries is None:
                world.home.before(Scan, fail(denied))
            caplog.clear()
            assert world.ledger().add(SEATS, 1).outcome == "recorded"
            assert (SHAPE_KEY in world.home.items) is not has_changes
            assert ("counters seats:old have changes" in caplog.text) is has_changes
            pages = sum(part.pk.startswith("lane#") for part in asked_in(world.home, Query))
            assert (pages > 0) is (queries is not False)


def asked_in(region: Region, kind: type[Any]) -> list[Any]:
    """What a Region was asked of a kind, also with others."""
    parts = [
        part
        for request in region.asked
        for part in (request.requests if isinstance(request, Together) else [request])
    ]
    return [part for part in parts if isinstance(part, kind)]


def test_a_limit_is_not_added_to_counters_with_changes() -> None:
    world = World(limits=LIMITS)
    for counter in ("seats:a", "seats:b", "other"):
        world.away.store([directory.item_of(world.ledger(B, limits={}).add(counter, 1).delta.lane)])
    for has_shape in (False, True):
        if has_shape:
            shaped(world, limits={})
        with refused(
            world.home,
            errors.SettingsMismatch,
            "counters seats:a seats:b have changes.*another name",
        ):
            shaped(world)
    # one each time
    assert sum(each.startswith("together: getmany checkpoint") for each in world.home.in_short) == 2
    world.away.down = True
    with refused(
        world.home,
        errors.Unavailable,
        f"{B} did not say .*a limit is added only when every Region answers",
    ):
        shaped(world)
    assert shaped(world, limits={}) == "kept"
