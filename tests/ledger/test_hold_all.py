"""Holds in several limited counters, all or none: who is asked first, what a refusal leaves, and
how they end.
"""

import hashlib
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from lab.histories.stage.filing import Filing, filed_as
from ledger import Hold, Holds, Keep, Ledger, Limit
from ledger.budgets import Budgets, OverBudget
from ledger.client import hold_all
from ledger.client.aio import AsyncHold, AsyncHolds, AsyncLedger
from ledger.core import errors, items, tokens
from ledger.core.again import TRIES_MAX
from ledger.core.checks import to_datetime, to_ms
from ledger.core.requests import Get, GetMany
from ledger.gate import items as gate_items
from ledger.gate.filing import roll
from tests.world import A, B, World, fail, writes_of
from tests.world import refused as unchanged

KEY, TEAM, ORG = NAMES = "key:k", "team:t", "org:o"
MINUTE = timedelta(minutes=1)
LIMITS = {f"{name.partition(':')[0]}:": Limit(ceiling=10, region=A) for name in NAMES}


@pytest.fixture(params=[False, True], ids=["at once", "awaited"])
def world(request: pytest.FixtureRequest) -> World:
    made = World(limits=LIMITS)
    made.shape()
    made.awaits = request.param
    for name in NAMES:
        made.add(name, 0)
    return made


def held(world: World) -> list[int]:
    return [world.reader().standing(name).held.up or 0 for name in NAMES]


def refused(ledger: Ledger, counters: Any, amount: int, **named: Any) -> errors.LimitReached:
    with pytest.raises(errors.LimitReached) as caught:
        ledger.hold_all(counters, amount, expires=MINUTE, **named)
    return caught.value


def test_each_counter_holds_once_however_often_it_is_called(world: World) -> None:
    key = world.key()
    for region in (A, A, B):
        holds = world.ledger(region).hold_all(NAMES, 4, expires=MINUTE, **key, region=A)
        assert ([hold.counter for hold in holds], len(holds), holds[-1].amount) == ([*NAMES], 3, 4)
    assert len({hold.delta.token for hold in holds}) == 3
    assert held(world) == [4, 4, 4]
    world.ledger().hold_all(iter(NAMES), 4, expires=MINUTE)
    assert held(world) == [8, 8, 8]


def test_a_key_names_the_call_with_its_list_in_any_order(
    world: World,
) -> None:
    key = world.key()
    first = world.ledger().hold_all([KEY, TEAM], 1, expires=MINUTE, **key)
    again = world.ledger(B).hold_all([TEAM, KEY], 1, expires=MINUTE, **key, region=A)
    assert (held(world), [*again]) == ([1, 1, 0], [*reversed(first)])
    others = [
        world.ledger().hold_all(names, 1, expires=MINUTE, **key)
        for names in ([KEY], [KEY, ORG], NAMES)
    ]
    assert held(world) == [4, 2, 2]
    world.ledger().hold(KEY, 1, expires=MINUTE, **key)  # one counter's hold is no call of several
    assert held(world) == [5, 2, 2]
    ended_by(world, first).release()
    ended_by(world, again).release()
    for holds in others:
        ended_by(world, holds).capture()
    assert (held(world), [world.value(name) for name in NAMES]) == ([1, 0, 0], [3, 1, 2])


def ended_by(world: World, holds: Holds) -> Holds:
    """The same holds of a Ledger whose calls block."""
    ledger = Ledger(world.settings(), tables=world.regions, clock=world.clock)
    return Holds(ledger.parse_hold(hold.counter, hold.id) for hold in holds)


def file_all(world: World) -> None:
    """All that the gates decided and hold leaves them."""
    with filed_as(
        Filing(unit_bytes=1, enough=1, beside=0, draw=1, holds_beside=1, holds_left=0, slack_ms=0)
    ):
        for name in NAMES:
            gates = world.gates(name)
            gate = world.home.run(roll(gates, world.home.run(gates.read(gates.first))))
            assert gate is not None
            assert not gate.recent
            assert not gate.held


