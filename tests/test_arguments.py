"""Whatever is passed anywhere in public is taken, or refused with an error of ours and nothing written."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor import Compactor
from ledger import Change, Delta, Hold, Lane, Ledger, Limit, Receipt, Settings, Threshold, message
from ledger.checks import to_datetime
from ledger.clocks import entropy
from ledger.errors import InvalidInput, InvalidSettings, LedgerError, LimitReached, Unavailable
from ledger.memory import MemoryTable
from ledger.queue import ChangeQueue
from ledger.table import ByRegion
from reader import Place, Position, Reader
from tests.strategies import ODD, Passed, effort, junk
from tests.world import COUNTER, KEEP_MS, LANE, NOW_MS, A, B, compactor, delta, settings, token, two_regions

AT = to_datetime(NOW_MS - 1)
MADE = settings()
LIMIT = Limit(ceiling=10**18, region=A)
LIMITED = replace(MADE, limits={"seats:": LIMIT}, unshared_limits=True)  # beside processes without it
SEATS, HOUR = "seats:gig", timedelta(hours=1)


class World:
    """Two Regions in memory: delta 1 folded, 2 in the tail."""

    def __init__(self) -> None:
        self.home, self.away = two_regions()
        self.tables = {A: self.home, B: self.away}
        self.home.put(delta(1))
        compactor(self.home, self.away).compact(COUNTER)
        self.home.copy_to(self.away)
        self.home.put(delta(2))
        self.ledger = Ledger(MADE, table=self.home, clock=self.clock)
        self.reader = Reader(MADE, table=self.home, clock=self.clock)
        self.compactor = Compactor(MADE, tables=self.tables, clock=self.clock)
        self.limited = Ledger(LIMITED, tables=self.tables, clock=self.clock)
        self.seats = Reader(LIMITED, table=self.home, clock=self.clock)
        self.limited.hold(SEATS, 5, expires=HOUR, idempotency_key="held", at=AT)

    def clock(self) -> int:
        return NOW_MS

    def items(self) -> object:
        return [dict(table.items) for table in self.tables.values()]

    def with_settings(self, made: Settings) -> object:
        """Settings that could be made can be used."""
        balance = Reader(made, table=self.home, clock=self.clock).read(COUNTER)
        return balance, Ledger(made, table=self.home, clock=self.clock).add(COUNTER, 1)


def only(results: list[Receipt | LedgerError]) -> Receipt:
    """The receipt of a batch of one; errors are values there."""
    (result,) = results
    if isinstance(result, LedgerError):
        raise result
    return result


def not_network(given: object) -> Any:
    """What makes a class ask AWS is not passed here."""
    return Passed("no client", object) if given is None else given


Call = tuple[Callable[..., object], Mapping[str, object]]


def call(does: Callable[..., object], **right: object) -> Call:
    """What is called with a world, and what is right to pass it."""
    return does, right


CHANGE: dict[str, Any] = {"counter": COUNTER, "change": 4, "idempotency_key": "k", "at": AT, "region": B}
SETTINGS: dict[str, object] = {
    "table": "counters",
    "region": A,
    "regions": (A, B),
    "endpoint_url": "http://127.0.0.1:8000",
    "shards": {"": 1},
    "limits": {"seats:": LIMIT},
    "thresholds": {"seats:": (Threshold(above=1),)},
    "allowed_lateness_ms": 1,
    "keep_ms": 3,
    "clean_units_per_s": 3,
    "read_time_max_ms": 2,
    "fold_min": 1,
    "fold_max": 5,
    "clean": True,
    "insert_only": True,
    "unshared_limits": True,
}
ENVIRONMENT: dict[str, object] = {
    "AWS_REGION": A,
    "LEDGER_REGIONS": f"{A},{B}",
    "LEDGER_SHARDS": '{"stock:": 1}',
    "LEDGER_LIMITS": '{"seats:": {"floor": -1, "ceiling": 1, "region": "eu-west-1"}}',
    "LEDGER_THRESHOLDS": '{"seats:": [{"above": 1}]}',
    **{
        f"LEDGER_{name.upper()}": str(value)
        for name, value in SETTINGS.items()
        if name not in ("region", "regions", "shards", "limits", "thresholds")
    },
}


class Client:
    """A boto3 client that knows no change."""

    def put_item(self, **_: object) -> dict[str, object]:
        return {"Responses": {}, "Items": []}

    get_item = batch_get_item = query = put_item

    def send_message_batch(self, *, Entries: list[dict[str, str]], **_: object) -> dict[str, object]:
        return {"Successful": [{"Id": entry["Id"], "MessageId": "a message"} for entry in Entries]}


CLIENT: Any = Client()
FLOORED = replace(MADE, limits={"stock": Limit(floor=-1, region=A)})
HELD = World().limited.hold(SEATS, 5, expires=HOUR, idempotency_key="held", at=AT)


def by_region(world: World) -> ByRegion:
    return ByRegion(A, world.tables)


QUEUE = ChangeQueue("a queue", client=CLIENT)
CALLS: dict[str, Call] = {
    # -- the classes, each made and then used --
    "Ledger": call(
        lambda world, **given: Ledger(given.pop("settings"), table=world.home, **given).add(COUNTER, 1),
        settings=MADE,
        gather=True,
        clock=lambda: NOW_MS,
        entropy=entropy,
        observe=print,
    ),
    "Ledger on a table": call(
        lambda world, table: Ledger(MADE, table=not_network(table)).add("c", 1), table=MemoryTable()
    ),
    "Ledger on a client": call(
        lambda world, client: Ledger(MADE, client=not_network(client)).add("c", 1), client=Client()
    ),
    "Ledger with what is called": call(
        lambda world, now, random: Ledger(MADE, table=world.home, clock=lambda: now, entropy=lambda size: random).add(
            COUNTER, 1
        ),
        now=NOW_MS,
        random=bytes(10),
    ),
    "Ledger on tables": call(
        lambda world, tables: Ledger(MADE, tables=not_network(tables)).add("c", 1),
        tables={A: MemoryTable(), B: MemoryTable()},
    ),
    "Ledger on clients": call(
        lambda world, clients: Ledger(
            MADE, clients={A: CLIENT, B: CLIENT, **clients} if isinstance(clients, dict) else not_network(clients)
        ).add("c", 1),
        clients={A: Client(), B: Client()},
    ),
    "Limit": call(
        lambda world, **given: world.with_settings(replace(MADE, limits={"of-another": Limit(**given)})),
        floor=0,
        ceiling=10,
        region=A,
    ),
    "Threshold": call(
        lambda world, **given: world.with_settings(
            replace(MADE, thresholds={"of-another": (Threshold(**given), Threshold(below=given["above"], name="low"))})
        ),
        above=10,
        name="high",
        region=A,
    ),
    "Threshold below": call(lambda world, below: Threshold(below=below), below=10),
    "Reader": call(
        lambda world, settings, ttl, **given: Reader(settings, ttl, table=world.home, **given).value(COUNTER),
        settings=MADE,
        ttl=5,
        consistent=False,
        clock=lambda: NOW_MS,
        observe=print,
    ),
    "Reader on a table": call(
        lambda world, table: Reader(MADE, table=not_network(table)).read("c"), table=MemoryTable()
    ),
    "Reader on a client": call(
        lambda world, client: Reader(MADE, client=not_network(client)).read("c"), client=Client()
    ),
    "Reader with what is called": call(
        lambda world, now: Reader(MADE, table=world.home, clock=lambda: now).value(COUNTER), now=NOW_MS
    ),
    "Compactor": call(
        lambda world, settings, **given: Compactor(settings, tables=world.tables, **given).compact(COUNTER),
        settings=MADE,
        clock=lambda: NOW_MS,
        observe=print,
    ),
    "Compactor on tables": call(
        lambda world, tables: Compactor(MADE, tables=not_network(tables)).compact(COUNTER),
        tables={A: MemoryTable(), B: MemoryTable()},
    ),
    "Compactor on a table of each Region": call(
        lambda world, home, away: Compactor(MADE, tables={A: home, B: away}).verify(COUNTER),
        home=MemoryTable(),
        away=MemoryTable(),
    ),
    "Compactor on clients": call(
        lambda world, clients: Compactor(
            MADE, clients={A: CLIENT, B: CLIENT, **clients} if isinstance(clients, dict) else not_network(clients)
        ).compact(COUNTER),
        clients={A: Client(), B: Client()},
    ),
    "Compactor on a client of each Region": call(
        lambda world, home, away: Compactor(MADE, clients={A: home, B: away}).verify(COUNTER),
        home=Client(),
        away=Client(),
    ),
    "Compactor.compact with what is called": call(
        lambda world, now: Compactor(MADE, tables=world.tables, clock=lambda: now).compact(COUNTER), now=NOW_MS
    ),
    "Compactor.rebuild with what is called": call(
        lambda world, now: Compactor(MADE, tables=world.tables, clock=lambda: now).rebuild(COUNTER), now=NOW_MS
    ),
    "MemoryTable": call(
        lambda world, **given: Reader(MADE, table=MemoryTable(**given)).read("c"), page_size=1, peers={}, lists=True
    ),
    # -- what they do --
    "Ledger.add": call(lambda world, **given: world.ledger.add(**given), **CHANGE),
    "Ledger.prepare": call(lambda world, **given: world.ledger.apply(world.ledger.prepare(**given)), **CHANGE),
    "Ledger.apply": call(lambda world, delta: world.ledger.apply(delta), delta=delta(3)),
    "Ledger.add_many": call(
        lambda world, **given: world.ledger.add_many(**given), changes=[Change(COUNTER, 4)] * 2, pack=True
    ),
    "Ledger.hold": call(
        lambda world, **given: world.limited.hold(**given),
        counter=SEATS,
        amount=4,
        expires=HOUR,
        idempotency_key="k",
        at=AT,
        region=B,
    ),
    "Ledger.capture": call(lambda world, **given: world.limited.capture(**given), hold=HELD, amount=3),
    "Ledger.release": call(lambda world, hold: world.limited.release(hold), hold=HELD),
    "Ledger.set_limit": call(lambda world, **given: world.limited.set_limit(**given), counter=SEATS, ceiling=9),
    "Ledger.set_limit of a floor": call(
        lambda world, floor: Ledger(FLOORED, tables=world.tables).set_limit("stock", floor=floor), floor=-2
    ),
    "Hold": call(lambda world, **given: world.limited.release(Hold(**given)), delta=HELD.delta, ends=None),
    "Hold.capture": call(
        lambda world, amount: Hold(HELD.delta, world.limited).capture(amount),
        amount=3,
    ),
    "Hold.parse": call(lambda world, **given: Hold.parse(**given), counter=SEATS, id=HELD.id, ends=None),
    "Ledger.parse_hold": call(lambda world, **given: world.limited.parse_hold(**given), counter=SEATS, id=HELD.id),
    "Change": call(lambda world, **given: only(world.ledger.add_many([Change(**given)])), **CHANGE),
    "Delta": call(lambda world, **given: world.ledger.apply(Delta(**given)), lane=LANE, token=token(3), change=4),
    "Lane": call(
        lambda world, **given: world.ledger.apply(Delta(Lane(**given), token(3), 4)),
        region=A,
        shard=0,
        counter=COUNTER,
        shards=1,
    ),
    "Reader.standing": call(lambda world, counter: world.seats.standing(counter), counter=SEATS),
    "Reader.holds": call(lambda world, counter: Reader(LIMITED, table=by_region(world)).holds(counter), counter=SEATS),
    "Reader.value": call(lambda world, counter: world.reader.value(counter), counter=COUNTER),
    "Reader.values": call(lambda world, counters: world.reader.values(counters), counters=[COUNTER]),
    "Reader.values of one": call(lambda world, name: world.reader.values(["c", name]), name=COUNTER),
    "Reader.read": call(lambda world, **given: world.reader.read(**given), counter=COUNTER, max_age=1, behind=1),
    "Reader.history": call(
        lambda world, **given: list(world.reader.history(**given)), counter=COUNTER, since=to_datetime(0), until=AT
    ),
    "Reader.history_page": call(
        lambda world, **given: world.reader.history_page(**given),
        counter=COUNTER,
        since=to_datetime(0),
        until=AT,
        after=Position(token(1), A),
        limit=1,
    ),
    "Reader.counters": call(
        lambda world, **given: world.reader.counters(**given), prefix="stock:", after=Place(7, "a"), limit=1
    ),
    "Place": call(lambda world, **given: world.reader.counters(after=Place(**given)), bucket=7, counter="a"),
    "Position": call(
        lambda world, **given: world.reader.history_page(COUNTER, after=Position(**given)), token=token(1), region=A
    ),
    "message.dumps": call(lambda world, change: message.dumps(change), change=Change(**CHANGE)),
    "message.dumps a change": call(lambda world, **given: message.loads(message.dumps(Change(**given))), **CHANGE),
    "message.dumps_many": call(lambda world, changes: message.dumps_many(changes), changes=[Change(**CHANGE)]),
    "message.loads_many": call(lambda world, text: message.loads_many(text), text=message.dumps(Change(**CHANGE))),
    "message.loads": call(lambda world, text: message.loads(text), text=message.dumps(Change(**CHANGE))),
    "ChangeQueue": call(lambda world, url: ChangeQueue(url, client=CLIENT).send(Change(**CHANGE)), url="a queue"),
    "ChangeQueue.send": call(lambda world, change: QUEUE.send(change), change=Change(**CHANGE)),
    "ChangeQueue.send_many": call(lambda world, changes: QUEUE.send_many(changes), changes=[Change(**CHANGE)]),
    "Compactor.compact": call(lambda world, counter: world.compactor.compact(counter), counter=COUNTER),
    "Compactor.verify": call(lambda world, counter: world.compactor.verify(counter), counter=COUNTER),
    "Compactor.rebuild": call(lambda world, counter: world.compactor.rebuild(counter), counter=COUNTER),
    # -- settings, each made and then used --
    "Settings": call(lambda world, **given: world.with_settings(Settings(**given)), **SETTINGS),
    "Settings.lanes_of": call(lambda world, **given: MADE.lanes_of(**given), counter=COUNTER, region=A),
    "Lane.parse": call(lambda world, text: Lane.parse(text), text="eu-west-1#0#stock"),
    "Settings.known": call(lambda world, lane: MADE.known(lane), lane=Lane(A, 0, COUNTER)),
    "Settings.reads": call(lambda world, lane: MADE.reads(lane), lane=Lane(A, 0, COUNTER)),
    "Settings.from_env": call(lambda world, environ: Settings.from_env(environ), environ=ENVIRONMENT),
    "Settings.from_env with arguments": call(
        lambda world, **given: world.with_settings(Settings.from_env({}, **given)), **SETTINGS
    ),
    "Settings.from_env's variables": call(
        lambda world, **variables: world.with_settings(Settings.from_env(variables)), **ENVIRONMENT
    ),
}
ARGUMENTS = [(name, argument) for name, (_, given) in CALLS.items() for argument in given]


worlds: list[World] = []  # one that nothing was written to serves again


def is_taken_or_refused(name: str, given: Mapping[str, object]) -> None:
    world = worlds.pop() if worlds else World()
    before = world.items()
    refusal: LedgerError | None = None
    try:
        CALLS[name][0](world, **given)
    except LedgerError as error:
        refusal = error
    unchanged = world.items() == before
    if unchanged:
        worlds.append(world)
    if refusal is not None and not isinstance(refusal, LimitReached):
        assert unchanged
        assert isinstance(refusal, InvalidInput | Unavailable)  # a compactor's peer may have been spoiled
        assert ("Nothing was written" in str(refusal)) is not (isinstance(refusal, InvalidSettings) or refusal.of_read)
        assert len(str(refusal).encode()) < 1_000  # it can be logged


@pytest.mark.parametrize("name", CALLS)
def test_what_is_right_is_taken(name: str) -> None:
    call, given = CALLS[name]
    call(World(), **given)


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_what_is_odd_is_taken_or_refused_and_writes_nothing(name: str, argument: str) -> None:
    for odd, make in ODD.items():
        try:
            is_taken_or_refused(name, {**CALLS[name][1], argument: make()})
        except BaseException as failure:
            failure.add_note(f"{name}, {argument}: {odd}")
            raise


@pytest.mark.parametrize("name", CALLS)
@effort(0.4)
@given(data=st.data())
def test_whatever_is_passed_is_taken_or_refused_and_writes_nothing(name: str, data: st.DataObject) -> None:
    right = CALLS[name][1]
    passed = data.draw(st.dictionaries(st.sampled_from(sorted(right)), junk, min_size=1))
    is_taken_or_refused(name, {**right, **{argument: each.make() for argument, each in passed.items()}})


INNER = [
    *("Settings.shards_of", "Settings.limit_of", "Settings.lane_for", "MemoryTable.answer"),
    *("Limit.has", "Limit.opening", "Limit.opens", "Settings.told_here", "Threshold.side_of"),
]
"""Called with what was checked."""

PUBLIC = [Ledger, Reader, Compactor, Settings, MemoryTable, Change, Delta, Lane, Position, Limit, Threshold, Hold]


@pytest.mark.parametrize("cls", PUBLIC)
def test_every_public_argument_is_in_the_table(cls: type) -> None:
    """A further one is fuzzed as soon as it is there."""
    methods = [name for name, each in inspect.getmembers(cls, inspect.isroutine) if not name.startswith("_")]
    for name, signature in [
        (cls.__name__, inspect.signature(cls)),
        *((f"{cls.__name__}.{method}", inspect.signature(getattr(cls, method))) for method in methods),
    ]:
        fuzzed = {argument for call, argument in ARGUMENTS if call == name or call.startswith(name + " ")}
        named = {each.name for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD}
        assert named - {"self"} <= fuzzed or name in INNER, name


def test_changes_that_fail_while_they_are_listed_write_nothing() -> None:
    """What the caller's own code raises is the caller's."""

    def changes() -> Iterator[Change]:
        yield Change(COUNTER, 4)
        raise KeyError("the caller's")

    world = World()
    before = world.items()
    with pytest.raises(KeyError, match="the caller's"):
        world.ledger.add_many(changes())
    assert world.items() == before


@pytest.mark.parametrize("url", ["http://[", "http://-_?", "http://a..b", "https://exa mple"])
def test_a_url_that_boto3_refuses_is_refused(url: str) -> None:
    with pytest.raises(InvalidSettings, match="endpoint_url"):
        Ledger(Settings(table="counters", region=A, endpoint_url=url)).add("c", 1)


def test_a_falsy_table_is_the_table_that_was_given() -> None:
    """And not a reason to ask AWS."""

    class Empty(MemoryTable):
        def __len__(self) -> int:
            return 0

    table = Empty(peers={})
    Ledger(MADE, table=table).add(COUNTER, 4)
    assert Reader(MADE, table=table).read(COUNTER).value == 4
    assert Compactor(MADE, tables={A: table, B: Empty()}).verify(COUNTER).value == 4
    with pytest.raises(InvalidSettings, match="tables lacks"):
        Compactor(MADE, tables={})


def test_a_clock_that_answers_a_fraction_makes_no_checkpoint() -> None:
    """Rebuild wrote a checkpoint with it that nobody could read."""
    world = World()
    before = world.items()
    with pytest.raises(InvalidInput, match="clock"):
        Compactor(MADE, tables=world.tables, clock=lambda: NOW_MS + 0.5).rebuild(COUNTER)  # type: ignore[arg-type, return-value]
    assert world.items() == before
    world.home.now_ms += KEEP_MS
    assert world.reader.read(COUNTER).value == 4 + 16
