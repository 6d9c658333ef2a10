"""`lag`: how far the compactor is behind, lane by lane, the worst first.

Rule 1: a lane is looked at in its home Region; one that cannot be seen hides no other, and is named.
Rule 2: strays come first, because they are not in the value yet; then tails that are long enough to fold, the longest
first; a short tail of a cold counter is no lag.
"""

from typing import Annotated

import typer

from compactor.lag import LaneLag, lag
from ledger.errors import LedgerError
from ledgerctl import completion, show
from ledgerctl.call import Call
from ledgerctl.command import COMPACTION, command
from ledgerctl.compact import each_of, exit_code_of
from ledgerctl.lanes import Scan, found
from ledgerctl.list import Prefix


def to_do(each: LaneLag, fold_min: int) -> str:
    """What the compactor has to do there."""
    if each.damage:
        return "damaged"
    todo = ((each.strays, "settle"), (each.tail >= fold_min, "fold"), (each.to_clean, "clean"))
    return " ".join(name for there_is, name in todo if there_is) or "-"


def badness(each: LaneLag, fold_min: int) -> tuple[bool, int, int, int, int]:
    """The worst lane has the highest."""
    due = each.tail if each.tail >= fold_min else 0
    return each.damage is not None, each.strays, due, each.to_clean, each.tail


@command("lag", COMPACTION)
def lag_(
    call: Call,
    counters: Annotated[
        list[str] | None, typer.Argument(help="Some counters; without them, all.", autocompletion=completion.counters)
    ] = None,
    prefix: Prefix = "",
    limit: Annotated[int, typer.Option(min=1, help="Show that many lanes.")] = 20,
    scan: Scan = False,
) -> None:
    """Show what waits for the compactor, the worst lane first."""
    settings, now_ms = call.settings, call.surroundings.clock()
    if counters:
        lanes = [lane for counter in dict.fromkeys(counters) for lane in settings.lanes_of(counter)]
    else:
        every = found(call, prefix, scan=scan).lanes
        lanes = [lane for lane in every if lane.region in settings.regions and settings.limit_of(lane.counter) is None]
    outcomes = each_of(call, "looking", lanes, lambda lane: call.run(lag(lane), lane.region))
    seen = [outcome for _, outcome in outcomes if isinstance(outcome, LaneLag)]
    missing = [(lane, outcome) for lane, outcome in outcomes if isinstance(outcome, LedgerError)]
    fold_min = call.settings.fold_min
    seen.sort(key=lambda each: badness(each, fold_min), reverse=True)
    if call.json:
        for each in seen[:limit]:
            call.document(_fields(each, now_ms, fold_min))
        for lane, error in missing:
            call.document({"lane": str(lane), "error": str(error)})
    else:
        _show(call, seen, limit, now_ms)
    for lane, error in missing:
        call.note(f"{lane} was not seen: {error}", "red")
    if missing:
        raise typer.Exit(exit_code_of([error for _, error in missing]))


def _show(call: Call, seen: list[LaneLag], limit: int, now_ms: int) -> None:
    fold_min = call.settings.fold_min
    rows = []
    for each in seen[:limit]:
        ages = (show.age(_age(time_ms, now_ms)) for time_ms in (each.oldest_ms, each.watermark_ms))
        counts = (f"{each.strays:,}", f"{each.to_clean:,}", to_do(each, fold_min))
        rows.append((str(each.lane), f"{each.tail:,}", *ages, *counts))
    if rows:
        call.out.print(show.table(("lane", "tail", "oldest", "folded to", "strays", "to clean", "to do"), rows))
    waiting = sum(1 for each in seen if to_do(each, fold_min) != "-")
    call.say(f"lanes that wait for the compactor: {waiting:,} of {len(seen):,}", style="dim")
    for damage in filter(None, (each.damage for each in seen[:limit])):
        call.note(damage, "red")
    call.note(show.cost(call.meter.take()))


def _age(time_ms: int | None, now_ms: int) -> int | None:
    return None if time_ms is None else max(0, now_ms - time_ms)


def _fields(each: LaneLag, now_ms: int, fold_min: int) -> dict[str, object]:
    lane, to_do_there = each.lane, to_do(each, fold_min)
    named = {"lane": str(lane), "counter": lane.counter, "region": lane.region, "shard": lane.shard}
    ages = {"oldest_age_ms": _age(each.oldest_ms, now_ms), "watermark_age_ms": _age(each.watermark_ms, now_ms)}
    waits = {"strays": each.strays, "to_clean": each.to_clean}
    todo = to_do_there.split() if to_do_there != "-" else []
    return {**named, "tail": each.tail, **ages, **waits, "to_do": todo, "damage": each.damage}
