"""Whatever is asked by docs/openapi.json is answered as it says: schemathesis asks, and .ci/run
runs it.

Rule 1: Only requests that fit the document are changed, so that they are ones that the API must
take.
Rule 2: They are changed in what the document cannot say, because it is between the parts of a
request or moves with the clock.
Rule 3: What needs a limit or periods is asked of a counter that has them, and an end of a hold that
was granted just before.
"""

import io
import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import requests
import schemathesis

from ledger.core.period_name import UNITS
from service.api import openapi
from service.api.app import Api
from service.api.keys import TIMED
from service.api.models import IN_PATH
from service.loopback import HOST
from service.observe import Watch
from tests.service.support import served

HERE = Path(__file__).parent
PAST, LATER = "2010-12-01T08:26:00Z", "2010-12-20T08:26:00Z"
LIMITED, OF_PERIODS = "seats:", "calls:"
HELD = 3
NUMBERS = itertools.count()


@schemathesis.hook
def before_call(context: Any, case: Any, **_: Any) -> None:
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    path = case.operation.path
    if path.startswith("/counters/{counter}"):
        _name_the_counter_again(case, limited="/holds" in path)
    if path == "/counters":
        _read_or_list(case)
    if path == "/series":
        case.query |= {"since": PAST, "until": LATER}
    if "zone" in case.query:
        case.query["zone"] = "Europe/Paris"
    if path == "/standing":
        case.query["counter"] = (LIMITED + case.query["counter"])[:256]
    if path == "/periods":
        case.query["counter"] = (OF_PERIODS + case.query["counter"].replace("@", ""))[:200]
        every = case.query.get("every", "month")
        if every != "month":
            case.query.pop("anchor", None)
        if every in UNITS:
            case.query.pop("begins", None)
        elif "begins" in case.query:  # at a midnight of the zone
            case.query["begins"] = (
                "2010-12-01T00:00:00+01:00" if "zone" in case.query else "2010-12-01T00:00:00Z"
            )
    if path.endswith("/deltas") and path != "/deltas":
        _give_the_time_once(case)
        case.body["change"] = int(
            case.body["change"]
        )  # 1.0 is an integer to a schema, and refused here as it stands
    if path.endswith("/holds"):
        _hold_a_little_from_now_on(case)
    if path.endswith(("/holds/{id}/capture", "/holds/{id}/release")):
        _end_a_hold(case)
    if path == "/reservations":
        case.body["counters"] = [(LIMITED + each)[:200] for each in case.body["counters"]]
        _hold_a_little_from_now_on(case)
    if path in ("/reservations/settle", "/reservations/release"):
        held = _held(case.operation.base_url)
        case.body["holds"] = [{"counter": held["counter"], "id": held["id"]}]
        if "cost" in case.body:
            case.body["cost"] = int(case.body["cost"]) % (2 * HELD)
    if path == "/transfers":
        _give_the_time_once(case)
        case.body |= {
            "source": f"from:{case.body['source']}"[:256],
            "target": f"to:{case.body['target']}"[:256],
        }
        case.body["amount"] = int(case.body["amount"])


def _name_the_counter_again(case: Any, limited: bool) -> None:
    """The body names the counter in the path; one taken from an earlier answer may not fit a
    path, or be a period.
    """
    in_path = unquote(case.path_parameters["counter"])
    if not re.fullmatch(IN_PATH, in_path) or "@" in in_path:
        in_path = case.path_parameters["counter"] = "c"
    if limited:
        in_path = case.path_parameters["counter"] = (LIMITED + in_path)[:256]
    case.body["counter"] = in_path


def _read_or_list(case: Any) -> None:
    """A counter or a prefix, and what goes with it; a cursor is of an earlier page, so there is
    none at first.
    """
    of_read, of_list = (
        ("counter", "max_age", "consistent", "at", "after"),
        ("prefix", "after", "limit"),
    )
    for name in of_list if case.query.get("counter") else of_read:
        case.query.pop(name, None)
    if "at" in case.query:
        case.query["at"] = PAST
        case.query.pop("max_age", None)
    if "counter" not in case.query:
        case.query.setdefault("prefix", "")


