"""The parameters of a deployment, as the framework takes them: a Region's win over PARAMS, these
over the stage's, and these over those of all stages.

Rule 1: serverless.yml and infra/regions.yml have the parameters, and the template their forms
(forms.py). This module has what neither can say: what goes with what, JSON, the capacity.
Rule 2: PARAMS may name only parameters that are there: the framework would drop any other without a
word.
Rule 3: The deployer refuses what contradicts itself, or what AWS does not take, before it changes
anything, and all at once. A sentence names each parameter with its value and says why it cannot be.
The library's settings check the rest.
"""

import json
import re
from collections.abc import Iterator, Mapping

from infra.build import ROOT
from infra.forms import Form, load, misfits, template_forms
from infra.table_template import Capacity, Range
from ledger.core.checks import wrong_prefix

SERVERLESS, REGIONAL = ROOT / "serverless.yml", ROOT / "infra" / "regions.yml"
GIVEN = ("name", "regions", "streamArn", "tellsThresholds")
"""The parameters that infra.deploy sets, from NAME, REGIONS and what it finds out."""

FOLDED_S, LATE_S = 60, 600
"""The seconds that a visit may take after its ring, and those after which canary-late is in alarm
(infra/alarms.yml). A ring with a shorter delay than LATE_S fits the 900 s of SQS, also for a change
that is 300 s ahead."""

OTHERS: dict[str, Form] = {
    # twice the window that gathers a batch of changes (infra/events.yml), or more
    "allowedLatenessMs": {"Type": "Number", "MinValue": 2_000, "MaxValue": 2**48},
    "keepMs": {"Type": "Number", "MinValue": 1, "MaxValue": 2**48},
    "changesConcurrency": {"Type": "Number", "MinValue": 2, "MaxValue": 1_000},
    "workConcurrency": {"Type": "Number", "MinValue": 2, "MaxValue": 1_000},
}
"""Forms that the template cannot have, because these are no parameters of it: the deployer reads
the library's settings in the functions' variables, where a reference would hide them, and the
engine of `make e2e` takes an event source's concurrency only as a number."""

RESERVED = "ledger:"

RANGE = re.compile(r"([0-9]*)\.\.([0-9]+)")
Parameters = Mapping[str, str]


def parameters_in(stage: str, region: str, given: Parameters) -> Parameters:
    """The parameters of a stage in a Region. given: those of PARAMS."""
    of_region = (load(REGIONAL).get(stage) or {}).get(region) or {}
    stages = load(SERVERLESS)["params"]
    values = {**stages["default"], **stages.get(stage, {}), **given, **of_region}
    # the framework fills its own variables
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
    stages = load(SERVERLESS)["params"]
    known = {*stages["default"], *stages.get(stage, ())}
    wrong = [f"{name} is set by the deployment." for name in given if name in GIVEN]
    wrong += [f"{name} is no parameter of serverless.yml." for name in given if name not in known]
    return wrong + [
        f"{name} has no value: leave it out." for name, value in given.items() if not value
    ]


def refusals(said: Parameters) -> list[str]:
    """Sentences on why a Region cannot be deployed with these parameters."""
    forms = template_forms() | OTHERS
    wrong = [
        why for name in said if name in forms for why in misfits(name, said[name], forms[name])
    ]
    return wrong or [*_rings(said), *_callers(said), *_writers(said), *_table(said)]


def _rings(said: Parameters) -> Iterator[str]:
    lateness_ms, folded_s = int(said["allowedLatenessMs"]), ring_delay_s(said) + FOLDED_S
    if folded_s >= LATE_S:
        both = f"ringEverySeconds={said['ringEverySeconds']} and allowedLatenessMs={lateness_ms}"
        yield (
            f"{both}: a fold may be {folded_s} s after its change, and canary-late is in alarm "
            f"after {LATE_S} s. Give lower numbers."
        )
    if int(said["keepMs"]) < lateness_ms:
        both = f"keepMs={said['keepMs']} is below allowedLatenessMs={lateness_ms}"
        yield (
            f"{both}: a retry in time may come after the clean, and write its delta again for "
            "the compactor to clean. Give a higher keepMs."
        )


def _callers(said: Parameters) -> Iterator[str]:
    # The template cannot say this: the framework takes no Rules of CloudFormation.
    for one, other in (("jwtIssuer", "jwtAudience"), ("jwtReadScope", "jwtWriteScope")):
        if bool(said[one]) != bool(said[other]):
            yield f"{one}={said[one]} and {other}={said[other]}: give both or none."
    if said["jwtReadScope"] and not said["jwtIssuer"]:
        yield (
            f"jwtReadScope={said['jwtReadScope']}: JWTs have scopes, and jwtIssuer names nobody. "
            "Give an issuer, or no scopes."
        )


def _writers(said: Parameters) -> Iterator[str]:
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


def _table(said: Parameters) -> Iterator[str]:
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
