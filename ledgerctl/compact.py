"""`compact`: the compactor by hand, for the lanes of one Region, that of --region.

Rule 1: What fails for one counter stops no other.
"""

import typer

from compactor import Report
from compactor.lanes import Lanes, find_lanes
from compactor.looking import error_of
from ledger.errors import LedgerError
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import COMPACTION, Counters, command
from ledgerctl.failures import DATA
from ledgerctl.lanes import each_of, exit_code_of

COUNTS = ("folded", "settled", "cleaned", "commits", "gave_up", "postponed")


@command("compact", COMPACTION)
def compact(call: Call, counters: Counters = None) -> None:
    """Clean, fold and settle the lanes of this Region; without counters, those that a scan finds to need it.

    The scan also lists the lanes that it meets, those of limited counters too.
    """
    region = call.settings.region
    names, scanned = list(dict.fromkeys(counters or [])), Lanes([], [], [], {})
    if not names:
        with show.bar(call.err, "scanning", None, count=False):
            scanned = call.run(find_lanes(call.settings))
        names = sorted({lane.counter for lane in scanned.needy})
    outcomes = each_of(call, "compacting", names, call.compactor.compact)
    report = Report.total(outcome for _, outcome in outcomes if isinstance(outcome, Report))
    problems = [(name, outcome) for name, outcome in outcomes if isinstance(outcome, LedgerError)]
    problems += [(str(lane), error_of(lane)) for lane in scanned.unread]
    problems += [(str(lane), error) for lane, error in scanned.unlisted.items()]
    consumed = call.meter.take()
    fields = {"region": region, "counters": len(names), "postponed_by": list(report.postponed_by)}
    fields |= {name: getattr(report, name) for name in COUNTS} | {"listed": len(scanned.listed)}
    fields |= {"conflicts": list(report.conflicts), "problems": {name: str(error) for name, error in problems}}
    fields |= {"watermark_ahead_ms": {str(lane): ms for lane, ms in report.ahead.items()}}
    call.document(fields | show.cost_fields(consumed))
    what = show.counted(len(names), "counter") if names else "nothing needs it"
    deltas = f"{report.folded:,} folded, {report.settled:,} settled, {report.cleaned:,} cleaned"
    call.say(f"{deltas}: {what}, lanes of {region}")
    if scanned.listed:
        call.say(f"lanes that were new in the directory: {len(scanned.listed):,}")
    if report.gave_up:
        call.say(f"left to the next run, for another compactor was there: {show.counted(report.gave_up, 'lane')}")
    if report.postponed:
        postponed = show.counted(report.postponed, "lane")
        call.say(f"not cleaned, or not to the end: {postponed}, because of {'; '.join(report.postponed_by)}")
    for lane, ahead_ms in report.ahead.items():
        ahead = f"the watermark is {ahead_ms / 1_000:,.1f} s ahead of this clock"
        call.note(f"{lane}: {ahead}; until then new changes are strays", "yellow")
    call.note(show.cost(consumed))
    for name, error in problems:
        call.note(str(error) if str(error).startswith(name) else f"{name}: {error}", "red")
    for token in report.conflicts:
        call.note(f"the delta {token} is listed with another change; kept", "red")
    if problems or report.conflicts:
        raise typer.Exit(DATA if report.conflicts else exit_code_of([error for _, error in problems]))
