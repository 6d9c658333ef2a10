"""Parameters that contradict each other, or what AWS takes: refused by name before anything is changed.

Rule 1: A sentence names each parameter with its value, and says why it cannot be. All are told at once.
Rule 2: What the library's settings refuse is refused by them, from the rendered templates (infra/table_shape.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from infra.parameters import PROVISIONED, Parameters
from ledger.checks import is_prefix

DELAY_MAX_S, AHEAD_MAX_S = 900, 300
"""The longest that SQS delays a message."""

PLAIN_BATCH = 10
"""Messages that SQS hands over without a window to gather them in."""

COLD_WRITES, COLD_READS = 4_000, 12_000
"""Units a second that a table on demand takes from its first day."""

KEPT = ("AddFromQueue", "Api", "Ring", "Compact", "Canary")
"""Functions for which concurrency may be reserved."""

NUMBERS = {
    "allowedLatenessMs": (0, 2**48),
    "keepMs": (1, 2**48),
    "changesBatch": (1, 10_000),
    "changesWindowSeconds": (0, 300),
    "changesConcurrency": (2, 1_000),
    "changesVisibilitySeconds": (0, 43_200),
    "ringBatch": (1, 10_000),
    "ringEverySeconds": (1, DELAY_MAX_S - AHEAD_MAX_S),
    "workBatch": (1, 10_000),
    "workWindowSeconds": (0, 300),
    "workConcurrency": (2, 1_000),
    "sweepHours": (0.001, 24 * 31),
    "verifyOneIn": (0, 10**9),
    **dict.fromkeys((f"reserved{name}" for name in KEPT), (0, 10**6)),
    "apiRate": (1, 10**6),
    "apiBurst": (1, 10**6),
    "workAgeThresholdSeconds": (1, 10**9),
    "canaryLagThresholdMs": (1, 10**12),
    "tailThreshold": (1, 10**12),
    "forgottenThresholdPercent": (1, 100),
    "straysThreshold": (0, 10**12),
    "conflictsThreshold": (0, 10**12),
    "overdueHoldsThreshold": (0, 10**12),
    "replicationThresholdMs": (1, 10**12),
    "tableTargetPercent": (20, 90),
    **{
        f"table{kind}": (0, 10**9)
        for kind in ("WriteMin", "WriteMax", "ReadMin", "ReadMax", "WriteLimit", "ReadLimit", "WarmWrites", "WarmReads")
    },
}
FRACTIONS = ("sweepHours",)
SWITCHES = ("changesPack", "outcomes", "mathAlarms", "tracing")


def refusals(said: Parameters) -> list[str]:
    """Why a Region would not be deployed with these parameters: sentences."""
    return [*_numbers(said)] or [
        *_queues(said),
        *_rings(said),
        *_schedules(said),
        *_concurrency(said),
        *_callers(said),
        *_thresholds(said),
        *_table(said),
    ]


def _numbers(said: Parameters) -> Iterator[str]:
    for name, (least, most) in NUMBERS.items():
        text = said[name]
        form = r"[0-9]+(\.[0-9]+)?" if name in FRACTIONS else r"[0-9]*"
        if not re.fullmatch(form, text) or not least <= float(text or 0) <= most:
            yield f"{name}={text} is not a number from {least} to {most}."
    for name in SWITCHES:
        if said[name] not in ("true", "false"):
            yield f"{name}={said[name]} is not true or false."


def _queues(said: Parameters) -> Iterator[str]:
    for queue in ("changes", "work"):
        batch, window = said.number(f"{queue}Batch"), said.number(f"{queue}WindowSeconds")
        both = f"{queue}Batch={batch} and {queue}WindowSeconds={window}"
        if batch > PLAIN_BATCH and not window:
            yield f"{both}: SQS gathers more than {PLAIN_BATCH} messages only in a window of 1 s or more."
        if batch == 1 and window:
            yield f"{both}: there is nothing to gather in a window."
    lateness_ms, window_s = said.number("allowedLatenessMs"), said.number("changesWindowSeconds")
    if 2_000 * window_s > lateness_ms:
        both = f"changesWindowSeconds={window_s} and allowedLatenessMs={lateness_ms}"
        yield f"{both}: the window alone is more than half of it, so changes would be late before they are added."


def _rings(said: Parameters) -> Iterator[str]:
    lateness_ms, delay_s = said.number("allowedLatenessMs"), said.ring_delay_s
    asked = f"ringEverySeconds={said['ringEverySeconds']} and allowedLatenessMs={lateness_ms}"
    if delay_s + AHEAD_MAX_S > DELAY_MAX_S:
        both = f"a ring is delayed by both, 5 s and the {AHEAD_MAX_S} s that a change may be ahead"
        yield f"{asked}: {both}, {delay_s + AHEAD_MAX_S} s, and SQS delays by {DELAY_MAX_S} s at most."
    if said.number("keepMs") < lateness_ms:
        both = f"keepMs={said['keepMs']} is below allowedLatenessMs={lateness_ms}"
        yield f"{both}: a retry in time would find its change cleaned, and put it once more for the compactor to clean."
    if said.number("workAgeThresholdSeconds") <= delay_s:
        age = f"workAgeThresholdSeconds={said['workAgeThresholdSeconds']}"
        yield f"{age}: every message is {delay_s} s old when it is taken ({asked}), so work-waiting would never end."
    if said.number("canaryLagThresholdMs") <= 1_000 * (delay_s + 60):
        lag = f"canaryLagThresholdMs={said['canaryLagThresholdMs']}"
        yield f"{lag}: a fold may be {delay_s + 60} s after its change ({asked}), so canary-late would come and go."


def _schedules(said: Parameters) -> Iterator[str]:
    for name, most, alarms in (
        ("canarySchedule", 5, "ring-silent and canary-silent alarm after a quarter of an hour"),
        ("sweepSchedule", 30, "sweep-silent alarms after an hour"),
    ):
        if not 1 <= said.minutes(name) <= most:
            yield f"{name}={said[name]} is not rate(1 minute) to rate({most} minutes): {alarms} without one."


def _concurrency(said: Parameters) -> Iterator[str]:
    for function, source in (("AddFromQueue", "changesConcurrency"), ("Compact", "workConcurrency")):
        kept, at_once = said.number(f"reserved{function}"), said.number(source)
        if 0 < kept < at_once:
            both = f"reserved{function}={kept} is below {source}={at_once}"
            yield f"{both}: messages would be taken and refused, and each counts as received."


def _callers(said: Parameters) -> Iterator[str]:
    for one, other in (("jwtIssuer", "jwtAudience"), ("jwtReadScope", "jwtWriteScope")):
        if bool(said[one]) != bool(said[other]):
            yield f"{one}={said[one]} and {other}={said[other]}: both or none."
    if said["jwtReadScope"] and not said["jwtIssuer"]:
        yield f"jwtReadScope={said['jwtReadScope']}: scopes are of JWTs, and jwtIssuer names nobody."
    try:
        prefixes = json.loads(said["allowedPrefixes"])
    except ValueError:
        prefixes = None
    if not isinstance(prefixes, list) or not all(map(is_prefix, prefixes)):
        yield f'allowedPrefixes={said["allowedPrefixes"]} is not a JSON list of prefixes, such as ["stock:"].'
    accounts = said["producerAccounts"]
    if accounts and not re.fullmatch(r"[0-9]{12}(,[0-9]{12})*", accounts):
        yield f"producerAccounts={accounts}: account ids of 12 digits with commas; nobody else would be let in."


def _thresholds(said: Parameters) -> Iterator[str]:
    bus = said["thresholdBus"]
    if not re.fullmatch(r"[A-Za-z0-9._/-]{1,256}", bus):
        yield f"thresholdBus={bus} is not the name of an event bus: 1 to 256 letters, digits, dots, _ / -."
    elif bus != "default" and said["thresholds"] in ("", "{}"):
        yield f"thresholdBus={bus} and thresholds={said['thresholds']}: there is nothing to tell on it."


def _table(said: Parameters) -> Iterator[str]:
    billing = said["tableBilling"]
    if billing not in ("PAY_PER_REQUEST", PROVISIONED):
        yield f"tableBilling={billing} is not PAY_PER_REQUEST or {PROVISIONED}."
        return
    bounds = {name: said.number(f"table{name}") for name in ("WriteMin", "WriteMax", "ReadMin", "ReadMax")}
    limits = {name: said.number(f"table{name}") for name in ("WriteLimit", "ReadLimit")}
    for name, units in (limits if billing == PROVISIONED else bounds).items():
        if units:
            yield f"table{name}={units} is not of a table with tableBilling={billing}."
    if billing == PROVISIONED:
        for kind in ("Write", "Read"):
            least, most = bounds[f"{kind}Min"], bounds[f"{kind}Max"]
            if not 1 <= least <= most:
                both = f"table{kind}Min={least} and table{kind}Max={most}"
                yield f"{both}: {PROVISIONED} needs both, the first not above the second."
        return
    for name, cold in (("WarmWrites", COLD_WRITES), ("WarmReads", COLD_READS)):
        units = said.number(f"table{name}")
        if 0 < units < cold:
            yield f"table{name}={units}: a table on demand takes {cold} a second from its first day; say more, or 0."
