"""`Ledger`, as a producer uses it."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import count
from typing import Any, cast

import pytest

from ledger import Change, Delta, Lane, Ledger, Receipt, Settings, tokens
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
from ledger.memory import MemoryTable
from ledger.requests import Get, Key, Put, PutMany
from reader import Reader
from tests.world import Region
from tests.world import refused as unchanged

HOME, ABROAD = "eu-west-1", "us-east-1"
AT = datetime(2010, 12, 1, 8, 26, 0, 500_900, tzinfo=UTC)
NOW = datetime(2026, 5, 1, tzinfo=UTC)
NOW_MS = int(NOW.timestamp()) * 1_000
MINUTES = timedelta(minutes=1)
SETTINGS = Settings(table="counters", region=HOME, regions=(HOME, ABROAD))


def named(value: object) -> str:
    """A short id without a backslash, which pytest would escape again: a test must be found by its id."""
    return ascii(value).replace("\\", "")[:9]


class Recorder(Region):
    """Loses the answers of the first `lost` puts, after applying them."""

    lost = 0

    def answer(self, request: Any, /) -> Any:
        answer = super().answer(request)
        if isinstance(request, Put) and self.lost:
            self.lost -= 1
            raise OutcomeUnknown("lost")
        return answer


@pytest.fixture
def table() -> Recorder:
    return Recorder()


def entropy() -> Any:
    """Ten bytes that are new each time, and the same in each test."""
    numbers = count(1)
    return lambda size: next(numbers).to_bytes(size, "big")


def ledger(table: MemoryTable, region: str = HOME, now_ms: int = NOW_MS, **settings: Any) -> Ledger:
    made = Settings(**{"table": "counters", "region": region, "regions": (HOME, ABROAD), **settings})
    return Ledger(made, clock=lambda: now_ms, entropy=entropy(), table=table)


def value(table: MemoryTable, counter: str = "c") -> int:
    return Reader(SETTINGS, clock=lambda: NOW_MS, table=table).read(counter).value


# -- add -----------------------------------------------------------------------------------------------------------


def test_an_add_without_a_key_records_a_delta_with_the_time_of_the_clock_and_the_given_entropy(table: Recorder) -> None:
    writer = ledger(table)
    token = tokens.make(NOW_MS, (1).to_bytes(10, "big"))
    assert writer.add("c", -6) == Receipt("recorded", Delta(Lane(HOME, 0, "c"), token, -6))
    assert list(table.items.values()) == [
        {"pk": {"S": "delta#eu-west-1#0#c"}, "sk": {"S": token}, "change": {"N": "-6"}}
    ]
    assert [type(request) for request in table.asked] == [Get, Put]  # the shape is asked for once
    writer.add("c", -6)
    assert value(table) == -12  # the same change again is another one


def test_a_retried_add_with_a_key_counts_once_with_the_time_of_the_change_in_any_zone(table: Recorder) -> None:
    first = ledger(table).add("c", 4, idempotency_key="k", at=AT)
    assert (first.outcome, first.delta.token) == ("recorded", tokens.keyed("c", "k", 1291191960500))
    assert first.delta.at == AT.replace(microsecond=500_000)
    for at in (AT, AT.astimezone(timezone(timedelta(hours=9)))):
        again = ledger(table, now_ms=NOW_MS + 10**10).add("c", 4, idempotency_key="k", at=at)
        assert again == Receipt("replayed", first.delta)
    assert value(table) == 4


@pytest.mark.parametrize(
    "other",
    [{"counter": "d"}, {"idempotency_key": "k2"}, {"at": AT + timedelta(milliseconds=1)}, {"region": ABROAD}],
    ids=str,
)
def test_another_counter_key_time_or_region_is_another_change(table: Recorder, other: dict[str, Any]) -> None:
    call: dict[str, Any] = {"counter": "c", "change": 4, "idempotency_key": "k", "at": AT}
    ledger(table).add(**call)
    assert ledger(table).add(**(call | other)).outcome == "recorded"
    assert len(table.items) == 2


def test_a_key_reused_for_another_change_is_a_conflict_and_writes_nothing(table: Recorder) -> None:
    ledger(table).add("c", 4, idempotency_key="k", at=AT)
    with unchanged(table, TokenConflict, "a change of 4, not 5") as raised:
        ledger(table).add("c", 5, idempotency_key="k", at=AT)
    assert raised.value.delta is not None
    assert raised.value.delta.change == 5


@pytest.mark.parametrize("change", [0, 10**18, -(10**18)])
def test_a_change_of_zero_and_the_largest_ones_are_recorded(table: Recorder, change: int) -> None:
    assert ledger(table).add("c", change, idempotency_key="k", at=AT).outcome == "recorded"
    assert ledger(table).add("c", change, idempotency_key="k", at=AT).outcome == "replayed"
    assert len(table.items) == 1
    ledger(table).add("d", change)
    assert value(table) == value(table, "d") == change


def test_an_add_goes_into_a_lane_of_its_own_region_or_of_the_one_it_names(table: Recorder) -> None:
    assert ledger(table, HOME).add("c", 4, idempotency_key="k", at=AT).delta.lane == Lane(HOME, 0, "c")
    assert ledger(table, ABROAD).add("c", 4, idempotency_key="k", at=AT, region=HOME).outcome == "replayed"
    assert ledger(table, ABROAD).add("d", 1).delta.lane == Lane(ABROAD, 0, "d")
    assert ledger(table, HOME).add("e", 1, region=ABROAD).delta.lane == Lane(ABROAD, 0, "e")
    assert [key.pk for key in table.items] == ["delta#eu-west-1#0#c", "delta#us-east-1#0#d", "delta#us-east-1#0#e"]
    assert value(table) == 4


def test_a_counter_with_shards_spreads_its_changes_and_a_retry_finds_its_shard(table: Recorder) -> None:
    writer = ledger(table, shards={"hot:": 4})
    lanes = {writer.add("hot:a", 1, idempotency_key=str(n), at=AT).delta.lane.shard for n in range(40)}
    assert lanes == {0, 1, 2, 3}
    assert {writer.add("hot:a", 1, idempotency_key=str(n), at=AT).outcome for n in range(40)} == {"replayed"}


def test_an_item_that_is_no_delta_is_damage_and_stays(table: Recorder) -> None:
    delta = ledger(table).prepare("c", 4, idempotency_key="k", at=AT)
    theirs = {"pk": {"S": "delta#eu-west-1#0#c"}, "sk": {"S": delta.token}, "change": {"S": "4"}}
    table.answer(Put(theirs))
    with pytest.raises(DamagedItem, match=delta.token):
        ledger(table).apply(delta)
    assert list(table.items.values()) == [theirs]


# -- prepare, apply, unknown outcomes ------------------------------------------------------------------------------


def test_prepare_sends_nothing_and_apply_records_it(table: Recorder) -> None:
    delta = ledger(table).prepare("c", 4)
    assert table.asked == []
    assert ledger(table).apply(delta) == Receipt("recorded", delta)
    assert ledger(table).apply(delta) == Receipt("replayed", delta)


@pytest.mark.parametrize("keyed", [{}, {"idempotency_key": "k", "at": AT}], ids=["random", "keyed"])
def test_an_unknown_outcome_is_settled_by_its_delta_in_any_region_and_counts_once(keyed: dict[str, Any]) -> None:
    table = Recorder()
    table.lost = 2
    with pytest.raises(OutcomeUnknown) as raised:
        ledger(table).add("c", 4, **keyed)
    delta = raised.value.delta
    assert delta is not None
    with pytest.raises(OutcomeUnknown):
        ledger(table, ABROAD).apply(delta)
    assert ledger(table, ABROAD).apply(delta) == Receipt("replayed", delta)
    assert delta.lane.region == HOME
    assert value(table) == 4


@pytest.mark.parametrize("lane", [Lane("ap-south-1", 0, "c"), Lane(HOME, 1, "c")])
def test_a_delta_for_a_lane_that_nobody_reads_is_refused(table: Recorder, lane: Lane) -> None:
    """Acknowledged, it would never be in any sum: its Region or its shard is not in these settings."""
    with pytest.raises(LedgerError):
        ledger(table).apply(Delta(lane, tokens.make(5, bytes(10)), 4))
    assert table.items == {}


# -- add_many ------------------------------------------------------------------------------------------------------


def test_add_many_answers_in_order_with_errors_as_values(table: Recorder) -> None:
    ledger(table).add("c", 4, idempotency_key="there", at=AT)
    ledger(table).add("c", 4, idempotency_key="other", at=AT)
    changes = [
        *(Change("c", 1), Change("not a name", 1), Change("c", 4, "there", AT), Change("c", True)),
        *(Change("c", 5, "other", AT), Change("c", 1, "key alone")),
        *(Change("d", 1, "k", AT, region=ABROAD), Change("d", 1, region="ap-south-1")),
    ]
    results = ledger(table).add_many(iter(changes))
    outcomes = [each.outcome if isinstance(each, Receipt) else type(each) for each in results]
    assert outcomes[:4] == ["recorded", InvalidCounter, "replayed", InvalidChange]
    assert outcomes[4:] == [TokenConflict, InvalidKey, "recorded", InvalidInput]
    assert value(table) == 9
    assert Key("delta#us-east-1#0#d", tokens.keyed("d", "k", 1291191960500)) in table.items


def test_a_change_that_comes_twice_in_a_batch_and_then_alone_counts_once(table: Recorder) -> None:
    results = ledger(table).add_many([Change("c", 4, "k", AT), Change("c", 1), Change("c", 4, "k", AT)])
    assert [cast(Receipt, each).outcome for each in results] == ["recorded", "recorded", "replayed"]
    assert ledger(table).add("c", 4, idempotency_key="k", at=AT).outcome == "replayed"
    assert value(table) == 5


def test_a_batch_sent_again_through_another_region_that_names_the_first_counts_once(table: Recorder) -> None:
    ledger(table).add_many([Change("c", 4, str(n), AT) for n in range(20)])
    results = ledger(table, ABROAD).add_many([Change("c", 4, str(n), AT, HOME) for n in range(30)])
    assert [cast(Receipt, each).outcome for each in results] == ["replayed"] * 20 + ["recorded"] * 10
    assert value(table) == 120


def test_a_batch_is_one_request_to_the_table_and_none_without_a_valid_change(table: Recorder) -> None:
    (error,) = ledger(table).add_many([Change("", 1)])
    assert isinstance(error, InvalidCounter)
    assert ledger(table).add_many([]) == []
    assert table.items == {}
    table.asked.clear()
    ledger(table).add_many([Change("c", 1) for _ in range(60)])
    assert [type(request) for request in table.asked[:2]] == [Get, PutMany]  # the shape is asked for once


@pytest.mark.parametrize("wrong", [("c", 1), {"counter": "c", "change": 1}, "c", None, Change], ids=named)
def test_what_is_no_change_is_a_mistake_in_the_program_and_nothing_of_the_batch_is_sent(
    table: Recorder, wrong: Any
) -> None:
    with pytest.raises(InvalidInput, match=r"changes\[1\].*Nothing was written"):
        ledger(table).add_many([Change("c", 1), wrong, Change("not a name", 1)])
    assert table.asked == []


class Statements:
    """A boto3 client that writes every statement down."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {}  # the table has no shape

    def batch_execute_statement(self, Statements: list[Any], **_: Any) -> dict[str, Any]:
        self.calls.append(len(Statements))
        return {"Responses": [{} for _ in Statements]}


