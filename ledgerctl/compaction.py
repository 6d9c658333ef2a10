"""`lag`, `compact`, `verify`: what waits for the compactor, its work by hand, and a recount of
counters.

Rule 1: A failure for one counter or lane stops and hides no other, and the command names it.
Rule 2: In `lag` strays come first, because they are not in the value yet; then tails that are long
enough to fold, the longest first; a short tail of a cold counter is no lag.
Rule 3: What is not due does not wait for the compactor: a tail younger than `allowed_lateness_ms`,
and folded deltas that have to stay for `keep_ms`, or for ever. `lag` shows how much there is of it
all the same.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import typer

from compactor import Report, Verification
from compactor.clean import is_young
from compactor.inspection import LaneLag, error_of, lag
from compactor.lanes import Lanes, find_lanes
from ledger.core.errors import PAGES, DamagedItem, LaneDamaged, LedgerError
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import Counters, Prefix, Scan, command
from ledgerctl.failures import DATA, Wrong, of_step
from ledgerctl.lanes import chosen, each_of, exit_code_of, found

COUNTS = ("folded", "settled", "cleaned", "commits", "gave_up", "postponed")


def to_do(each: LaneLag, settings: Settings, now_ms: int) -> list[str]:
    """What the compactor has to do in a lane now."""
    if each.damage:
        return ["damaged"]
    is_old = each.oldest_ms is not None and each.oldest_ms + settings.allowed_lateness_ms <= now_ms
    noted_ms = each.noted_ms
    is_kept = noted_ms is not None and is_young(noted_ms, now_ms, settings.keep_ms)
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


@command("lag")
def lag_(
    call: Call,
    counters: Counters = None,
    prefix: Prefix = "",
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many lanes.")] = 20,
    scan: Scan = False,
) -> None:
    """Show what waits for the compactor, the worst lane first."""
    settings, now_ms = call.settings, call.surroundings.clock()
    if counters:
        lanes = [lane for counter in dict.fromkeys(counters) for lane in settings.lanes_of(counter)]
    else:
        every = found(call, prefix, scan=scan).lanes
        lanes = [
            lane
            for lane in every
            if lane.region in settings.regions and settings.limit_of(lane.counter) is None
        ]
    outcomes = each_of(call, "lanes", lanes, lambda lane: call.run(lag(lane), lane.region))
    seen = [outcome for _, outcome in outcomes if isinstance(outcome, LaneLag)]
    missing = [(lane, outcome) for lane, outcome in outcomes if isinstance(outcome, LedgerError)]
    todo = {each.lane: to_do(each, settings, now_ms) for each in seen}
    seen.sort(key=lambda each: badness(each, todo[each.lane]), reverse=True)
    _show_lag(call, seen[:limit], todo, now_ms)
    call.say(
        f"lanes that wait for the compactor: {sum(map(bool, todo.values())):,} of {len(seen):,}",
        style="dim",
    )
    call.note_cost()
    for lane, error in missing:
        call.document({"lane": str(lane), "error": of_step(error)})
        call.note(f"{lane} could not be read: {of_step(error)}", "red")
    if missing:
        raise typer.Exit(exit_code_of([error for _, error in missing]))


def _show_lag(call: Call, seen: list[LaneLag], todo: Mapping[Lane, list[str]], now_ms: int) -> None:
    rows = []
    for each in seen:
        lane, due = each.lane, todo[each.lane]
        times = (each.oldest_ms, each.watermark_ms)
        oldest_ms, watermark_ms = (None if at is None else max(0, now_ms - at) for at in times)
        fields = {
            "lane": str(lane),
            "counter": lane.counter,
            "region": lane.region,
            "shard": lane.shard,
        }
        fields |= {"tail": each.tail, "oldest_age_ms": oldest_ms, "watermark_age_ms": watermark_ms}
        fields |= {
            "strays": each.strays,
            "to_clean": each.to_clean,
            "to_do": due,
            "damage": each.damage,
        }
        call.document(fields)
        counts = (f"{each.strays:,}", f"{each.to_clean:,}", " ".join(due) or "-")
        rows.append(
            (str(lane), f"{each.tail:,}", show.age(oldest_ms), show.age(watermark_ms), *counts)
        )
    call.table_of(("lane", "tail", "oldest", "newest folded", "strays", "to clean", "to do"), rows)
    for damage in filter(None, (each.damage for each in seen)):
        call.note(damage, "red")


VALUES = f"{PAGES}docs/operations/values.md"
DAMAGED = "lanes-damaged-a-lane-contradicts-itself"
DIFFERS = "verify-difference-a-recount-differs"
UNREAD = "lanes-unread-changes-in-a-lane-that-nobody-reads"


@command("compact")
def compact(call: Call, counters: Counters = None) -> None:
    """Clean, fold and settle the lanes of this Region. Without counters, a scan finds the lanes
    that need it.

    The scan also puts the lanes that it finds in the directory, those of limited counters too.
    """
    # Rule 4: `lag` looks at a lane in its home Region; `compact` works in that of --region.
    region = call.settings.region
    names, scanned = list(dict.fromkeys(counters or [])), Lanes([], [], [], {})
    if not names:
        scanned = call.run(find_lanes(call.settings))
        names = sorted({lane.counter for lane in scanned.needy})
    outcomes = each_of(call, "counters", names, call.compactor.compact)
    report = Report.total(outcome for _, outcome in outcomes if isinstance(outcome, Report))
    problems = [(name, outcome) for name, outcome in outcomes if isinstance(outcome, LedgerError)]
    problems += [(str(lane), error_of(lane)) for lane in scanned.unread]
    problems += [(str(lane), error) for lane, error in scanned.unlisted.items()]
    consumed = call.meter.take()
    fields = {"region": region, "counters": len(names), "postponed_by": list(report.postponed_by)}
    fields |= {name: getattr(report, name) for name in COUNTS} | {"listed": len(scanned.listed)}
    fields |= {
        "conflicts": list(report.conflicts),
        "problems": {name: of_step(error) for name, error in problems},
    }
    call.document(fields | show.cost_fields(consumed))
    what = show.counted(len(names), "counter") if names else "nothing needs it"
    _say_report(call, report, f"{what}, lanes of {region}", scanned)
    call.note(show.cost(consumed))
    for name, error in problems:
        text = of_step(error)
        call.note(text if text.startswith(name) else f"{name}: {text}", "red")
    for token in report.conflicts:
        call.note(
            f"a segment lists the delta {token} with another change, so the delta was kept", "red"
        )
    if problems or report.conflicts:
        raise typer.Exit(
            DATA if report.conflicts else exit_code_of([error for _, error in problems])
        )


def _say_report(call: Call, report: Report, where: str, scanned: Lanes) -> None:
    deltas = f"{report.folded:,} folded, {report.settled:,} settled, {report.cleaned:,} cleaned"
    call.say(f"{deltas}: {where}")
    if scanned.listed:
        call.say(f"lanes that were new in the directory: {len(scanned.listed):,}")
    if report.gave_up:
        call.say(
            "left to the next run, because another compactor is there: "
            f"{show.counted(report.gave_up, 'lane')}"
        )
    if report.postponed:
        postponed = show.counted(report.postponed, "lane")
        call.say(
            f"not cleaned, or only in part: {postponed}, because of "
            f"{'; '.join(report.postponed_by)}"
        )


@command("verify")
def verify(call: Call, counters: Counters = None, prefix: Prefix = "", scan: Scan = False) -> None:
    """Recount counters from all their changes, and compare.

    Writes nothing. If something differs, the exit code is 1.
    """
    names, every = chosen(call, counters, prefix, scan=scan)
    seen = every.unread(call.settings)

    def verified(name: str) -> Verification:
        checked = call.compactor.verify(name)
        unread = {*checked.unread, *(lane for lane in seen if lane.counter == name)}
        return replace(checked, unread=tuple(sorted(unread)))

    sections: set[str] = set()
    different = strays = 0
    failed: list[LedgerError] = []
    try:
        outcomes = each_of(call, "counters", names, verified)
    except (DamagedItem, LaneDamaged) as error:  # another verify would say the same
        raise Wrong(
            type(error).__name__, str(error), f"{VALUES}#{DAMAGED} says what to do.", DATA
        ) from error
    for name, outcome in outcomes:
        if isinstance(outcome, LedgerError):
            failed.append(outcome)
            call.note(f"{name}: {of_step(outcome)}", "red")
            call.document({"counter": name, "ok": None, "error": of_step(outcome)})
            continue
        different, strays = different + (not outcome.ok), strays + outcome.strays
        sections |= {DIFFERS} if any(lane.differences for lane in outcome.lanes) else set()
        sections |= {UNREAD} if outcome.unread else set()
        call.document(_fields(name, outcome))
        if not outcome.ok or len(names) == 1:
            _show(call, name, outcome)
    waiting = f"; strays that wait for the next settle: {strays:,}" if strays else ""
    right = len(names) - different - len(failed)
    said = f"counters that add up: {right:,} of {len(names):,}{waiting}{every.limits}"
    call.say(said, style=None if different else "green")
    call.note_cost()
    for section in sorted(sections):
        call.note(f"{VALUES}#{section} says what to do.", "yellow")
    if different or failed:
        raise typer.Exit(DATA if different else exit_code_of(failed))


def _fields(name: str, outcome: Verification) -> dict[str, object]:
    return {
        "counter": name,
        "ok": outcome.ok,
        "value": outcome.value,
        "strays": outcome.strays,
        "differences": list(outcome.differences),
        "unread": [str(lane) for lane in outcome.unread],
    }


def _show(call: Call, name: str, verification: Verification) -> None:
    value = "no value" if verification.value is None else f"{verification.value:,}"
    call.say(f"{name}: recounted from all its changes: {value}")
    rows = [
        (
            str(lane.lane),
            "?" if lane.value is None else f"{lane.value:,}",
            f"{lane.pending:,}",
            f"{lane.strays:,}",
        )
        for lane in verification.lanes
    ]
    call.table_of(("lane", "sum", "pending", "strays"), rows)
    for difference in verification.differences:
        call.say(f"differs: {difference}", style="bold red")