def test_names_of_a_call_and_its_holds_never_change() -> None:
    at_ms, length_ms = 1291191960000, 60_000
    name = hold_all.name_of("order-7/ü", ["team:t", "key:k"])
    assert name == "8:hold_all10:order-7/ü5:key:k6:team:t"
    assert (
        hold_all.name_of(name, ["key:k"]) == f"13:hold_all/step{len(name.encode())}:{name}5:key:k"
    )
    hashed = hashlib.sha256(b"step:hold:5:key:k" + name.encode()).digest()[:8]
    held = tokens.hold_token("key:k", name, at_ms, length_ms)
    assert tokens.to_bytes(held)[6:] == hashed + (5 << 11 | 1_875).to_bytes(2, "big")
    by_name = tokens.name_of(held)
    end = 31 << 11 | int.from_bytes(hashed[:2], "big") & 0x7FF
    assert tokens.to_bytes(by_name) == at_ms.to_bytes(6, "big") + hashed + end.to_bytes(2, "big")
    assert (held, by_name) == ("015JGGKGE07MEMFVC9DJVF8BTK", "015JGGKGE07MEMFVC9DJVF9Z8X")
    for other_ms in (1, 61_000, tokens.HOLD_MS_MAX):
        other = tokens.hold_token("key:k", name, at_ms, other_ms)
        assert tokens.name_of(other) == by_name != other
        assert tokens.is_named(other, by_name)
        lowest, highest = tokens.ends_of(by_name)
        assert lowest <= other < by_name < highest
    assert not tokens.is_named(by_name, by_name)
    assert not tokens.is_named(tokens.hold_token("key:k", "other", at_ms, 1), by_name)


def same_call(world: World, length: timedelta, region: str = A, **key: Any) -> Holds:
    return world.ledger(region).hold_all(NAMES, 4, expires=length, **key, region=A)


@pytest.mark.parametrize("filed", [False, True])
def test_another_length_is_the_same_call(filed: bool, world: World) -> None:
    key = world.key()
    first = same_call(world, MINUTE, **key)
    if filed:
        file_all(world)
    for length in (2 * MINUTE, MINUTE / 2, MINUTE):
        holds = same_call(world, length, B, **key)
        assert ([hold.id for hold in holds], held(world)) == (
            [hold.id for hold in first],
            [4, 4, 4],
        )
    with pytest.raises(errors.TokenConflict):
        world.ledger().hold_all(NAMES, 3, expires=2 * MINUTE, **key)
    ended_by(world, first).capture(3)
    if filed:
        file_all(world)
    for length in (2 * MINUTE, MINUTE):
        with pytest.raises(errors.HoldEnded) as ended:
            same_call(world, length, **key)
        assert (ended.value.state, ended.value.actual) == ("captured", 3)
    assert held(world) == [0, 0, 0]


# -- one answer, for ever


def test_a_refusal_stays_one_when_the_time_of_the_call_is_over(world: World) -> None:
    """The process remembered that ORG is short, and asked for nothing else."""
    key, ledger = world.key(), world.ledger()
    ledger.hold(ORG, 8, expires=MINUTE)
    refused(ledger, [ORG], 3)
    assert refused(ledger, NAMES, 3, **key).counter == ORG
    for _ in range(2):
        world.now_ms += 61_000
        assert refused(world.ledger(), NAMES, 3, **key).counter == ORG


def test_a_refusal_stays_though_another_ended_the_holds(world: World) -> None:
    key = world.key()
    world.ledger().hold(ORG, 8, expires=MINUTE, **world.key())
    world.home.before(
        writes_of(KEY), lambda _: world.home.before(writes_of(KEY), fail(KeyboardInterrupt()), 1), 1
    )
    with pytest.raises(KeyboardInterrupt):
        world.ledger().hold_all(NAMES, 3, expires=MINUTE, **key)
    world.now_ms += 61_000
    world.add(KEY, 10)  # ends the hold
    assert refused(world.ledger(), NAMES, 3, **key).counter == ORG
    assert refused(world.ledger(), NAMES[::-1], 3, **key).counter == ORG


