"""What `observe=` is told, by each class and of each end that a call can come to."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any, cast

import pytest

from compactor import Compactor
from ledger import Change, Cost, Keep, Ledger, Limit, Observed, Period, Receipt
from ledger.client.aio import AsyncLedger
from ledger.core.checks import to_datetime
from ledger.core.cost import Meter, here
from ledger.core.errors import (
    InvalidChange,
    InvalidInput,
    LedgerError,
    LimitReached,
    OutcomeUnknown,
)
from ledger.core.observing import WELL, Observer, observed
from ledger.core.requests import Put
from reader import Reader
from reader.aio import AsyncReader
from tests.world import NOW_MS, A, Awaited, Region, fail, settings

AT, HOUR = to_datetime(NOW_MS), timedelta(hours=1)
LIKES, STOCK = "likes:1", "stock:1"
PERIODS = {"llm:": Keep(late=timedelta(0), keep=timedelta(0))}
SETTINGS = settings(regions=(A,), limits={"stock:": Limit(floor=0, region=A)}, periods=PERIODS)


class Watched(list[Observed]):
    """What was observed, with classes on one table, whose puts cost a unit."""

    def __init__(self, *, awaits: bool = False) -> None:
        super().__init__()
        self.table = Region().before(Put, lambda _: here().add(Cost(1, 1, 0.0, 1.0)))
        given: Any = {"table": self.table, "clock": lambda: NOW_MS, "observe": self.append}
        self.ledger: Any = (
            Awaited(AsyncLedger(SETTINGS, **given)) if awaits else Ledger(SETTINGS, **given)
        )
        self.reader: Any = (
            Awaited(AsyncReader(SETTINGS, **given)) if awaits else Reader(SETTINGS, **given)
        )
        self.compactor = Compactor(SETTINGS, tables={A: given.pop("table")}, **given)

    def of(self, call: Callable[[], Any]) -> list[tuple[str, str]]:
        """Name and outcome of all that was told of a call."""
        self.clear()
        with suppress(LedgerError):
            call()
        return [(each.name, each.outcome) for each in self]


def key(name: str) -> dict[str, Any]:
    return {"idempotency_key": name, "at": AT}


def changes(*names: str, change: int = 1) -> list[Change]:
    return [Change(LIKES, change, name, AT) for name in names]


CALLS: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda by: by.ledger.add(LIKES, 1, **key("a")), "ledger.add", "recorded"),
    (lambda by: by.ledger.add(LIKES, 1, **key("a")), "ledger.add", "replayed"),
    (lambda by: by.ledger.add(LIKES, 2, **key("a")), "ledger.add", "TokenConflict"),
    (lambda by: by.ledger.add(LIKES, "2"), "ledger.add", "InvalidChange"),
    (lambda by: by.ledger.apply(by.ledger.prepare(LIKES, 1)), "ledger.apply", "recorded"),
    (lambda by: by.ledger.add_many([]), "ledger.add_many", "done"),
    (lambda by: by.ledger.add_many(changes("b", "c")), "ledger.add_many", "recorded"),
    (lambda by: by.ledger.add_many(changes("b", "c", "d")), "ledger.add_many", "mixed"),
    (lambda by: by.ledger.add_many(changes("e", "f"), pack=True), "ledger.add_many", "accepted"),
    (
        lambda by: by.ledger.add_many([*changes("g"), *changes("a", change=5)]),
        "ledger.add_many",
        "TokenConflict",
    ),
    (lambda by: by.ledger.add(STOCK, 5, **key("a")), "ledger.add", "recorded"),
    (lambda by: by.ledger.add(STOCK, -6), "ledger.add", "LimitReached"),
    (lambda by: by.ledger.add_up_to(STOCK, -1, **key("p")), "ledger.add_up_to", "recorded"),
    (lambda by: by.ledger.add(STOCK, 1), "ledger.add", "recorded"),
    (lambda by: by.ledger.add_up_to(STOCK, -9, **key("p")), "ledger.add_up_to", "replayed"),
    (lambda by: by.ledger.set_limit(STOCK, floor=1), "ledger.set_limit", "done"),
    (lambda by: by.ledger.hold(STOCK, -1, expires=HOUR, **key("h")), "ledger.hold", "done"),
    (
        lambda by: by.ledger.hold_all([STOCK], -1, expires=HOUR, **key("h")),
        "ledger.hold_all",
        "done",
    ),
    (lambda by: by.ledger.transfer(STOCK, LIKES, 1, **key("t")), "ledger.transfer", "done"),
    (lambda by: by.ledger.transfer(STOCK, LIKES, 9, **key("u")), "ledger.transfer", "LimitReached"),
    (lambda by: by.reader.value(LIKES), "reader.value", "read"),
    (lambda by: by.reader.values([LIKES, STOCK]), "reader.values", "read"),
    (lambda by: by.reader.read(LIKES), "reader.read", "read"),
    (lambda by: by.reader.read(""), "reader.read", "InvalidCounter"),
    (lambda by: by.reader.history(LIKES), "reader.history", "read"),
    (lambda by: by.reader.history_page(LIKES), "reader.history_page", "read"),
    (
        lambda by: by.reader.series(LIKES, since=to_datetime(0), every="month"),
        "reader.series",
        "read",
    ),
    (lambda by: by.reader.value_at(LIKES, to_datetime(0)), "reader.value_at", "read"),
    (lambda by: by.reader.counters(), "reader.counters", "read"),
    (lambda by: by.reader.standing(STOCK), "reader.standing", "read"),
    (lambda by: by.reader.holds(STOCK), "reader.holds", "read"),
    (lambda by: by.reader.periods("llm:key", Period("month")), "reader.periods", "read"),
    (lambda by: by.reader.crossed(STOCK), "reader.crossed", "read"),
    (lambda by: by.reader.top(), "reader.top", "read"),
    (lambda by: by.compactor.compact(LIKES), "compactor.compact", "done"),
    (lambda by: by.compactor.run(), "compactor.run", "done"),
    (lambda by: by.compactor.verify(LIKES), "compactor.verify", "done"),
    (lambda by: by.compactor.rebuild(LIKES), "compactor.rebuild", "done"),
]


@pytest.mark.parametrize("awaits", [False, True])
def test_each_public_call_is_told_once_with_its_end(awaits: bool) -> None:
    watched = Watched(awaits=awaits)
    for call, name, outcome in CALLS:
        if not awaits or not name.startswith("compactor"):
            assert watched.of(partial(call, watched)) == [(name, outcome)]
            assert watched[0].went_well is outcome[0].islower()


def test_what_is_not_told_sends_nothing_or_is_told_by_a_hold() -> None:
    public = {
        f"{cls.__name__.lower()}.{method}"
        for cls in (Ledger, Reader, Compactor)
        for method, each in vars(cls).items()
        if callable(each) and not method.startswith("_")
    }
    untold = {f"ledger.{name}" for name in ("prepare", "parse_hold", "close", "capture", "release")}
    assert public - {name for _, name, _ in CALLS} == untold
    assert {outcome for _, _, outcome in CALLS if outcome[0].islower()} == WELL


def test_holds_and_compactions_are_told_as_they_end() -> None:
    watched = Watched()
    watched.ledger.add(STOCK, 5)
    hold = watched.ledger.hold(STOCK, -1, expires=HOUR)
    assert watched.of(hold.capture) == [("ledger.capture", "recorded")]
    assert watched.of(hold.capture) == [("ledger.capture", "replayed")]
    assert watched.of(hold.release) == [("ledger.release", "HoldEnded")]
    with watched.ledger.hold(STOCK, -1, expires=HOUR):
        watched.clear()
    assert [(each.name, each.outcome) for each in watched] == [("ledger.release", "done")]
    watched = Watched()
    other_shards = Ledger(
        settings(regions=(A,), shards={"": 2}, unshared_limits=True), table=watched.table
    )
    other_shards.add_many([Change(LIKES, 1)] * 9)
    assert watched.of(watched.compactor.run) == [("compactor.run", "LaneUnread")]


def test_receipts_and_errors_carry_what_their_call_cost() -> None:
    watched = Watched()
    with Meter() as meter:  # to which each call in it adds its cost
        receipt = watched.ledger.add(LIKES, 1)
    assert receipt.cost == watched[-1].cost == meter.take() == Cost(1, 1, 0.0, 1.0)
    mixed = [*changes("a", "b", "c", "a"), Change(LIKES, cast(Any, None))]
    answers = watched.ledger.add_many(mixed, pack=True)
    assert [type(each) for each in answers] == [Receipt] * 4 + [InvalidChange]
    assert [each.cost for each in answers] == [Cost(0.25, 0.25, 0.0, 0.25)] * 4 + [Cost()]
    assert sum((each.cost or Cost() for each in answers), start=Cost()) == watched[-1].cost


def test_milliseconds_are_those_that_the_caller_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = count(5.0, 0.25)
    monkeypatch.setattr("ledger.core.observing.perf_counter", lambda: next(seconds))
    watched = Watched()
    watched.ledger.add(LIKES, 1)
    assert watched[0].milliseconds == 250.0


def test_an_interrupted_call_is_told_and_stays_interrupted() -> None:
    watched = Watched()
    watched.table.before(Put, lambda _: here().begin()).before(Put, fail(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        watched.ledger.add(LIKES, 1)
    assert [each.outcome for each in watched] == ["KeyboardInterrupt"]
    assert watched[0].cost == Cost(2, 2, 0.0, 1.0, untold=1)


async def awaits(_: Observed) -> None: ...


class Awaits:
    async def __call__(self, _: Observed) -> None: ...


class OutOfTime(BaseException):
    """Such as the time-out of whoever runs the call, which is neither an Exception nor a
    CancelledError.
    """


def test_an_observer_that_raises_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fails: Any
    for fails in (
        fail(ValueError()),
        fail(asyncio.CancelledError()),
        lambda each: awaits(each),
        partial(Awaits()),
    ):
        caplog.clear()
        ledger = Ledger(SETTINGS, table=(table := Region()), observe=fails)
        assert [ledger.add(LIKES, 1).outcome for _ in range(3)] == ["recorded"] * 3
        with pytest.raises(LimitReached):
            ledger.add(STOCK, -1)
        assert Reader(SETTINGS, table=table).value(LIKES) == 3
        (record,) = caplog.records
        assert (record.name, record.levelno, bool(record.exc_info)) == (
            "ledger",
            logging.WARNING,
            True,
        )
    with pytest.raises(OutOfTime):
        Ledger(SETTINGS, table=Region(), observe=fail(OutOfTime())).add(LIKES, 1)


def test_a_log_that_fails_too_loses_no_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("ledger"), "warning", fail(OSError()))
    assert (
        Ledger(SETTINGS, table=Region(), observe=fail(ValueError())).add(LIKES, 1).outcome
        == "recorded"
    )


def test_what_an_observer_asks_itself_is_told_to_nobody() -> None:
    names: list[str] = []

    def observe(observed: Observed) -> None:
        names.append(observed.name)
        ledger.add("calls", 1)

    ledger = Ledger(SETTINGS, table=Region(), observe=observe)
    for _ in range(2):
        ledger.add(LIKES, 1)
    assert names == ["ledger.add"] * 2


def test_what_is_no_plain_function_is_refused() -> None:
    for made in (Ledger, Reader, AsyncLedger, AsyncReader, Compactor):
        where: Any = {"tables": {A: Region()}} if made is Compactor else {"table": Region()}
        for odd in (5, "print", ["print"], awaits, Awaits()):
            with pytest.raises(InvalidInput, match=r"observe=.* (is no function|must be awaited)"):
                cast(Any, made)(SETTINGS, **where, observe=odd)


@pytest.mark.anyio
async def test_tasks_that_run_at_once_are_told_apart() -> None:
    watched, asked = list[Observed](), asyncio.Event()

    async def answered(request: Put) -> None:
        change = float(request.item["change"]["N"])
        await asyncio.sleep(0)
        if change:
            here().add(Cost(1, 1, 0.0, change))
        else:
            here().begin()
            asked.set()
            await asyncio.Event().wait()

    table = Region().after(Put, lambda request, _: answered(request))
    async with AsyncLedger(SETTINGS, table=table, observe=watched.append) as ledger:
        receipts = await asyncio.gather(*(ledger.add(LIKES, n) for n in range(1, 50)))
        task = asyncio.ensure_future(ledger.add(LIKES, 0))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
    assert isinstance(cancelled.value.__cause__, OutcomeUnknown)
    assert [each.cost for each in receipts] == [Cost(1, 1, 0.0, float(n)) for n in range(1, 50)]
    assert sum(each.cost.write_units for each in watched) == sum(range(1, 50))
    assert (watched[-1].outcome, watched[-1].cost) == ("CancelledError", Cost(1, 1, untold=1))


class Lazy:
    _observer = Observer(None)

    @observed("lazy.wait", "done")
    async def wait(self) -> None:
        here().add(Cost(1))
        await asyncio.sleep(0)


def test_a_coroutine_thrown_away_leaves_no_meter_behind() -> None:
    with Meter() as before:
        waiting = Lazy().wait()
        # as in a task, whose context is not the one where it is thrown away
        copy_context().run(waiting.send, None)
        waiting.close()
        assert here() is before
    assert before.take() == Cost(1)
    waiting = Lazy().wait()
    Context().run(waiting.send, None)
    with Meter() as meter:
        waiting.close()  # as the garbage collector does, at any line
        here().add(Cost(2))
    assert meter.take() == Cost(2)