def test_sixty_changes_are_three_requests_to_dynamodb() -> None:
    client = Statements()
    writer = Ledger(SETTINGS, client=cast(Any, client), clock=lambda: NOW_MS, entropy=entropy())
    results = writer.add_many([Change("c", n) for n in range(60)])
    assert sorted(client.calls) == [10, 25, 25]
    assert [cast(Receipt, each).delta.change for each in results] == list(range(60))


# -- bad input: a typed error, and nothing written -----------------------------------------------------------------

GOOD: dict[str, Any] = {"counter": "c", "change": 1, "idempotency_key": "k", "at": AT}


def refused(table: Recorder, error: type[LedgerError], now_ms: int = NOW_MS, **call: Any) -> LedgerError:
    """The error of add; it is the same from prepare and in add_many, and none of the three sent anything."""
    writer = ledger(table, now_ms=now_ms)
    with pytest.raises(LedgerError) as raised:
        writer.add(**call)
    with pytest.raises(error):
        writer.prepare(**call)
    (value,) = writer.add_many([Change(**call)])
    assert type(raised.value) is type(value) is error
    assert str(raised.value) == str(value)
    assert isinstance(raised.value, ValueError)
    assert "Nothing was written" in str(raised.value)
    str(raised.value).encode()  # can be logged, also with a lone surrogate in the input
    assert table.asked == []
    assert table.items == {}
    return raised.value


