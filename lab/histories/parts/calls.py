"""Calls of a Ledger, each with pairs of faults: the judge of what it ends with.

First the answer to one request is lost, or the request is sent twice, as an SDK does; another
process may file in between what it wrote. Then a later one is refused, once or from then on.

Rule 1: where a change counts, its error is OutcomeUnknown.
Rule 2: an error that says that nothing was written leaves everything as it was.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lab.histories.stage.stage import Played, one_of
from ledger import Change, Ledger, Limit, Receipt, Settings
from ledger.budgets import Budgets
from ledger.client.aio import AsyncLedger
from ledger.client.holds import Hold, Holds
from ledger.core import errors
from ledger.core.checks import to_datetime
from ledger.core.conditions import Absent
from ledger.core.errors import LedgerError, OutcomeUnknown
from ledger.core.requests import (
    AlreadyThere,
    At,
    Delete,
    DeleteMany,
    Get,
    Instant,
    Key,
    Program,
    Put,
    PutMany,
    Request,
    Resent,
    Together,
    Transact,
    Update,
)
from ledger.core.running import or_error, outcome, run
from ledger.gate.filing import roll
from ledger.gate.gates import Gates
from ledger.gate.items import lane_of
from ledger.tables.memory import MemoryTable
from reader import Reader
from simulator.choices import Choices

A, B = "eu-west-1", "us-east-1"
LATER_MS = 1_700_000_000_000
WRITES = (Put, Update, Delete, Transact, DeleteMany)
REFUSALS: dict[str, LedgerError] = {
    "throttled": errors.Throttled("put_item: slow down. Nothing was written. Call again, slower."),
    "denied": errors.NotAllowed("put_item: no. Nothing was written. Check this process's role."),
}
AT = to_datetime(LATER_MS)
LIMITS = {name: Limit(floor=0, ceiling=1_000, region=A) for name in ("lim", "wallet", "purse")}
LIMITS["full"] = Limit(floor=0, ceiling=0, region=A)
LIMITS["new"] = Limit(floor=0, ceiling=1_000, region=A)  # nobody added to it before the call
FAR_MS = 3_600_000


@dataclass
class Spoiled:
    """A table in memory whose requests, by their number, meet faults.

    made: how many it got since it was `armed`.
    """

    plan: dict[int, str] = field(default_factory=dict)
    forever: str = ""
    inner: MemoryTable = field(default_factory=MemoryTable)
    made: int | None = None
    now_ms: int = LATER_MS
    one_at_a_time = True

    def arm(self) -> None:
        self.made = 0

    def clock(self) -> int:
        return self.now_ms

    def answer(self, request: Request) -> Any:
        match request:
            case Together(parts):
                return tuple(or_error(self.answer, part) for part in parts)
            case At(_, inner):
                return self.answer(inner)
            case PutMany(items):
                return tuple(self._in_a_batch(Put(item, Absent())) for item in items)
            case DeleteMany(items):
                return tuple(or_error(self._sent, request) for _ in items)
            case Put():
                return self._alone(request)
        return self._sent(request)

    def _in_a_batch(self, put: Put) -> AlreadyThere | LedgerError | None:
        """A batch does not show the item that is there, unless only for its own fault."""
        answer = or_error(self._sent, put)
        return (
            AlreadyThere(None, isinstance(answer, Resent))
            if isinstance(answer, dict)
            else outcome(answer)
        )

    def _alone(self, put: Put) -> Any:
        answer = self._sent(put)
        return dict(answer) if isinstance(answer, Resent) else answer

    def _sent(self, request: Request) -> Any:
        if self.made is None:
            return self.inner.answer(request)
        fault = self.plan.get(
            self.made, self.forever if self.made > max(self.plan, default=0) else ""
        )
        self.made += 1
        if fault in REFUSALS:
            kind = REFUSALS[fault]
            raise type(kind)(*kind.args)
        answer = self.inner.answer(request)
        if fault == "lost" and isinstance(request, WRITES):
            raise OutcomeUnknown("put_item may or may not have been applied (read timeout).")
        if fault in ("resent", "filed") and isinstance(request, Put | Update):
            if fault == "filed":
                self._filed(request.key)
            again = self.inner.answer(request)
            return Resent(again) if isinstance(again, dict) else again
        return answer

    def _filed(self, key: Key) -> None:
        """Another process files what a gate decided, if that is there."""
        lane = lane_of(key)
        if lane is None or self.inner.answer(Get(key)) is None:
            return
        gates = Gates.limited(settings(A), lane.counter, "a test")

        def program() -> Program[object]:
            return (yield from roll(gates, (yield from gates.read(lane))))

        assert run(program(), self.inner, lambda: Instant(self.now_ms, self.now_ms)) is not None


@dataclass
class Case:
    """What is called, and what stands there before: call(ledger, what `before` returned)."""

    call: Callable[[Any, Any], Any]
    before: Callable[[Any], Any] = lambda ledger: None
    regions: tuple[str, ...] = (A,)
    """The last one's process calls; the first has the rights."""
    faults: tuple[str, ...] = ("lost", "resent")
    steps: bool = False
    """Whether the call has several steps, so that its error is of one of them."""
    parts: bool = False
    """Whether a part of the change may count, so that nobody may apply it for all or nothing."""


