"""A key that brings its time: which keys do, and that every door of Python takes it from them."""

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import ulid
from hypothesis import given
from hypothesis import strategies as st

from ledger import Change, Keep, Ledger, Limit, Receipt, Then
from ledger.budgets import Budgets
from ledger.client import message
from ledger.client.aio import AsyncLedger
from ledger.client.message import time_text
from ledger.core import tokens
from ledger.core.checks import to_datetime, to_ms
from ledger.core.errors import InvalidInput, InvalidKey, InvalidMessage, InvalidTime, LedgerError
from ledger.core.keys import at_of, time_in
from tests import strategies
from tests.world import LATER_MS, A, World

DATA_MODEL = Path(__file__).parents[2] / "docs" / "data-model.md"
MINTED_MS, HOUR = LATER_MS - 60_123, timedelta(hours=1)
MINTED = to_datetime(MINTED_MS)
ULID = tokens.make(MINTED_MS, b"ulid of ours"[:10])


def uuid_v7(at_ms: int, rest: int = 0) -> str:
    return str(uuid.UUID(int=at_ms << 80 | 7 << 76 | 2 << 62 | rest & (1 << 62) - 1))


UUID_V7 = uuid_v7(MINTED_MS, 12345)
KEYS = [ULID, UUID_V7]
OTHERS = [
    "536365/1",
    ULID.lower(),
    f" {ULID}",
    f"{ULID}\n",
    "8" + ULID[1:],
    ULID[:-1] + "U",
    UUID_V7.upper(),
    UUID_V7.replace("-", ""),
    f"{{{UUID_V7}}}",
    UUID_V7[:14] + "4" + UUID_V7[15:],
    UUID_V7[:19] + "c" + UUID_V7[20:],
    ULID.replace(ULID[0], "\u0660", 1),
]
"""Keys without a time, each close to one that has it."""


def world_of() -> World:
    return World(now_ms=LATER_MS, limits={"seats:": Limit(ceiling=100, region=A)})


@given(st.integers(0, tokens.TIME_MS_MAX), st.binary(min_size=10, max_size=10))
def test_the_time_is_that_of_other_peoples_libraries(at_ms: int, randomness: bytes) -> None:
    theirs = ulid.from_bytes(at_ms.to_bytes(6, "big") + randomness)
    of_uuid = uuid_v7(at_ms, int.from_bytes(randomness, "big"))
    assert uuid.UUID(of_uuid).version == 7
    assert time_in(str(theirs)) == time_in(of_uuid) == to_datetime(at_ms)


@given(strategies.keys | strategies.junk)
def test_any_other_key_has_no_time_and_what_is_given_wins(key: Any) -> None:
    assert time_in(key) is None
    assert at_of(key, None) is None
    assert at_of(key, MINTED) == at_of(ULID, MINTED) == MINTED
    assert at_of(ULID, to_datetime(0)) == to_datetime(0)


def test_the_vectors_of_the_page_are_what_the_library_makes() -> None:
    vector = r"^\| `(\S{22,})` \| (`\S+`|none) \| (`\S+`|) *\|$"
    rows = re.findall(vector, DATA_MODEL.read_text(), re.M)
    assert len(rows) >= 5
    for key, time, token in rows:
        at = time_in(key)
        assert f"`{time_text(at)}`" == time if at else time == "none"
        assert not at or f"`{tokens.keyed('stock:85123A', key, to_ms(at))}`" == token
    assert {time == "none" for _, time, _ in rows} == {True, False}


DOORS: dict[str, Callable[[Ledger, Any], Any]] = {
    "add": lambda ledger, named: ledger.add("c", 1, **named).delta,
    "prepare": lambda ledger, named: ledger.prepare("c", 1, **named),
    "add to a limit": lambda ledger, named: ledger.add("seats:1", 1, **named).delta,
    "add_up_to": lambda ledger, named: ledger.add_up_to("seats:1", 1, **named).delta,
    "add_many": lambda ledger, named: _delta(*ledger.add_many([Change("c", 1, **named)])),
    "add_many, packed": lambda ledger, named: _delta(
        *ledger.add_many([Change("c", 1, **named)], pack=True)
    ),
    "hold": lambda ledger, named: ledger.hold("seats:1", 1, expires=HOUR, **named).delta,
    "hold_all": lambda ledger, named: [
        hold.delta for hold in ledger.hold_all(["seats:1", "seats:2"], 1, expires=HOUR, **named)
    ],
    "transfer": lambda ledger, named: [
        getattr(ledger.transfer("a", "b", 1, **named), step).delta for step in ("debit", "credit")
    ],
    "budgets": lambda ledger, named: _reserved(ledger, **named),
    "message": lambda _, named: message.dumps(Change("c", 1, **named)),
    "message of a part": lambda _, named: message.dumps(Change("c", 1, **named, partial=True)),
    "message of a transfer": lambda _, named: message.dumps(
        Change("a", -1, **named, then=Then("b", 1))
    ),
}


def _delta(outcome: Receipt | LedgerError) -> Any:
    if isinstance(outcome, LedgerError):
        raise outcome
    return outcome.delta


def _reserved(ledger: Ledger, idempotency_key: str | None = None, at: Any = None) -> Any:
    budgets = Budgets(ledger, clock=lambda: LATER_MS)
    call = budgets.reserve(["seats:1"], 1, call=idempotency_key, at=at)
    with call:
        call.settle(1)
        return call.at, [hold.delta for hold in call.holds]


