"""What `observe=` is told, by each class and of each end that a call can come to."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, cast

import pytest

from compactor import Compactor
from ledger import Change, Cost, Ledger, Limit, Observed, Receipt, Settings
from ledger.aio import AsyncLedger
from ledger.cost import Meter, here
from ledger.errors import InvalidChange, InvalidInput, LedgerError, LimitReached, OutcomeUnknown
from ledger.memory import MemoryTable
from ledger.observing import WELL, Observer, observed
from ledger.requests import Put, Request
from reader import Reader
from reader.aio import AsyncReader

AT = datetime(2026, 1, 1, tzinfo=UTC)
NOW_MS = int(AT.timestamp() * 1_000)
HOUR = timedelta(hours=1)
LIKES, STOCK = "likes:1", "stock:1"
SETTINGS = Settings(table="counters", region="eu-west-1", limits={"stock:": Limit(floor=0, region="eu-west-1")})


class Told(list[Observed]):
    """What was observed, with classes on one table."""

    def __init__(self, table: Any = None) -> None:
        super().__init__()
        self.table = MemoryTable() if table is None else table
        self.given: Any = {"clock": lambda: NOW_MS, "observe": self.append}
        self.ledger = Ledger(SETTINGS, table=self.table, **self.given)
        self.reader = Reader(SETTINGS, table=self.table, **self.given)
        self.compactor = Compactor(SETTINGS, tables={"eu-west-1": self.table}, **self.given)

    def of(self, call: Callable[[], Any]) -> list[tuple[str, str]]:
        """Name and outcome of all that was told of a call."""
        self.clear()
        with suppress(LedgerError):
            call()
        return [(each.name, each.outcome) for each in self]


def key(name: str) -> dict[str, Any]:
    return {"idempotency_key": name, "at": AT}


def changes(*names: str, change: int = 1, counter: str = LIKES) -> list[Change]:
    return [Change(counter, change, name, AT) for name in names]


Call = Callable[[Any], Any]
CALLS: list[tuple[Call, str, str]] = [
    (lambda told: told.ledger.add(LIKES, 1, **key("a")), "ledger.add", "recorded"),
    (lambda told: told.ledger.add(LIKES, 1, **key("a")), "ledger.add", "replayed"),
    (lambda told: told.ledger.add(LIKES, 2, **key("a")), "ledger.add", "TokenConflict"),
    (lambda told: told.ledger.add(LIKES, "2"), "ledger.add", "InvalidChange"),
    (lambda told: told.ledger.apply(told.ledger.prepare(LIKES, 1)), "ledger.apply", "recorded"),
    (lambda told: told.ledger.add_many([]), "ledger.add_many", "done"),
    (lambda told: told.ledger.add_many(changes("b", "c")), "ledger.add_many", "recorded"),
    (lambda told: told.ledger.add_many(changes("b", "c", "d")), "ledger.add_many", "mixed"),
    (lambda told: told.ledger.add_many(changes("e", "f"), pack=True), "ledger.add_many", "accepted"),
    (lambda told: told.ledger.add_many([*changes("g"), *changes("a", change=5)]), "ledger.add_many", "TokenConflict"),
    (lambda told: told.ledger.add(STOCK, 5, **key("a")), "ledger.add", "recorded"),
    (lambda told: told.ledger.add(STOCK, -6), "ledger.add", "LimitReached"),
    (lambda told: told.ledger.set_limit(STOCK, floor=1), "ledger.set_limit", "done"),
    (lambda told: told.ledger.hold(STOCK, -1, expires=HOUR, **key("h")), "ledger.hold", "done"),
    (lambda told: told.reader.value(LIKES), "reader.value", "read"),
    (lambda told: told.reader.values([LIKES, STOCK]), "reader.values", "read"),
    (lambda told: told.reader.read(LIKES), "reader.read", "read"),
    (lambda told: told.reader.read(""), "reader.read", "InvalidCounter"),
    (lambda told: told.reader.history(LIKES), "reader.history", "read"),
    (lambda told: told.reader.history_page(LIKES), "reader.history_page", "read"),
    (lambda told: told.reader.counters(), "reader.counters", "read"),
    (lambda told: told.reader.standing(STOCK), "reader.standing", "read"),
    (lambda told: told.reader.holds(STOCK), "reader.holds", "read"),
    (lambda told: told.compactor.compact(LIKES), "compactor.compact", "done"),
    (lambda told: told.compactor.run(), "compactor.run", "done"),
    (lambda told: told.compactor.verify(LIKES), "compactor.verify", "done"),
    (lambda told: told.compactor.rebuild(LIKES), "compactor.rebuild", "done"),
]


def test_each_public_call_is_told_once_by_its_name_with_what_came_of_it() -> None:
    told = Told()
    assert [told.of(lambda: call(told)) for call, _, _ in CALLS] == [[(name, outcome)] for _, name, outcome in CALLS]  # noqa: B023
    public = {
        f"{cls.__name__.lower()}.{method}"
        for cls in (Ledger, Reader, Compactor)
        for method, each in vars(cls).items()
        if callable(each) and not method.startswith("_")
    }
    assert public - {name for _, name, _ in CALLS} == {
        "ledger.prepare",
        "ledger.parse_hold",
        "ledger.close",
        "ledger.capture",
        "ledger.release",
    }


def test_holds_are_told_as_they_end() -> None:
    told = Told()
    told.ledger.add(STOCK, 5)
    hold = told.ledger.hold(STOCK, -1, expires=HOUR)
    assert told.of(hold.capture) == [("ledger.capture", "recorded")]
    assert told.of(hold.capture) == [("ledger.capture", "replayed")]
    assert told.of(hold.release) == [("ledger.release", "HoldEnded")]
    with told.ledger.hold(STOCK, -1, expires=HOUR):
        told.clear()
    assert [(each.name, each.outcome) for each in told] == [("ledger.release", "done")]


def test_a_run_of_the_compactor_is_told_by_its_first_problem() -> None:
    told = Told()
    wrong = Settings(table="counters", region="eu-west-1", shards={"": 2})
    ledger = Ledger(wrong, table=told.table)
    for _ in range(9):
        ledger.add(LIKES, 1)
    assert told.of(told.compactor.run) == [("compactor.run", "LaneUnread")]


def test_outcomes_that_are_no_errors_are_few_and_went_well() -> None:
    well = {outcome for _, _, outcome in CALLS if outcome[0].islower()}
    assert well == WELL
    told = Told()
    told.ledger.add(LIKES, 1)
    with pytest.raises(InvalidChange):
        told.ledger.add(LIKES, cast(Any, None))
    assert [each.went_well for each in told] == [True, False]


class Dear(MemoryTable):
    """Whose puts cost a unit."""

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, Put):
            here().add(Cost(1, 1, 0.0, 1.0))
        return super().answer(request)


def test_receipts_and_errors_carry_what_their_call_cost_and_what_was_not_sent_cost_nothing() -> None:
    told = Told(Dear())
    receipt = told.ledger.add(LIKES, 1)
    assert receipt.cost == told[-1].cost == Cost(1, 1, 0.0, 1.0)
    mixed = [*changes("a", "b", "c", "a"), Change(LIKES, cast(Any, None))]
    answers = told.ledger.add_many(mixed, pack=True)
    assert [type(each) for each in answers] == [Receipt] * 4 + [InvalidChange]
    assert [each.cost for each in answers] == [Cost(0.25, 0.25, 0.0, 0.25)] * 4 + [Cost()]
    assert sum((each.cost or Cost() for each in answers), start=Cost()) == told[-1].cost


def test_a_call_adds_its_cost_to_the_meter_that_it_is_in() -> None:
    told = Told(Dear())
    with Meter() as meter:
        for _ in range(3):
            told.ledger.add(LIKES, 1)
    assert meter.take() == Cost(3, 3, 0.0, 3.0)


def test_milliseconds_are_those_that_the_caller_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = count(5.0, 0.25)
    monkeypatch.setattr("ledger.observing.perf_counter", lambda: next(seconds))
    told = Told()
    told.ledger.add(LIKES, 1)
    assert told[0].milliseconds == 250.0


def test_a_call_that_is_interrupted_is_told_and_its_interruption_goes_on() -> None:
    class Interrupted(MemoryTable):
        def answer(self, request: Request, /) -> Any:
            if isinstance(request, Put):
                here().begin()
                raise KeyboardInterrupt
            return super().answer(request)

    told = Told(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        told.ledger.add(LIKES, 1)
    assert told == [Observed("ledger.add", told[0].milliseconds, Cost(1, 1, untold=1), "KeyboardInterrupt")]


# -- observers that fail, and what is none -------------------------------------------------------------------------


def test_what_an_observer_raises_changes_nothing_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def fails(observed: Observed) -> None:
        raise ValueError(observed.name)

    table = MemoryTable()
    ledger = Ledger(SETTINGS, table=table, observe=fails)
    assert [ledger.add(LIKES, 1).outcome for _ in range(3)] == ["recorded"] * 3
    with pytest.raises(LimitReached):
        ledger.add(STOCK, -1)
    assert Reader(SETTINGS, table=table).value(LIKES) == 3
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("ledger", logging.WARNING)
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "ledger.add"


async def awaits(_: Observed) -> None: ...


class Awaits:
    async def __call__(self, _: Observed) -> None: ...


def is_cancelled(_: Observed) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("fails", [is_cancelled, lambda observed: awaits(observed), partial(Awaits())])
def test_an_observer_that_is_cancelled_or_would_be_awaited_has_failed(
    fails: Callable[[Observed], object], caplog: pytest.LogCaptureFixture
) -> None:
    assert Ledger(SETTINGS, table=MemoryTable(), observe=fails).add(LIKES, 1).outcome == "recorded"
    assert [record.name for record in caplog.records] == ["ledger"]


def test_what_is_no_error_goes_through_an_observer() -> None:
    """Such as the time-out of whoever runs the call, which is neither an Exception nor a CancelledError."""

    class OutOfTime(BaseException): ...

    def out_of_time(_: Observed) -> None:
        raise OutOfTime

    with pytest.raises(OutOfTime):
        Ledger(SETTINGS, table=MemoryTable(), observe=out_of_time).add(LIKES, 1)


def test_a_log_that_fails_too_loses_no_receipt() -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError(record.name)

    def fails(_: Observed) -> None:
        raise ValueError

    broken = Broken()
    logging.getLogger("ledger").addHandler(broken)
    try:
        assert Ledger(SETTINGS, table=MemoryTable(), observe=fails).add(LIKES, 1).outcome == "recorded"
    finally:
        logging.getLogger("ledger").removeHandler(broken)


def test_what_an_observer_asks_itself_is_told_to_nobody() -> None:
    told: list[str] = []

    def observe(observed: Observed) -> None:
        told.append(observed.name)
        ledger.add("calls", 1)

    ledger = Ledger(SETTINGS, table=MemoryTable(), observe=observe)
    ledger.add(LIKES, 1)
    ledger.add(LIKES, 1)
    assert told == ["ledger.add"] * 2


@pytest.mark.parametrize("odd", [5, "print", [], awaits, Awaits()])
@pytest.mark.parametrize(
    "make",
    [
        lambda odd: Ledger(SETTINGS, table=MemoryTable(), observe=odd),
        lambda odd: Reader(SETTINGS, table=MemoryTable(), observe=odd),
        lambda odd: Compactor(SETTINGS, tables={"eu-west-1": MemoryTable()}, observe=odd),
        lambda odd: AsyncLedger(SETTINGS, table=MemoryTable(), observe=odd),
        lambda odd: AsyncReader(SETTINGS, table=MemoryTable(), observe=odd),
    ],
)
def test_what_is_no_plain_function_is_refused(make: Callable[[Any], Any], odd: Any) -> None:
    with pytest.raises(InvalidInput, match=r"observe=.* (cannot be called|would have to be awaited)"):
        make(odd)


# -- awaited -------------------------------------------------------------------------------------------------------


def test_awaited_calls_are_told_by_the_same_names_and_outcomes() -> None:
    told = Told()
    sync = [(call, name, outcome) for call, name, outcome in CALLS if not name.startswith("compactor.")]

    class Twins:
        """The classes whose calls are awaited, as `told.ledger` and `told.reader`."""

        ledger: AsyncLedger
        reader: AsyncReader

    async def main() -> None:
        twins, given = Twins(), {"table": told.table, **told.given}
        async with AsyncLedger(SETTINGS, **given) as twins.ledger, AsyncReader(SETTINGS, **given) as twins.reader:
            for call, name, outcome in sync:
                told.clear()
                with suppress(LedgerError):
                    await call(twins)
                assert [(each.name, each.outcome) for each in told] == [(name, outcome)]
            told.clear()
            async with twins.ledger.hold(STOCK, -1, expires=HOUR, **key("i")) as hold:
                assert (await hold.capture()).cost == Cost()
            assert [each.name for each in told] == ["ledger.hold", "ledger.capture"]

    asyncio.run(main())


def test_tasks_that_run_at_once_are_told_apart() -> None:
    class Table:
        async def answer(self, request: Request) -> Any:
            await asyncio.sleep(0)
            if isinstance(request, Put):
                here().add(Cost(1, 1, 0.0, float(request.item["change"]["N"])))
            return None

    told: list[Observed] = []

    async def main() -> list[Receipt]:
        async with AsyncLedger(SETTINGS, table=Table(), observe=told.append) as ledger:
            return await asyncio.gather(*(ledger.add(LIKES, n) for n in range(1, 50)))

    receipts = asyncio.run(main())
    assert [each.cost for each in receipts] == [Cost(1, 1, 0.0, float(n)) for n in range(1, 50)]
    assert sum(each.cost.write_units for each in told) == sum(range(1, 50))


def test_an_awaited_call_that_is_cancelled_is_told_with_the_request_that_told_nothing() -> None:
    told: list[Observed] = []

    async def main() -> None:
        asked = asyncio.Event()

        class Table:
            async def answer(self, request: Request) -> Any:
                if isinstance(request, Put):
                    here().begin()
                    asked.set()
                    await asyncio.Event().wait()

        async with AsyncLedger(SETTINGS, table=Table(), observe=told.append) as ledger:
            task = asyncio.ensure_future(ledger.add(LIKES, 1))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await task
            assert isinstance(cancelled.value.__cause__, OutcomeUnknown)

    asyncio.run(main())
    assert told == [Observed("ledger.add", told[0].milliseconds, Cost(1, 1, untold=1), "CancelledError")]


class Lazy:
    _observer = Observer(None)

    @observed("lazy.wait", "done")
    async def wait(self) -> None:
        here().add(Cost(1))
        await asyncio.sleep(0)


def test_a_coroutine_that_is_thrown_away_leaves_no_meter_behind() -> None:
    before = Meter()
    with before:
        waiting = Lazy().wait()
        copy_context().run(waiting.send, None)  # as in a task, whose context is not the one where it is thrown away
        waiting.close()
        assert here() is before
    assert before.take() == Cost(1)


def test_a_coroutine_that_is_thrown_away_during_another_call_takes_no_meter_and_pays_nothing_there() -> None:
    waiting = Lazy().wait()
    Context().run(waiting.send, None)
    with Meter() as meter:
        waiting.close()  # as the garbage collector does, at any line
        here().add(Cost(2))
    assert meter.take() == Cost(2)


def test_a_meter_that_was_interrupted_as_it_began_ends_with_the_one_around_it() -> None:
    with Meter() as before:
        with Meter():
            Meter().__enter__()
        assert here() is before