BAD: dict[str, list[Any]] = {
    "counter": [
        *("", "x" * 257, " ", "a b", "a ", "a\tb", "a\n", "\0", "\x7f", "a\x7f", "é", "名", "stock:\u0661", "\ud800"),
        *("a\udfff", b"c", None, 5, ["c"]),
    ],
    "change": [
        *(True, False, 1.0, float("nan"), float("inf"), Decimal(1), "1", b"1", None, 1j, 10**18 + 1, -(10**18) - 1),
        10**38,
    ],
    "idempotency_key": ["", "x" * 10_000, "x" * 1_025, "é" * 513, "\ud800", b"k", 5, ("k",)],
    "at": [
        *(AT.replace(tzinfo=None), date(2010, 12, 1), AT.isoformat(), AT.timestamp(), 1291191960500),
        *(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), datetime.min.replace(tzinfo=UTC)),
        *(NOW + 5 * MINUTES + timedelta(milliseconds=1), NOW + 6 * MINUTES, datetime.max.replace(tzinfo=UTC)),
    ],
}
ERRORS = {"counter": InvalidCounter, "change": InvalidChange, "idempotency_key": InvalidKey, "at": InvalidTime}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [pytest.param(name, each, id=f"{name}-{named(each)}") for name, bad in BAD.items() for each in bad],
)
def test_what_cannot_be_is_refused(table: Recorder, name: str, wrong: Any) -> None:
    refused(table, ERRORS[name], **(GOOD | {name: wrong}))