def named(key: str) -> dict[str, Any]:
    return {"idempotency_key": key, "at": AT}


def changes(counter: str) -> list[Change]:
    return [Change(counter, 1, f"k{n}", AT) for n in range(3)]


def held(ledger: Any) -> Hold:
    hold: Hold = ledger.hold("lim", -5, expires=timedelta(hours=1), **named("h"))
    return hold


def all_held(ledger: Any) -> Holds:
    holds: Holds = ledger.hold_all(
        ["lim", "wallet"], -5, expires=timedelta(hours=1), **named("all")
    )
    return holds


def budget(ledger: Any) -> Any:
    return Budgets(ledger, clock=lambda: LATER_MS).reserve(["lim", "wallet"], 5, call="b", at=AT)


def opened(ledger: Any) -> Any:
    return budget(ledger).open()


def closed(ledger: Any, call: Any) -> None:
    call.settle(9)
    call.close()


TWICE = Case.faults
CASES = {
    "add": Case(lambda ledger, _: ledger.add("plain", 1, **named("a"))),
    "add of a limited counter": Case(
        lambda ledger, _: ledger.add("lim", 1, **named("a")), faults=(*TWICE, "filed")
    ),
    "first add of a limited counter": Case(
        lambda ledger, _: ledger.add("new", 1, **named("a")), faults=(*TWICE, "filed")
    ),
    "first add_many of a limited counter": Case(
        lambda ledger, _: ledger.add_many(changes("new")), faults=(*TWICE, "filed")
    ),
    "add_up_to": Case(
        lambda ledger, _: ledger.add_up_to("lim", -150, **named("a")),
        faults=(*TWICE, "filed"),
        parts=True,
    ),
    "add_up_to whose rights are elsewhere": Case(
        lambda ledger, _: ledger.add_up_to("lim", -150, **named("a")), regions=(A, B), parts=True
    ),
    "add whose rights are elsewhere": Case(
        lambda ledger, _: ledger.add("lim", 1, **named("a")), regions=(A, B)
    ),
    "add_many": Case(lambda ledger, _: ledger.add_many(changes("plain"))),
    "add_many in packs": Case(
        lambda ledger, _: ledger.add_many([*changes("plain"), *changes("other")[:1]], pack=True)
    ),
    "add_many of a limited counter": Case(lambda ledger, _: ledger.add_many(changes("lim"))),
    "gathered": Case(
        lambda ledger, _: ledger._gathered([ledger.prepare("plain", 1, **named(k)) for k in "abc"])
    ),
    "gathered of a limited counter": Case(
        lambda ledger, _: ledger._gathered([ledger.prepare("lim", 1, **named(k)) for k in "abc"])
    ),
    "hold": Case(lambda ledger, _: held(ledger)),
    "capture": Case(lambda ledger, hold: ledger.capture(hold, -3), held),
    "release": Case(lambda ledger, hold: ledger.release(hold), held),
    "set_limit": Case(lambda ledger, _: ledger.set_limit("lim", ceiling=500)),
    "hold_all": Case(lambda ledger, _: all_held(ledger), steps=True),
    "hold_all without a key": Case(
        lambda ledger, _: ledger.hold_all(["lim", "wallet"], -5, expires=timedelta(hours=1)),
        steps=True,
    ),
    "capture of several": Case(lambda ledger, holds: holds.capture(-3), all_held, steps=True),
    "release of several": Case(lambda ledger, holds: holds.release(), all_held, steps=True),
    "transfer": Case(
        lambda ledger, _: ledger.transfer("lim", "plain", 5, **named("t")), steps=True
    ),
    "transfer that is refunded": Case(
        lambda ledger, _: ledger.transfer("lim", "full", 5, **named("t")), steps=True
    ),
    "reserve": Case(lambda ledger, _: opened(ledger), steps=True),
    "settle": Case(closed, opened, steps=True),
}


