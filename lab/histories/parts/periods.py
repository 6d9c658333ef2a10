"""Histories of counters with periods, windows of several hours or days among them: two zones'
clocks, retries over midnight and a year later, items that retire.

Rule 1: who asks knows its own clock alone, and names a change once, by its time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from compactor.report import Tally
from compactor.visit import visit
from lab.histories.judges.periods import (
    ANCHOR,
    CARRY,
    CEILING,
    HOURS,
    LIMITED,
    NUMBERS_MAX,
    PLAIN,
    Asked,
    Failed,
    Looked,
    PeriodJudge,
    Taken,
    Tried,
)
from lab.histories.judges.periods_end import PeriodsAtEnd
from lab.histories.stage.stage import (
    LONG,
    REGIONS,
    SHORT,
    Played,
    Stage,
    in_steps_of,
    one_of,
    rest,
)
from lab.histories.stage.world import WatchedWorld
from ledger.client import preparing, programs
from ledger.client.preparing import Rules
from ledger.core.checks import to_datetime
from ledger.core.errors import InvalidCounter, InvalidTime, LedgerError, LimitReached, PeriodOver
from ledger.core.keep import Keep
from ledger.core.limit import Limit
from ledger.core.period import Period
from ledger.core.requests import Now
from ledger.core.settings import Settings
from ledger.core.values import Change
from reader.rules import Rules as Reads
from simulator.choices import Choices
from simulator.faults import Faults, mix
from simulator.process import Log, Process, Script, Sleep

STEP_MS = 600_000
HOUR, DAY = 6, 144  # in steps
ZONES = ("UTC", "Pacific/Kiritimati", "Etc/GMT+12")
FORMS = (("hour", 1), ("day", 1), ("day", 1), ("hour", 5), ("day", 2))
"""The unit of a producer's periods, and how many of it each has."""

BEYOND = (HOUR, 8 * HOUR, 20 * HOUR, 2 * DAY, 4 * DAY, 36 * DAY)
"""How long a retry waits: within the period, over its end, over what may come late, and until it
has retired.
"""

ALONE = (Period("day"), Period("day"), Period("hour", anchor=ANCHOR, every=20))
"""The window is longer than the twelve hours after which the one before is over in every zone, so
that it takes what that has left.
"""


@dataclass
class Producer:
    region: str
    period: Period
    process: Process | None = None
    mine: list[Asked] = field(default_factory=list)