@pytest.mark.parametrize(
    "counter",
    ["x", "0", "!~", "x" * 256, "a#b", "a/b", "50%", "delta#eu-west-1#0#x", "fold#eu-west-1#0#x", "checkpoint", "#"],
)
def test_a_counter_name_that_looks_odd_counts(table: Recorder, counter: str) -> None:
    ledger(table).add(counter, 4)
    ledger(table).add("x#" + counter[:254], 16)
    assert value(table, counter) == 4


@pytest.mark.parametrize("key", ["x" * 1_024, "é" * 512, " ", "\0", "👍"], ids=named)
def test_any_text_of_up_to_1024_bytes_is_a_key(table: Recorder, key: str) -> None:
    assert ledger(table).add("c", 1, idempotency_key=key, at=AT).outcome == "recorded"
    assert ledger(table).add("c", 1, idempotency_key=key, at=AT).outcome == "replayed"


def test_a_key_without_at_is_refused_and_at_without_a_key(table: Recorder) -> None:
    assert "without at" in str(refused(table, InvalidKey, counter="c", change=1, idempotency_key="k"))
    table.asked.clear()
    assert "without idempotency_key" in str(refused(table, InvalidKey, counter="c", change=1, at=AT))


@pytest.mark.parametrize(
    "at",
    [
        *(datetime(1970, 1, 1, tzinfo=UTC), AT, NOW, NOW + 5 * MINUTES),
        datetime(1970, 1, 1, 14, tzinfo=timezone(14 * 60 * MINUTES)),
    ],
)
def test_any_instant_from_1970_to_five_minutes_ahead_is_a_time(table: Recorder, at: datetime) -> None:
    receipt = ledger(table).add("c", 1, idempotency_key="k", at=at)
    assert receipt.delta.at == at.replace(microsecond=at.microsecond // 1_000 * 1_000)


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (datetime(2010, 12, 1), "at=datetime.datetime(2010, 12, 1, 0, 0) has no time zone, so it is no instant"),
        (datetime(2010, 12, 1), "datetime.now(UTC) has one"),
        (NOW + 6 * MINUTES, "at=2026-05-01T00:06:00+00:00 is more than five minutes ahead"),
        (NOW + 6 * MINUTES, "this clock's 2026-05-01T00:00:00+00:00"),
        (datetime(1969, 12, 31, tzinfo=UTC), "at=1969-12-31T00:00:00+00:00 is before 1970."),
    ],
)
def test_a_time_that_is_refused_is_told_as_people_write_it(table: Recorder, at: datetime, says: str) -> None:
    assert says in str(refused(table, InvalidTime, **(GOOD | {"at": at})))


def test_the_name_of_a_table_in_place_of_a_table_is_told_where_it_goes() -> None:
    with pytest.raises(InvalidInput, match=r"'counters' has no answer\(\)\. .*Settings\(table="):
        Ledger(SETTINGS, table=cast(Any, "counters"))


@pytest.mark.parametrize("region", ["ap-south-1", "", "EU", 5])
def test_a_region_that_is_not_in_the_settings_is_refused(table: Recorder, region: Any) -> None:
    assert "regions=" in str(refused(table, InvalidInput, **GOOD, region=region))


@pytest.mark.parametrize(
    ("now_ms", "more"),
    [
        *((-1, {}), (-(10**15), {}), (2**48, {})),
        (-400_000, {"idempotency_key": "k", "at": datetime(1970, 1, 1, tzinfo=UTC)}),  # ahead of such a clock
    ],
)
def test_a_clock_that_no_token_can_hold_is_refused(table: Recorder, now_ms: int, more: dict[str, Any]) -> None:
    refused(table, InvalidTime, now_ms=now_ms, counter="c", change=1, **more)


@pytest.mark.parametrize("now_ms", [0, 2**48 - 1])
def test_the_first_and_the_last_millisecond_of_tokens_are_taken(table: Recorder, now_ms: int) -> None:
    receipt = Ledger(SETTINGS, clock=lambda: now_ms, entropy=entropy(), table=table).add("c", 1)
    assert tokens.time_ms(receipt.delta.token) == now_ms


def test_the_process_has_a_clock_and_entropy_of_its_own(table: Recorder) -> None:
    writer = Ledger(SETTINGS, table=table)
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    first, second = writer.add("c", 1), writer.add("c", 1)
    assert before <= first.delta.at <= second.delta.at <= datetime.now(UTC)
    assert first.delta.token != second.delta.token
