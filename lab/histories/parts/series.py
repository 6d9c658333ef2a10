"""Who reads series in a history; there days are so short that borders cut some, and others have
gone together.

Rule 1: a program of the reader is played at each border between it and the others; what it answers
is the checker's.
Rule 2: as in all histories, everything follows from the choices.
"""

from collections.abc import Sequence

from lab.histories.judges.checker import Charted, Seen
from lab.histories.judges.lanes import COUNTER
from lab.histories.parts.cast import Cast, dawdling, must_of
from lab.histories.stage.stage import one_of, rest
from ledger.core import items
from ledger.core.errors import DamagedItem, LaneDamaged, LedgerError
from reader.series import bars
from simulator.process import Script

BACK = (100, 400, 1_500, 6_000)
"""How many steps of time a border may lie back."""
DAYS = (40, 300)
FREE_BYTES = (items.FREE_BYTES, 790)
"""Days have so many steps; so many bytes of a checkpoint are not theirs, so that they are kept
or go together.
"""


def charts(cast: Cast, region: str, times: int, pace: Sequence[int]) -> Script:
    """Reads series in a Region, each with borders of its own."""
    record, own, choices, world = cast.record, cast.own(region), cast.choices, cast.stage.world
    for _ in range(times):
        yield rest(choices, pace)
        consistent = choices.pick(3) != 2
        steps_back = [choices.pick(one_of(choices, BACK)) for _ in range(1 + choices.pick(4))]
        borders = sorted(max(0, world.now_ms - back * world.step_ms) for back in steps_back)
        must, ended = must_of(record, region if consistent else None), len(record.seen)
        program = bars(COUNTER, borders, own, consistent=consistent)
        try:
            _, found = yield from (
                dawdling(program, choices) if cast.stage.faults.slow_reads else program
            )
        except (DamagedItem, LaneDamaged) as damage:
            record.broken.append(f"a series in {region}: {damage}")
        except LedgerError:
            continue
        else:
            value, count = sum(found.totals), sum(found.numbers)
            cast.stage.answered(
                Seen(region, consistent, value, count, len(record.asked), must, ended)
            )
            cast.stage.answered(
                Charted(region, tuple(borders), tuple(found.numbers), tuple(found.totals))
            )
