"""A limit is of all who add: the table's shape has it before the first use, or nobody is held to it."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from compactor import Compactor
from ledger import Change, Ledger, Limit, Settings, items
from ledger.clocks import instants, wall_clock
from ledger.errors import LedgerError, LimitMismatch, SettingsMismatch, Unavailable
from ledger.lane.shape import write
from ledger.limit import Shape
from ledger.memory import MemoryTable
from ledger.requests import Get, Put, Request, Update, run
from reader import Reader

A = "eu-west-1"
SEATS, STOCK, PLAIN = "seats:gig", "stock:85123A", "plain"
LIMITS = {"seats:": Limit(ceiling=10, region=A), "stock:": Limit(floor=0)}
NOW = instants(wall_clock)
ASKED = Get(items.SHAPE_KEY)


class Table(MemoryTable):
    """Keeps what it was asked; it may have no answer to writes of the shape."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.asked: list[Request] = []
        self.fails = fails

    def answer(self, request: Request, /) -> Any:
        self.asked.append(request)
        if self.fails and isinstance(request, Put) and request.key == items.SHAPE_KEY:
            raise Unavailable("No answer. Nothing was written.")
        return super().answer(request)


def settings(limits: dict[str, Limit] = LIMITS, **changed: Any) -> Settings:
    return Settings(table="counters", region=A, limits=limits, **changed)


def table_with(limits: dict[str, Limit]) -> Table:
    table = Table()
    run(write(settings(limits)), table, NOW)
    table.asked.clear()
    return table


USES: dict[str, Callable[[Ledger, Reader, Compactor], Any]] = {
    "add": lambda ledger, _, __: ledger.add(SEATS, 1),
    "hold": lambda ledger, _, __: ledger.hold(SEATS, 1, expires=timedelta(minutes=1)).release(),
    "set_limit": lambda ledger, _, __: ledger.set_limit(SEATS, ceiling=11),
    "read": lambda _, reader, __: reader.read(SEATS),
    "values": lambda _, reader, __: reader.values([PLAIN, SEATS]),
    "history": lambda _, reader, __: list(reader.history(SEATS)),
    "history_page": lambda _, reader, __: reader.history_page(SEATS),
    "standing": lambda _, reader, __: reader.standing(SEATS),
    "holds": lambda _, reader, __: reader.holds(SEATS),
    "verify": lambda _, __, compactor: compactor.verify(SEATS),
    "rebuild": lambda _, __, compactor: compactor.rebuild(SEATS),
}


def use(name: str, table: MemoryTable, ours: Settings) -> Any:
    return USES[name](Ledger(ours, table=table), Reader(ours, table=table), Compactor(ours, tables={A: table}))


@pytest.mark.parametrize("name", USES)
def test_a_limit_that_the_shape_lacks_is_refused_at_its_first_use_and_once_the_shape_has_it_all_goes_on(
    name: str,
) -> None:
    table = table_with({"stock:": LIMITS["stock:"]})
    before = dict(table.items)
    ours = settings()
    ledger, reader = Ledger(ours, table=table), Reader(ours, table=table)
    compactor = Compactor(ours, tables={A: table})
    for _ in range(2):
        with pytest.raises(SettingsMismatch, match=r"'seats:'.*ledgerctl init.*LEDGER_LIMITS="):
            USES[name](ledger, reader, compactor)
    assert table.items == before
    assert ledger.add(PLAIN, 1).outcome == ledger.add(STOCK, 1).outcome == "recorded"
    assert (reader.read(PLAIN).value, reader.read(STOCK).value) == (1, 1)
    run(write(ours), table, NOW)
    USES[name](ledger, reader, compactor)


@pytest.mark.parametrize("name", USES)
def test_an_argument_of_the_settings_lets_it_pass(name: str) -> None:
    table = table_with({})
    use(name, table, settings(unshared_limits=True))
    bare = Table()
    use(name, bare, settings(unshared_limits=True))
    assert items.SHAPE_KEY not in bare.items


def test_in_a_batch_the_changes_below_other_prefixes_go_on() -> None:
    table = table_with({"stock:": LIMITS["stock:"]})
    for gather in (False, True):
        ledger = Ledger(settings(), table=table, gather=gather)
        changes = [Change(name, 1) for name in (SEATS, STOCK, PLAIN, SEATS)]
        told = [type(each).__name__ for each in ledger.add_many(changes)]
        assert told == ["SettingsMismatch", "Receipt", "Receipt", "SettingsMismatch"]
        with pytest.raises(SettingsMismatch) as refused:
            ledger.add(SEATS, 1)
        assert refused.value.delta is not None
        ledger.close()


