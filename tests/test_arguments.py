"""Whatever is passed anywhere in public is taken, or refused with an error of ours and nothing
written.

A further argument has to be named here (RIGHT), and is then fuzzed with the others of its class.
"""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor import Compactor
from ledger import Change, Delta, Hold, Keep, Lane, Ledger, Limit, Period, Settings, Threshold
from ledger.client import message
from ledger.client.queue import ChangeQueue
from ledger.core.checks import to_datetime
from ledger.core.clocks import entropy
from ledger.core.errors import InvalidInput, InvalidSettings, LedgerError, LimitReached, Unavailable
from ledger.tables.memory import MemoryTable
from reader import Place, Position, Reader
from tests.ledger.test_settings import FULL
from tests.strategies import ODD, OPERATORS, Passed, effort, junk
from tests.world import COUNTER, KEEP_MS, LANE, NOW_MS, A, B, World, delta, settings, token

AT, HOUR, SEATS = to_datetime(NOW_MS - 1), timedelta(hours=1), "seats:gig"
LIMITS = {"seats:": Limit(ceiling=10**18, region=A), "floored": Limit(floor=-1, region=A)}
PERIODS = {"llm:": Keep(late=HOUR, keep=HOUR)}
MADE = settings(limits=LIMITS, periods=PERIODS, unshared_limits=True)


def world_of() -> World:
    """Delta 1 folded, 2 in the tail, and a hold."""
    world = World(now_ms=NOW_MS, limits=LIMITS, periods=PERIODS, unshared_limits=True)
    world.home.put(delta(1))
    world.compactor().compact(COUNTER)
    world.home.copy_to(world.away)
    world.home.put(delta(2))
    world.ledger().hold(SEATS, 5, expires=HOUR, idempotency_key="held", at=AT)
    return world


def sent(*, Entries: list[dict[str, str]], **_: object) -> dict[str, object]:
    return {"Successful": [{"Id": entry["Id"], "MessageId": "a message"} for entry in Entries]}


def answered(**_: object) -> dict[str, object]:
    return {"Responses": {}, "Items": []}


READS = ("get_item", "batch_get_item", "query")
CLIENT: Any = SimpleNamespace(
    send_message_batch=sent, **dict.fromkeys(("put_item", *READS), answered)
)
"""A boto3 client that knows no change."""
HELD = world_of().ledger().hold(SEATS, 5, expires=HOUR, idempotency_key="held", at=AT)
KEYED: dict[str, Any] = {
    "counter": COUNTER,
    "change": 4,
    "idempotency_key": "k",
    "at": AT,
    "region": B,
}
OF_SETTINGS: dict[str, object] = {
    each.name: getattr(Settings.from_env(FULL), each.name) for each in fields(Settings)
}
RIGHT: dict[str, object] = (
    {
        **KEYED,
        **OF_SETTINGS,
        "settings": MADE,
        "clock": lambda: NOW_MS,
        "entropy": entropy,
        "observe": print,
    }
    | {"table": MemoryTable(), "tables": {A: MemoryTable(), B: MemoryTable()}, "client": CLIENT}
    | {
        "clients": {A: CLIENT, B: CLIENT},
        "gather": True,
        "ttl": 5,
        "consistent": False,
        "max_age": 1,
        "behind": 1,
    }
    | {
        "delta": delta(3),
        "changes": [Change(**KEYED)] * 2,
        "pack": True,
        "amount": 4,
        "expires": HOUR,
    }
    | {
        "hold": HELD,
        "floor": None,
        "ceiling": 9,
        "id": HELD.id,
        "ends": None,
        "counters": [COUNTER],
        "prefix": "s",
    }
    | {
        "since": to_datetime(0),
        "until": AT,
        "after": None,
        "limit": 1,
        "lane": LANE,
        "token": token(3),
        "shard": 0,
    }
    | {
        "above": 10,
        "below": None,
        "name": "high",
        "bucket": 7,
        "page_size": 1,
        "peers": {},
        "lists": True,
    }
    | {"of_ceiling": None, "left": None, "n": 3, "by": "changes"}
    | {"every": "day", "zone": "Europe/Paris", "instant": AT}
    | {
        "retires_s": 0,
        "base": "llm:key",
        "period": Period("month"),
        "last": 3,
        "number": 3,
        "unit": "month",
    }
    | {"late": HOUR, "keep": HOUR, "carry": 0, "anchor": 1}
    | {"text": str(LANE), "environ": FULL, "data": b"", "url": "a queue", "then": None}
    | {"partial": False}
    | {"source": COUNTER, "target": SEATS}
)
OF_A_LIMIT = (
    "Ledger.add_up_to",
    "Ledger.hold",
    "Ledger.parse_hold",
    "Ledger.set_limit",
    "Reader.standing",
    "Reader.holds",
    "Hold.parse",
)
DIFFERS: dict[str, Any] = (
    {name: {"counter": SEATS} for name in OF_A_LIMIT}
    | {"Position": {"region": A}, "Lane": {"region": A, "shards": 1}, "Settings": OF_SETTINGS}
    | {"Ledger.hold_all": {"counters": [SEATS, "seats:late"]}}
    | {
        "Delta": {"lane": LANE},
        "Limit": {"floor": 0, "ceiling": 10, "region": A},
        "Hold": {"delta": HELD.delta},
        "Period": {"every": 1},
        "Keep": {"anchor": to_datetime(0)},
    }
    | {
        "Threshold": {"region": A},
        "Reader.history_page": {"after": Position(token(1), A)},
        "Place": {"counter": "a"},
    }
    | {"Reader.counters": {"after": Place(7, "a")}, "Settings.from_env": {"table": "counters"}}
    | {"message.loads": {"text": message.dumps(Change(**KEYED))}}
    | {"message.loads_many": {"text": message.dumps(Change(**KEYED))}}
)
DIFFERS |= {f"Period.{name}": {"name": "llm:key@1970-01-01"} for name in ("start", "end")}
DIFFERS |= {name: {"change": Change(**KEYED)} for name in ("ChangeQueue.send", "message.dumps")}
ASK_AWS = {"table", "tables", "client", "clients"}
INNER = {"Settings.lane_for", "Settings.is_kept", "Settings.check_kept", "MemoryTable.answer"}
"""Called with a token or a time that was checked."""

