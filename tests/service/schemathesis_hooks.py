"""What docs/openapi.json cannot say, because it is between the parts of a request or moves with the clock.

Rule 1: Only requests that fit the document are changed, so that they are ones that the API must take.
"""

import re
from typing import Any
from urllib.parse import unquote

import schemathesis

from service.api.keys import TIMED
from service.api.paths import IN_PATH

PAST = "2010-12-01T08:26:00Z"


@schemathesis.hook
def before_call(context: Any, case: Any, **_: Any) -> None:
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if case.operation.path.startswith("/counters/{counter}"):
        _name_the_counter_again(case)
    if case.operation.path == "/counters/{counter}/deltas":
        _give_the_time_once(case)
        case.body["change"] = int(case.body["change"])  # 1.0 is an integer to a schema, and refused here as it stands


def _name_the_counter_again(case: Any) -> None:
    """The query or the body names the counter in the path; one taken from an earlier answer may not fit a path."""
    in_path = unquote(case.path_parameters["counter"])
    if not re.fullmatch(IN_PATH, in_path):
        in_path = case.path_parameters["counter"] = "c"
    named = case.query if case.method == "GET" else case.body
    named["counter"] = in_path


def _give_the_time_once(case: Any) -> None:
    """A key without a time has `at`, which is from 1970 to now; a key that carries its time has none."""
    key = next(value for name, value in case.headers.items() if name.lower() == "idempotency-key")
    if re.fullmatch(TIMED, key):
        case.body.pop("at", None)
    elif not "1970" < str(case.body.get("at"))[:4] < "2020":
        case.body["at"] = PAST