def test_where_there_is_no_shape_the_first_who_uses_a_limit_writes_it_and_each_other_is_held_to_it() -> None:
    table = Table()
    ours = settings()
    Reader(ours, table=table).read(SEATS)
    assert Ledger(ours, table=table).add(PLAIN, 1).outcome == "recorded"
    assert items.SHAPE_KEY not in table.items
    ledger = Ledger(ours, table=table)
    ledger.add(PLAIN, 1)
    ledger.add(SEATS, 5)
    assert items.shape_of(table.items[items.SHAPE_KEY]) == Shape((A,), {}, limits=LIMITS)
    for use_without in (
        lambda: Ledger(settings({}), table=table).add(SEATS, 50),
        lambda: Reader(settings({}), table=table).read(SEATS),
    ):
        with pytest.raises(SettingsMismatch, match="LEDGER_LIMITS"):
            use_without()
    assert Reader(ours, table=table).read(SEATS).value == 5


def test_when_the_shape_is_known_an_add_asks_for_nothing_more() -> None:
    for table in (Table(), table_with(LIMITS)):
        ledger = Ledger(settings(), table=table)
        for counter in (SEATS, STOCK, PLAIN):
            ledger.add(counter, 1)
        table.asked.clear()
        for counter in (SEATS, STOCK, PLAIN):
            ledger.add(counter, 1)
        ledger.add_many([Change(SEATS, 1)])
        assert [type(each) for each in table.asked if not isinstance(each, Put)] == [Update, Update, Update]


def test_a_first_use_that_cannot_write_the_shape_says_so_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    table = Table(fails=True)
    ledger = Ledger(settings(), table=table)
    with caplog.at_level(logging.WARNING, logger="ledger"):
        for _ in range(3):
            ledger.add(SEATS, 1)
            ledger.add(STOCK, 1)
    (line,) = caplog.messages
    assert "the table has no shape" in line
    assert "ledgerctl init" in line
    assert sum(isinstance(each, Put) and each.key == items.SHAPE_KEY for each in table.asked) == 1


def test_a_first_use_writes_no_shape_where_counters_below_the_prefix_have_changes_and_they_alone_are_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = MemoryTable()
    before = settings({}, fold_min=1, allowed_lateness_ms=0)
    Ledger(before, table=table).add("seats:old", 1)
    later = lambda: wall_clock() + 3_600_000  # noqa: E731
    Compactor(before, tables={A: table}, clock=later).compact("seats:old")  # which lists it
    ledger = Ledger(settings(), table=table)
    with caplog.at_level(logging.WARNING, logger="ledger"):
        assert ledger.add(SEATS, 1).outcome == "recorded"
        with pytest.raises(LimitMismatch):
            ledger.add("seats:old", 1)
    assert "counters seats:old have changes" in caplog.messages[0]
    assert len(caplog.messages) == 1
    assert items.SHAPE_KEY not in table.items


class Client:
    """A DynamoDB client whose role may not write the shape, nor see it, nor list lanes, as it is said."""

    def __init__(self, *denied: str) -> None:
        self.denied, self.called = denied, list[str]()
        self.table = MemoryTable()

    def __getattr__(self, operation: str) -> Any:
        def call(**arguments: Any) -> Any:
            self.called.append(operation)
            if operation in self.denied:
                raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, operation)
            return {"Attributes": {}, "Items": [], "Responses": {}}

        return call


@pytest.mark.parametrize(
    ("denied", "warns"), [(("put_item", "query"), True), (("query",), True), (("get_item", "put_item", "query"), False)]
)
def test_a_role_that_may_not_write_the_shape_goes_on(
    denied: tuple[str, ...], warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    from ledger.lane.shape import ShapeCheck
    from ledger.table import DynamoTable

    client = Client(*denied)
    check = ShapeCheck(settings(), writes=True)
    table = DynamoTable("counters", A, lambda _: cast(Any, client))
    with caplog.at_level(logging.WARNING, logger="ledger"):
        for _ in range(3):
            check.ask(table, NOW, SEATS)
    assert len(caplog.messages) == warns
    assert client.called.count("get_item") == 1
    assert check.is_known


def test_the_environment_may_let_it_pass() -> None:
    environ = {"LEDGER_TABLE": "counters", "AWS_REGION": A, "LEDGER_UNSHARED_LIMITS": "true"}
    assert Settings.from_env(environ).unshared_limits is True
    assert Settings.from_env(environ | {"LEDGER_UNSHARED_LIMITS": "false"}).unshared_limits is False
    assert settings().unshared_limits is False
    with pytest.raises(LedgerError, match=r"LEDGER_UNSHARED_LIMITS.*true or false"):
        Settings.from_env(environ | {"LEDGER_UNSHARED_LIMITS": "yes"})
    with pytest.raises(LedgerError, match="unshared_limits"):
        settings(unshared_limits=cast(Any, 1))
