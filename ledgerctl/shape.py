"""What a table's description has to be, for `doctor` and before `init`: pure functions, which give
findings.

Rule 1: A finding says what is there and, if that is not fine, what to do.
Rule 2: `fail` is what loses or doubles changes or stops the library, `warn` what costs money,
safety or an alarm.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ledger.core.items import RETIRES
from ledger.core.settings import Settings
from ledger.lane.shape import is_strong

Level = Literal["ok", "warn", "fail"]
KEYS = [("pk", "HASH", "S"), ("sk", "RANGE", "S")]
IMAGES = "NEW_AND_OLD_IMAGES"
REPLICAS = "replicas for regions"
TURN_ON = (
    "A global table and the service need it. `ledgerctl init` turns the stream on; to change one "
    "that is on, aws dynamodb update-table --stream-specification "
    f"StreamEnabled=true,StreamViewType={IMAGES}"
)


class Finding(NamedTuple):
    level: Level
    what: str
    says: str
    remedy: str = ""


def judged(
    fine: bool, what: str, good: str, bad: str, remedy: str, level: Level = "fail"
) -> Finding:
    return Finding("ok", what, good) if fine else Finding(level, what, bad, remedy)


def table_findings(region: str, answer: Mapping[str, Any], single: bool = False) -> list[Finding]:
    """Findings of one Region's DescribeTable.

    single: the only Region, where only the service needs a stream.
    """
    table = answer["Table"]
    types = {
        each["AttributeName"]: each["AttributeType"]
        for each in table.get("AttributeDefinitions", [])
    }
    names = [(each["AttributeName"], each["KeyType"]) for each in table.get("KeySchema", [])]
    keys = [(name, kind, types.get(name, "?")) for name, kind in names]
    stream = table.get("StreamSpecification", {})
    view = stream.get("StreamViewType", "none") if stream.get("StreamEnabled") else "none"
    indexes = [
        each["IndexName"]
        for kind in ("Global", "Local")
        for each in table.get(f"{kind}SecondaryIndexes", [])
    ]
    status = table.get("TableStatus", "?")
    keys_there = ", ".join(f"{name} {kind} {type_}" for name, kind, type_ in keys)
    protected = bool(table.get("DeletionProtectionEnabled"))
    no_stream: Level = "warn" if single and view == "none" else "fail"
    keys_stay, charged = (
        "Keys never change: make a new table with `ledgerctl init`.",
        "AWS charges for each index at every write: delete it.",
    )
    unprotected = "Turn it on: aws dynamodb update-table --deletion-protection-enabled"
    return [
        judged(
            status == "ACTIVE",
            f"{region} table",
            "active",
            f"is {status}",
            "Wait until it is ACTIVE.",
            "warn",
        ),
        judged(keys == KEYS, f"{region} keys", "pk and sk, strings", keys_there, keys_stay),
        judged(view == IMAGES, f"{region} stream", "new and old images", view, TURN_ON, no_stream),
        judged(not indexes, f"{region} indexes", "none", ", ".join(indexes), charged, "warn"),
        judged(protected, f"{region} deletion protection", "on", "off", unprotected, "warn"),
    ]


def ttl_findings(region: str, answer: Mapping[str, Any], single: bool = False) -> list[Finding]:
    described = answer.get("TimeToLiveDescription", {})
    status, attribute = (
        described.get("TimeToLiveStatus", "DISABLED"),
        described.get("AttributeName"),
    )
    fine = "of periods alone" if attribute == RETIRES else "off"
    remedy = "Turn it off at once: a delta that expires before it is folded is lost."
    is_fine = status in ("DISABLED", "DISABLING") or attribute == RETIRES
    return [
        judged(is_fine, f"{region} time to live", fine, f"{status.lower()}, by {attribute}", remedy)
    ]


def retiring_findings(region: str, answer: Mapping[str, Any]) -> list[Finding]:
    """Findings where there are periods."""
    status = answer.get("TimeToLiveDescription", {}).get("TimeToLiveStatus", "DISABLED")
    bad, remedy = (
        "the table deletes no items of periods",
        f"`ledgerctl init` turns time to live on, by {RETIRES}.",
    )
    return [
        judged(
            status in ("ENABLED", "ENABLING"), f"{region} periods", "retire", bad, remedy, "warn"
        )
    ]


def backups_findings(region: str, answer: Mapping[str, Any], single: bool = False) -> list[Finding]:
    described = answer.get("ContinuousBackupsDescription", {}).get(
        "PointInTimeRecoveryDescription", {}
    )
    on = described.get("PointInTimeRecoveryStatus") == "ENABLED"
    remedy = "Only that can bring a deleted item back: run `ledgerctl init`, which turns it on."
    return [judged(on, f"{region} point-in-time recovery", "on", "off", remedy, "warn")]


def replica_findings(settings: Settings, table: Mapping[str, Any]) -> list[Finding]:
    """Findings of the replicas that the Region of the settings knows, against `regions`, both
    ways.
    """
    replicas = {
        each["RegionName"]: each.get("ReplicaStatus", "ACTIVE")
        for each in table.get("Replicas", [])
    }
    have, wanted = {settings.region, *replicas}, set(settings.regions)
    lacking, unnamed = " ".join(sorted(wanted - have)), " ".join(sorted(have - wanted))
    waiting = " ".join(sorted(region for region, status in replicas.items() if status != "ACTIVE"))
    add = "Add it with `ledgerctl init`, or correct --regions (LEDGER_REGIONS) everywhere."
    name, names = (
        "Readers here miss what others add there: name it in every LEDGER_REGIONS.",
        "every replica is",
    )
    mode = (
        "A table of this mode takes only counters with a limit and without periods. For others "
        "make a table of the default mode."
    )
    between = "consistency between Regions"
    fits: Level = "warn" if settings.limits and not settings.periods else "fail"
    return [
        judged(not lacking, REPLICAS, " ".join(settings.regions), f"no replica in {lacking}", add),
        judged(
            not unnamed,
            "regions for replicas",
            f"{names} named",
            f"regions lacks {unnamed}",
            name,
            "warn",
        ),
        judged(
            not waiting,
            "replicas active",
            "yes",
            f"{waiting} not yet",
            "Wait until they are.",
            "warn",
        ),
        judged(not is_strong(table), between, "eventual", "strong", mode, fits),
    ]
