"""`doctor`: are this table, this role and this machine what the library needs?

Rule 1: It writes nothing: it tries a right to write by a put or a delete under a condition that
nothing fulfils.
Rule 2: Each finding that is not fine has a remedy.
Rule 3: Where the role may not look there is a warning, because a narrow role is no fault.
"""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import typer
from rich.text import Text

from compactor.lanes import by_lane
from ledger.core.checks import to_ms
from ledger.core.errors import PAGES, LedgerError, TableMissing, is_denied
from ledger.core.limit import Shape
from ledger.core.requests import GetMany, KeyPage, Scan
from ledger.core.settings import Settings
from ledger.gate import items as gates
from ledger.lane import directory
from ledger.lane.fits import mismatches
from ledger.lane.shape import KINDS, is_strong, stored
from ledgerctl import shape, show
from ledgerctl.call import Call
from ledgerctl.command import command
from ledgerctl.failures import DATA
from ledgerctl.lanes import few_of
from ledgerctl.permissions import ROLES, permissions, remedy_of
from ledgerctl.shape import Finding, Level, judged

LANES_MAX = 100
SKEW_WARN_MS = 2_000
CUT_OFF_MS = 500  # on average, of the Date header, which has whole seconds
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
MARGIN = " " * 5  # as wide as a level and the blank behind it
LANES = "regions and shards against lanes"
LOOKS = (
    ("table", "describe_table", shape.table_findings),
    ("time to live", "describe_time_to_live", shape.ttl_findings),
    ("point-in-time recovery", "describe_continuous_backups", shape.backups_findings),
)
"""What `doctor` looks at in each Region: its name, the request, and the function that judges the
answer.
"""


@command("doctor")
def doctor(call: Call) -> None:
    """Check table, replicas, backups, clock, settings and permissions.

    Writes nothing. If something fails, or nothing is ok, the exit code is 1.
    """
    findings = list(_findings(call))
    for each in findings:
        call.document(each._asdict())
        finding = Text(show.fitted(f"{each.what}: {each.says}", call.columns, MARGIN))
        call.say(Text.assemble((f"{each.level:<5}", STYLES[each.level]), finding[len(MARGIN) :]))
        if each.remedy:
            call.hint(each.remedy, MARGIN)
    counts = {level: sum(each.level == level for each in findings) for level in STYLES}
    warnings, errors = (
        show.counted(counts["warn"], "warning"),
        show.counted(counts["fail"], "error"),
    )
    call.say(f"{counts['ok']} ok, {warnings}, {errors}")
    if counts["fail"] or not counts["ok"]:
        raise typer.Exit(DATA)


def _findings(call: Call) -> Iterator[Finding]:
    settings = call.settings
    home = call.ask(settings.region, "describe_table", TableName=settings.table)
    if isinstance(home, LedgerError) and not is_denied(home):
        raise home
    if not isinstance(home, LedgerError):
        yield _clock(call, home)
        yield from shape.replica_findings(settings, home["Table"])
    for region in settings.regions:
        yield from _region(call, region)
    yield _shape(call, strong=not isinstance(home, LedgerError) and is_strong(home["Table"]))
    yield from _lanes(call)
    yield from permissions(call)


def _region(call: Call, region: str) -> Iterator[Finding]:
    table, single = call.settings.table, len(call.settings.regions) == 1
    for what, operation, judge in LOOKS:
        answer = call.ask(region, operation, TableName=table)
        if isinstance(answer, TableMissing) and what == "table":
            remedy = "Make it with `ledgerctl init`, or correct --regions (LEDGER_REGIONS)."
            yield Finding("fail", f"{region} table", f"there is no {table}", remedy)
            return
        if isinstance(answer, LedgerError):
            remedy = (
                f"Use a role that may: it needs {operation}."
                if is_denied(answer)
                else remedy_of(call, answer)
            )
            yield Finding("warn", f"{region} {what}", f"not seen: {answer}", remedy)
        else:
            yield from judge(region, answer, single)
            if judge is shape.ttl_findings and call.settings.periods:
                yield from shape.retiring_findings(region, answer)


