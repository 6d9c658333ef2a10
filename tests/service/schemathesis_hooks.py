"""What docs/openapi.json cannot say, because it is between the parts of a request or moves with the clock.

Rule 1: Only requests that fit the document are changed, so that they are ones that the API must take.
Rule 2: What needs a limit is asked of a counter that has one, and an end of a hold that was granted: holds.json, where
schemathesis runs, lists some for either end.
"""

import itertools
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import schemathesis

from service.api.keys import TIMED
from service.api.paths import IN_PATH

PAST = "2010-12-01T08:26:00Z"
LIMITED = "seats:"
HELD = 3
HOLDS = Path("holds.json")
ENDS = {how: itertools.cycle(json.loads(HOLDS.read_text())[how]) for how in ("capture", "release") if HOLDS.exists()}


@schemathesis.hook
def before_call(context: Any, case: Any, **_: Any) -> None:
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    path = case.operation.path
    if path.startswith("/counters/{counter}"):
        _name_the_counter_again(case, limited="/holds" in path or "/standing" in path)
    if path == "/counters":
        _read_or_list(case)
    if path == "/standing":
        case.query["counter"] = (LIMITED + case.query["counter"])[:256]
    if path == "/counters/{counter}/deltas":
        _give_the_time_once(case)
        case.body["change"] = int(case.body["change"])  # 1.0 is an integer to a schema, and refused here as it stands
    if path == "/counters/{counter}/holds":
        _hold_a_little_from_now_on(case)
    if how := next((how for how in ENDS if path.endswith(how)), None):
        _end_a_hold(case, next(ENDS[how]))


def _name_the_counter_again(case: Any, limited: bool) -> None:
    """The query or the body names the counter in the path; one taken from an earlier answer may not fit a path."""
    in_path = unquote(case.path_parameters["counter"])
    if not re.fullmatch(IN_PATH, in_path):
        in_path = case.path_parameters["counter"] = "c"
    if limited:
        in_path = case.path_parameters["counter"] = (LIMITED + in_path)[:256]
    named = case.query if case.method == "GET" else case.body
    named["counter"] = in_path


def _read_or_list(case: Any) -> None:
    """A counter or a prefix, and what goes with it; a cursor is of an earlier page, so there is none at first."""
    others = (
        ("prefix", "after", "limit") if case.query.get("counter") else ("counter", "max_age", "consistent", "after")
    )
    for name in others:
        case.query.pop(name, None)
    if "counter" not in case.query:
        case.query.setdefault("prefix", "")


def _give_the_time_once(case: Any) -> None:
    """A key without a time has `at`, which is from 1970 to now; a key that carries its time has none."""
    if re.fullmatch(TIMED, _key(case)):
        case.body.pop("at", None)
    elif not "1970" < str(case.body.get("at"))[:4] < "2020":
        case.body["at"] = PAST


def _hold_a_little_from_now_on(case: Any) -> None:
    """A hold is not over when it is asked for, so its key carries no time."""
    name = next(name for name in case.headers if name.lower() == "idempotency-key")
    case.headers[name] = re.sub(TIMED, "k", case.headers[name])
    case.body |= {"amount": int(case.body["amount"]) % HELD + 1, "at": datetime.now(UTC).isoformat()}
    case.body["expires_s"] = max(600, case.body["expires_s"])


def _end_a_hold(case: Any, held: dict[str, str]) -> None:
    """All of it, or as much as there is."""
    case.path_parameters |= {"counter": held["counter"], "id": held["id"]}
    case.body["counter"] = held["counter"]
    if case.body.get("amount") is not None:
        case.body["amount"] = int(case.body["amount"]) % (HELD + 1)


def _key(case: Any) -> str:
    return next(str(value) for name, value in case.headers.items() if name.lower() == "idempotency-key")