Use = Callable[..., object]
Call = tuple[Use, Mapping[str, object]]


def no_network(given: dict[str, object]) -> dict[str, Any]:
    """What makes a class ask AWS is not passed here."""
    safe: dict[str, object] = {}
    for name, each in given.items():
        safe[name] = Passed("no client", object) if each is None and name in ASK_AWS else each
        if name == "clients" and isinstance(each, dict):
            safe[name] = {A: CLIENT, B: CLIENT, **each}
    return safe


def with_settings(world: World, made: Settings) -> object:
    """Settings that could be made can be used."""
    balance = Reader(made, table=world.home, clock=world.clock).read(COUNTER)
    return balance, Ledger(made, table=world.home, clock=world.clock).add(
        "a-counter", 1, idempotency_key="k", at=AT
    )


def right_for(
    name: str, call: Callable[..., Any], without: Collection[str] = ()
) -> dict[str, object]:
    named = [
        each.name
        for each in inspect.signature(call).parameters.values()
        if each.kind is not each.VAR_KEYWORD
    ]
    return {
        each: {**RIGHT, **DIFFERS.get(name, {})}[each]
        for each in named
        if each not in {"self", *without}
    }


def calls_of(cls: type, of: Callable[[World], object]) -> dict[str, Call]:
    """Each public method."""

    def use(method: str, world: World, **given: object) -> object:
        answer = getattr(of(world), method)(**given)
        return list(answer) if isinstance(answer, Iterator) else answer

    methods = [
        name for name, _ in inspect.getmembers(cls, inspect.isroutine) if not name.startswith("_")
    ]
    named = {f"{cls.__name__}.{method}": method for method in methods}
    return {
        name: (partial(use, method), right_for(name, getattr(cls, method)))
        for name, method in named.items()
        if name not in INNER
    }


def made(
    cls: type, use: Callable[[World, Any], object], without: Collection[str] = ()
) -> dict[str, Call]:
    """The class itself, made and then used."""
    right = right_for(cls.__name__, cls, without)
    return {cls.__name__: (lambda world, **given: use(world, cls(**no_network(given))), right)}


def made_on(cls: type, use: Callable[[Any], object]) -> dict[str, Call]:
    """The class on a table, on tables, a client, and clients, as far as it takes them."""
    tables, name = ASK_AWS & {*inspect.signature(cls).parameters}, cls.__name__
    return {
        f"{name} on {kind}": made(cls, lambda _, of: use(of), tables - {kind})[name]
        for kind in sorted(tables)
    }


