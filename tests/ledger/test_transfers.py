"""Transfers between two counters: three steps, each decided once, whoever takes them, wherever, in whatever order."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from ledger import Change, Keep, Ledger, Limit, Then, Transfer, errors
from ledger.checks import KEY_BYTES_MAX, to_datetime, to_ms
from ledger.gate.gate import REFUSED
from ledger.requests import Update
from ledger.saga.steps import LONGEST
from tests.world import A, B, World, fail, refused, writes_of

ANN, BOB, TIPS, NOVEMBER = "wallet:ann", "wallet:bob", "tips", "llm:key@2026-11"
LIMITS = {"wallet:": Limit(floor=0, ceiling=100, region=A)}


def with_wallets(bob: int = 30) -> World:
    """Ann has 60."""
    made = World(limits=LIMITS)
    made.shape()
    for name, change in ((ANN, 60), (BOB, bob)):
        made.add(name, change)
    return made


@pytest.fixture(params=[False, True], ids=["at once", "awaited"])
def world(request: pytest.FixtureRequest) -> World:
    """Ann has 60, Bob 30."""
    made = with_wallets()
    made.awaits = request.param
    return made


def move(world: World, amount: int, key: dict[str, Any], source: str = ANN, target: str = BOB) -> Transfer:
    return world.ledger().transfer(source, target, amount, **key)


def values(world: World) -> tuple[int, int]:
    return world.value(ANN), world.value(BOB)


def test_a_transfer_moves_once_however_often_it_is_asked_for(world: World) -> None:
    key = world.key()
    outcomes = [move(world, 25, key) for _ in range(2)]
    for outcome, said in zip(outcomes, ("recorded", "replayed"), strict=True):
        assert outcome.outcome == "moved"
        assert outcome.debit is not None
        assert outcome.credit is not None
        assert (outcome.debit.outcome, outcome.debit.delta.change) == (said, -25)
        assert (outcome.credit.outcome, outcome.credit.delta.change) == (said, 25)
        assert outcome.cost is not None
    assert values(world) == (35, 55)


def test_what_the_source_refuses_moves_nothing_then_or_later(world: World) -> None:
    key = world.key()
    assert move(world, 61, key) == Transfer("refused")
    world.add(ANN, 30)
    assert move(world, 61, key) == Transfer("refused")
    assert values(world) == (90, 30)


def test_what_the_target_refuses_comes_back_once_and_for_ever(world: World) -> None:
    world.add(BOB, 50)
    key = world.key()
    for _ in range(2):
        outcome = move(world, 21, key)
        assert (outcome.outcome, outcome.debit is None, outcome.credit) == ("refunded", False, None)
        assert values(world) == (60, 80)
        world.add(BOB, -30)
        world.add(BOB, 30)


def test_without_limits_every_transfer_moves(world: World) -> None:
    assert move(world, 7, world.key(), "tips:a", TIPS).outcome == "moved"
    assert (world.value("tips:a"), world.value(TIPS)) == (-7, 7)
    assert move(world, 5, world.key(), BOB, TIPS).outcome == "moved"
    assert (world.value(BOB), world.value(TIPS)) == (25, 12)


def test_a_refund_that_is_refused_asks_for_one_new_refusal_a_call_and_comes_back_once_there_is_room(
    world: World,
) -> None:
    """Ann's account is filled up while her money is on its way, by another process."""
    world.add(BOB, 50)
    key, other = world.key(), Ledger(world.settings(), tables=world.regions, clock=world.clock)
    world.home.before(writes_of(BOB), lambda _: other.add(ANN, 61), 1)
    for refusals in (1, 2, 3):
        with pytest.raises(errors.TransferStuck, match="wallet:ann: -21 counts, wallet:ann has no room") as error:
            move(world, 21, key)
        assert isinstance(error.value, errors.Again)
        assert values(world) == (100, 80)
        gate = world.home.run(world.gates(ANN).read(world.settings().lanes_of(ANN)[0]))
        assert list(gate.recent.values()).count(REFUSED) == refusals
    world.add(ANN, -60)
    for _ in range(2):
        assert move(world, 21, key).outcome == "refunded"
        assert values(world) == (61, 80)


def nth_write(nth: int) -> Callable[[Any], bool]:
    writes = count()
    return lambda request: isinstance(request, Update) and next(writes) == nth


@pytest.mark.parametrize("bob", [30, 95], ids=["moved", "refunded"])
@pytest.mark.parametrize("hook", ["before", "after"])
def test_whatever_fails_on_the_way_the_same_call_again_finishes_it_from_either_region(bob: int, hook: str) -> None:
    """Each write in turn is not sent, or its answer is lost; the next call comes from the other Region."""
    outcome, after = ("moved", (50, 40)) if bob == 30 else ("refunded", (60, 95))
    for nth in range(2 if bob == 30 else 4):
        world = with_wallets(bob)
        key = world.key()
        getattr(world.home, hook)(nth_write(nth), fail(errors.OutcomeUnknown("lost")), 1)
        with pytest.raises(errors.OutcomeUnknown):
            world.ledger().transfer(ANN, BOB, 10, **key)
        assert sum(values(world)) in (60 + bob, 50 + bob)
        for _ in range(2):
            assert world.ledger(B).transfer(ANN, BOB, 10, **key, region=A).outcome == outcome
            assert values(world) == after


