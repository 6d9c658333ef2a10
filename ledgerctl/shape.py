"""What `doctor` thinks of a table's description, its clock and its settings: pure functions, findings with remedies.

Rule 1: A finding says what is there and, when that is not fine, what to do.
Rule 2: `fail` is what loses or doubles changes or stops the library, `warn` what costs money, safety or an alarm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ledger import items
from ledger.lane.shape import mismatches
from ledger.requests import Item
from ledger.settings import Settings
from ledger.values import Lane

Level = Literal["ok", "warn", "fail"]
KEYS = [("pk", "HASH", "S"), ("sk", "RANGE", "S")]
IMAGES = "NEW_AND_OLD_IMAGES"
REPLICAS = "replicas for regions"
SHAPE = "shape"
UNSEEN = "So its settings are not held against it: allow GetItem on the key `shape` (docs/security.md#roles)."

SKEW_WARN_MS = 2_000
NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    what: str
    says: str
    remedy: str = ""


def _judged(fine: bool, what: str, good: str, bad: str, remedy: str, level: Level = "fail") -> Finding:
    return Finding("ok", what, good) if fine else Finding(level, what, bad, remedy)


def table_findings(region: str, answer: Mapping[str, Any], single: bool = False) -> list[Finding]:
    """One Region's DescribeTable; `single`: the only Region, where only the service needs a stream."""
    table = answer["Table"]
    types = {each["AttributeName"]: each["AttributeType"] for each in table.get("AttributeDefinitions", [])}
    names = [(each["AttributeName"], each["KeyType"]) for each in table.get("KeySchema", [])]
    keys = [(name, kind, types.get(name, "?")) for name, kind in names]
    stream = table.get("StreamSpecification", {})
    view = stream.get("StreamViewType", "none") if stream.get("StreamEnabled") else "none"
    indexes = [each["IndexName"] for kind in ("Global", "Local") for each in table.get(f"{kind}SecondaryIndexes", [])]
    mode = table.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    most = table.get("OnDemandThroughput", {})
    capped = [f"{name} {value}" for name, value in most.items() if isinstance(value, int) and value > 0]
    status = table.get("TableStatus", "?")
    shown = ", ".join(f"{name} {kind} {type_}" for name, kind, type_ in keys)
    protected = bool(table.get("DeletionProtectionEnabled"))
    limited = f"on demand, at most {', '.join(capped)}" if capped else "provisioned"
    no_stream: Level = "warn" if single and view == "none" else "fail"
    turn_on = (
        "A global table and the service need it; `ledgerctl init` turns a missing one on, else: aws dynamodb "
        f"update-table --stream-specification StreamEnabled=true,StreamViewType={IMAGES}"
    )
    unprotected = "aws dynamodb update-table --deletion-protection-enabled"
    suffices = "Adds above it are throttled and tried again: see that it suffices."
    keys_stay, charged = "Keys never change: make a table with `init`.", "Each is charged for every write."
    on_demand = mode == "PAY_PER_REQUEST" and not capped
    return [
        _judged(status == "ACTIVE", f"{region} table", "active", f"is {status}", "Wait until it is ACTIVE.", "warn"),
        _judged(keys == KEYS, f"{region} keys", "pk and sk, strings", shown, keys_stay),
        _judged(view == IMAGES, f"{region} stream", "new and old images", view, turn_on, no_stream),
        _judged(not indexes, f"{region} indexes", "none", ", ".join(indexes), charged, "warn"),
        _judged(protected, f"{region} deletion protection", "on", "off", unprotected, "warn"),
        _judged(on_demand, f"{region} throughput", "on demand", limited, suffices, "warn"),
    ]


def ttl_findings(region: str, answer: Mapping[str, Any], single: bool = False) -> list[Finding]:
    status = answer.get("TimeToLiveDescription", {}).get("TimeToLiveStatus", "DISABLED")
    remedy = "Turn it off at once: a delta that expires before it is folded is lost."
    return [_judged(status in ("DISABLED", "DISABLING"), f"{region} time to live", "off", status.lower(), remedy)]


def backups_findings(region: str, answer: Mapping[str, Any], single: bool = False) -> list[Finding]:
    described = answer.get("ContinuousBackupsDescription", {}).get("PointInTimeRecoveryDescription", {})
    on = described.get("PointInTimeRecoveryStatus") == "ENABLED"
    remedy = "Nothing else brings a deleted item back: run `ledgerctl init`, which turns it on."
    return [_judged(on, f"{region} point-in-time recovery", "on", "off", remedy, "warn")]


def replica_findings(settings: Settings, table: Mapping[str, Any]) -> list[Finding]:
    """The replicas that the Region of the settings knows, against `regions`, both ways."""
    replicas = {each["RegionName"]: each.get("ReplicaStatus", "ACTIVE") for each in table.get("Replicas", [])}
    have, wanted = {settings.region, *replicas}, set(settings.regions)
    lacking, unnamed = sorted(wanted - have), sorted(have - wanted)
    waiting = sorted(region for region, status in replicas.items() if status != "ACTIVE")
    consistency = table.get("MultiRegionConsistency", "EVENTUAL")
    add, none = "Add it with `ledgerctl init`, or correct --regions (LEDGER_REGIONS) everywhere.", " ".join(lacking)
    name = "Whoever adds there is not read here: name it in LEDGER_REGIONS of every process."
    names, one = "regions for replicas", f"regions lacks {' '.join(unnamed)}"
    mode = "This mode has no transactions, so nothing can be folded: make a table in the default mode."
    between, eventual = "consistency between Regions", consistency == "EVENTUAL"
    return [
        _judged(not lacking, REPLICAS, " ".join(settings.regions), f"no replica in {none}", add),
        _judged(not unnamed, names, "every replica is named", one, name, "warn"),
        _judged(not waiting, "replicas active", "yes", f"{' '.join(waiting)} not yet", "Wait until they are.", "warn"),
        _judged(eventual, between, "eventual", consistency.lower(), mode),
    ]


