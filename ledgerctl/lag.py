"""`lag`: how far the compactor is behind, lane by lane, the worst first.

Rules: a lane is looked at in its home Region; nothing is written; strays come first, because they are not in the value
yet; then tails that are long enough to fold, the longest first; a short tail of a cold counter is no lag; a lane that
cannot be seen hides no other, and is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from compactor.listing import look_up
from ledger import items, tokens
from ledger.errors import DamagedItem, LaneDamaged, LedgerError
from ledger.paging import PAGES_MAX
from ledger.requests import Get, Item, Page, Program, Query
from ledger.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import command
from ledgerctl.compaction import each_of, exit_code_of
from ledgerctl.counters import Prefix
from ledgerctl.scan import lanes


@dataclass(frozen=True, slots=True)
class LaneLag:
    """A lane as it stands. tail, strays, to_clean: deltas. oldest_ms, watermark_ms: the times in tokens."""

    lane: Lane
    tail: int = 0
    oldest_ms: int | None = None
    watermark_ms: int | None = None
    strays: int = 0
    to_clean: int = 0
    damage: str | None = None

    def does(self, fold_min: int) -> str:
        """What the compactor has to do there."""
        if self.damage:
            return "damaged"
        todo = ((self.strays, "settle"), (self.tail >= fold_min, "fold"), (self.to_clean, "clean"))
        return " ".join(name for there_is, name in todo if there_is) or "-"

    def badness(self, fold_min: int) -> tuple[bool, int, int, int, int]:
        """The worst lane has the highest."""
        due = self.tail if self.tail >= fold_min else 0
        return self.damage is not None, self.strays, due, self.to_clean, self.tail


def lag(lane: Lane) -> Program[LaneLag]:
    """Look at one lane: its checkpoint, its tail, and what lies at or below the watermark."""
    try:
        item: Item | None = yield Get(items.checkpoint_key(lane))
        watermark = items.checkpoint_of(lane, item).watermark if item is not None else None
        tail, oldest = yield from _tail(lane, watermark)
        strays, to_clean = (yield from _below(lane, watermark)) if watermark else (0, 0)
    except (DamagedItem, LaneDamaged) as damage:
        return LaneLag(lane, damage=str(damage))
    folded_ms = tokens.time_ms(watermark) if watermark else None
    return LaneLag(lane, tail, oldest, folded_ms, strays, to_clean)


def _tail(lane: Lane, after: str | None) -> Program[tuple[int, int | None]]:
    count, oldest_ms = 0, None
    for _ in range(PAGES_MAX):
        page: Page = yield Query(items.delta_pk(lane), after, consistent=False)
        if page.items and oldest_ms is None:
            oldest_ms = tokens.time_ms(items.delta_of(lane, page.items[0]).token)
        count += len(page.items)
        if page.last is None:
            break
        after = page.last
    return count, oldest_ms


def _below(lane: Lane, watermark: str) -> Program[tuple[int, int]]:
    """(strays, listed deltas that wait for clean) at or below the watermark."""
    strays = listed = 0
    after: str | None = None
    for _ in range(PAGES_MAX):
        page: Page = yield Query(items.delta_pk(lane), after, watermark, consistent=False)
        found = yield from look_up(lane, [items.delta_of(lane, item) for item in page.items], consistent=False)
        listed += sum(1 for each in found if each.listed)
        strays += sum(1 for each in found if not each.listed)
        if page.last is None:
            break
        after = page.last
    return strays, listed


@command("lag")
def lag_(
    call: Call,
    counters: Annotated[list[str] | None, typer.Argument(help="Some counters; without them, all: a scan.")] = None,
    prefix: Prefix = "",
    limit: Annotated[int, typer.Option(min=1, help="Show that many lanes.")] = 20,
) -> None:
    """Show what waits for the compactor, the worst lane first."""
    regions, now_ms = call.settings.regions, call.world.clock()
    if counters:
        found = [lane for counter in dict.fromkeys(counters) for lane in call.settings.lanes_of(counter)]
    else:
        found = [lane for lane in lanes(call, prefix) if lane.region in regions]
    outcomes = each_of(call, "looking", found, lambda lane: call.run(lag(lane), lane.region))
    seen = [outcome for _, outcome in outcomes if isinstance(outcome, LaneLag)]
    missing = [(lane, outcome) for lane, outcome in outcomes if isinstance(outcome, LedgerError)]
    fold_min = call.settings.fold_min
    seen.sort(key=lambda each: each.badness(fold_min), reverse=True)
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
    rows = [
        (
            str(each.lane),
            f"{each.tail:,}",
            show.age(_age(each.oldest_ms, now_ms)),
            show.age(_age(each.watermark_ms, now_ms)),
            f"{each.strays:,}",
            f"{each.to_clean:,}",
            each.does(fold_min),
        )
        for each in seen[:limit]
    ]
    if rows:
        call.out.print(show.table(("lane", "tail", "oldest", "folded to", "strays", "to clean", "to do"), rows))
    waiting = sum(1 for each in seen if each.does(fold_min) != "-")
    call.say(f"lanes that wait for the compactor: {waiting:,} of {len(seen):,}", style="dim")
    for each in (each for each in seen[:limit] if each.damage):
        call.note(str(each.damage), "red")
    call.note(show.cost(call.consumed.take()))


def _age(time_ms: int | None, now_ms: int) -> int | None:
    return None if time_ms is None else max(0, now_ms - time_ms)


def _fields(each: LaneLag, now_ms: int, fold_min: int) -> dict[str, object]:
    return {
        "lane": str(each.lane),
        "counter": each.lane.counter,
        "region": each.lane.region,
        "shard": each.lane.shard,
        "tail": each.tail,
        "oldest_age_ms": _age(each.oldest_ms, now_ms),
        "watermark_age_ms": _age(each.watermark_ms, now_ms),
        "strays": each.strays,
        "to_clean": each.to_clean,
        "to_do": each.does(fold_min).split() if each.does(fold_min) != "-" else [],
        "damage": each.damage,
    }