@pytest.mark.parametrize("bob", [30, 95], ids=["moved", "refunded"])
def test_two_who_finish_one_transfer_at_once_move_it_once(bob: int) -> None:
    outcome, after = ("moved", (50, 40)) if bob == 30 else ("refunded", (60, 95))
    for nth in range(6):
        world = with_wallets(bob)
        key, others = world.key(), list[str]()

        def other(_: object, world: World = world, key: Any = key, others: list[str] = others) -> None:
            others.append(move(world, 10, key).outcome)

        world.home.before(nth_write(nth), other, 1)
        assert (move(world, 10, key).outcome, values(world)) == (outcome, after)
        assert others == [outcome] * (nth < (2 if bob == 30 else 4))


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"target": ANN}, errors.InvalidInput, "has two counters"),
        ({"amount": 0}, errors.InvalidChange, "is of 1 to"),
        ({"amount": -5}, errors.InvalidChange, "is of 1 to"),
        ({"amount": 10**18 + 1}, errors.InvalidChange, "at most 10"),
        ({"amount": True}, errors.InvalidChange, "is an int"),
        ({"target": "a b"}, errors.InvalidCounter, "A counter's name"),
        ({"source": 7}, errors.InvalidCounter, "A counter's name"),
        ({"idempotency_key": None}, errors.InvalidKey, "is text"),
        ({"at": None}, errors.InvalidKey, "came without"),
        ({"idempotency_key": "k" * (KEY_BYTES_MAX - len(LONGEST) + 1)}, errors.InvalidKey, "at most 1,012 bytes"),
        ({"at": "now"}, errors.InvalidTime, "aware datetime"),
        ({"region": "mars"}, errors.InvalidInput, "is not one of regions"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(
    given: dict[str, Any], error: type[errors.LedgerError], says: str, world: World
) -> None:
    world.home.asked.clear()
    right = {"source": ANN, "target": BOB, "amount": 1, "idempotency_key": "k", "at": to_datetime(0)}
    with pytest.raises(error, match=says):
        world.ledger().transfer(**{**right, **given})
    assert world.home.asked == []
    assert move(world, 1, {"idempotency_key": "k" * (KEY_BYTES_MAX - len(LONGEST)), "at": to_datetime(0)}).credit


def test_a_transfer_of_which_a_period_takes_no_half_writes_nothing_in_either_counter(world: World) -> None:
    kept = {"llm:": Keep(late=timedelta(days=15), keep=timedelta(days=400))}
    limits = LIMITS | {"llm:": Limit(ceiling=5, region=A)}
    made = World(limits=limits, periods=kept, now_ms=to_ms(datetime(2026, 11, 20, tzinfo=UTC)))
    made.awaits = world.awaits
    made.add(ANN, 60)
    key = made.key()
    for target, error in (("llm:key", errors.InvalidCounter), ("llm:key@2026-12", errors.InvalidTime)):
        with refused(made.home, error):
            move(made, 1, key, target=target)
    assert move(made, 4, key, target=NOVEMBER).outcome == "moved"
    made.now_ms = to_ms(datetime(2026, 12, 16, 12, tzinfo=UTC))
    for source, target in ((ANN, NOVEMBER), (NOVEMBER, TIPS)):
        for name in ({**key}, {**key, "idempotency_key": "another"}):
            with refused(made.home, errors.PeriodOver):
                move(made, 4, name, source, target)


def test_a_transfer_whose_period_is_over_after_its_debit_says_what_counts_and_that_no_call_finishes_it() -> None:
    kept = {"llm:": Keep(late=timedelta(days=15), keep=timedelta(days=400))}
    over_ms = to_ms(datetime(2026, 12, 16, 12, tzinfo=UTC))
    made = World(limits=LIMITS, periods=kept, now_ms=over_ms - 1_000)
    made.add(ANN, 60)
    key: dict[str, Any] = {"idempotency_key": "k", "at": datetime(2026, 11, 20, tzinfo=UTC)}

    def time_goes(_: object, answer: Any) -> Any:
        made.now_ms = over_ms
        return answer

    made.home.after(writes_of(ANN), time_goes, 1)
    with pytest.raises(errors.PeriodOver) as raised:
        move(made, 4, key, target=NOVEMBER)
    assert raised.value.__notes__ == [f"{ANN}: -4 counts. No call finishes the transfer."]
    assert (made.value(ANN), made.value(NOVEMBER)) == (56, 0)


def test_a_change_with_what_follows_is_for_a_queue_and_no_ledger_adds_half_of_it(world: World) -> None:
    world.home.asked.clear()
    (refused,) = world.ledger().add_many([Change(ANN, -5, **world.key(), then=Then(BOB, 5))])
    assert isinstance(refused, errors.InvalidInput)
    assert "Call transfer" in str(refused)
    assert world.home.asked == []
