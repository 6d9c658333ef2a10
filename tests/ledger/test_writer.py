"""`Ledger` and `AsyncLedger`, as a producer uses them: what is valid counts once, all else is
refused by name.
"""

import hashlib
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import assume, example, given

from ledger import Change, Delta, Lane, Ledger, Receipt
from ledger.core import items, tokens
from ledger.core.checks import to_datetime, to_ms
from ledger.core.errors import (
    DamagedItem,
    InvalidChange,
    InvalidCounter,
    InvalidInput,
    InvalidKey,
    InvalidTime,
    LedgerError,
    OutcomeUnknown,
    TableMismatch,
    Throttled,
    TokenConflict,
)
from ledger.core.requests import AlreadyThere, Get, Item, Put, PutMany
from tests.calls import passed
from tests.ledger.test_table_errors import Script
from tests.strategies import FOLDED_HOUR, MISSING_HOUR, changes, counters, datetimes, keys, zones
from tests.world import A, B, Region, World, fail, outcomes_of, refused, settings

AT = datetime(2010, 12, 1, 8, 26, 0, 500_900, tzinfo=UTC)
AT_MS = 1291191960500
NOW = datetime(2026, 5, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEYED: dict[str, Any] = {"idempotency_key": "k", "at": AT}
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@pytest.fixture(params=["called", "awaited"])
def world(request: pytest.FixtureRequest) -> World:
    """Both Regions have one table, as they have when all is replicated."""
    world = World(now_ms=to_ms(NOW))
    world.awaits = request.param == "awaited"
    world.regions[B] = world.home
    return world


def ledger(table: Region, now_ms: int = to_ms(NOW)) -> Ledger:
    """With entropy that is new each time, and the same in each test."""
    numbers = count(1)
    return Ledger(
        settings(),
        table=table,
        clock=lambda: now_ms,
        entropy=lambda size: next(numbers).to_bytes(size, "big"),
    )


# -- add


def test_an_add_without_a_key_is_one_put_of_a_delta() -> None:
    table = Region()
    writer = ledger(table)
    token = tokens.make(to_ms(NOW), (1).to_bytes(10, "big"))
    assert writer.add("c", -6) == Receipt("recorded", Delta(Lane(A, 0, "c"), token, -6))
    assert [*table.items.values()] == [
        {"pk": {"S": "delta#eu-west-1#0#c"}, "sk": {"S": token}, "change": {"N": "-6"}}
    ]
    assert table.kinds == [Get, Put]  # the shape is asked for once
    writer.add("c", -6)
    assert table.kinds == [Get, Put, Put]
    assert len(table.items) == 2  # the same change again is another one


def test_an_add_passes_through_few_functions() -> None:
    """A plain one, once the shape is known: whoever changes a rule of it has to follow so many."""
    writer = World().ledger()
    writer.add("c", 1)
    add = passed(lambda: writer.add("c", 1))
    assert len(add.functions) <= 38, add.functions
    assert add.depth <= 11


def test_a_step_is_taken_as_a_key_and_may_be_longer(world: World) -> None:
    ledger, long = world.ledger(), tokens.step("k" * 1_024, "s" * 256)
    token = tokens.keyed("c", long, AT_MS)
    assert token != tokens.keyed("c", str(long), AT_MS)
    named: Any = {**KEYED, "idempotency_key": long}
    (of_many,) = ledger.add_many([Change("c", -6, **named)])
    assert isinstance(of_many, Receipt)
    receipt = ledger.add("c", -6, **named)
    assert receipt.outcome == "replayed"
    assert {receipt.delta.token, of_many.delta.token, ledger.prepare("c", 1, **named).token} == {
        token
    }
    with pytest.raises(InvalidKey, match="1,024 bytes"):
        ledger.prepare("c", 1, **{**KEYED, "idempotency_key": str(long)})


def test_what_is_there_in_place_of_a_change_is_no_receipt(world: World) -> None:
    delta = world.ledger().prepare("c", -6, **KEYED)
    assert (delta.token, delta.at) == (
        tokens.keyed("c", "k", AT_MS),
        AT.replace(microsecond=500_000),
    )
    assert world.home.asked == []
    key: Item = {"pk": {"S": "delta#eu-west-1#0#c"}, "sk": {"S": delta.token}}
    theirs: list[tuple[Item, type[LedgerError], str]] = [
        (
            {**key, "change": {"N": "7"}},
            TokenConflict,
            r"already stands for a change of 7, not -6\. Nothing was wr",
        ),
        *(
            ({**key, **change}, DamagedItem, delta.token)
            for change in ({}, {"change": {"S": "-6"}})
        ),
        ({}, DamagedItem, "is damaged"),
        (
            {**items.delta_item(delta), "sk": {"S": "0" * 26}},
            TableMismatch,
            "needs the string keys pk and sk",
        ),
    ]
    for there, error, says in theirs:
        world.home.after(Put, lambda *_, there=there: there, times=1)
        with pytest.raises(error, match=says) as raised:
            world.ledger().apply(delta)
        assert raised.value.delta == delta
        if there:
            world.home.after(PutMany, lambda *_, there=there: (AlreadyThere(there),), times=1)
            (value,) = world.ledger().add_many([Change("c", -6, **KEYED)])
            assert (type(value), value.delta) == (error, delta)
    # a role that may not look puts a pack of one
    world.home.after(Put, lambda *_: AlreadyThere(None), times=1)
    assert world.ledger().add("d", 1).outcome == "accepted"
    assert world.value("d") == 1


# -- apply, unknown outcomes


def test_an_unknown_outcome_is_settled_by_its_delta_anywhere(
    world: World,
) -> None:
    for number, keyed in enumerate(({}, KEYED)):
        world.home.after(Put, fail(OutcomeUnknown("lost")), times=2)
        with pytest.raises(OutcomeUnknown, match="counts once") as raised:
            world.ledger().add(f"c{number}", 4, **keyed)
        delta = raised.value.delta
        with pytest.raises(OutcomeUnknown):
            world.ledger(B).apply(delta)
        assert world.ledger(B).apply(delta) == Receipt("replayed", delta)
        assert delta.lane.region == A
        assert world.value(f"c{number}") == 4


def test_a_delta_for_a_lane_that_nobody_reads_is_refused(world: World) -> None:
    """Acknowledged, it would never be in any sum: its Region or its shard is not in these
    settings.
    """
    for lane in (Lane("ap-south-1", 0, "c"), Lane(A, 1, "c")):
        with refused(world.home, InvalidInput, "No reader looks at the lane"):
            world.ledger().apply(Delta(lane, tokens.make(5, bytes(10)), 4))
    with refused(world.home, InvalidInput, "apply takes a Delta"):
        world.ledger().apply(cast(Any, "delta"))


# -- add_many


def test_add_many_answers_in_order_with_errors_as_values(world: World) -> None:
    world.ledger().add("c", 4, idempotency_key="there", at=AT)
    world.ledger().add("c", 4, idempotency_key="other", at=AT)
    asked = [
        *(Change("c", 1), Change("not a name", 1), Change("c", 4, "there", AT), Change("c", True)),
        *(Change("c", 5, "other", AT), Change("c", 1, "key alone")),
        *(Change("d", 1, "k", AT, region=B), Change("d", 1, region="ap-south-1")),
    ]
    outcomes = [
        "recorded",
        "InvalidCounter",
        "replayed",
        "InvalidChange",
        "TokenConflict",
        "InvalidKey",
    ]
    assert outcomes_of(world.ledger().add_many(iter(asked))) == [
        *outcomes,
        "recorded",
        "InvalidInput",
    ]
    assert world.value("c") == 9
    assert world.ledger().add("d", 1, **KEYED, region=B).outcome == "replayed"
    again = world.ledger(B).add_many([Change("d", 1, key, AT, B) for key in "kl"])
    assert outcomes_of(again) == ["replayed", "recorded"]
    assert world.value("d") == 2
    world.home.after(PutMany, lambda *_: (None,), times=1)  # too few answers acknowledge nothing
    with pytest.raises(ValueError, match="shorter"):
        world.ledger().add_many([Change("e", 1)] * 2)


def test_a_token_that_comes_twice_is_sent_once(
    world: World,
) -> None:
    twins = [Change("c", 4, **KEYED), Change("c", 1), Change("c", 4, **KEYED)]
    assert outcomes_of(world.ledger().add_many(twins)) == ["recorded", "recorded", "replayed"]
    assert [len(request.items) for request in world.home.asked if isinstance(request, PutMany)] == [
        2
    ]
    in_two_lanes = [Change("e", 4, **KEYED, region=region) for region in (A, B)]
    assert outcomes_of(world.ledger().add_many(in_two_lanes)) == ["recorded", "recorded"]
    two = [Change("d", change, **KEYED) for change in (4, 7)]
    assert outcomes_of(world.ledger().add_many(two)) == ["recorded", "TokenConflict"]

    def fails(_: PutMany, __: object) -> tuple[LedgerError]:
        """No delta arrived."""
        world.home.drop(*world.home.items)
        return (Throttled("slow"),)

    world.home.after(PutMany, fails)
    assert outcomes_of(world.ledger().add_many([two[0]] * 2)) == ["Throttled"] * 2
    throttled, recorded = world.ledger().add_many(two)
    assert (outcomes_of([throttled, recorded]), recorded.delta) == (
        ["Throttled", "recorded"],
        world.ledger().prepare("d", 7, **KEYED),
    )


def test_a_store_that_hides_items_gets_single_puts(world: World) -> None:
    for number, (change, lost, outcome) in enumerate(
        ((4, False, "replayed"), (5, False, "TokenConflict"), (4, True, "OutcomeUnknown"))
    ):
        world.ledger().add(f"c{number}", 4, **KEYED)
        unknown = fail(OutcomeUnknown("lost")) if lost else lambda _, answer: answer

        def hides(*_: object, unknown: Any = unknown) -> Any:
            world.home.after(Put, unknown, times=1)
            return AlreadyThere(None), None

        world.home.after(PutMany, hides, times=1)
        first, second = world.ledger().add_many(
            [Change(f"c{number}", change, **KEYED), Change("c", 1)]
        )
        assert outcomes_of([first, second]) == [outcome, "recorded"]
        assert first.delta == world.ledger().prepare(f"c{number}", change, **KEYED)


def test_a_batch_is_few_requests_and_none_without_a_valid_change(
    world: World,
) -> None:
    writer = world.ledger()
    assert outcomes_of(writer.add_many([Change("", 1)])) == ["InvalidCounter"]
    assert writer.add_many([]) == []
    for wrong in (("c", 1), {"counter": "c", "change": 1}, "c", None, Change):
        with pytest.raises(InvalidInput, match=r"changes\[1\].*Nothing was written"):
            writer.add_many([Change("c", 1), cast(Any, wrong), Change("not a name", 1)])
    assert world.home.asked == []
    writer.add_many([Change("c", 1) for _ in range(60)])
    assert world.home.kinds[:2] == [Get, PutMany]
    client: Any = Script([{}])  # the table has no shape

    def execute(*, Statements: list[Any], **_: Any) -> Any:
        client.lines.append(len(Statements))
        return {"Responses": [{} for _ in Statements]}

    client.batch_execute_statement = execute
    results = Ledger(settings(), client=client).add_many([Change("c", n) for n in range(60)])
    assert sorted(client.lines) == [10, 25, 25]
    assert [cast(Receipt, each).delta.change for each in results] == [*range(60)]


# -- what is valid counts once


def ms(at: datetime) -> int:
    """Milliseconds since 1970, rounded down, by another way than the library's."""
    offset = at.utcoffset()
    assert offset is not None
    return (at.replace(tzinfo=None) - EPOCH.replace(tzinfo=None) - offset) // timedelta(
        milliseconds=1
    )