def test_a_call_repeated_after_its_time_is_over_for_all(
    world: World,
) -> None:
    """KEY was held, the process died, and the time is over.

    Nobody is granted or refused the others after that.
    """
    key = world.key()
    world.home.before(writes_of(TEAM), fail(KeyboardInterrupt()), 1)
    with pytest.raises(KeyboardInterrupt):
        world.ledger().hold_all(NAMES, 3, expires=MINUTE, **key)
    world.now_ms += 61_000
    world.ledger().hold(ORG, 8, expires=2 * MINUTE)
    ledger = world.ledger()
    refused(ledger, [ORG], 3)  # who remembers that asks ORG first
    for by, names, length in (
        (world.ledger(), NAMES, 1),
        (ledger, NAMES, 1),
        (ledger, NAMES[::-1], 9),
    ):
        with pytest.raises(errors.HoldEnded) as ended:
            by.hold_all(names, 3, expires=length * MINUTE, **key)
        assert (ended.value.state, ended.value.actual) == ("expired", 0)
    world.add(KEY, 10)
    assert held(world) == [0, 0, 8]
    with pytest.raises(errors.HoldEnded):
        ledger.hold_all(NAMES, 3, expires=MINUTE, **key)


def test_a_call_over_before_any_decision_can_be_corrected(
    world: World,
) -> None:
    key = world.key()
    world.now_ms += 61_000
    for _ in range(2):
        with unchanged(world.home, errors.InvalidTime, match="over already"):
            world.ledger().hold_all(NAMES, 3, expires=MINUTE, **key)
    world.ledger().hold_all(NAMES, 3, expires=3 * MINUTE, **key)
    assert held(world) == [3, 3, 3]
    world.now_ms += MINUTE * 3 // timedelta(milliseconds=1)
    world.ledger().hold_all(NAMES, 3, expires=MINUTE, **key)  # nobody needed what is over


def test_the_shape_is_asked_once_before_any_hold() -> None:
    world = World(limits=LIMITS)
    world.shape(limits={"key:": LIMITS["key:"]})
    with unchanged(world.home, errors.SettingsMismatch, match="org: team:|team: org:|team:"):
        world.ledger().hold_all(NAMES, 2, expires=MINUTE, **world.key())
    world.shape()
    ledger, shape = (
        world.ledger(),
        lambda each: isinstance(each, Get) and each.key == items.SHAPE_KEY,
    )
    world.home.asked.clear()
    ledger.hold_all(NAMES, 2, expires=MINUTE)
    assert (sum(map(shape, world.home.asked)), held(world)) == (1, [2, 2, 2])


def test_holds_are_released_before_the_refusal_is_raised(
    world: World,
) -> None:
    world.ledger().hold(ORG, 8, expires=MINUTE)
    error = refused(world.ledger(), NAMES, 3)
    assert (error.counter, error.limit, error.available, error.remembered) == (ORG, 10, 2, False)
    assert held(world) == [0, 0, 8]
    assert not hasattr(error, "__notes__")


def test_a_refused_call_is_refused_for_ever_by_that_counter(
    world: World,
) -> None:
    key = world.key()
    blocking = world.ledger().hold(ORG, 8, expires=MINUTE, **world.key())
    assert refused(world.ledger(), NAMES, 3, **key).counter == ORG
    Ledger(world.settings(), tables=world.regions, clock=world.clock).release(Hold(blocking.delta))
    again = refused(world.ledger(), NAMES, 3, **key)
    assert (again.counter, again.replayed, held(world)) == (ORG, True, [0, 0, 0])
    assert (again.limit, again.available) == (10, 10)  # now
    assert isinstance(again.__cause__, errors.HoldEnded)


