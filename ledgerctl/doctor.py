"""`doctor`: is this table, this role and this machine what the library needs?

Rule 1: It writes nothing: a permission to write is tried by a put or a delete under a condition that nothing fulfils.
Rule 2: Each finding that is not fine has a remedy.
Rule 3: What may not be looked at is a warning, for a narrow role is no fault.
"""

from collections.abc import Callable
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
from ledgerctl.shape import Finding

NOBODY = "ledgerctl-doctor"
CHECKPOINTS_MAX = 100
NEVER = "attribute_exists(pk) AND attribute_not_exists(pk)"
ROLES = "docs/security.md#roles has the policies; no matter if this role is not meant to."
NOT_TRIED = {
    "add": "; PartiQLInsert, which add_many does without, is not tried",
    "clean": "; PartiQLDelete, which clean does without, is not tried",
}
Try = tuple[str, str, str, dict[str, Any]]
"""What a role may do, the permission for it, and a request that needs it."""

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@command("doctor", TABLE)
def doctor(call: Call) -> None:
    """Check table, replicas, backups, clock, settings and permissions.

    Exit code 1 when something fails. Writes nothing.
    """
    settings = call.settings
    home = call.ask(settings.region, "describe_table", TableName=settings.table)
    if isinstance(home, LedgerError) and not isinstance(home, NotAllowed):
        raise home
    findings = shape.settings_findings(settings)
    if not isinstance(home, LedgerError):
        findings += [_clock(call, home), *shape.replica_findings(settings, home["Table"])]
    for region in settings.regions:
        findings += _region(call, region)
    findings += [_shape(call), *_lanes(call), *_permissions(call)]
    if call.json:
        for each in findings:
            call.document(asdict(each))
    else:
        for each in findings:
            call.say(Text.assemble((f"{each.level:<5}", STYLES[each.level]), f"{each.what}: {each.says}"))
            if each.remedy:
                call.say(f"     {each.remedy}")
        counts = {level: sum(1 for each in findings if each.level == level) for level in STYLES}
        call.say(f"{counts['ok']} fine, {counts['warn']} to know, {counts['fail']} to mend")
    if any(each.level == "fail" for each in findings):
        raise typer.Exit(DATA)


def _region(call: Call, region: str) -> list[Finding]:
    table, single = call.settings.table, len(call.settings.regions) == 1
    looks: list[tuple[str, str, Callable[[Any], list[Finding]]]] = [
        ("table", "describe_table", lambda answer: shape.table_findings(region, answer["Table"], single=single)),
        ("time to live", "describe_time_to_live", lambda answer: [shape.ttl_finding(region, answer)]),
        ("point-in-time recovery", "describe_continuous_backups", lambda a: [shape.backups_finding(region, a)]),
    ]
    findings: list[Finding] = []
    for what, operation, judge in looks:
        answer = call.ask(region, operation, TableName=table)
        if isinstance(answer, TableMissing) and what == "table":
            remedy = "Make it with `ledgerctl init`, or correct --regions (LEDGER_REGIONS)."
            return [Finding("fail", f"{region} table", f"there is no {table}", remedy)]
        if isinstance(answer, LedgerError):
            remedy = f"Ask a role that may: {operation} is what it needs." if isinstance(answer, NotAllowed) else ""
            findings.append(Finding("warn", f"{region} {what}", f"not seen: {answer}", remedy))
        else:
            findings += judge(answer)
    return findings


def _clock(call: Call, answer: Any) -> Finding:
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    if date is None:
        return Finding("warn", "clock", "the endpoint tells no time", "Look at NTP by hand.")
    cut_off_ms = 500  # on average: the header has whole seconds
    skew_ms = call.surroundings.clock() - to_ms(parsedate_to_datetime(date)) - cut_off_ms
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
        looked_at = every[:CHECKPOINTS_MAX]
        held = call.table.answer(GetMany(tuple(map(items.checkpoint_key, looked_at)), consistent=False))
        listed = call.table.answer(GetMany(tuple(map(directory.key_of, looked_at)), consistent=False))
    except LedgerError as error:
        return [Finding("warn", "regions and shards against lanes", f"not seen: {error}", ROLES)]
    now_ms = call.surroundings.clock()
    ahead = [
        (lane, ms)
        for lane, item in zip(looked_at, held, strict=True)
        if item is not None and (ms := _watermark_ms(lane, item) - now_ms) > 0
    ]
    return [
        *shape.lane_findings(call.settings, found, page.last is None),
        shape.directory_finding(
            [lane for lane, item in zip(looked_at, listed, strict=True) if item is None],
            looked_at,
            page.last is None and looked_at == every,
        ),
        shape.watermark_finding(ahead, sum(item is not None for item in held)),
    ]