def _clock(call: Call, answer: Any) -> Finding:
    """This machine's clock against the Date header, which knows seconds."""
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    if date is None:
        return Finding(
            "warn", "clock", "the endpoint's answer has no time", "Check the clock (NTP) by hand."
        )
    skew_ms = call.surroundings.clock() - to_ms(parsedate_to_datetime(date)) - CUT_OFF_MS
    late_ms = call.settings.allowed_lateness_ms
    ahead = f"{abs(skew_ms) / 1000:.1f} s {'ahead of' if skew_ms > 0 else 'behind'} AWS"
    remedy = f"Set the clock (NTP). Adds later than allowed_lateness_ms={late_ms} become strays."
    level: Level = "fail" if abs(skew_ms) > max(late_ms, SKEW_WARN_MS) else "warn"
    return judged(
        abs(skew_ms) <= SKEW_WARN_MS, "clock", "within two seconds of AWS", ahead, remedy, level
    )


def _shape(call: Call, strong: bool) -> Finding:
    """The table's `shape` item against the settings.

    strong: the table's consistency between Regions.
    """
    what, settings = "shape", call.settings
    try:
        there = call.on_table(stored())
    except LedgerError as error:
        if is_denied(error):
            remedy = (
                "So nothing checks the settings: allow GetItem on the key `shape` "
                f"({PAGES}docs/security.md#roles)."
            )
            return Finding("warn", what, f"not seen: {error}", remedy)
        return Finding(
            "fail", what, str(error), "Correct that first: until then no process adds or reads."
        )
    if there is None:
        remedy = (
            "Nothing refuses a process with other regions, shards or limits: `ledgerctl "
            "init` writes it."
        )
        return Finding("warn", what, "the table has none", remedy)
    wrong, lacking = mismatches(settings, there), lacked(settings, there)
    lacking += ["the mode of the table"] if strong and not there.is_strong else []
    if lacking and not wrong:
        says = (
            f"lacks {' '.join(lacking)}; nothing refuses a process without them, though it adds "
            "past them"
        )
        remedy = (
            "`ledgerctl init` with these settings adds them; until then the library refuses "
            "their use."
        )
        return Finding("warn", what, says, remedy)
    good = f"regions {' '.join(there.regions)}, shards {dict(there.shards) or 'one each'}"
    good += f", limits {' '.join(there.limits)}" if there.limits else ""
    good += f", periods {' '.join(there.periods)}" if there.periods else ""
    return judged(
        not wrong, what, good, " ".join(wrong), f"{PAGES}docs/data-model.md#shape has the rules."
    )


def lacked(settings: Settings, there: Shape) -> list[str]:
    """What the settings have, and the shape does not yet."""
    return [
        f"{kind} {prefix}"
        for kind in KINDS
        for prefix in sorted(getattr(settings, kind).keys() - getattr(there, kind).keys())
    ]


def _lanes(call: Call) -> Iterator[Finding]:
    """The lanes of a page of a scan (1 MB, at most 128 read units), and whether the directory
    has a hundred of them.
    """
    try:
        page: KeyPage = call.table.answer(Scan())
        found = sorted({lane for lane, _, _ in by_lane(page.keys)})
        limited = {lane for key in page.keys if (lane := gates.lane_of(key)) is not None}
        every = sorted({*found, *limited})
        seen = every[:LANES_MAX]
        listed = call.table.answer(GetMany(tuple(map(directory.key_of, seen)), consistent=False))
    except LedgerError as error:
        remedy = ROLES if is_denied(error) else remedy_of(call, error)
        yield Finding("warn", LANES, f"not seen: {error}", remedy)
        return
    whole = page.last is None
    unread = [lane for lane in found if not call.settings.reads(lane)]
    good = (
        f"{len(found):,} lanes{'' if whole else ' (of the first MB of the table)'}, all of "
        "them read"
    )
    remedy = (
        "Their changes are in no value: give the regions and shards of the processes that "
        "added them."
    )
    yield judged(not unread, LANES, good, f"nobody reads {few_of(unread)}", remedy)

    missing = [lane for lane, item in zip(seen, listed, strict=True) if item is None]
    what = f"{len(seen):,} lanes of {len({lane.counter for lane in seen}):,} counters"
    rest = " in the part that this read; `ledgerctl list --scan` reads the whole table"
    good = f"has each of {what}{'' if whole and seen == every else rest}"
    bad = f"{len(missing):,} of {what} are not in it, such as {', '.join(map(str, missing[:1]))}"
    remedy = (
        "`ledgerctl compact` in each Region lists them. The service lists a new lane within "
        "some seconds."
    )
    yield judged(not missing, "directory of lanes", good, bad, remedy, "warn")
