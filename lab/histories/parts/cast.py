"""The cast of a history: what its readers and compactors do, all with the shipped programs.
Writers: writers.py.

Rule 1: A script ends, so a history does.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compactor.report import Tally
from compactor.visit import visit
from lab.histories.judges.checker import Record, Seen
from lab.histories.judges.lanes import COUNTER
from lab.histories.stage.stage import LATE, SHORT, Stage, one_of, rest
from ledger.core import tokens
from ledger.core.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError
from ledger.core.requests import Program, Put, Request, Result
from ledger.core.running import through
from ledger.core.settings import Settings
from ledger.core.values import Delta, Lane
from reader.read import read
from simulator.choices import Choices
from simulator.process import Script, Sleep

NUMBERS_MAX = 30
"""A change of 4^29 is the largest there is."""
YEARS_MS = 10**11


@dataclass
class Cast:
    stage: Stage
    settings: Settings
    record: Record

    @property
    def choices(self) -> Choices:
        return self.stage.world.choices

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
            on_time, ended = [asked for asked in record.asked if asked.on_time], len(record.seen)
            lanes, limit = own.lanes_of(COUNTER), own.read_time_max_ms
            program = read(
                lanes, consistent=consistent, read_time_max_ms=limit, behind_ms=behind_ms
            )
            try:
                _, sums = yield from (
                    dawdling(program, choices) if self.stage.faults.slow_reads else program
                )
            except (DamagedItem, LaneDamaged) as damage:
                record.broken.append(f"a read in {region}: {damage}")
            except LedgerError:
                continue
            else:
                value, count = sum(s.value for s in sums), sum(s.count for s in sums)
                until = {s.lane: s.until_ms for s in sums}
                here = region if consistent else None
                must = frozenset(
                    asked.number for asked in on_time if _is_owed(asked.delta, here, until)
                )
                whole = consistent and not any(until.values())
                self.stage.answered(
                    Seen(region, whole, value, count, len(record.asked), must, ended)
                )

    def visits(
        self,
        region: str,
        rounds: Iterator[int],
        paces: Sequence[Sequence[int]],
        *,
        slow: bool = False,
    ) -> Script:
        """Visits its Region's lanes, each time after a rest of one of the `paces`.

        rounds: those that are left.
        """
        record, own, choices = self.record, self.own(region), self.choices
        for _ in rounds:
            yield rest(choices, one_of(choices, paces))
            for lane in own.lanes_of(COUNTER, region):
                try:
                    record.tallies.append(Tally())
                    program = visit(lane, record.tallies[-1], own)
                    if choices.pick(20) == 19:
                        program = _noting_ahead(program)
                    yield from dawdling(program, choices) if slow else program
                except (DamagedItem, LaneDamaged) as damage:
                    record.broken.append(f"a visit to {lane}: {damage}")
                except (GaveUp, LedgerError):
                    continue


def must_of(record: Record, here: str | None) -> frozenset[int]:
    """What a read of all tails must hold that begins now: of the lanes of the Region `here`,
    where it is strong.
    """
    return frozenset(
        asked.number for asked in record.asked if asked.on_time and asked.delta.lane.region == here
    )


def _is_owed(delta: Delta, here: str | None, until: Mapping[Lane, int | None]) -> bool:
    """Whether a read must hold a delta that was on time before it: of its own Region's lanes
    (`here`: if it is strong); of a lane whose tail it left out, in any Region, what was asked for
    before the time that it tells.
    """
    until_ms = until[delta.lane]
    return delta.lane.region == here if until_ms is None else tokens.time_ms(delta.token) < until_ms


def dawdling(program: Program[Result], choices: Choices) -> Generator[Request | Sleep, Any, Result]:
    """The program with pauses between its requests, most of them within the time a read may
    take.
    """

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