def _watermark_ms(lane: Lane, item: Item) -> int:
    """The time of a lane's watermark; that a checkpoint is damaged is for verify to tell."""
    try:
        return tokens.time_ms(items.checkpoint_of(lane, item).watermark)
    except DamagedItem:
        return 0


def _permissions(call: Call) -> list[Finding]:
    """Whether this role may read in every Region, ask each one before a clean, and write in its own."""
    home, regions = call.settings.region, call.settings.regions
    tries = [(region, each) for region in regions for each in _reads(call.settings.table, region)]
    fold = _key(items.fold_pk(Lane(home, 0, NOBODY)))
    asked = {"TableName": call.settings.table, "Key": fold}
    tries += [(r, (f"clean {home}, asking {r}", "GetItem", "get_item", asked)) for r in regions if r != home]
    tries += [(home, each) for each in _writes(call.settings.table, home)]
    if call.settings.limits:
        tries += [(region, each) for region in regions for each in _limited(call.settings.table, region)]
    findings = []
    for region, (does, action, operation, arguments) in tries:
        answer = call.ask(region, operation, **arguments)
        what = f"may {does}"
        if isinstance(answer, TableMissing) and region != home:
            continue  # that it is missing there is told already
        if does == "add" and call.settings.insert_only and isinstance(answer, NotAllowed | dict):
            findings.append(shape.insert_only_finding(refused=isinstance(answer, NotAllowed)))
        elif isinstance(answer, NotAllowed):
            findings.append(Finding("warn", what, f"no: {action} is refused", ROLES))
        elif isinstance(answer, LedgerError):
            findings.append(Finding("fail", what, f"{action}: {answer}", "Mend that first."))
        else:
            findings.append(Finding("ok", what, f"{action} is allowed{NOT_TRIED.get(does.partition(' ')[0], '')}"))
    return findings


def _query(table: str, pk: str) -> dict[str, Any]:
    asked = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": pk}}}
    return {"TableName": table, "Limit": 1, **asked}


def _reads(table: str, region: str) -> list[Try]:
    lane = Lane(region, 0, NOBODY)
    key = _key(items.fold_pk(lane))
    batch = {"RequestItems": {table: {"Keys": [key]}}}
    return [
        (f"read in {region}", "BatchGetItem", "batch_get_item", batch),
        (f"read in {region}", "Query on delta#", "query", _query(table, items.delta_pk(lane))),
        (f"read histories in {region}", "GetItem", "get_item", {"TableName": table, "Key": key}),
        (f"read histories in {region}", "Query on fold#", "query", _query(table, items.fold_pk(lane))),
    ]


def _writes(table: str, region: str) -> list[Try]:
    lane = Lane(region, 0, NOBODY)
    delta, fold = _key(items.delta_pk(lane)), _key(items.fold_pk(lane))
    never = {"TableName": table, "ConditionExpression": NEVER}
    return [
        ("add", "PutItem on delta#", "put_item", {**never, "Item": delta}),
        (f"compact {region}", "PutItem on fold#", "put_item", {**never, "Item": fold}),
        (f"clean {region}", "DeleteItem on delta#", "delete_item", {**never, "Key": delta}),
        (f"rebuild {region}", "DeleteItem on fold#", "delete_item", {**never, "Key": fold}),
        ("list, compact all", "Scan", "scan", {"TableName": table, "Limit": 1}),
    ]


def _limited(table: str, region: str) -> list[Try]:
    """What a process needs in every Region: rights come from there, and a hold ends where it was granted."""
    lane = Lane(region, 0, NOBODY)
    never = {"TableName": table, "ConditionExpression": NEVER}
    does = f"decide at the gates of {region}"
    return [
        (does, "UpdateItem on gate#", "update_item", {**never, "Key": _key(gates.gate_key(lane).pk)}),
        (does, "Query on past#", "query", _query(table, gates.past_pk(lane))),
        (does, "PutItem on hold#", "put_item", {**never, "Item": _key(gates.hold_pk(lane))}),
    ]


def _key(pk: str) -> dict[str, dict[str, str]]:
    return {"pk": {"S": pk}, "sk": {"S": NOBODY}}  # no token, so no delta of ours
