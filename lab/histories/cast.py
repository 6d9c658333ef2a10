"""The cast of a history: what its writers, readers and compactors do, all of it with the shipped programs.

Rule 1: Delta k changes its counter by 4^k, so a sum names its deltas.
Rule 2: A retry, a redelivery and a fail-over send the same delta, whoever sends it.
Rule 3: A script ends, so a history does.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compactor.report import Tally
from compactor.visit import visit
from ledger import tokens
from ledger.add import add
from ledger.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError
from ledger.requests import Now, Program, Put, Request, Result
from ledger.settings import Settings
from ledger.through import through
from ledger.values import Delta, Lane
from reader.read import read
from simulator.choices import Choices
from simulator.process import Move, Script, Sleep

COUNTER = "c"
SENDS_MAX = 12
AT_ONCE = (0, 1, 3)
SHORT = (0, 1, 3, 10, 30, 90)
LONG = (0, 10, 30, 100, 300, 700, 1_300)
LATE = (700, 1_300, 2_500, 4_000)
"""Rests, in steps: within one read, within what a read may take, up to beyond what clean waits for, and after it."""
YEARS_MS = 10**11
OLD_MS = (1, 250, 250, 1_500)
"""How long ago a change was asked for, at most: now, in a queue but on time, or in a slow queue or a backfill."""


@dataclass(slots=True)
class Asked:
    """One change that was asked for."""

    number: int
    delta: Delta
    acknowledged: bool = False
    on_time: bool = False
    """Its home Region has acknowledged it, within the allowed lateness by the clock of every compactor."""


@dataclass(slots=True)
class Seen:
    """One finished read, for the checker."""

    region: str
    consistent: bool
    value: int
    count: int
    asked_by_end: int
    must: frozenset[int]
    """The deltas that a strong read at home has to hold: acknowledged there, on time, before it began."""


@dataclass(slots=True)
class Record:
    """What a history leaves for the checker."""

    asked: list[Asked] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Errors that nothing in a history can cause, such as a damaged lane."""
    lost: set[int] = field(default_factory=set)
    """The deltas that a Region lost with its replica, or that a read there may have to wait for since then."""


def writer(
    number: int,
    home: str,
    record: Record,
    settings: Settings,
    choices: Choices,
    now_ms: Callable[[], int],
    skew_ms: int,
    pace: Sequence[int],
    grain_ms: int,
) -> Callable[[], Script]:
    """Asks for change `number` in `home` and sends it until it is acknowledged; then perhaps again or elsewhere."""
    asked_ms: list[int] = []  # outlives a crash, as a message in a queue does

    def script() -> Script:
        yield _rest(choices, pace)
        if not asked_ms:
            instant = yield Now()
            ms = instant.wall_ms - choices.pick(OLD_MS[choices.pick(len(OLD_MS))])
            asked_ms.append(max(0, ms - ms % grain_ms))
        token = tokens.keyed(COUNTER, str(number), asked_ms[0])
        delta = Delta(settings.lane_for(COUNTER, token, home), token, 4**number)
        asked = next((each for each in record.asked if each.number == number), None)
        if asked is None:
            asked = Asked(number, delta)
            record.asked.append(asked)
        region = home
        for _ in range(SENDS_MAX):
            try:
                yield from add(delta)
            except LedgerError:
                if choices.pick(3) == 2:
                    region = settings.regions[choices.pick(len(settings.regions))]  # a fail-over
                    yield Move(region)
                yield _rest(choices, SHORT)
                continue
            asked.acknowledged = True
            if region == home and not asked.on_time:
                late_ms = now_ms() - asked_ms[0]
                asked.on_time = late_ms <= settings.allowed_lateness_ms - skew_ms
            if choices.pick(3) != 2:
                return
            yield _rest(choices, LONG)  # a redelivery, often after the delta was cleaned
            if choices.pick(2):
                region = settings.regions[choices.pick(len(settings.regions))]
                yield Move(region)

    return script


def reader(
    region: str,
    times: int,
    record: Record,
    settings: Settings,
    choices: Choices,
    slow: bool,
    pace: Sequence[int],
) -> Callable[[], Script]:
    """Reads the counter `times` times, strongly or not."""

    def script() -> Script:
        lanes = settings.lanes_of(COUNTER)
        for _ in range(times):
            yield _rest(choices, pace)
            consistent = choices.pick(3) != 2
            here = (asked for asked in record.asked if asked.delta.lane.region == region and asked.on_time)
            must = frozenset(asked.number for asked in here if consistent)
            try:
                program = read(lanes, consistent=consistent, read_time_max_ms=settings.read_time_max_ms)
                _, sums = yield from (_dawdling(program, choices) if slow else program)
            except (DamagedItem, LaneDamaged) as damage:
                record.broken.append(f"a read in {region}: {damage}")
            except LedgerError:
                continue
            else:
                value, count = sum(s.value for s in sums), sum(s.count for s in sums)
                record.seen.append(Seen(region, consistent, value, count, len(record.asked), must))

    return script


def _rest(choices: Choices, steps: Sequence[int]) -> Sleep:
    return Sleep(steps[choices.pick(len(steps))])


def _dawdling(program: Program[Result], choices: Choices) -> Generator[Request | Sleep, Any, Result]:
    """The program with pauses between its requests, most of them within the time a read may take."""

    def step(request: Request) -> Generator[Request | Sleep, Any, Any]:
        yield _rest(choices, SHORT)
        return (yield request)

    return through(program, step)


def _noting_ahead(program: Program[Result]) -> Program[Result]:
    """The program on a machine whose clock was years ahead while it wrote the clean note."""

    def step(request: Request) -> Program[Any]:
        if isinstance(request, Put) and request.item["sk"]["S"] == "clean":
            noted_ms = int(request.item["noted_ms"]["N"]) + YEARS_MS
            request = Put({**request.item, "noted_ms": {"N": str(noted_ms)}})
        return (yield request)

    return through(program, step)


def compactor(
    lanes: tuple[Lane, ...],
    times: int,
    record: Record,
    settings: Settings,
    choices: Choices,
    slow: bool,
    paces: Sequence[Sequence[int]],
) -> Callable[[], Script]:
    """Visits its Region's lanes `times` times, each time after a rest of one of the `paces`."""
    left = [times]

    def script() -> Script:
        while left[0]:
            left[0] -= 1
            yield _rest(choices, paces[choices.pick(len(paces))])
            for lane in lanes:
                try:
                    program = visit(lane, Tally(), settings)
                    if choices.pick(20) == 19:
                        program = _noting_ahead(program)
                    yield from _dawdling(program, choices) if slow else program
                except (DamagedItem, LaneDamaged) as damage:
                    record.broken.append(f"a visit to {lane}: {damage}")
                except (GaveUp, LedgerError):
                    continue

    return script
