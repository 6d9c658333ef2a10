"""Parameters that contradict each other, or what AWS takes: refused by name before anything is changed.

Rule 1: A sentence names each parameter with its value, and says why it cannot be. All are told at once.
Rule 2: What the library's settings refuse is refused by them, from the rendered templates (infra/table_shape.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from infra.parameters import RANGE, Parameters
from ledger.checks import is_prefix

FOLDED_S, LATE_S = 60, 600
"""What a visit may take behind its ring; when canary-late is raised (infra/alarms.yml). A ring that is delayed for less
than the latter is below the 900 s of SQS, also that of a change which is 300 s ahead."""

NUMBERS = {
    "allowedLatenessMs": (2_000, 2**48),  # twice the window that gathers a batch of changes (infra/events.yml)
    "keepMs": (1, 2**48),
    "changesConcurrency": (2, 1_000),
    "workConcurrency": (2, 1_000),
    "ringEverySeconds": (1, LATE_S),
    "sweepHours": (0.001, 24 * 31),
    "apiRate": (1, 10**6),
    "reservedCanary": (0, 1),
}
SWITCHES = ("changesPack", "outcomes")


def refusals(said: Parameters) -> list[str]:
    """Why a Region would not be deployed with these parameters: sentences."""
    return [*_numbers(said)] or [*_rings(said), *_callers(said), *_table(said)]


def _numbers(said: Parameters) -> Iterator[str]:
    for name, (least, most) in NUMBERS.items():
        form = r"[0-9]+(\.[0-9]+)?" if name == "sweepHours" else "[0-9]+"
        if not re.fullmatch(form, said[name]) or not least <= float(said[name]) <= most:
            yield f"{name}={said[name]} is not a number from {least} to {most}."
    for name in SWITCHES:
        if said[name] not in ("true", "false"):
            yield f"{name}={said[name]} is not true or false."


def _rings(said: Parameters) -> Iterator[str]:
    lateness_ms, folded_s = said.number("allowedLatenessMs"), said.ring_delay_s + FOLDED_S
    if folded_s >= LATE_S:
        both = f"ringEverySeconds={said['ringEverySeconds']} and allowedLatenessMs={lateness_ms}"
        yield f"{both}: a fold may be {folded_s} s after its change, and canary-late is raised after {LATE_S} s."
    if said.number("keepMs") < lateness_ms:
        both = f"keepMs={said['keepMs']} is below allowedLatenessMs={lateness_ms}"
        yield f"{both}: a retry in time would find its change cleaned, and put it once more for the compactor to clean."


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


def _table(said: Parameters) -> Iterator[str]:
    wrong = [
        f"{name}={said[name]} is not a range of units a second, ..20000 or 2000..20000."
        for name in ("tableWrites", "tableReads")
        if said[name] and not ((match := RANGE.fullmatch(said[name])) and int(match[1] or 1) <= int(match[2]))
    ]
    yield from wrong
    if not wrong and len(set(map(bool, said.capacity.least))) == 2:
        both = f"tableWrites={said['tableWrites']} and tableReads={said['tableReads']}"
        yield f"{both}: a table is provisioned for both, 2000..20000, or for none of them."
