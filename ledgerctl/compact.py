"""`compact` and `verify`: the compactor by hand.

Rule 1: Compact is for the lanes of one Region, that of --region, as a compactor is.
Rule 2: Verify looks at every Region.
Rule 3: What fails for one counter stops no other.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from compactor import Report, Verification
from compactor.lanes import Lanes, find_lanes
from compactor.unread import error_of
from ledger.errors import GaveUp, LedgerError, TableError
from ledgerctl import completion, show
from ledgerctl.call import Call
from ledgerctl.command import COMPACTION, command
from ledgerctl.failures import DATA, NO_ANSWER
from ledgerctl.lanes import Found, Scan, added_to, found
from ledgerctl.list import Done, Name, Prefix, each

Counters = Annotated[
    list[str] | None, typer.Argument(help="Some counters; without them, all.", autocompletion=completion.counters)
]


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
    told = {name: getattr(report, name) for name in ("folded", "settled", "cleaned", "commits", "gave_up", "postponed")}
    if call.json:
        ahead = {str(lane): ms for lane, ms in report.ahead.items()}
        fields = {"region": region, "counters": len(names), **told, "postponed_by": list(report.postponed_by)}
        fields |= {"listed": len(scanned.listed)}
        fields |= {"conflicts": list(report.conflicts), "watermark_ahead_ms": ahead}
        fields |= {"problems": {name: str(error) for name, error in problems}}
        call.document(fields | show.cost_fields(call.meter.take()))
    else:
        what = show.counted(len(names), "counter")
        deltas = f"{report.folded:,} folded, {report.settled:,} settled, {report.cleaned:,} cleaned"
        call.say(f"{deltas}: {what if names else 'nothing needs it'}, lanes of {region}")
        if scanned.listed:
            call.say(f"lanes that were new in the directory: {len(scanned.listed):,}")
        if report.gave_up:
            call.say(f"left to the next run, for another compactor was there: {show.counted(report.gave_up, 'lane')}")
        if report.postponed:
            postponed = show.counted(report.postponed, "lane")
            call.say(f"not cleaned, or not to the end: {postponed}, because of {'; '.join(report.postponed_by)}")
        for lane, ahead_ms in report.ahead.items():
            call.note(show.ahead(lane, ahead_ms), "yellow")
        call.note(show.cost(call.meter.take()))
    for name, error in problems:
        call.note(str(error) if str(error).startswith(name) else f"{name}: {error}", "red")
    for token in report.conflicts:
        call.note(f"the delta {token} is listed with another change; kept", "red")
    if problems or report.conflicts:
        raise typer.Exit(DATA if report.conflicts else exit_code_of([error for _, error in problems]))


@command("verify", COMPACTION)
def verify(call: Call, counters: Counters = None, prefix: Prefix = "", scan: Scan = False) -> None:
    """Recount counters from their events and compare.

    Exit code 1 when something differs. Writes nothing.
    """
    every = Found([]) if counters else found(call, prefix, scan=scan)
    names = added_to(call, counters) if counters else every.counters
    seen = every.unread(call.settings)

    def verified(name: str) -> Verification:
        checked = call.compactor.verify(name)
        unread = {*checked.unread, *(lane for lane in seen if lane.counter == name)}
        return replace(checked, unread=tuple(sorted(unread)))

    outcomes = each_of(call, "recounting", names, verified)
    different = 0
    failed: list[LedgerError] = []
    for name, outcome in outcomes:
        if isinstance(outcome, LedgerError):
            failed.append(outcome)
            call.note(f"{name}: {outcome}", "red")
            if call.json:
                call.document({"counter": name, "ok": None, "error": str(outcome)})
            continue
        different += not outcome.ok
        if call.json:
            call.document(_checked(name, outcome))
        elif not outcome.ok or len(names) == 1:
            _show(call, name, outcome)
    if not call.json:
        strays = sum(outcome.strays for _, outcome in outcomes if isinstance(outcome, Verification))
        waiting = f"; strays that wait for the next settle: {strays:,}" if strays else ""
        right = len(names) - different - len(failed)
        said = f"counters that add up: {right:,} of {len(names):,}{waiting}{'' if counters else every.limits}"
        call.say(said, style=None if different else "green")
        call.note(show.cost(call.meter.take()))
    if different:
        call.note("docs/operations.md#verify-difference-a-recount-differs says what to do.", "yellow")
    if different or failed:
        raise typer.Exit(DATA if different else exit_code_of(failed))


def each_of(
    call: Call, what: str, names: Sequence[Name], work: Callable[[Name], Done]
) -> list[tuple[Name, Done | LedgerError]]:
    """The outcome or the error of each counter or lane, in order, some at a time. What fails for all is raised."""

    def one(name: Name) -> tuple[Name, Done | LedgerError]:
        try:
            return name, work(name)
        except LedgerError as error:
            return name, error

    outcomes = each(call, what, names, one)
    errors = [outcome for _, outcome in outcomes if isinstance(outcome, LedgerError)]
    if errors and (len(names) == 1 or len(errors) == len(names)):
        raise errors[0]
    return outcomes


def exit_code_of(failed: Sequence[LedgerError]) -> int:
    return NO_ANSWER if failed and all(isinstance(error, TableError | GaveUp) for error in failed) else DATA


def _show(call: Call, name: str, verification: Verification) -> None:
    value = "cannot be told" if verification.value is None else f"{verification.value:,}"
    call.say(f"{name}: its events give {value}")
    rows = [
        (str(lane.lane), "?" if lane.value is None else f"{lane.value:,}", f"{lane.pending:,}", f"{lane.strays:,}")
        for lane in verification.lanes
    ]
    call.out.print(show.table(("lane", "sum", "pending", "strays"), rows))
    for difference in verification.differences:
        call.say(f"differs: {difference}", style="bold red")


def _checked(name: str, verification: Verification) -> dict[str, object]:
    told = {"ok": verification.ok, "value": verification.value, "strays": verification.strays}
    unread = [str(lane) for lane in verification.unread]
    return {"counter": name, **told, "differences": list(verification.differences), "unread": unread}
