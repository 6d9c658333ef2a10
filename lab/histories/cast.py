"""The cast of a history: what its writers, readers and compactors do, all of it with the shipped programs.

Rule 1: Delta k changes its counter by 4^k, so a sum names its deltas.
Rule 2: A retry, a redelivery and a fail-over send the same delta, whoever sends it.
Rule 3: A script ends, so a history does.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compactor.report import Tally
from compactor.visit import visit
from lab.histories.checker import Asked, Record, Rivals, Seen
from lab.histories.theatre import LATE, LONG, SHORT, Theatre, one_of, rest
from ledger import tokens
from ledger.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError
from ledger.lane.add import add
from ledger.lane.tail import through
from ledger.requests import Now, Program, Put, Request, Result
from ledger.settings import Settings
from ledger.values import Delta, Lane
from reader.read import read
from simulator.choices import Choices
from simulator.process import Move, Script, Sleep

COUNTER = "c"
SENDS_MAX = 12
NUMBERS_MAX = 30
"""A change of 4^29 is the largest there is."""
YEARS_MS = 10**11
LATENESSES = (0, 1, 1, 6)
"""How long ago a change was asked for, at most, in allowed latenesses: now, in a queue but on time, or a backfill."""


@dataclass
class Cast:
    theatre: Theatre
    settings: Settings
    record: Record

    @property
    def choices(self) -> Choices:
        return self.theatre.world.choices

    def own(self, region: str) -> Settings:
        return replace(self.settings, region=region)

    def any_region(self) -> str:
        return one_of(self.choices, self.settings.regions)

    def numbers(self, most: int) -> range:
        """So many numbers, or as many as are left, for changes that nobody else asks for."""
        first = self.record.numbers
        self.record.numbers = min(first + most, NUMBERS_MAX)
        return range(first, self.record.numbers)

    def reads(self, region: str, times: int, pace: Sequence[int]) -> Script:
        record, own, choices = self.record, self.own(region), self.choices
        for _ in range(times):
            yield rest(choices, pace)
            consistent = choices.pick(3) != 2
            behind_ms = own.allowed_lateness_ms * choices.pick(8) if choices.pick(3) == 2 else 0
            on_time = [asked for asked in record.asked if asked.on_time]
            lanes, limit = own.lanes_of(COUNTER), own.read_time_max_ms
            program = read(lanes, consistent=consistent, read_time_max_ms=limit, behind_ms=behind_ms)
            try:
                _, sums = yield from (_dawdling(program, choices) if self.theatre.faults.slow_reads else program)
            except (DamagedItem, LaneDamaged) as damage:
                record.broken.append(f"a read in {region}: {damage}")
            except LedgerError:
                continue
            else:
                value, count = sum(s.value for s in sums), sum(s.count for s in sums)
                until = {s.lane: s.until_ms for s in sums}
                here = region if consistent else None
                must = frozenset(asked.number for asked in on_time if _is_owed(asked.delta, here, until))
                whole = consistent and not any(until.values())
                record.seen.append(Seen(region, whole, value, count, len(record.asked), must))

    def visits(
        self, region: str, rounds: Iterator[int], paces: Sequence[Sequence[int]], *, slow: bool = False
    ) -> Script:
        """Visits its Region's lanes, each time after a rest of one of the `paces`. rounds: those that are left."""
        record, own, choices = self.record, self.own(region), self.choices
        for _ in rounds:
            yield rest(choices, one_of(choices, paces))
            for lane in own.lanes_of(COUNTER, region):
                try:
                    record.tallies.append(Tally())
                    program = visit(lane, record.tallies[-1], own)
                    if choices.pick(20) == 19:
                        program = _noting_ahead(program)
                    yield from _dawdling(program, choices) if slow else program
                except (DamagedItem, LaneDamaged) as damage:
                    record.broken.append(f"a visit to {lane}: {damage}")
                except (GaveUp, LedgerError):
                    continue


@dataclass(frozen=True, slots=True)
class Sender:
    """What asks for changes in `home`. grain_ms: of the times that its events carry. ahead_ms: of its clock."""

    cast: Cast
    home: str
    grain_ms: int = 1
    ahead_ms: int = 0

    def ask(self, number: int, wall_ms: int) -> Asked:
        settings, choices = self.cast.settings, self.cast.choices
        late_ms = settings.allowed_lateness_ms * one_of(choices, LATENESSES)
        ms = wall_ms + self.ahead_ms - choices.pick(1 + late_ms)
        token = tokens.keyed(COUNTER, str(number), max(0, ms - ms % self.grain_ms))
        asked = Asked(number, Delta(settings.lane_for(COUNTER, token, self.home), token, 4**number))
        self.cast.record.asked.append(asked)
        return asked

    def rival(self, asked: Asked) -> Asked:
        """Another change under the token of one that was asked for."""
        (number,) = self.cast.numbers(1)
        other, record = Asked(number, Delta(asked.delta.lane, asked.delta.token, 4**number)), self.cast.record
        record.asked.append(other)
        record.rivals.append(Rivals(asked, other))
        record.lost |= {asked.number, number}
        return other

    def acknowledged(self, asked: Asked, region: str) -> None:
        rivals = next((each for each in self.cast.record.rivals if asked.number in each.numbers), None)
        if rivals is not None:
            rivals.acknowledged = True
            return
        asked.acknowledged = True
        if region == asked.delta.lane.region:
            theatre = self.cast.theatre
            late_ms = theatre.world.now_ms - tokens.time_ms(asked.delta.token)
            latest_ms = self.cast.settings.allowed_lateness_ms - theatre.faults.skew_ms
            asked.on_time = asked.on_time or late_ms <= latest_ms


def writes(number: int, sender: Sender, pace: Sequence[int], mine: list[Asked]) -> Script:
    """Asks for change `number` and sends it until it is acknowledged; then perhaps again or elsewhere.

    mine: outlives a crash, as a message in a queue does.
    """
    cast, choices = sender.cast, sender.cast.choices
    yield rest(choices, pace)
    if not mine:
        mine.append(sender.ask(number, (yield Now()).wall_ms))
    region = sender.home
    for _ in range(SENDS_MAX):
        try:
            yield from add(mine[0].delta)
        except LedgerError:
            if choices.pick(3) == 2:
                region = cast.any_region()  # a fail-over
                yield Move(region)
            yield rest(choices, SHORT)
            continue
        sender.acknowledged(mine[0], region)
        if choices.pick(3) != 2:
            return
        yield rest(choices, LONG)  # a redelivery, often after the delta was cleaned
        if choices.pick(2):
            region = cast.any_region()
            yield Move(region)


def _is_owed(delta: Delta, here: str | None, until: Mapping[Lane, int | None]) -> bool:
    """Whether a read must hold a delta that was on time before it: of its own Region's lanes (`here`: if it is strong);
    of a lane whose tail it left out, in any Region, what was asked for before the time that it tells.
    """
    until_ms = until[delta.lane]
    return delta.lane.region == here if until_ms is None else tokens.time_ms(delta.token) < until_ms


def _dawdling(program: Program[Result], choices: Choices) -> Generator[Request | Sleep, Any, Result]:
    """The program with pauses between its requests, most of them within the time a read may take."""

    def step(request: Request) -> Generator[Request | Sleep, Any, Any]:
        yield rest(choices, LATE if choices.pick(16) == 15 else SHORT)
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