def test_a_captured_call_releases_no_other_hold(world: World) -> None:
    key = world.key()
    holds = world.ledger().hold_all(NAMES, 3, expires=MINUTE, **key)
    Ledger(world.settings(), tables=world.regions, clock=world.clock).capture(
        Hold(holds[1].delta), 2
    )
    with pytest.raises(errors.HoldEnded) as ended:
        world.ledger().hold_all(NAMES, 3, expires=MINUTE, **key)
    assert (ended.value.state, held(world)) == ("captured", [3, 0, 3])


def test_an_undecided_hold_is_asked_again_then_released(
    world: World,
) -> None:
    world.home.before(writes_of(ORG), fail(errors.Throttled("slower")), TRIES_MAX - 1)
    world.ledger().hold_all(NAMES, 1, expires=MINUTE)
    assert held(world) == [1, 1, 1]
    for named, left in (({}, [1, 1, 1]), (world.key(), [4, 4, 1])):
        world.home.before(writes_of(ORG), fail(errors.Throttled("slower")), TRIES_MAX)
        with pytest.raises(errors.Throttled) as undecided:
            world.ledger().hold_all(NAMES, 3, expires=MINUTE, **named)
        notes = getattr(undecided.value, "__notes__", [])
        assert (held(world), [each.partition(" until")[0] for each in notes]) == (
            left,
            [f"{KEY}, {TEAM}: 3 each stay held"] if named else [],
        )
    world.ledger().hold_all(NAMES, 3, expires=MINUTE, **named)
    assert held(world) == [4, 4, 4]


def test_a_release_that_fails_is_a_note_of_the_refusal(world: World) -> None:
    def fails_from_now_on(_: object, answer: Any) -> Any:
        world.home.before(writes_of(KEY), fail(errors.NotAllowed("no")))
        return answer

    world.ledger().hold(ORG, 8, expires=MINUTE)
    world.home.after(writes_of(KEY), fails_from_now_on, 1)
    error = refused(world.ledger(), NAMES, 3)
    assert error.__notes__ == [
        f"{KEY}: 3 is held until the time of the call is over, because its release failed: no"
    ]
    assert held(world) == [3, 0, 8]


def test_sold_out_is_looked_up_without_a_hold(
    world: World,
) -> None:
    ledger = world.ledger()
    ledger.hold(ORG, 8, expires=MINUTE)
    refused(ledger, NAMES, 3)
    world.home.asked.clear()
    error = refused(ledger, (KEY, "team:new", ORG), 3)
    assert (error.counter, error.remembered) == (ORG, True)
    assert [sum(map(writes_of(name), world.home.asked)) for name in (KEY, "team:new", ORG)] == [
        0,
        0,
        1,
    ]
    (look,) = (each for each in world.home.asked if isinstance(each, GetMany))
    assert (len(look.keys), look.consistent) == (6, False)
    world.now_ms += 1_001  # forgotten
    world.home.asked.clear()
    refused(ledger, NAMES, 3)
    assert [sum(map(writes_of(name), world.home.asked)) for name in (KEY, TEAM)] == [2, 2]


def test_a_look_that_fails_or_is_wrong_changes_no_answer(world: World) -> None:
    ledger = world.ledger()
    world.home.lag()
    blocking = ledger.hold(ORG, 8, expires=MINUTE)
    refused(ledger, NAMES, 3)  # the look of the next one sees enough of ORG
    assert refused(ledger, NAMES, 3).counter == ORG
    world.home.before(GetMany, fail(errors.Throttled("slower")), 1)
    assert refused(ledger, NAMES, 3).counter == ORG
    world.home.lag()  # the look sees too little of ORG
    Ledger(world.settings(), tables=world.regions, clock=world.clock).release(Hold(blocking.delta))
    ledger.hold_all(NAMES, 3, expires=MINUTE)
    assert held(world) == [3, 3, 3]


