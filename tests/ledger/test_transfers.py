"""Transfers between two counters: three steps, each decided once, whoever takes them, wherever,
in whatever order.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ledger import Change, Keep, Ledger, Limit, Then, Transfer
from ledger.client import saga_steps as steps
from ledger.client.saga_steps import KEY_BYTES_MAX
from ledger.core import errors, tokens
from ledger.core.checks import to_datetime, to_ms
from ledger.gate.gate import REFUSED
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


def move(
    world: World, amount: int, key: dict[str, Any], source: str = ANN, target: str = BOB
) -> Transfer:
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


def test_another_source_or_target_makes_another_transfer(
    world: World,
) -> None:
    """Whichever came first, also one that was refunded; but another amount is a conflict."""
    world.add("wallet:full", 97)
    key = world.key()
    assert move(world, 5, key, target="wallet:full").outcome == "refunded"
    for _ in range(2):
        for source, target, outcome in (
            (ANN, BOB, "moved"),
            (BOB, ANN, "moved"),
            (ANN, TIPS, "moved"),
            (BOB, TIPS, "moved"),
            (ANN, "wallet:full", "refunded"),
            ("wallet:none", BOB, "refused"),
        ):
            assert move(world, 5, key, source, target).outcome == outcome
        assert (*values(world), world.value(TIPS), world.value("wallet:full")) == (55, 25, 10, 97)
    for amount in (4, 6):
        with pytest.raises(errors.TokenConflict):
            move(world, amount, key)
    assert values(world) == (55, 25)


def test_a_callers_key_is_never_a_step(world: World) -> None:
    of = steps.transfer_of(ANN, BOB, 10, "pay", to_datetime(world.now_ms))
    made = [steps.debit(of), steps.credit(of, A), steps.refund(of, A, 0), steps.refund(of, A, 1)]
    texts = {str(change.idempotency_key) for change in made}
    for ending in ("", "/from", "/to", "/back", "/back/1"):
        texts |= {f"pay{ending}", f"step:{ending}", f"step:{len(ANN)}:{ANN}pay{ending}"}
    for counter in (ANN, BOB):
        for text in sorted(texts):
            world.ledger().add(counter, 1, idempotency_key=text, at=of.at)
            world.ledger().add(counter, -1, idempotency_key=f"{text} back", at=of.at)
    given: Any = {"idempotency_key": "pay", "at": of.at}
    assert [move(world, 10, given).outcome for _ in range(2)] == ["moved", "moved"]
    assert values(world) == (50, 40)


PAGE = Path(__file__).parents[2] / "docs" / "data-model.md"
PAIR = "6:pay-1710:wallet:ann10:wallet:bob"
STEPS = (  # the step, the text that is hashed, the token
    ("debit", f"step:10:wallet:ann14:transfer/debit{PAIR}", "015JGGKGE04KVKT69NW0N4ZR44"),
    ("credit", f"step:10:wallet:bob15:transfer/credit{PAIR}", "015JGGKGE03R0ES9MG19E2W2ZA"),
    ("refund", f"step:10:wallet:ann15:transfer/refund{PAIR}1:0", "015JGGKGE0ZHRWPEB2YDMDMDDK"),
    ("next", f"step:10:wallet:ann15:transfer/refund{PAIR}1:1", "015JGGKGE0Q013Q1EZZY8RYS7S"),
)


def test_the_tokens_of_the_steps_are_the_same_for_ever() -> None:
    """Whoever changes a name makes every transfer that is half-way move twice."""
    at = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
    of = steps.transfer_of(ANN, BOB, 2_550, "pay-17", at, A)
    made = [steps.debit(of), steps.credit(of, B), steps.refund(of, B, 0), steps.refund(of, B, 1)]
    assert [(one.counter, one.change, one.region) for one in made] == [
        (ANN, -2_550, A),
        (BOB, 2_550, B),
        (ANN, 2_550, B),
        (ANN, 2_550, B),
    ]
    ledger, page = World().ledger(), PAGE.read_text("utf-8")
    for one, (step, text, token) in zip(made, STEPS, strict=True):
        delta = ledger.prepare(one.counter, one.change, idempotency_key=one.idempotency_key, at=at)
        digest = hashlib.sha256(text.encode()).digest()
        assert (delta.token, tokens.to_bytes(token)[6:]) == (token, digest[:10])
        assert f"| {step} | `{text}` | `{token}` |\n" in page


def test_a_key_is_measured_in_bytes(world: World) -> None:
    for text in ("ü" * 506, "\N{EURO SIGN}" * 337 + "k"):
        assert len(text.encode()) == 1_012
        key = world.key() | {"idempotency_key": text}
        assert move(world, 1, key).outcome == "moved"
        with pytest.raises(
            errors.InvalidKey, match="at most 1,012 bytes of UTF-8; this one has 1,013"
        ):
            move(world, 1, key | {"idempotency_key": text + "k"})


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


def stuck(world: World) -> tuple[Ledger, dict[str, Any]]:
    """The key of a transfer of 21.

    Ann's account was filled while her money was on its way, by another process.
    """
    world.add(BOB, 50)
    key, other = world.key(), Ledger(world.settings(), tables=world.regions, clock=world.clock)
    world.home.before(writes_of(BOB), lambda _: other.add(ANN, 61), 1)
    with pytest.raises(
        errors.TransferStuck, match="wallet:ann: -21 counts, wallet:ann has no room"
    ) as error:
        move(world, 21, key)
    assert isinstance(error.value, errors.Again)
    return other, key


def refusals(world: World) -> int:
    gate = world.home.run(world.gates(ANN).read(world.settings().lanes_of(ANN)[0]))
    return list(gate.recent.values()).count(REFUSED)


def test_a_transfer_without_room_for_its_refund_decides_nothing(
    world: World,
) -> None:
    _, key = stuck(world)
    requests = []
    for _ in range(30):
        world.now_ms += 60_000
        before = dict(world.home.items)
        world.home.asked.clear()
        with pytest.raises(errors.TransferStuck):
            move(world, 21, key)
        requests.append(len(world.home.asked))
        assert (world.home.items, values(world), refusals(world)) == (before, (100, 80), 0)
    assert max(requests) == requests[0] <= 20
    world.add(ANN, -60)
    for _ in range(2):
        assert move(world, 21, key).outcome == "refunded"
        assert values(world) == (61, 80)


def test_a_refund_refused_once_is_followed_by_the_next(
    world: World,
) -> None:
    other, key = stuck(world)
    of = steps.transfer_of(ANN, BOB, 21, key["idempotency_key"], key["at"])
    for number in range(3):
        refund = steps.refund(of, A, number)
        given: Any = {"idempotency_key": refund.idempotency_key, "at": refund.at}
        with pytest.raises(errors.LimitReached):
            other.add(ANN, refund.change, **given)
        with pytest.raises(errors.TransferStuck):
            move(world, 21, key)
        assert (refusals(world), values(world)) == (number + 1, (100, 80))
    other.add(ANN, -60)
    for _ in range(2):
        assert move(world, 21, key).outcome == "refunded"
        assert values(world) == (61, 80)


@pytest.mark.parametrize(
    ("amount", "counter", "nth"), [(20, BOB, 0), (21, ANN, 1)], ids=["credit", "refund"]
)
def test_a_failure_after_the_debit_says_what_counts(
    amount: int, counter: str, nth: int, world: World
) -> None:
    world.add(BOB, 50)
    writes = count()
    world.home.before(
        lambda request: writes_of(counter)(request) and next(writes) == nth,
        fail(errors.Throttled("slower")),
        1,
    )
    with pytest.raises(errors.Throttled) as raised:
        move(world, amount, world.key())
    assert raised.value.__notes__ == [f"{ANN}: -{amount} counts. Call again: that finishes it."]


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
        ({"idempotency_key": "k" * 1_013}, errors.InvalidKey, "at most 1,012 bytes"),
        ({"at": "now"}, errors.InvalidTime, "aware datetime"),
        ({"region": "mars"}, errors.InvalidInput, "is not one of regions"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(
    given: dict[str, Any], error: type[errors.LedgerError], says: str, world: World
) -> None:
    world.home.asked.clear()
    right = {
        "source": ANN,
        "target": BOB,
        "amount": 1,
        "idempotency_key": "k",
        "at": to_datetime(0),
    }
    with pytest.raises(error, match=says):
        world.ledger().transfer(**{**right, **given})
    assert world.home.asked == []
    assert move(world, 1, {"idempotency_key": "k" * KEY_BYTES_MAX, "at": to_datetime(0)}).credit


def test_a_transfer_that_a_period_half_takes_writes_nothing(
    world: World,
) -> None:
    kept = {"llm:": Keep(late=timedelta(days=15), keep=timedelta(days=400))}
    limits = LIMITS | {"llm:": Limit(ceiling=5, region=A)}
    made = World(limits=limits, periods=kept, now_ms=to_ms(datetime(2026, 11, 20, tzinfo=UTC)))
    made.awaits = world.awaits
    made.add(ANN, 60)
    key = made.key()
    for target, error in (
        ("llm:key", errors.InvalidCounter),
        ("llm:key@2026-12", errors.InvalidTime),
    ):
        with refused(made.home, error):
            move(made, 1, key, target=target)
    assert move(made, 4, key, target=NOVEMBER).outcome == "moved"
    made.now_ms = to_ms(datetime(2026, 12, 16, 12, tzinfo=UTC))
    for source, target in ((ANN, NOVEMBER), (NOVEMBER, TIPS)):
        for name in ({**key}, {**key, "idempotency_key": "another"}):
            with refused(made.home, errors.PeriodOver):
                move(made, 4, name, source, target)


def test_a_transfer_whose_period_ends_after_its_debit_says_so() -> None:
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


def test_a_change_with_a_next_step_is_for_a_queue_alone(
    world: World,
) -> None:
    world.home.asked.clear()
    (refused,) = world.ledger().add_many([Change(ANN, -5, **world.key(), then=Then(BOB, 5))])
    assert isinstance(refused, errors.InvalidInput)
    assert "Call transfer" in str(refused)
    assert world.home.asked == []
