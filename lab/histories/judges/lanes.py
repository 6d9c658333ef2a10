"""The judges of lanes: what reads saw while a history went on, and what is there at its end.

Rule 1: at its end whatever was on its way arrives, the compactors come to rest, and every delta is
sent once more, as a replay a year later would.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from compactor.fold import fold
from compactor.report import Tally
from compactor.verify import verify
from compactor.visit import visit
from lab.histories.judges import checker
from lab.histories.judges.checker import Charted, Record, Seen, check_chart
from lab.histories.stage.judge import Judge
from lab.histories.stage.stage import finish, strays_left
from ledger.core import items, tokens
from ledger.core.requests import Query
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.lane.add import add
from reader.history import entries, history
from reader.read import read
from reader.series import bars
from simulator.world import World

COUNTER = "c"
ROUNDS = 3


class Reads(Judge):
    def __init__(self, record: Record) -> None:
        self.record, self.wrong = record, []

    def at_answer(self, answer: object) -> None:
        match answer:
            case Seen():
                self.record.seen.append(answer)
            case Charted():
                self.record.charts.append(answer)

    def at_end(self) -> None:
        self.wrong.extend(checker.check_reads(self.record))

    def known(self) -> object:
        return [(asked.acknowledged, asked.on_time) for asked in self.record.asked]


class AtRest(Judge):
    def __init__(self, world: World, settings: Settings, record: Record) -> None:
        self.world, self.settings, self.record = world, settings, record
        self.wrong = []

    def at_end(self) -> None:
        self.wrong.extend(_come_to_rest(self.world, self.settings, self.record))


class SeriesAtRest(AtRest):
    """With everything delivered and compacted, a border before each change, in each Region."""

    def at_end(self) -> None:
        asked, world = self.record.asked, self.world
        borders = sorted({tokens.time_ms(each.delta.token) for each in asked})
        for region in world.regions:
            program = bars(COUNTER, borders, self.settings, consistent=True)
            _, found = finish(world, region, program)
            chart = Charted(region, tuple(borders), tuple(found.numbers), tuple(found.totals))
            self.wrong.extend(check_chart(chart, asked))


def _come_to_rest(world: World, settings: Settings, record: Record) -> Iterable[str]:
    wrong = _left_behind(world, settings)
    for sent_again in (False, True):
        if sent_again:
            contested = {number for rivals in record.rivals for number in rivals.numbers}
            for asked in record.asked:
                if asked.number not in contested:
                    finish(
                        world, world.regions[asked.number % len(world.regions)], add(asked.delta)
                    )
                    asked.acknowledged = True
        for _ in range(ROUNDS):
            world.quiesce()
            # ahead of now?
            latest_ms = max(
                (tokens.time_ms(asked.delta.token) for asked in record.asked), default=0
            )
            world.now_ms = max(world.now_ms, latest_ms) + settings.keep_ms + 1_000 * world.step_ms
            for region in world.regions:
                own = replace(settings, region=region, fold_min=1)
                for lane in own.lanes_of(COUNTER, region):
                    finish(world, region, visit(lane, Tally(), own))
        world.quiesce()
        wrong += _judge(world, settings, record)
        if wrong:
            return wrong
    strays = strays_of(world, settings)
    return [
        *checker.check_on_time(record, strays),
        *checker.check_continuity(record, strays | record.lost),
    ]


def _left_behind(world: World, settings: Settings) -> list[str]:
    """What one visit leaves at or below the watermark, listed nowhere, when all that is there
    has arrived.
    """
    world.quiesce()
    wrong = []
    for lane in settings.lanes_of(COUNTER):
        before = _value_at(world, lane, settings)
        finish(world, lane.region, fold(lane, Tally(), replace(settings, fold_min=1, fold_max=3)))
        if (after := _value_at(world, lane, settings)) != before:
            wrong.append(f"{lane}: at rest a fold makes {after} of {before}")
        finish(
            world,
            lane.region,
            visit(lane, Tally(), replace(settings, region=lane.region, clean=False)),
        )
        left = sorted(map(tokens.from_bytes, strays_left(world, lane)))
        wrong += [f"{lane}: a visit left the stray {token}" for token in left]
    return wrong


def _value_at(world: World, lane: Lane, settings: Settings) -> int:
    program = read([lane], consistent=True, read_time_max_ms=settings.read_time_max_ms)
    return finish(world, lane.region, program)[1][0].value


def strays_of(world: World, settings: Settings) -> set[int]:
    """The deltas that were strays once: settled, not folded.

    A fold's segment is the first one filed under its hi.
    """
    strays: set[int] = set()
    for lane in settings.lanes_of(COUNTER):
        segments, _ = finish(
            world, lane.region, history(lane, consistent=True, read_time_max_ms=10**9)
        )
        folded: set[str] = set()
        for segment in sorted(segments, key=lambda each: each.version):
            if segment.hi in folded:
                strays.update(change.bit_length() // 2 for _, change in segment)
            folded.add(segment.hi)
    return strays


def _judge(world: World, settings: Settings, record: Record) -> list[str]:
    lanes, limit = settings.lanes_of(COUNTER), settings.read_time_max_ms
    values: dict[str, int] = {}
    histories: dict[str, list[int]] = {}
    wrong: list[str] = []
    for region in world.regions:
        _, sums = finish(world, region, read(lanes, consistent=True, read_time_max_ms=limit))
        values[region] = sum(each.value for each in sums)
        histories[region] = []
        for lane in lanes:
            segments, tail = finish(
                world, region, history(lane, consistent=True, read_time_max_ms=limit)
            )
            histories[region] += [entry.change for entry in entries(lane, segments, tail)]
    contested = {rivals.one.delta.token for rivals in record.rivals}
    for lane in lanes:
        differences = finish(world, lane.region, verify(lane)).differences
        wrong += [each for each in differences if not any(token in each for token in contested)]
        wrong += [
            f"{lane}: {left} items that were counted long ago are not cleaned in {region}"
            for region in world.regions
            if (left := _uncleaned(world, region, lane, contested))
        ]
    return [*wrong, *checker.check_end(record, values, histories)]


def _uncleaned(world: World, region: str, lane: Lane, contested: Collection[str]) -> int:
    """How many items there are that hold no contested token: of those clean keeps the one that
    does not count.
    """
    there = world.answer(region, Query(items.delta_pk(lane))).items
    held = [
        {tokens.from_bytes(token) for token in items.entries_of(lane, item).tokens}
        for item in there
    ]
    return sum(each.isdisjoint(contested) for each in held)