def test_holds_of_a_dead_attempt_go_with_the_refusal(world: World) -> None:
    """It held KEY and TEAM. Who makes its call again is refused by ORG before it asks them."""
    key, ledger = world.key(), world.ledger()
    world.home.before(writes_of(ORG), fail(KeyboardInterrupt()), 1)
    with pytest.raises(KeyboardInterrupt):
        world.ledger().hold_all(NAMES, 3, expires=MINUTE, **key)
    ledger.hold(ORG, 8, expires=MINUTE)
    refused(ledger, [ORG], 3)
    assert held(world) == [3, 3, 8]
    assert refused(ledger, NAMES, 3, **key).counter == ORG
    assert held(world) == [0, 0, 8]
    assert refused(ledger, NAMES, 3, **key).counter == ORG


def test_a_call_with_a_key_reads_its_own_holds_strongly(world: World) -> None:
    """A copy of before would show none of what its dead attempt holds, and the refusal would
    leave that held.
    """
    key, ledger = world.key(), world.ledger()
    ledger.hold(ORG, 8, expires=MINUTE)
    world.home.lag()
    world.home.before(writes_of(ORG), fail(KeyboardInterrupt()), 1)
    with pytest.raises(KeyboardInterrupt):
        world.ledger().hold_all(NAMES, 3, expires=MINUTE, **key)
    refused(ledger, [ORG], 3)
    assert refused(ledger, NAMES, 3, **key).counter == ORG
    assert [
        sum(
            gate_items.gate_of(
                gates.first, world.home.items[gate_items.gate_key(gates.first)]
            ).held.values()
        )
        for gates in map(world.gates, NAMES)
    ] == [0, 0, 8]


