"""Who reads series in a history; there days are so short that borders cut some, and others have
gone together.

Rule 1: a program of the reader is played at each border between it and the others; what it answers
is the checker's.
Rule 2: as in all histories, everything follows from the choices.
"""

from collections.abc import Iterator, Sequence

from lab.histories.judges.checker import Charted, Record, Seen, check_chart
from lab.histories.parts.cast import COUNTER, Cast, dawdling, must_of
from lab.histories.stage.theatre import finish, one_of, rest
from ledger.core import items, tokens
from ledger.core.errors import DamagedItem, LaneDamaged, LedgerError
from ledger.core.settings import Settings
from reader.series import bars
from simulator.process import Script
from simulator.world import World

BACK = (100, 400, 1_500, 6_000)
"""How many steps of time a border may lie back."""
DAYS = (40, 300)
FREE_BYTES = (items.FREE_BYTES, 790)
"""Days have so many steps; so many bytes of a checkpoint are not theirs, so that they are kept
or go together.
"""


def charts(cast: Cast, region: str, times: int, pace: Sequence[int]) -> Script:
    """Reads series in a Region, each with borders of its own."""
    record, own, choices, world = cast.record, cast.own(region), cast.choices, cast.theatre.world
    for _ in range(times):
        yield rest(choices, pace)
        consistent = choices.pick(3) != 2
        steps_back = [choices.pick(one_of(choices, BACK)) for _ in range(1 + choices.pick(4))]
        borders = sorted(max(0, world.now_ms - back * world.step_ms) for back in steps_back)
        must, ended = must_of(record, region if consistent else None), len(record.seen)
        program = bars(COUNTER, borders, own, consistent=consistent)
        try:
            _, found = yield from (
                dawdling(program, choices) if cast.theatre.faults.slow_reads else program
            )
        except (DamagedItem, LaneDamaged) as damage:
            record.broken.append(f"a series in {region}: {damage}")
        except LedgerError:
            continue
        else:
            value, count = sum(found.totals), sum(found.numbers)
            record.seen.append(
                Seen(region, consistent, value, count, len(record.asked), must, ended)
            )
            record.charts.append(
                Charted(region, tuple(borders), tuple(found.numbers), tuple(found.totals))
            )


def charts_at_the_end(world: World, settings: Settings, record: Record) -> Iterator[str]:
    """With everything delivered and compacted, a border before each change: what is wrong with
    it in each Region.
    """
    borders = sorted({tokens.time_ms(asked.delta.token) for asked in record.asked})
    for region in world.regions:
        try:
            _, found = finish(world, region, bars(COUNTER, borders, settings, consistent=True))
        except LedgerError as error:  # with no fault left, nothing may fail
            yield f"at the end a series in {region}: {type(error).__name__}: {error}"
            continue
        yield from check_chart(
            Charted(region, tuple(borders), tuple(found.numbers), tuple(found.totals)), record.asked
        )