def _named(lanes: Sequence[object]) -> str:
    return ", ".join(map(str, lanes[:NAMED_MAX])) + (" and others" if len(lanes) > NAMED_MAX else "")


def lanes_finding(settings: Settings, seen: Sequence[Lane], whole: bool) -> Finding:
    """Lanes in the table that no reader of these settings looks at."""
    unread = [lane for lane in seen if not settings.reads(lane)]
    good = f"{len(seen):,} lanes{'' if whole else ' (of the first MB of the table)'}, all of them read"
    remedy = "Their changes are in no value: regions and shards must be those with which they were added."
    return _judged(not unread, "regions and shards against lanes", good, f"nobody reads {_named(unread)}", remedy)


def directory_finding(missing: Sequence[Lane], seen: Sequence[Lane], whole: bool) -> Finding:
    """Lanes, of those looked at, that the directory lacks: no listing shows them, and no sweep visits them."""
    what = f"{len(seen):,} lanes of {len({lane.counter for lane in seen}):,} counters"
    rest = "" if whole else " that were looked at; `ledgerctl list --scan` looks at the rest of the table, too"
    bad = f"{len(missing):,} of {what} are not in it, such as {', '.join(map(str, missing[:1]))}"
    remedy = "`ledgerctl compact` in each Region lists them. One that has just come is there in some seconds."
    return _judged(not missing, "directory of lanes", f"has each of {what}{rest}", bad, remedy, "warn")


def insert_only_finding(*, refused: bool) -> Finding:
    """Whether IAM forbids what `insert_only` need not be able to do."""
    good = "PutItem on delta# is refused, as it should be; PartiQLInsert is not tried"
    bad = "PutItem on delta# is allowed, so this role may replace a change"
    return _judged(refused, "insert only", good, bad, "docs/settings.md#insert-only has what a role needs.", "warn")


def watermark_finding(ahead: Sequence[tuple[Lane, int]], seen: int) -> Finding:
    """Checkpoints, of `seen`, whose watermark is so many milliseconds ahead of this clock."""
    bad = f"ahead of this clock: {_named([f'{lane} by {ms / 1_000:,.1f} s' for lane, ms in ahead])}"
    remedy = "Clocks were wrong there. Until those times new changes are strays: docs/operations.md, watermark-ahead."
    return _judged(not ahead, "watermarks", f"none of {seen:,} looked at is ahead of this clock", bad, remedy, "warn")


def shape_finding(item: Item | None, settings: Settings) -> Finding:
    """The table's `shape` item against the settings. Raises DamagedItem."""
    if item is None:
        remedy = "Nobody tells a process with other regions, shards or limits: `ledgerctl init` writes it."
        return Finding("warn", SHAPE, "the table has none", remedy)
    told = items.shape_of(item)
    wrong = mismatches(settings, told)
    lacking = sorted(settings.limits.keys() - told.limits.keys())
    if lacking and not wrong:
        says = f"lacks limits {' '.join(lacking)}; a process without them is not refused, and adds past them"
        remedy = "`ledgerctl init` with this LEDGER_LIMITS adds them; until then their use is refused."
        return Finding("warn", SHAPE, says, remedy)
    good = f"regions {' '.join(told.regions)}, shards {dict(told.shards) or 'one each'}"
    if told.limits:
        good += f", limits {' '.join(told.limits)}"
    return _judged(not wrong, SHAPE, good, " ".join(wrong), "docs/data-model.md#shape has the rules.")


def clock_finding(skew_ms: int, settings: Settings) -> Finding:
    """This machine's clock against the Date header, which knows seconds."""
    late = settings.allowed_lateness_ms
    ahead = f"{abs(skew_ms) / 1000:.1f} s {'ahead of' if skew_ms > 0 else 'behind'} AWS"
    remedy = f"Set the clock (NTP). Adds later than allowed_lateness_ms={late} become strays."
    level: Level = "fail" if abs(skew_ms) > max(late, SKEW_WARN_MS) else "warn"
    return _judged(abs(skew_ms) <= SKEW_WARN_MS, "clock", "within two seconds of AWS", ahead, remedy, level)


def settings_findings(settings: Settings) -> list[Finding]:
    """What Settings accept, and yet is seldom meant."""
    late_ms, keep_ms, read_ms = settings.allowed_lateness_ms, settings.keep_ms, settings.read_time_max_ms
    late, keep, near = f"{late_ms:,} ms", f"{keep_ms:,} ms", f"{keep_ms:,} ms, near read_time_max_ms={read_ms:,}"
    kept = "Folded deltas stay for ever: `ledgerctl cost` prints both bills."
    strays = "Adds that take longer, after a retry or through a queue, become strays: allow some seconds."
    spoils = "A clock that is wrong by the difference can spoil a read: keep twice as long at least."
    return [
        _judged(settings.clean, "clean", "on", "off", kept, "warn"),
        _judged(late_ms >= 1_000, "allowed_lateness_ms", late, late, strays, "warn"),
        _judged(keep_ms >= 2 * read_ms, "keep_ms", keep, near, spoils, "warn"),
    ]