@pytest.mark.parametrize("key", KEYS, ids=["ulid", "uuid v7"])
@pytest.mark.parametrize("door", DOORS)
def test_a_door_takes_the_time_from_the_key(door: str, key: str) -> None:
    use, world = DOORS[door], world_of()
    left_out = use(world.ledger(), {"idempotency_key": key})
    again = use(world_of().ledger(), {"idempotency_key": key, "at": MINTED})
    assert left_out == again
    before = {**world.home.items}
    world.now_ms += 86_400_000  # a retry the day after
    if door != "budgets":  # whose call has ended
        assert use(world.ledger(), {"idempotency_key": key, "at": MINTED}) == left_out
        assert use(world.ledger(), {"idempotency_key": key}) == left_out
    assert world.home.items == before


@pytest.mark.parametrize("door", DOORS)
def test_what_is_given_wins(door: str) -> None:
    named = {"idempotency_key": ULID, "at": MINTED - timedelta(seconds=1)}
    use, key = DOORS[door], {"idempotency_key": ULID}
    assert use(world_of().ledger(), named) != use(world_of().ledger(), key)


@pytest.mark.parametrize("door", DOORS)
def test_a_door_refuses_any_other_key_and_says_both_ways(door: str) -> None:
    world = world_of()
    for key in OTHERS:
        with pytest.raises(InvalidInput, match=r"`at`|at .*came alone") as refused:
            DOORS[door](world.ledger(), {"idempotency_key": key})
        assert isinstance(refused.value, InvalidKey | InvalidMessage)
        assert re.search(r"a ULID or a UUIDv7.* needs no `at`", str(refused.value)), key
    assert world.home.items == {}


@pytest.mark.parametrize("door", ["prepare", "add to a limit", "add_many", "hold", "budgets"])
def test_a_key_in_the_other_letters_is_called_that(door: str) -> None:
    in_small, in_capitals = ULID.lower(), uuid_v7(LATER_MS).upper()
    for key, says in ((in_small, "a ULID in small letters"), (in_capitals, "a UUIDv7 in capitals")):
        with pytest.raises(InvalidKey, match=f"This key is {says}"):
            DOORS[door](world_of().ledger(), {"idempotency_key": key})


@pytest.mark.parametrize("door", [door for door in DOORS if "message" not in door])
def test_a_key_from_the_future_is_refused(door: str) -> None:
    world = world_of()
    for at_ms in (LATER_MS + 300_001, LATER_MS * 2, tokens.TIME_MS_MAX):
        for key in (tokens.make(at_ms, bytes(10)), uuid_v7(at_ms)):
            with pytest.raises(InvalidTime, match="ahead of this clock's"):
                DOORS[door](world.ledger(), {"idempotency_key": key})
    assert world.home.items == {}
    with pytest.raises(InvalidTime, match="That is the key's own time: give `at`, or another key"):
        world.ledger().add("c", 1, idempotency_key=uuid_v7(LATER_MS * 2))
    near = tokens.make(LATER_MS + 300_000, bytes(10))
    DOORS[door](world.ledger(), {"idempotency_key": near})


def test_a_key_of_another_time_than_the_period_is_refused() -> None:
    world = World(now_ms=LATER_MS, periods={"llm:": Keep(late=HOUR, keep=HOUR)})
    month = MINTED.strftime("%Y-%m")
    ledger = world.ledger()
    assert ledger.add(f"llm:k@{month}", 1, idempotency_key=ULID).outcome == "recorded"
    for at in (None, MINTED):
        with pytest.raises(InvalidTime, match="2023-10"):
            ledger.add("llm:k@2023-10", 1, idempotency_key=ULID, at=at)


def test_two_keys_of_one_millisecond_are_two_changes() -> None:
    world = world_of()
    for n in range(3):
        world.ledger().add("c", 1, idempotency_key=uuid_v7(MINTED_MS, n))
        world.ledger().add("c", 1, idempotency_key=tokens.make(MINTED_MS, bytes([n] * 10)))
    assert world.reader().value("c") == 6


def test_a_member_of_an_enum_is_its_text() -> None:
    class Key(StrEnum):
        ULID = ULID
        UUID = UUID_V7

    for key in Key:
        assert time_in(key) == MINTED
        made = world_of().ledger().prepare("c", 1, idempotency_key=key)
        assert made == world_of().ledger().prepare("c", 1, idempotency_key=key.value, at=MINTED)


@pytest.mark.anyio
async def test_an_async_ledger_takes_it_too() -> None:
    world = world_of()
    settings = world.ledger().settings
    async with AsyncLedger(settings, tables=world.regions, clock=lambda: LATER_MS) as ledger:
        receipt = await ledger.add("c", 1, idempotency_key=ULID)
        moved = await ledger.transfer("a", "b", 1, idempotency_key=ULID)
    assert receipt.delta.at == MINTED
    assert moved.debit is not None
    assert moved.debit.delta.at == MINTED


def test_a_message_brings_the_time_in_its_key() -> None:
    for key in KEYS:
        sent = Change("c", 1, key)
        assert f'"at":"{time_text(MINTED)}"' in message.dumps(sent)
        left_out = f'{{"counter":"c","change":1,"idempotency_key":"{key}"}}'
        assert message.loads(left_out) == message.loads(message.dumps(sent))
        (among_many,) = message.loads_many(f'{{"changes":[{left_out}]}}')
        assert among_many.at == MINTED
        with pytest.raises(InvalidMessage, match=r"^at: "):  # null is not left out
            message.loads(left_out.replace("}", ',"at":null}'))
    given = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
    assert message.loads(message.dumps(Change("c", 1, ULID, given))).at == given