def token_of(counter: str, key: str, at_ms: int) -> str:
    """As the data model describes it, digit by digit."""
    digest = hashlib.sha256(f"{len(counter)}:".encode() + counter.encode() + key.encode()).digest()
    number = (at_ms << 80) | int.from_bytes(digest[:10], "big")
    return "".join(CROCKFORD[number >> 5 * place & 31] for place in reversed(range(26)))


@given(counters, changes, keys, datetimes, zones)
@example("!~", 0, "x" * 1_024, EPOCH, UTC)
# five minutes ahead
@example("x" * 256, 10**18, "é" * 512, datetime(9999, 1, 1, 0, 5, tzinfo=UTC), UTC)
@example("a#b", -(10**18), "\0", FOLDED_HOUR, UTC)
@example("50%", 4, " ", FOLDED_HOUR.replace(fold=1), UTC)
@example("fold#eu-west-1#0#x", 4, "👍", MISSING_HOUR, UTC)
def test_whatever_is_valid_counts_once(
    counter: str, change: int, key: str, at: datetime, zone: Any
) -> None:
    # the year 9999, so that nearly every time that is drawn is past
    at_ms, now_ms = ms(at), 253_370_764_800_000
    assume(0 <= at_ms <= now_ms + 300_000)
    world = World((A,), now_ms=now_ms)
    first = world.ledger().add(counter, change, idempotency_key=key, at=at)
    assert first.delta.token == token_of(counter, key, at_ms)
    assert ms(first.delta.at) == at_ms
    there = to_datetime(at_ms).astimezone(zone)
    again = world.ledger().add(counter, change, idempotency_key=key, at=there)
    batched = world.ledger().add_many([Change(counter, change, key, at)])
    assert outcomes_of([first, again, *batched]) == ["recorded", "replayed", "replayed"]
    assert list(world.home.items.values()) == [
        {
            "pk": {"S": f"delta#eu-west-1#0#{counter}"},
            "sk": {"S": first.delta.token},
            "change": {"N": str(change)},
        }
    ]
    balance = world.reader().read(counter)
    assert (balance.value, balance.count) == (change, 1)
    assert [(entry.change, ms(entry.at)) for entry in world.reader().history(counter)] == [
        (change, at_ms)
    ]