def test_no_later_error_denies_what_an_earlier_try_wrote(
    world: World,
) -> None:
    world.home.before(writes_of(KEY), fail(errors.OutcomeUnknown("lost")), 1)
    world.home.before(writes_of(KEY), fail(errors.Throttled("Nothing was written.")), TRIES_MAX)
    with pytest.raises(errors.OutcomeUnknown) as unknown:
        world.ledger().hold_all(NAMES, 3, expires=MINUTE, **world.key())
    assert isinstance(unknown.value.__cause__, errors.Throttled)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"counters": []}, "one counter or more"),
        ({"counters": KEY}, "several names, not 'key:k'"),
        ({"counters": 7}, "several names, not 7"),
        ({"counters": [KEY, *(f"org:{n}" for n in range(8)), KEY]}, "'key:k' is named twice"),
        ({"counters": [KEY, "views:home"]}, "hold_all: the counter 'views:home' has no limit"),
        ({"counters": [KEY, "a b"]}, "A counter's name"),
        ({"amount": 0}, "0 sets nothing aside"),
        ({"amount": 1.5}, "A change is an int"),
        ({"expires": timedelta(0)}, "not above 0"),
        ({"idempotency_key": "k"}, "came without"),
        ({"at": to_datetime(0)}, "came without"),
        ({"region": "mars"}, "is not one of regions"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(
    given: dict[str, Any], says: str, world: World
) -> None:
    world.home.asked.clear()
    with pytest.raises(errors.InvalidInput, match=says):
        world.ledger().hold_all(**{"counters": NAMES, "amount": 1, "expires": MINUTE, **given})
    assert world.home.asked == []


def test_a_period_that_is_over_holds_nothing(
    world: World,
) -> None:
    kept, november = (
        {"key:": Keep(late=timedelta(days=15), keep=timedelta(days=400))},
        "key:k@2026-11",
    )
    made = World(limits=LIMITS, periods=kept, now_ms=to_ms(datetime(2026, 11, 20, tzinfo=UTC)))
    made.awaits, key = world.awaits, made.key()
    december = datetime(2026, 12, 1, tzinfo=UTC)
    for names, amount, resets_at in (([november, ORG], 11, december), ([ORG, november], 11, None)):
        assert refused(made.ledger(), names, amount).resets_at == resets_at
    if not made.awaits:
        with pytest.raises(OverBudget) as short:
            Budgets(made.ledger(), clock=made.clock).reserve([november], 11).open()
        assert short.value.resets_at == december
    made.now_ms = to_ms(datetime(2026, 12, 16, 12, tzinfo=UTC))
    for names in ([november, ORG], [ORG, november]):
        with unchanged(made.home, errors.PeriodOver):
            made.ledger().hold_all(names, 1, expires=timedelta(days=60), **key)


# -- how they end


def test_a_block_releases_what_was_not_captured() -> None:
    world = World(limits=LIMITS)
    ledger = world.ledger()
    with ledger.hold_all(NAMES, 3, expires=MINUTE) as holds:
        holds[0].capture(1)
        assert held(world) == [0, 3, 3]
    assert (held(world), world.value(KEY)) == ([0, 0, 0], 1)
    moved = pickle.loads(pickle.dumps(ledger.hold_all(NAMES, 3, expires=MINUTE, **world.key())))
    assert (type(moved), held(world)) == (Holds, [3, 3, 3])
    holds = Holds(ledger.parse_hold(hold.counter, hold.id) for hold in moved)
    for outcome in ("recorded", "replayed"):
        assert [(receipt.outcome, receipt.delta.change) for receipt in holds.capture(2)] == [
            (outcome, 2)
        ] * 3
    holds.release()
    assert ([world.value(name) for name in NAMES], held(world)) == ([3, 2, 2], [0, 0, 0])
    with pytest.raises(errors.InvalidInput, match="came from elsewhere"), moved:
        pass
    for wrong in (AsyncHold(moved[0].delta), 1):
        with pytest.raises(errors.InvalidInput, match="Holds are of a Ledger's holds, not"):
            Holds([cast(Hold, wrong)])


def test_each_end_is_tried_before_the_first_failure_is_raised() -> None:
    world = World(limits=LIMITS)
    ledger = world.ledger()
    for end in (Holds.capture, Holds.release, lambda holds: holds.__exit__(None, None, None)):
        holds = ledger.hold_all(NAMES, 3, expires=MINUTE, **world.key())
        world.home.before(writes_of(TEAM), fail(errors.Throttled("slower")), 1)
        with pytest.raises(errors.Throttled):
            end(holds)
        assert held(world) == [0, 3, 0]
        holds.release()
    holds = ledger.hold_all(NAMES, 3, expires=MINUTE)
    world.home.before(writes_of(TEAM), fail(errors.Throttled("slower")), 1)
    with pytest.raises(ZeroDivisionError), holds:
        1 / 0
    assert held(world) == [0, 3, 0]


@pytest.mark.anyio
async def test_awaited_holds_are_granted_once_and_end_as_others_do() -> None:
    world = World(limits=LIMITS)
    async with AsyncLedger(world.settings(), tables=world.regions, clock=world.clock) as ledger:
        asked = ledger.hold_all(NAMES, 3, expires=MINUTE, **world.key())
        assert (isinstance(asked, AsyncHolds), held(world)) == (True, [0, 0, 0])
        async with asked as holds:
            assert (await holds is asked, held(world)) == (True, [3, 3, 3])
            await holds[0].capture(1)  # type: ignore[misc]
        assert (held(world), world.value(KEY)) == ([0, 0, 0], 1)
        holds = await ledger.hold_all(NAMES, 3, expires=MINUTE, **world.key())
        world.home.before(writes_of(TEAM), fail(errors.Throttled("slower")), 1)
        with pytest.raises(errors.Throttled):
            await holds.capture()
        assert [receipt.outcome for receipt in await holds.capture()] == [
            "replayed",
            "recorded",
            "replayed",
        ]
        await holds.release()
        with pytest.raises(errors.InvalidInput, match="async with"), holds:
            pass
        short = ledger.hold_all(NAMES, 9, expires=MINUTE)
        for error in (errors.LimitReached, errors.InvalidInput):
            with pytest.raises(error):
                await short


# -- false refusals