VALUES: dict[str, Call] = {
    **made(
        Change,
        lambda world, change: [fail for fail in world.ledger().add_many([change]) if raises(fail)],
    ),
    **made(Delta, lambda world, change: world.ledger().apply(change)),
    **made(Lane, lambda world, lane: world.ledger().apply(Delta(lane, token(3), 4))),
    **made(Position, lambda world, place: world.reader().history_page(COUNTER, after=place)),
    **made(Place, lambda world, place: world.reader().counters(after=place)),
    **made(
        Limit,
        lambda world, limit: with_settings(world, replace(MADE, limits={"of-another": limit})),
    ),
    **made(
        Threshold,
        lambda world, each: with_settings(world, replace(MADE, thresholds={"of-another": (each,)})),
    ),
    **made(Hold, lambda world, hold: world.ledger().release(hold)),
    **made(Period, lambda world, period: world.reader().periods("llm:key", period)),
    **made(
        Keep, lambda world, keep: with_settings(world, replace(MADE, periods={"of-another": keep}))
    ),
    **calls_of(Period, lambda _: Period("day")),
    "Hold.capture": (
        lambda world, amount: Hold(HELD.delta, world.ledger()).capture(amount),
        {"amount": 3},
    ),
    "Lane.parse": (lambda _, text: Lane.parse(text), {"text": str(LANE)}),
}
CODEC: dict[str, Callable[..., Any]] = {
    f"message.{each.__name__}": each
    for each in (message.dumps, message.dumps_many, message.loads, message.loads_many)
}
MESSAGES: dict[str, Call] = {
    name: (lambda _, call=call, **given: call(**given), right_for(name, call))
    for name, call in CODEC.items()
}
MESSAGES["ChangeQueue"] = (
    lambda _, url: ChangeQueue(url, client=CLIENT).send(Change(**KEYED)),
    {"url": "a queue"},
)
CLASSES: dict[str, dict[str, Call]] = {
    "Ledger": {**calls_of(Ledger, World.ledger), **made_on(Ledger, lambda of: of.add("c", 1))},
    "Reader": {**calls_of(Reader, World.reader), **made_on(Reader, lambda of: of.value("c"))},
    "Compactor": {
        **calls_of(Compactor, World.compactor),
        **made_on(Compactor, lambda of: of.compact("c")),
    },
    "Settings": {**calls_of(Settings, lambda world: MADE), **made(Settings, with_settings)},
    "MemoryTable": made(MemoryTable, lambda world, table: Reader(MADE, table=table).read("c")),
    "ChangeQueue": calls_of(ChangeQueue, lambda world: ChangeQueue("a queue", client=CLIENT)),
    "values": VALUES,
    "messages": MESSAGES,
}


def raises(outcome: object) -> bool:
    if isinstance(outcome, LedgerError):
        raise outcome
    return False


worlds: list[World] = []  # one that nothing was written to serves again


def is_taken_or_refused(call: Use, given: Mapping[str, object]) -> None:
    world = worlds.pop() if worlds else world_of()
    before = [dict(table.items) for table in world.regions.values()]
    refusal: LedgerError | None = None
    try:
        call(world, **given)
    except LedgerError as error:
        refusal = error
    if [table.items for table in world.regions.values()] == before:
        worlds.append(world)
    elif refusal is not None:
        assert isinstance(refusal, LimitReached)
    if refusal is not None and not isinstance(refusal, LimitReached):
        # a compactor's peer may have been spoiled
        assert isinstance(refusal, InvalidInput | Unavailable)
        assert ("Nothing was written" in str(refusal)) is not (
            isinstance(refusal, InvalidSettings) or refusal.of_read
        )
        assert len(str(refusal).encode()) < 1_000  # it can be logged


@pytest.mark.parametrize("name", CLASSES)
@effort(3)
@given(data=st.data())
def test_an_argument_is_taken_or_refused_and_writes_nothing(name: str, data: st.DataObject) -> None:
    call, right = CLASSES[name][data.draw(st.sampled_from(sorted(CLASSES[name])))]
    if not right:
        return
    odd = st.sampled_from([Passed(each, make) for each, make in ODD.items()])
    passed = data.draw(
        st.dictionaries(st.sampled_from(sorted(right)), odd | junk, min_size=1, max_size=2)
    )
    is_taken_or_refused(
        call, {**right, **{argument: each.make() for argument, each in passed.items()}}
    )


