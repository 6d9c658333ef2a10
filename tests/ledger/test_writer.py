"""`Ledger`, as a producer uses it."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import count
from typing import Any, cast

import pytest

from ledger import Change, Delta, Lane, Ledger, Receipt, tokens
from ledger.checks import to_ms
from ledger.errors import (
    DamagedItem,
    InvalidChange,
    InvalidCounter,
    InvalidInput,
    InvalidKey,
    InvalidTime,
    LedgerError,
    OutcomeUnknown,
    TokenConflict,
)
from ledger.requests import Get, Put, PutMany
from tests.calls import passed
from tests.ledger.test_table_errors import Script
from tests.world import A, B, Region, World, fail, outcomes_of, refused, settings

AT = datetime(2010, 12, 1, 8, 26, 0, 500_900, tzinfo=UTC)
AT_MS = 1291191960500
NOW = datetime(2026, 5, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEYED: dict[str, Any] = {"idempotency_key": "k", "at": AT}


@pytest.fixture
def world() -> World:
    """Both Regions have one table, as they have when all is replicated."""
    world = World(now_ms=to_ms(NOW))
    world.regions[B] = world.home
    return world


def ledger(table: Region, now_ms: int = to_ms(NOW)) -> Ledger:
    """With entropy that is new each time, and the same in each test."""
    numbers = count(1)
    return Ledger(
        settings(), table=table, clock=lambda: now_ms, entropy=lambda size: next(numbers).to_bytes(size, "big")
    )


# -- add ---------------------------------------------------------------------------------------------------------------


def test_an_add_without_a_key_is_one_put_of_a_delta_with_the_time_of_the_clock_and_the_given_entropy() -> None:
    table = Region()
    writer = ledger(table)
    token = tokens.make(to_ms(NOW), (1).to_bytes(10, "big"))
    assert writer.add("c", -6) == Receipt("recorded", Delta(Lane(A, 0, "c"), token, -6))
    assert [*table.items.values()] == [{"pk": {"S": "delta#eu-west-1#0#c"}, "sk": {"S": token}, "change": {"N": "-6"}}]
    assert table.kinds == [Get, Put]  # the shape is asked for once
    writer.add("c", -6)
    assert table.kinds == [Get, Put, Put]
    assert len(table.items) == 2  # the same change again is another one


def test_an_add_passes_through_few_functions(world: World) -> None:
    """A plain one, once the shape is known: whoever changes a rule of it has to follow so many."""
    writer = world.ledger()
    writer.add("c", 1)
    add = passed(lambda: writer.add("c", 1))
    assert len(add.functions) <= 51, add.functions
    assert add.depth <= 12


def test_a_retried_add_with_a_key_counts_once_with_the_time_of_the_change_in_any_zone(world: World) -> None:
    first = world.ledger().add("c", 4, **KEYED)
    assert (first.outcome, first.delta.token) == ("recorded", tokens.keyed("c", "k", AT_MS))
    assert first.delta.at == AT.replace(microsecond=500_000)
    world.now_ms += 10**10
    for at in (AT, AT.astimezone(timezone(timedelta(hours=9)))):
        assert world.ledger().add("c", 4, idempotency_key="k", at=at) == Receipt("replayed", first.delta)
    assert world.ledger(B).add("c", 4, **KEYED, region=A) == Receipt("replayed", first.delta)
    assert world.value("c") == 4


def test_another_counter_key_time_or_region_is_another_change(world: World) -> None:
    others: list[dict[str, Any]] = [{"counter": "d"}, {"idempotency_key": "k2"}, {"at": AT + timedelta(milliseconds=1)}]
    for other in ({}, *others, {"region": B}):
        call: Any = {"counter": "c", "change": 4, **KEYED, **other}
        assert world.ledger().add(**call).outcome == "recorded"
    assert len(world.home.items) == 5
    with refused(world.home, TokenConflict, "a change of 4, not 5") as raised:
        world.ledger().add("c", 5, **KEYED)
    assert raised.value.delta.change == 5


def test_an_add_goes_into_a_lane_of_its_own_region_or_of_the_one_it_names(world: World) -> None:
    assert world.ledger(B).add("d", 1).delta.lane == Lane(B, 0, "d")
    assert world.ledger().add("e", 1, region=B).delta.lane == Lane(B, 0, "e")
    writer = world.ledger(shards={"hot:": 4})
    every = [writer.add("hot:a", 1, idempotency_key=str(n), at=AT) for n in (*range(40), *range(40))]
    assert {each.delta.lane.shard for each in every} == {0, 1, 2, 3}
    assert [each.outcome for each in every] == ["recorded"] * 40 + ["replayed"] * 40


def test_what_is_at_the_edge_of_what_may_be_counts(world: World) -> None:
    for change in (0, 10**18, -(10**18)):
        outcomes = [world.ledger().add(f"n{change}", change, **KEYED).outcome for _ in range(2)]
        assert outcomes == ["recorded", "replayed"]
        assert world.value(f"n{change}") == change
    for counter in ("!~", "x" * 256, "a#b", "50%", "delta#eu-west-1#0#x", "fold#eu-west-1#0#x", "checkpoint", "#"):
        world.ledger().add(counter, 4)
        world.ledger().add("x#" + counter[:254], 16)
        assert world.value(counter) == 4
    for key in ("x" * 1_024, "é" * 512, " ", "\0", "👍"):
        assert world.ledger().add("c", 1, idempotency_key=key, at=AT).outcome == "recorded"
        assert world.ledger().add("c", 1, idempotency_key=key, at=AT).outcome == "replayed"
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for at in (epoch, AT, NOW, NOW + 5 * MINUTE, epoch.astimezone(timezone(14 * 60 * MINUTE))):
        receipt = world.ledger().add("c", 1, idempotency_key="at", at=at)
        assert receipt.delta.at == at.replace(microsecond=at.microsecond // 1_000 * 1_000)
    for now_ms in (0, tokens.TIME_MS_MAX):
        assert tokens.time_ms(ledger(world.home, now_ms).add("c", 1).delta.token) == now_ms


def test_an_item_that_is_no_delta_is_damage_and_stays(world: World) -> None:
    delta = world.ledger().prepare("c", 4, **KEYED)
    theirs = {"pk": {"S": "delta#eu-west-1#0#c"}, "sk": {"S": delta.token}, "change": {"S": "4"}}
    world.home.store([theirs])
    with refused(world.home, DamagedItem, delta.token):
        world.ledger().apply(delta)


# -- prepare, apply, unknown outcomes ----------------------------------------------------------------------------------


def test_prepare_sends_nothing_and_apply_records_it(world: World) -> None:
    delta = world.ledger().prepare("c", 4)
    assert world.home.asked == []
    assert world.ledger().apply(delta) == Receipt("recorded", delta)
    assert world.ledger().apply(delta) == Receipt("replayed", delta)


def test_an_unknown_outcome_is_settled_by_its_delta_in_any_region_and_counts_once(world: World) -> None:
    for number, keyed in enumerate(({}, KEYED)):
        world.home.after(Put, fail(OutcomeUnknown("lost")), times=2)
        with pytest.raises(OutcomeUnknown) as raised:
            world.ledger().add(f"c{number}", 4, **keyed)
        delta = raised.value.delta
        with pytest.raises(OutcomeUnknown):
            world.ledger(B).apply(delta)
        assert world.ledger(B).apply(delta) == Receipt("replayed", delta)
        assert delta.lane.region == A
        assert world.value(f"c{number}") == 4


def test_a_delta_for_a_lane_that_nobody_reads_is_refused(world: World) -> None:
    """Acknowledged, it would never be in any sum: its Region or its shard is not in these settings."""
    for lane in (Lane("ap-south-1", 0, "c"), Lane(A, 1, "c")):
        with refused(world.home, InvalidInput, "No reader looks at the lane"):
            world.ledger().apply(Delta(lane, tokens.make(5, bytes(10)), 4))


# -- add_many ----------------------------------------------------------------------------------------------------------


def test_add_many_answers_in_order_with_errors_as_values(world: World) -> None:
    world.ledger().add("c", 4, idempotency_key="there", at=AT)
    world.ledger().add("c", 4, idempotency_key="other", at=AT)
    changes = [
        *(Change("c", 1), Change("not a name", 1), Change("c", 4, "there", AT), Change("c", True)),
        *(Change("c", 5, "other", AT), Change("c", 1, "key alone")),
        *(Change("d", 1, "k", AT, region=B), Change("d", 1, region="ap-south-1")),
    ]
    outcomes = ["recorded", "InvalidCounter", "replayed", "InvalidChange", "TokenConflict", "InvalidKey"]
    assert outcomes_of(world.ledger().add_many(iter(changes))) == [*outcomes, "recorded", "InvalidInput"]
    assert world.value("c") == 9
    assert world.ledger().add("d", 1, **KEYED, region=B).outcome == "replayed"
    assert outcomes_of(world.ledger().add_many([Change("e", 4, "k", AT)] * 2)) == ["recorded", "replayed"]
    again = world.ledger(B).add_many([Change("e", 4, key, AT, A) for key in "kl"])
    assert outcomes_of(again) == ["replayed", "recorded"]
    assert world.value("e") == 8


def test_a_batch_is_one_request_to_the_table_in_few_to_dynamodb_and_none_without_a_valid_change(world: World) -> None:
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


# -- bad input: a typed error, and nothing written ---------------------------------------------------------------------

BAD: list[tuple[type[LedgerError], str, list[Any]]] = [
    (
        InvalidCounter,
        "counter",
        [
            *("", "x" * 257, " ", "a b", "a ", "a\tb", "a\n", "\0", "\x7f", "é", "名", "stock:\u0661", "\ud800"),
            *("a\udfff", b"c", None, 5, ["c"]),
        ],
    ),
    (
        InvalidChange,
        "change",
        [
            *(True, False, 1.0, float("nan"), float("inf"), Decimal(1), "1", b"1", None, 1j),
            *(10**18 + 1, -(10**18) - 1),
        ],
    ),
    (InvalidKey, "idempotency_key", ["", "x" * 1_025, "é" * 513, "\ud800", b"k", 5, ("k",), None]),
    (InvalidKey, "at", [None]),
    (
        InvalidTime,
        "at",
        [
            *(AT.replace(tzinfo=None), date(2010, 12, 1), AT.isoformat(), AT.timestamp(), AT_MS),
            *(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), datetime.min.replace(tzinfo=UTC)),
            *(NOW + 5 * MINUTE + timedelta(milliseconds=1), datetime.max.replace(tzinfo=UTC)),
        ],
    ),
    (InvalidInput, "region", ["ap-south-1", "", "EU", 5]),
]


def error_of(writer: Ledger, **call: Any) -> LedgerError:
    """The error of add; it is the same from prepare and in add_many, and none of the three sent anything."""
    with pytest.raises(LedgerError) as raised:
        writer.add(**call)
    with pytest.raises(type(raised.value)):
        writer.prepare(**call)
    (value,) = writer.add_many([Change(**call)])
    assert (type(value), str(value)) == (type(raised.value), str(raised.value))
    assert isinstance(raised.value, ValueError)
    assert "Nothing was written" in str(raised.value)
    str(raised.value).encode()  # can be logged, also with a lone surrogate in the input
    return raised.value


def test_what_cannot_be_is_refused(world: World) -> None:
    for error, name, values in BAD:
        for wrong in values:
            found = error_of(world.ledger(), **{"counter": "c", "change": 1, **KEYED, name: wrong})
            assert type(found) is error, (name, ascii(wrong))
    for now_ms, keyed in (
        (-1, {}),
        (2**48, {}),
        (-400_000, {"idempotency_key": "k", "at": datetime(1970, 1, 1, tzinfo=UTC)}),
    ):
        assert type(error_of(ledger(world.home, now_ms), counter="c", change=1, **keyed)) is InvalidTime
    assert world.home.asked == []


def test_a_refusal_says_it_as_people_write_it(world: World) -> None:
    for given, says in (
        ({"at": None}, "without at"),
        ({"idempotency_key": None}, "without idempotency_key"),
        ({"region": "EU"}, "is not one of regions="),
        (
            {"at": datetime(2010, 12, 1)},
            "at=datetime.datetime(2010, 12, 1, 0, 0) has no time zone, so it is no instant",
        ),
        (
            {"at": NOW + 6 * MINUTE},
            "at=2026-05-01T00:06:00+00:00 is more than five minutes ahead of this clock's 2026-05",
        ),
        ({"at": datetime(1969, 12, 31, tzinfo=UTC)}, "at=1969-12-31T00:00:00+00:00 is before 1970."),
    ):
        assert says in str(error_of(world.ledger(), **{"counter": "c", "change": 1, **KEYED, **given}))
    with pytest.raises(InvalidInput, match=r"'counters' has no answer\(\)\. .*Settings\(table="):
        Ledger(settings(), table=cast(Any, "counters"))


def test_the_process_has_a_clock_and_entropy_of_its_own() -> None:
    writer = Ledger(settings(), table=Region())
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    first, second = writer.add("c", 1), writer.add("c", 1)
    assert before <= first.delta.at <= second.delta.at <= datetime.now(UTC)
    assert first.delta.token != second.delta.token