@dataclass
class Periods:
    """Who adds, reads, compacts and sets limits."""

    stage: Stage
    judge: PeriodJudge
    bases: tuple[str, ...]
    alone: Period | None
    """Of all producers, where all of them add to one counter."""

    @property
    def is_short(self) -> bool:
        """Whether all is about the days of one limited counter, which many are short of."""
        return self.bases == LIMITED[:1]

    @property
    def choices(self) -> Choices:
        return self.stage.world.choices

    def clock(self, process: Process | None) -> int:
        return self.stage.world.now_ms + (process.skew_ms if process is not None else 0)

    def enter_all(self) -> None:
        choices = self.choices
        for number in range(2 + choices.pick(4) + 2 * self.is_short):
            region = one_of(choices, REGIONS[:2])
            (unit, every), zone = one_of(choices, FORMS), one_of(choices, ZONES)
            anchor = 1 if every == 1 else ANCHOR.replace(tzinfo=ZoneInfo(zone))
            period = self.alone or Period(unit, zone, anchor, every)
            producer = Producer(region, period)
            producer.process = self.stage.enter(
                f"producer {number}", region, partial(self.produces, producer)
            )
        for region in REGIONS[:2]:
            self._enter(f"reader {region}", region, self.reads)
            self._enter(f"compactor {region}", region, self.visits)
        for twin in range(choices.pick(3)):
            region = one_of(choices, REGIONS[:2])
            self._enter(f"operator {twin}", region, self.sets_limits)

    def _enter(
        self, name: str, region: str, script: Callable[[str, list[Process]], Script]
    ) -> None:
        own: list[Process] = []
        own.append(self.stage.enter(name, region, lambda: script(region, own)))

    def produces(self, producer: Producer) -> Script:
        rules = self.judge.rules(producer.region, lambda: self.clock(producer.process))
        for n in range(1 + self.choices.pick(4) + 3 * self.is_short):
            if n >= len(producer.mine) and len(self.judge.asked) < NUMBERS_MAX:
                yield Sleep(one_of(self.choices, (0, HOUR, DAY // 2)))
                yield Now()
                producer.mine.append(self._one(producer))
            for one in producer.mine[n : n + 1]:
                yield from self._until_answered(rules, producer, one)
        for one in producer.mine:  # messages come again, some of them very late
            yield Sleep(one_of(self.choices, BEYOND))
            yield from self._attempt(rules, producer, one)

    def _one(self, producer: Producer) -> Asked:
        base = one_of(self.choices, self.bases)
        number = len(self.judge.asked)
        change = 4**number if base in PLAIN else 1 + self.choices.pick(3)
        at_ms = self.clock(producer.process) - self.choices.pick(3) * STEP_MS
        self.judge.asked.append(
            Asked(base, number, change, at_ms, producer.region, producer.period)
        )
        return self.judge.asked[-1]

    def _until_answered(
        self, rules: Rules, producer: Producer, one: Asked
    ) -> Generator[Any, Any, None]:
        for _ in range(6):
            if (yield from self._attempt(rules, producer, one)):
                return
            yield rest(self.choices, (*SHORT, HOUR, DAY))

    def _attempt(self, rules: Rules, producer: Producer, one: Asked) -> Generator[Any, Any, bool]:
        """One call, as it comes; whether that is an answer."""
        yield Now()  # a process that slept reads its clock after that
        name, began_ms = self.named(one, self.clock(producer.process)), self.clock(producer.process)
        change = Change(name, one.change, one.key, to_datetime(one.at_ms), one.region)
        self._refused(rules, change, one)
        call, error = self._begun(), None
        try:
            yield from programs.add(rules, self.judge.prepared(rules, change))
        except LedgerError as failure:
            error = failure
        finally:
            self.judge.running.pop(call, None)
        ended_ms = self.clock(producer.process)
        self.stage.answered(Tried(name, one, began_ms, ended_ms, error))
        return error is None or isinstance(error, PeriodOver | LimitReached | InvalidTime)

    def _begun(self) -> int:
        call = len(self.judge.running) + self.stage.world.step * 1_000
        self.judge.running[call] = self.stage.world.step
        return call

    def named(self, one: Asked, now_ms: int) -> str:
        return one.period.name(one.base, to_datetime(one.at_ms))

    def _refused(self, rules: Rules, change: Change, one: Asked) -> None:
        """What no process takes: a base, a change that is not of the period, and a window that
        begins where none does.
        """
        term = self.judge.term(change.counter)
        far = replace(change, counter=f"{term.base}@1972-01")
        beside = replace(change, counter=self._beside(term.base, one.at_ms))
        for wrong, error in (
            (replace(change, counter=term.base), InvalidCounter),
            (far, InvalidTime),
            (beside, InvalidCounter),
        ):
            with suppress(error, InvalidTime):
                preparing.prepare(rules, wrong)
                if change.at is not None:
                    self.stage.answered(Taken(wrong.counter))

    def _beside(self, base: str, at_ms: int) -> str:
        """A window round that time which is none of the anchor's."""
        hour = to_datetime(at_ms).replace(minute=0, second=0, microsecond=0)
        if not (hour - ANCHOR) % (5 * HOURS):
            hour -= HOURS
        return f"{base}@{hour:%Y-%m-%dT%H}+5h"

    # -- who reads, compacts and sets limits

    def reads(self, region: str, own: list[Process]) -> Script:
        calls = self.judge.reads(region, lambda: self.clock(own[0]))
        for _ in range(6 + self.choices.pick(8)):
            yield self._later()
            for name in self.judge.names():
                yield from self._read(calls, name, own[0])

    def _later(self) -> Sleep:
        """Some time, or until the table has begun to delete the oldest period."""
        names = self.judge.names()
        if names and self.choices.pick(6) == 5:
            retires_ms = min(self.judge.term(name).retires_s for name in names) * 1_000
            return Sleep(
                max(
                    0,
                    (retires_ms - self.stage.world.now_ms) // STEP_MS + self.choices.pick(2 * HOUR),
                )
            )
        return rest(self.choices, (*SHORT, 5 * HOUR, 10 * HOUR, DAY, *LONG))

    def _read(self, calls: Reads, name: str, process: Process | None) -> Generator[Any, Any, None]:
        yield Now()
        began_ms = self.clock(process)
        answer: int | LedgerError
        try:
            answer = (yield from calls.balances([name]))[name].value
        except LedgerError as error:
            answer = error
        self.stage.answered(Looked(name, began_ms, self.clock(process), answer))

    def visits(self, region: str, own: list[Process]) -> Script:
        for _ in range(8 + self.choices.pick(10)):
            yield self._later()
            for name in [
                name for name in self.judge.names() if self.judge.term(name).base in PLAIN
            ]:
                for lane in self.judge.settings.lanes_of(name, region):
                    try:
                        yield from visit(lane, Tally(), self.judge.own(region))
                    except LedgerError as error:
                        self.stage.answered(Failed(f"a visit to {lane}", error))

    def sets_limits(self, region: str, own: list[Process]) -> Script:
        rules = self.judge.rules(region, lambda: self.clock(own[0]))
        for _ in range(1 + self.choices.pick(3) + 12 * self.is_short):
            yield rest(self.choices, (*SHORT, HOUR) if self.is_short else LONG)
            yield Now()
            names = [name for name in self.judge.names() if self.judge.term(name).base in LIMITED]
            counter = one_of(self.choices, (*LIMITED, *names))
            call = self._begun()
            try:
                yield from programs.set_limit(rules, counter, ceiling=2 + self.choices.pick(9))
            except LedgerError as error:
                self.stage.answered(Failed(f"a limit of {counter}", error))
            finally:
                self.judge.running.pop(call, None)


def play(choices: Choices, faults: Faults | None = None, log: Log | None = None) -> Played:
    faults = mix(choices) if faults is None else faults
    faults = replace(in_steps_of(STEP_MS, faults), remade=False, pause=0)
    world = WatchedWorld(
        REGIONS[:2], choices, page_size=1 + choices.pick(3), lag_steps=faults.lag_steps
    )
    world.step_ms, world.now_ms = STEP_MS, 50_000 * STEP_MS
    late, keep = one_of(choices, ((0, 0), (6, 12), (24, 96)))
    kept = Keep(late=timedelta(hours=late), keep=timedelta(hours=keep), anchor=ANCHOR)
    settings = Settings(
        table="counters",
        region=REGIONS[0],
        regions=REGIONS[:2],
        limits={"q:": Limit(ceiling=CEILING, region=REGIONS[0])},
        periods={"p:": kept, "q:": replace(kept, carry=CARRY)},
        allowed_lateness_ms=30 * STEP_MS,
        read_time_max_ms=300 * STEP_MS,
        keep_ms=600 * STEP_MS,
        fold_min=1 + choices.pick(2),
        unshared_limits=True,
    )
    stage = Stage(world, faults, log)
    judge = PeriodJudge(stage, world, settings)
    stage.judged_by(judge, PeriodsAtEnd(judge))
    every = (*PLAIN, *LIMITED, *LIMITED)
    bases = one_of(choices, (every, PLAIN[:1], LIMITED[:1]))
    alone = one_of(choices, ALONE) if len(bases) == 1 else None
    Periods(stage, judge, bases, alone).enter_all()
    over_ms = world.now_ms + one_of(choices, (10, 16, 22, 60, 400)) * DAY // 8 * STEP_MS
    stage.play(lambda: world.now_ms >= over_ms)
    return stage.ended()
