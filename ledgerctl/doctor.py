"""`doctor`: is this table, this role and this machine what the library needs?

Rule 1: It writes nothing: a permission to write is tried by a put or a delete under a condition that nothing fulfils.
Rule 2: Each finding that is not fine has a remedy.
Rule 3: What may not be looked at is a warning, for a narrow role is no fault.
"""

from collections.abc import Iterator
from dataclasses import asdict
from email.utils import parsedate_to_datetime
from typing import Any

import typer
from rich.text import Text

from compactor.lanes import by_lane
from ledger import items, tokens
from ledger.checks import to_ms
from ledger.errors import DamagedItem, LedgerError, NotAllowed, TableMissing
from ledger.gate import items as gates
from ledger.lane import directory
from ledger.requests import Get, GetMany, Item, KeyPage, Scan
from ledger.values import Lane
from ledgerctl import shape
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command
from ledgerctl.failures import DATA
from ledgerctl.permissions import ROLES, permissions
from ledgerctl.shape import Finding

CHECKPOINTS_MAX = 100
CUT_OFF_MS = 500  # on average, of the Date header, which has whole seconds
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
LOOKS = (
    ("table", "describe_table", shape.table_findings),
    ("time to live", "describe_time_to_live", shape.ttl_findings),
    ("point-in-time recovery", "describe_continuous_backups", shape.backups_findings),
)
"""What is looked at in each Region, the request for it, and what judges the answer."""


@command("doctor", TABLE)
def doctor(call: Call) -> None:
    """Check table, replicas, backups, clock, settings and permissions.

    Exit code 1 when something fails. Writes nothing.
    """
    findings = list(_findings(call))
    for each in findings:
        call.document(asdict(each))
        call.say(Text.assemble((f"{each.level:<5}", STYLES[each.level]), f"{each.what}: {each.says}"))
        if each.remedy:
            call.say(f"     {each.remedy}")
    counts = {level: sum(each.level == level for each in findings) for level in STYLES}
    call.say(f"{counts['ok']} fine, {counts['warn']} to know, {counts['fail']} to mend")
    if counts["fail"]:
        raise typer.Exit(DATA)


def _findings(call: Call) -> Iterator[Finding]:
    settings = call.settings
    home = call.ask(settings.region, "describe_table", TableName=settings.table)
    if isinstance(home, LedgerError) and not isinstance(home, NotAllowed):
        raise home
    yield from shape.settings_findings(settings)
    if not isinstance(home, LedgerError):
        yield _clock(call, home)
        yield from shape.replica_findings(settings, home["Table"])
    for region in settings.regions:
        yield from _region(call, region)
    yield _shape(call)
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
            remedy = f"Ask a role that may: {operation} is what it needs." if isinstance(answer, NotAllowed) else ""
            yield Finding("warn", f"{region} {what}", f"not seen: {answer}", remedy)
        else:
            yield from judge(region, answer, single)


def _clock(call: Call, answer: Any) -> Finding:
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    if date is None:
        return Finding("warn", "clock", "the endpoint tells no time", "Look at NTP by hand.")
    skew_ms = call.surroundings.clock() - to_ms(parsedate_to_datetime(date)) - CUT_OFF_MS
    return shape.clock_finding(skew_ms, call.settings)


def _shape(call: Call) -> Finding:
    try:
        return shape.shape_finding(call.table.answer(Get(items.SHAPE_KEY)), call.settings)
    except NotAllowed as refused:
        return Finding("warn", shape.SHAPE, f"not seen: {refused}", shape.UNSEEN)
    except LedgerError as error:
        return Finding("fail", shape.SHAPE, str(error), "Mend that first: no process adds or reads before.")


def _lanes(call: Call) -> list[Finding]:
    """One page of a scan: 1 MB, at most 128 read units; and the checkpoints of at most a hundred of its lanes."""
    try:
        page: KeyPage = call.table.answer(Scan())
        found = sorted({lane for lane, _, _ in by_lane(page.keys)})
        limited = {lane for key in page.keys if (lane := gates.lane_of(key)) is not None}
        every = sorted({*found, *limited})
        seen = every[:CHECKPOINTS_MAX]
        held = call.table.answer(GetMany(tuple(map(items.checkpoint_key, seen)), consistent=False))
        listed = call.table.answer(GetMany(tuple(map(directory.key_of, seen)), consistent=False))
    except LedgerError as error:
        return [Finding("warn", "regions and shards against lanes", f"not seen: {error}", ROLES)]
    now_ms, whole = call.surroundings.clock(), page.last is None
    checkpoints = [(lane, item) for lane, item in zip(seen, held, strict=True) if item is not None]
    ahead = [(lane, ms) for lane, item in checkpoints if (ms := _watermark_ms(lane, item) - now_ms) > 0]
    missing = [lane for lane, item in zip(seen, listed, strict=True) if item is None]
    return [
        shape.lanes_finding(call.settings, found, whole),
        shape.directory_finding(missing, seen, whole and seen == every),
        shape.watermark_finding(ahead, len(checkpoints)),
    ]


def _watermark_ms(lane: Lane, item: Item) -> int:
    """The time of a lane's watermark; that a checkpoint is damaged is for verify to say."""
    try:
        return tokens.time_ms(items.checkpoint_of(lane, item).watermark)
    except DamagedItem:
        return 0
