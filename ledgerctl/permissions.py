"""What this role may do: `doctor` tries each right by a request, and has a finding for it.

Rule 1: It tries a right to write under a condition that nothing fulfils, on a key that no program
has.
Rule 2: It tries a right on the kind of item that needs it, at the endpoint that needs it.
"""

import re
from collections.abc import Iterator
from typing import Any

from ledger.core import items
from ledger.core.errors import PAGES, LedgerError, TableMissing, is_denied
from ledger.core.values import Lane
from ledger.gate import items as gates
from ledgerctl.call import Call
from ledgerctl.failures import meaning
from ledgerctl.shape import Finding

NOBODY = "ledgerctl-doctor"
PKS = {
    "": items.delta_pk,  # of a scan, which names none
    "delta#": items.delta_pk,
    "fold#": items.fold_pk,
    "gate#": lambda lane: gates.gate_key(lane).pk,
    "past#": gates.past_pk,
    "hold#": gates.hold_pk,
}
NEVER = "attribute_exists(pk) AND attribute_not_exists(pk)"
ROLES = f"{PAGES}docs/security.md#roles has the policies. Ignore this if the role is not meant to."
TRIES = (
    # endpoint, what for, action, kind of item
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
    # rights come from every Region
    ("limits", "decide at the gates of {at}", "UpdateItem", "gate#"),
    ("limits", "decide at the gates of {at}", "Query", "past#"),
    ("limits", "decide at the gates of {at}", "PutItem", "hold#"),
)


def permissions(call: Call) -> Iterator[Finding]:
    """Whether this role may read in every Region, also for a clean, and write in its own. It does
    not try PartiQL, which add_many and clean can do without."""
    home, regions = call.settings.region, call.settings.regions
    others = tuple(region for region in regions if region != home)
    limits = regions if call.settings.limits else ()
    endpoints = {"each": regions, "others": others, "home": (home,), "limits": limits}
    for where, what, action, kind in TRIES:
        for region in endpoints[where]:
            lane = Lane(home if where == "others" else region, 0, NOBODY)
            operation = re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()
            answer = call.ask(
                region, operation, **_request(call.settings.table, action, PKS[kind](lane))
            )
            if not (isinstance(answer, TableMissing) and region != home):  # another finding says it
                may = f"may {what.format(at=region, home=home)}"
                yield _finding(call, may, f"{action} {kind}".strip(), answer)


def _finding(call: Call, what: str, action: str, answer: Any) -> Finding:
    if is_denied(answer):
        return Finding("warn", what, f"no: AWS refuses {action}", ROLES)
    if isinstance(answer, LedgerError):
        return Finding("fail", what, f"{action}: {answer}", remedy_of(call, answer))
    return Finding("ok", what, f"AWS allows {action}")


def remedy_of(call: Call, error: LedgerError) -> str:
    """What to do where a request failed, and the role is not the cause."""
    return meaning(error, call.where).remedy or "Correct that first."


def _request(table: str, action: str, pk: str) -> dict[str, Any]:
    key = {"pk": {"S": pk}, "sk": {"S": NOBODY}}  # no token, so no delta of ours
    condition = {
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": key["pk"]},
    }
    arguments: dict[str, dict[str, Any]] = {
        "GetItem": {"Key": key},
        "Query": {"Limit": 1, **condition},
        "Scan": {"Limit": 1},
        "PutItem": {"Item": key, "ConditionExpression": NEVER},
        "UpdateItem": {"Key": key, "ConditionExpression": NEVER},
        "DeleteItem": {"Key": key, "ConditionExpression": NEVER},
    }
    many = {"RequestItems": {table: {"Keys": [key]}}}
    return many if action == "BatchGetItem" else {"TableName": table, **arguments[action]}
