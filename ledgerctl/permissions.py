"""What this role may do, tried request by request: the finding of `doctor` for each.

Rule 1: A right to write is tried under a condition that nothing fulfils, on a key that no program has.
Rule 2: A right is tried on the kind of item that it is needed for, at the endpoint where it is needed.
"""

import re
from collections.abc import Iterator
from typing import Any

from ledger import items
from ledger.errors import LedgerError, NotAllowed, TableMissing
from ledger.gate import items as gates
from ledger.values import Lane
from ledgerctl.call import Call
from ledgerctl.shape import Finding, judged

NOBODY = "ledgerctl-doctor"
NEVER = "attribute_exists(pk) AND attribute_not_exists(pk)"
ROLES = "docs/security.md#roles has the policies; no matter if this role is not meant to."
NOT_TRIED = {
    "add": "; PartiQLInsert, which add_many does without, is not tried",
    "clean": "; PartiQLDelete, which clean does without, is not tried",
}
TRIES = (
    # endpoint  what for                        action          kind of item
    ("each", "read in {at}", "BatchGetItem", "fold#"),
    ("each", "read in {at}", "Query", "delta#"),
    ("each", "read histories in {at}", "GetItem", "fold#"),
    ("each", "read histories in {at}", "Query", "fold#"),
    ("others", "clean {home}, asking {at}", "GetItem", "fold#"),
    ("home", "add", "PutItem", "delta#"),
    ("home", "compact {at}", "PutItem", "fold#"),
    ("home", "clean {at}", "DeleteItem", "delta#"),
    ("home", "rebuild {at}", "DeleteItem", "fold#"),
    ("home", "list, compact all", "Scan", ""),
    ("limits", "decide at the gates of {at}", "UpdateItem", "gate#"),  # rights come from every Region
    ("limits", "decide at the gates of {at}", "Query", "past#"),
    ("limits", "decide at the gates of {at}", "PutItem", "hold#"),
)


def permissions(call: Call) -> Iterator[Finding]:
    """Whether this role may read in every Region, ask each one before a clean, and write in its own."""
    home, regions = call.settings.region, call.settings.regions
    others = tuple(region for region in regions if region != home)
    limits = regions if call.settings.limits else ()
    endpoints = {"each": regions, "others": others, "home": (home,), "limits": limits}
    for where, what, action, kind in TRIES:
        for region in endpoints[where]:
            lane = Lane(home if where == "others" else region, 0, NOBODY)
            operation = re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()
            answer = call.ask(region, operation, **_request(call.settings.table, action, kind, lane))
            if not (isinstance(answer, TableMissing) and region != home):  # which is said already
                yield _finding(
                    call, what.format(at=region, home=home), f"{action} {kind and 'on '}{kind}".strip(), answer
                )


def _finding(call: Call, does: str, action: str, answer: Any) -> Finding:
    what = f"may {does}"
    if does == "add" and call.settings.insert_only and isinstance(answer, NotAllowed | dict):
        good = "PutItem on delta# is refused, as it should be; PartiQLInsert is not tried"
        bad = "PutItem on delta# is allowed, so this role may replace a change"
        remedy = "docs/settings.md#insert-only has what a role needs."
        return judged(isinstance(answer, NotAllowed), "insert only", good, bad, remedy, "warn")
    if isinstance(answer, NotAllowed):
        return Finding("warn", what, f"no: {action} is refused", ROLES)
    if isinstance(answer, LedgerError):
        return Finding("fail", what, f"{action}: {answer}", "Mend that first.")
    return Finding("ok", what, f"{action} is allowed{NOT_TRIED.get(does.partition(' ')[0], '')}")


def _request(table: str, action: str, kind: str, lane: Lane) -> dict[str, Any]:
    pks = {"delta#": items.delta_pk, "fold#": items.fold_pk, "past#": gates.past_pk, "hold#": gates.hold_pk}
    pk = pks[kind](lane) if kind in pks else gates.gate_key(lane).pk
    key = {"pk": {"S": pk}, "sk": {"S": NOBODY}}  # no token, so no delta of ours
    if action == "BatchGetItem":
        return {"RequestItems": {table: {"Keys": [key]}}}
    asked: dict[str, Any] = {"TableName": table}
    if action in ("Scan", "Query"):
        asked["Limit"] = 1
    else:
        asked["Item" if action == "PutItem" else "Key"] = key
    if action == "Query":
        asked |= {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": key["pk"]}}
    elif action in ("PutItem", "DeleteItem", "UpdateItem"):
        asked["ConditionExpression"] = NEVER
    return asked
