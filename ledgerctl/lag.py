"""`lag`: how far the compactor is behind, lane by lane, the worst first.

Rule 1: a lane is looked at in its home Region; one that cannot be seen hides no other, and is named.
Rule 2: strays come first, because they are not in the value yet; then tails that are long enough to fold, the longest
first; a short tail of a cold counter is no lag.
Rule 3: what is not due does not wait for the compactor: a tail younger than `allowed_lateness_ms`, and what is folded
and has to stay for `keep_ms`, or for ever. How much there is of it is shown all the same.
"""

from collections.abc import Mapping
from typing import Annotated

import typer

from compactor.clean import AHEAD_MAX_MS
from compactor.looking import LaneLag, lag
from ledger.errors import LedgerError
from ledger.settings import Settings
from ledger.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import COMPACTION, Counters, Prefix, Scan, command
from ledgerctl.lanes import each_of, exit_code_of, found


def to_do(each: LaneLag, settings: Settings, now_ms: int) -> list[str]:
    """What the compactor has to do there now."""
    if each.damage:
        return ["damaged"]
    is_old = each.oldest_ms is not None and each.oldest_ms + settings.allowed_lateness_ms <= now_ms
    is_kept = each.noted_ms is not None and -AHEAD_MAX_MS <= now_ms - each.noted_ms < settings.keep_ms
    todo = (
        (each.strays, "settle"),
        (is_old and each.tail >= settings.fold_min, "fold"),
        (settings.clean and each.to_clean and not is_kept, "clean"),
    )
    return [name for there_is, name in todo if there_is]


def badness(each: LaneLag, todo: list[str]) -> tuple[bool, int, int, int, int]:
    """The worst lane has the highest."""
    due = each.tail if "fold" in todo else 0
    return each.damage is not None, each.strays, due, each.to_clean, each.tail


@command("lag", COMPACTION)
def lag_(
    call: Call,
    counters: Counters = None,
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
    todo = {each.lane: to_do(each, settings, now_ms) for each in seen}
    seen.sort(key=lambda each: badness(each, todo[each.lane]), reverse=True)
    _show(call, seen[:limit], todo, now_ms)
    call.say(f"lanes that wait for the compactor: {sum(map(bool, todo.values())):,} of {len(seen):,}", style="dim")
    call.note_cost()
    for lane, error in missing:
        call.document({"lane": str(lane), "error": str(error)})
        call.note(f"{lane} was not seen: {error}", "red")
    if missing:
        raise typer.Exit(exit_code_of([error for _, error in missing]))


def _show(call: Call, seen: list[LaneLag], todo: Mapping[Lane, list[str]], now_ms: int) -> None:
    rows = []
    for each in seen:
        lane, due = each.lane, todo[each.lane]
        times = (each.oldest_ms, each.watermark_ms)
        oldest_ms, watermark_ms = (None if at is None else max(0, now_ms - at) for at in times)
        fields = {"lane": str(lane), "counter": lane.counter, "region": lane.region, "shard": lane.shard}
        fields |= {"tail": each.tail, "oldest_age_ms": oldest_ms, "watermark_age_ms": watermark_ms}
        fields |= {"strays": each.strays, "to_clean": each.to_clean, "to_do": due, "damage": each.damage}
        call.document(fields)
        counts = (f"{each.strays:,}", f"{each.to_clean:,}", " ".join(due) or "-")
        rows.append((str(lane), f"{each.tail:,}", show.age(oldest_ms), show.age(watermark_ms), *counts))
    call.table_of(("lane", "tail", "oldest", "folded to", "strays", "to clean", "to do"), rows)
    for damage in filter(None, (each.damage for each in seen)):
        call.note(damage, "red")
