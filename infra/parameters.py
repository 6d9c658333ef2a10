"""The parameters of a deployment, as the framework takes them: a Region's win over PARAMS, these
over the stage's, and these over those of all stages.

Rule 1: serverless.yml and infra/regions.yml have the parameters; this module repeats nothing but
what depends on them.
Rule 2: PARAMS may name only parameters that are there: the framework would drop any other without a
word.
Rule 3: The framework fills its variables itself; they are not here.
Rule 4: The deployer refuses what contradicts itself, or what AWS does not take, before it changes
anything, and all at
once: a sentence names each parameter with its value and says why it cannot be. The library's
settings check the rest.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from infra.build import ROOT
from infra.table_template import Capacity, Range
from ledger.core.checks import wrong_prefix

SERVERLESS, REGIONAL = ROOT / "serverless.yml", ROOT / "infra" / "regions.yml"
GIVEN = ("name", "regions", "streamArn", "tellsThresholds")
"""The parameters that infra.deploy sets, from NAME, REGIONS and what it finds out."""

FOLDED_S, LATE_S = 60, 600
"""The seconds that a visit may take after its ring, and those after which canary-late is in alarm
(infra/alarms.yml). A ring with a shorter delay than LATE_S fits the 900 s of SQS, also for a change
that is 300 s ahead."""

NUMBERS = {
    # twice the window that gathers a batch of changes (infra/events.yml)
    "allowedLatenessMs": (2_000, 2**48),
    "keepMs": (1, 2**48),
    "changesConcurrency": (2, 1_000),
    "workConcurrency": (2, 1_000),
    "ringEverySeconds": (1, LATE_S),
    "sweepHours": (0.001, 24 * 31),
    "apiRate": (1, 10**6),
    "reservedCanary": (0, 1),
}
SWITCHES = ("changesPack", "outcomes")
RESERVED = "ledger:"
DAYS = (
    1,
    3,
    5,
    7,
    14,
    30,
    60,
    90,
    120,
    150,
    180,
    365,
    400,
    545,
    731,
    1096,
    1827,
    2192,
    2557,
    2922,
    3288,
    3653,
)
"""Of log retention:
https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
"""

HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?"
ORIGIN = re.compile(rf"\*|https?://{HOST}(:[0-9]{{1,5}})?")
ISSUER = re.compile(rf"https://{HOST}(:[0-9]{{1,5}})?(/[^\s?#]*)?")
EMAIL = re.compile(rf"[^\s@,]+@{HOST}\.[A-Za-z][A-Za-z0-9-]*")
TABLE = re.compile("[a-zA-Z][a-zA-Z0-9-]{2,121}")
"""A table's stack has its name, with -table behind it: 128 letters, digits and hyphens at most."""

RANGE = re.compile(r"([0-9]*)\.\.([0-9]+)")
Parameters = Mapping[str, str]


class _Loader(yaml.SafeLoader):
    """Skips CloudFormation's tags; no parameter has one."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


@cache
def _load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text(), _Loader)
    return found


def parameters_in(stage: str, region: str, given: Parameters) -> Parameters:
    """The parameters of a stage in a Region. given: those of PARAMS."""
    of_region = (_load(REGIONAL).get(stage) or {}).get(region) or {}
    stages = _load(SERVERLESS)["params"]
    values = {**stages["default"], **stages.get(stage, {}), **given, **of_region}
    return {name: str(value) for name, value in values.items() if "${" not in str(value)}


def ring_delay_s(said: Parameters) -> int:
    """The seconds from a change that rings to the look at its lane."""
    return int(said["ringEverySeconds"]) + 5 + -(-int(said["allowedLatenessMs"]) // 1_000)


def capacity_of(said: Parameters) -> Capacity:
    """The table's capacity, of parameters without `refusals`."""
    found = (RANGE.fullmatch(said[name]) for name in ("tableWrites", "tableReads"))
    return Capacity(*(Range(int(each[1] or 0), int(each[2])) if each else None for each in found))


def unknown(stage: str, given: Parameters) -> list[str]:
    """Sentences on what PARAMS may not name."""
    stages = _load(SERVERLESS)["params"]
    known = {*stages["default"], *stages.get(stage, ())}
    wrong = [f"{name} is set by the deployment." for name in given if name in GIVEN]
    wrong += [f"{name} is no parameter of serverless.yml." for name in given if name not in known]
    return wrong + [
        f"{name} has no value: leave it out." for name, value in given.items() if not value
    ]


def refusals(said: Parameters) -> list[str]:
    """Sentences on why a Region cannot be deployed with these parameters."""
    return [*_numbers(said)] or [*_rings(said), *_callers(said), *_addresses(said), *_table(said)]