def test_what_is_right_is_taken() -> None:
    for calls in CLASSES.values():
        for name, (call, right) in calls.items():
            try:
                call(world_of(), **right)
            except BaseException as failure:
                failure.add_note(name)
                raise


def untouchable(value: object) -> object:
    """The same value, of a class whose operators and methods all raise; or the value itself."""
    match value:
        case datetime():
            date, time = value.date(), value.timetz()
            parts = (
                date.year,
                date.month,
                date.day,
                time.hour,
                time.minute,
                time.second,
                time.microsecond,
            )
            return OPERATORS[datetime](*parts, time.tzinfo)
        case timedelta():
            return OPERATORS[timedelta](value.days, value.seconds, value.microseconds)
        case str() | float() | int() if not isinstance(value, bool):
            return OPERATORS[type(value)](value)
    return value


CALLS = {name: call for calls in CLASSES.values() for name, call in calls.items()}
UNTOUCHABLE = {
    (name, argument): untouchable(value)
    for name, (_, right) in CALLS.items()
    for argument, value in right.items()
    if untouchable(value) is not value
}
TIMED = [place for place, value in UNTOUCHABLE.items() if isinstance(value, datetime | timedelta)]
BY_VALUE = {("Ledger.add", each) for each in KEYED} - {("Ledger.add", "region")}
"""These take a subclass; a setting, say, is an int and nothing else."""


@pytest.mark.parametrize(("name", "argument"), [*TIMED, *sorted(BY_VALUE.difference(TIMED))])
def test_a_value_counts_whatever_its_class_does_with_operators(name: str, argument: str) -> None:
    """pendulum's times take no plain datetime beside them."""
    (call, right), plain, other = CALLS[name], world_of(), world_of()
    assert repr(call(other, **{**right, argument: UNTOUCHABLE[name, argument]})) == repr(
        call(plain, **right)
    )
    for region in plain.regions:
        assert other.regions[region].items == plain.regions[region].items


@pytest.mark.parametrize("name", sorted({name for name, _ in UNTOUCHABLE}))
def test_no_door_uses_the_operators_of_what_a_caller_passes(name: str) -> None:
    call, right = CALLS[name]
    for argument in right:
        if (name, argument) in UNTOUCHABLE:
            is_taken_or_refused(call, {**right, argument: UNTOUCHABLE[name, argument]})


@pytest.mark.parametrize("name", ["Ledger.add_many", "message.dumps_many", "ChangeQueue.send_many"])
def test_a_change_of_such_values_counts_as_any(name: str) -> None:
    (call, right), plain, other = CALLS[name], world_of(), world_of()
    values: dict[str, Any] = {
        name: value if name == "region" else untouchable(value) for name, value in KEYED.items()
    }
    given = Change(**values)
    taken = call(other, **{**right, "changes": [given]})
    assert repr(taken) == repr(call(plain, **{**right, "changes": [Change(**KEYED)]}))
    assert other.home.items == plain.home.items


def test_an_error_of_the_callers_code_is_the_callers() -> None:
    def changes() -> Iterator[Change]:
        yield Change(COUNTER, 4)
        raise KeyError("the caller's")

    world = world_of()
    before = dict(world.home.items)
    with pytest.raises(KeyError, match="the caller's"):
        world.ledger().add_many(changes())
    # rebuild wrote a checkpoint with it that nobody could read
    clock: Any = lambda: NOW_MS + 0.5  # noqa: E731
    with pytest.raises(InvalidInput, match="clock"):
        Compactor(MADE, tables=world.regions, clock=clock).rebuild(COUNTER)
    assert world.home.items == before
    world.home.now_ms += KEEP_MS
    assert world.value() == 4 + 16


def test_a_url_that_boto3_refuses_is_refused() -> None:
    for url in ("http://[", "http://-_?", "http://a..b", "https://exa mple"):
        with pytest.raises(InvalidSettings, match="endpoint_url"):
            Ledger(Settings(table="counters", region=A, endpoint_url=url)).add("c", 1)

    class Empty(MemoryTable):
        def __len__(self) -> int:
            return 0

    table = Empty(peers={})
    Ledger(settings(), table=table).add(COUNTER, 4)
    assert Reader(settings(), table=table).read(COUNTER).value == 4
    assert Compactor(settings(), tables={A: table, B: Empty()}).verify(COUNTER).value == 4
    with pytest.raises(InvalidSettings, match="tables lacks"):
        Compactor(settings(), tables={})