def _give_the_time_once(case: Any) -> None:
    """A key without a time has `at`, which is from 1970 to now; a key that carries its time has
    none.
    """
    if re.fullmatch(
        TIMED,
        next(value for name, value in case.headers.items() if name.lower() == "idempotency-key"),
    ):
        case.body.pop("at", None)
    elif not "1970" < str(case.body.get("at"))[:4] < "2020":
        case.body["at"] = PAST


def _hold_a_little_from_now_on(case: Any) -> None:
    """A hold is not over when it is asked for, so its key carries no time."""
    name = next(name for name in case.headers if name.lower() == "idempotency-key")
    case.headers[name] = re.sub(TIMED, "k", case.headers[name])
    case.body |= {
        "amount": int(case.body["amount"]) % HELD + 1,
        "at": datetime.now(UTC).isoformat(),
    }
    case.body["expires_s"] = max(600, case.body["expires_s"])


def _held(base_url: str) -> Any:
    """A hold that was granted just now."""
    said: dict[str, Any] = {
        "counter": "seats:end",
        "amount": HELD,
        "expires_s": 3_600,
        "at": datetime.now(UTC).isoformat(),
    }
    headers = {"Idempotency-Key": f"hold {next(NUMBERS)}"}
    return requests.post(f"{base_url}/counters/seats:end/holds", json=said, headers=headers).json()


def _end_a_hold(case: Any) -> None:
    """All of it, or as much as there is."""
    held = _held(case.operation.base_url)
    case.path_parameters |= {"counter": held["counter"], "id": held["id"]}
    case.body["counter"] = held["counter"]
    if case.body.get("amount") is not None:
        case.body["amount"] = int(case.body["amount"]) % (HELD + 1)


class CountedApi:
    """The API, and how often each operation gave each status."""

    def __init__(self) -> None:
        self.api = Api.in_memory(Watch.here("openapi", io.StringIO()))
        self.statuses: Counter[tuple[str, int]] = Counter()

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        answer = self.api(event, context)
        path = re.sub(
            r"^/counters/.*/holds/.*/(capture|release)$",
            r"/counters/{counter}/holds/{id}/\1",
            event["rawPath"],
        )
        path = re.sub(r"^/counters/.*/(deltas|holds)$", r"/counters/{counter}/\1", path)
        self.statuses[
            f"{event['requestContext']['http']['method']} {path}", answer["statusCode"]
        ] += 1
        return answer


def test_whatever_is_asked_is_answered_as_documented(tmp_path: Path) -> None:
    """Requests that fit the document, and others; all checks of schemathesis but those that
    schemathesis.toml names.
    """
    document, counted = openapi.document(), CountedApi()
    del document["security"]  # API Gateway authenticates, before this code
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "--config-file",
        str(HERE / "schemathesis.toml"),
        "run",
    ]
    command += [
        "openapi.json",
        "--max-examples",
        "10",
        "--seed",
        "1",
        "--generation-database",
        "none",
        "--no-color",
    ]
    environ = os.environ | {"PYTHONPATH": str(HERE.parents[1])}
    with served(counted) as port:
        command += ["--url", f"http://{HOST}:{port}"]
        run = subprocess.run(
            command, timeout=240, cwd=tmp_path, env=environ, capture_output=True, text=True
        )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Tested: 14" in run.stdout
    for path, operations in document["paths"].items():
        for method, described in operations.items():
            operation = f"{method.upper()} {path}"
            answered = {
                code: n for (name, code), n in counted.statuses.items() if name == operation
            }
            assert sum(n for code, n in answered.items() if code < 300) >= 5, (
                operation,
                counted.statuses,
            )
            assert {str(code) for code in answered if code < 400} <= described["responses"].keys()