def _numbers(said: Parameters) -> Iterator[str]:
    for name, (least, most) in NUMBERS.items():
        form = r"[0-9]+(\.[0-9]+)?" if name == "sweepHours" else "[0-9]+"
        if not re.fullmatch(form, said[name]) or not least <= float(said[name]) <= most:
            yield f"{name}={said[name]} is not a number from {least} to {most}."
    if said["logRetentionDays"] not in map(str, DAYS):
        yield f"logRetentionDays={said['logRetentionDays']} is none of {', '.join(map(str, DAYS))}."
    for name in SWITCHES:
        if said[name] not in ("true", "false"):
            yield f"{name}={said[name]} is not true or false."


def _rings(said: Parameters) -> Iterator[str]:
    lateness_ms, folded_s = int(said["allowedLatenessMs"]), ring_delay_s(said) + FOLDED_S
    if folded_s >= LATE_S:
        both = f"ringEverySeconds={said['ringEverySeconds']} and allowedLatenessMs={lateness_ms}"
        yield (
            f"{both}: a fold may be {folded_s} s after its change, and canary-late is in alarm "
            f"after {LATE_S} s."
        )
    if int(said["keepMs"]) < lateness_ms:
        both = f"keepMs={said['keepMs']} is below allowedLatenessMs={lateness_ms}"
        yield (
            f"{both}: a retry in time may come after the clean, and write its delta again for "
            "the compactor to clean."
        )


def _callers(said: Parameters) -> Iterator[str]:
    for one, other in (("jwtIssuer", "jwtAudience"), ("jwtReadScope", "jwtWriteScope")):
        if bool(said[one]) != bool(said[other]):
            yield f"{one}={said[one]} and {other}={said[other]}: give both or none."
    if said["jwtReadScope"] and not said["jwtIssuer"]:
        yield f"jwtReadScope={said['jwtReadScope']}: JWTs have scopes, and jwtIssuer names nobody."
    try:
        prefixes = json.loads(said["allowedPrefixes"])
    except ValueError:
        prefixes = None
    if not isinstance(prefixes, list):
        yield (
            f"allowedPrefixes={said['allowedPrefixes']} is not a JSON list of prefixes, such "
            'as ["stock:"].'
        )
    yield from (
        f"allowedPrefixes: {prefix!r}: {why}"
        for prefix in prefixes or []
        if (why := wrong_prefix(prefix))
    )
    if any(str(prefix).startswith(RESERVED) for prefix in prefixes or ()):
        yield (
            f"allowedPrefixes={said['allowedPrefixes']}: API and queue write no name that "
            f"begins with {RESERVED}"
        )
    accounts = said["producerAccounts"]
    if accounts and not re.fullmatch(r"[0-9]{12}(,[0-9]{12})*", accounts):
        yield (
            f"producerAccounts={accounts}: give account ids of 12 digits with commas; AWS lets "
            "nobody else in."
        )


def _addresses(said: Parameters) -> Iterator[str]:
    for origin in said["corsOrigins"].split(",") if said["corsOrigins"] else ():
        if not ORIGIN.fullmatch(origin):
            yield (
                f"corsOrigins: {origin!r} is no origin: give https://shop.example, without a "
                "path or a slash."
            )
    if said["jwtIssuer"] and not ISSUER.fullmatch(said["jwtIssuer"]):
        yield (
            f"jwtIssuer={said['jwtIssuer']} is no URL of an issuer, such as "
            "https://id.example/tenant."
        )
    if said["jwtAudience"] and not all(said["jwtAudience"].split(",")):
        yield (
            f"jwtAudience={said['jwtAudience']} has an empty part: give one, or several with a "
            "comma between."
        )
    if said["alarmEmail"] and not EMAIL.fullmatch(said["alarmEmail"]):
        yield f"alarmEmail={said['alarmEmail']} is no address: give one, such as a@b.example."


def _table(said: Parameters) -> Iterator[str]:
    if "tableName" in said and not TABLE.fullmatch(said["tableName"]):
        yield (
            f"tableName={said['tableName']}: give 3 to 122 letters, digits and hyphens, a "
            "letter first."
        )
    wrong = [
        f"{name}={said[name]} is not a range of units a second, ..20000 or 2000..20000."
        for name in ("tableWrites", "tableReads")
        if said[name]
        and not ((match := RANGE.fullmatch(said[name])) and int(match[1] or 1) <= int(match[2]))
    ]
    yield from wrong
    if not wrong and capacity_of(said).scaled == 1:
        both = f"tableWrites={said['tableWrites']} and tableReads={said['tableReads']}"
        yield f"{both}: a table is provisioned for both, such as 2000..20000, or for none."