def test_the_process_has_a_clock_and_entropy_of_its_own() -> None:
    writer = Ledger(settings(), table=Region())
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    first, second = writer.add("c", 1), writer.add("c", 1)
    assert before <= first.delta.at <= second.delta.at <= datetime.now(UTC)
    assert first.delta.token != second.delta.token
    for now_ms in (0, tokens.TIME_MS_MAX):
        assert tokens.time_ms(ledger(Region(), now_ms).add("c", 1).delta.token) == now_ms


# -- bad input: a typed error, and nothing written

NO_TEXT = [b"k", None, 5, ["c"], ("k",)]
NO_COUNTER = [
    "",
    "x" * 257,
    " ",
    "a b",
    "a ",
    "a\tb",
    "a\n",
    "\0",
    "\x7f",
    "é",
    "名",
    "stock:\u0661",
    "a\udfff",
]
NO_CHANGE = [
    True,
    False,
    1.0,
    float("nan"),
    float("inf"),
    Decimal(1),
    "1",
    b"1",
    None,
    1j,
    -(10**18) - 1,
    10**18 + 1,
]
NO_TIME = [AT.replace(tzinfo=None), date(2010, 12, 1), AT.isoformat(), AT.timestamp(), AT_MS]
BAD: list[tuple[type[LedgerError], str, list[Any]]] = [
    (InvalidCounter, "counter", [*NO_TEXT, *NO_COUNTER]),
    (InvalidChange, "change", [*NO_CHANGE, -(10**39), 10**10_000]),
    (InvalidKey, "idempotency_key", [*NO_TEXT, "", "x" * 1_025, "é" * 513, "\ud800"]),
    (InvalidKey, "at", [None]),
    (
        InvalidTime,
        "at",
        [*NO_TIME, *(at.replace(tzinfo=UTC) for at in (datetime.min, datetime.max))],
    ),
    (
        InvalidTime,
        "at",
        [EPOCH - timedelta(microseconds=1), NOW + 5 * MINUTE + timedelta(milliseconds=1)],
    ),
    (InvalidInput, "region", ["ap-south-1", "", "EU", 5]),
]


def error_of(writer: Ledger, **call: Any) -> LedgerError:
    """The error of add; it is the same from prepare and in add_many, and none of the three sent
    anything.
    """
    with pytest.raises(LedgerError, match="Nothing was written") as raised:
        writer.add(**call)
    with pytest.raises(type(raised.value)):
        writer.prepare(**call)
    (value,) = writer.add_many([Change(**call)])
    assert (type(value), str(value)) == (type(raised.value), str(raised.value))
    assert isinstance(raised.value, ValueError)
    # can be logged, also with a lone surrogate in the input
    assert len(str(raised.value).encode()) < 400
    return raised.value


def test_what_cannot_be_is_refused(world: World) -> None:
    for error, name, values in BAD:
        for wrong in values:
            found = error_of(world.ledger(), **{"counter": "c", "change": 1, **KEYED, name: wrong})
            assert type(found) is error, (name, ascii(wrong)[:40])
    for now_ms, keyed in ((-1, {}), (2**48, {}), (-400_000, {"idempotency_key": "k", "at": EPOCH})):
        assert (
            type(error_of(ledger(world.home, now_ms), counter="c", change=1, **keyed))
            is InvalidTime
        )
    assert world.home.asked == []