def settings(*regions: str, **changed: Any) -> Settings:
    """Of a process in the last of the Regions."""
    given: dict[str, Any] = {
        "table": "counters",
        "regions": regions,
        "limits": LIMITS,
        "unshared_limits": True,
    }
    return Settings(region=regions[-1], **given | changed)


def called(case: Case, table: Spoiled, before: Any) -> Any:
    """What the call returns. The shape is read before the faults begin."""
    ledger = Ledger(settings(*case.regions), table=table, clock=table.clock)
    ledger.add("warm", 1)
    table.arm()
    return case.call(ledger, before)


async def awaited(case: Case, table: Spoiled, before: Any) -> Any:
    async with AsyncLedger(settings(*case.regions), table=table, clock=table.clock) as ledger:
        await ledger.add("warm", 1)
        table.arm()
        return await case.call(ledger, before)


def state(table: Spoiled, regions: tuple[str, ...]) -> tuple[set[str], list[Any]]:
    """The tokens that count; and what everything stands at: values, holds and limits."""
    reader = Reader(settings(*regions), ttl=0, table=table, clock=table.clock)
    names = ("plain", "other", *LIMITS, *(f"over:{name}" for name in LIMITS))
    tokens = {entry.token for name in names for entry in reader.history(name)}
    standing = [reader.standing(name) for name in LIMITS]
    holds = [tuple(reader.holds(name)) for name in LIMITS]
    return tokens, [[reader.read(name).value for name in names], standing, holds]


def called_with(
    case: Case, plan: dict[int, str], forever: str = "", *, awaits: bool = False
) -> tuple[int, list[str]]:
    """How many requests the call made, and what its errors say that is not so."""
    table = Spoiled(plan, forever)
    first = Ledger(settings(*case.regions[::-1]), table=table, clock=table.clock)
    for name in ("lim", "wallet", "plain"):
        first.add(name, 100, idempotency_key="first", at=to_datetime(LATER_MS - FAR_MS))
    before = case.before(first)
    counted, was = state(table, case.regions)
    try:
        result = (
            asyncio.run(awaited(case, table, before)) if awaits else called(case, table, before)
        )
        results = result if isinstance(result, list) else [result]
    except LedgerError as error:
        results = [error]
    made, table.made = table.made or 0, None
    tokens, now = state(table, case.regions)
    # rights may have come for a part that is not decided yet
    is_changed = tokens != counted if case.parts else now != was
    wrong = list(lies(results, tokens, is_changed=is_changed, steps=case.steps))
    if case.parts:
        errors = [result for result in results if isinstance(result, LedgerError)]
        wrong += [f"{error!r} has a delta" for error in errors if error.delta is not None]
    return made, wrong


def lies(results: list[Any], tokens: set[str], *, is_changed: bool, steps: bool) -> Iterator[str]:
    for result in results:
        if isinstance(result, Receipt) and result.delta.token not in tokens:
            yield f"{result} is not there"
        if not isinstance(result, LedgerError) or isinstance(result, OutcomeUnknown):
            continue
        counts = is_changed if result.delta is None or steps else result.delta.token in tokens
        if counts and (not steps or "othing was" in str(result) or "othing counts" in str(result)):
            yield f"{type(result).__name__}: {result}"


def plans(case: Case, *, awaits: bool = False) -> Iterator[tuple[dict[int, str], str]]:
    made, _ = called_with(case, {}, awaits=awaits)
    for first in range(made):
        for fault in case.faults:
            again, _ = called_with(case, {first: fault}, awaits=awaits)
            for later in range(first + 1, again + 1):
                yield {first: fault, later: "denied"}, ""
                yield {first: fault, later: "throttled"}, "throttled"
    for only in range(made):
        for refusal in REFUSALS:
            yield {only: refusal}, ""
            yield {only: refusal}, refusal


def play(choices: Choices) -> Played:
    """One call with one pair of faults."""
    case = CASES[one_of(choices, [*CASES])]
    made, _ = called_with(case, {})
    first = choices.pick(made)
    fault = one_of(choices, case.faults)
    again, _ = called_with(case, {first: fault})
    later, refusal = first + 1 + choices.pick(max(1, again - first)), one_of(choices, [*REFUSALS])
    wrong = called_with(case, {first: fault, later: refusal}, refusal if choices.pick(2) else "")[1]
    return Played(wrong, again, Counter(calls=1))
