"""docs/openapi.json: it is what the routes say, and what schemathesis asks by it is answered as it says."""

import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from service.api import openapi
from service.api.local import HOST, event_of
from service.api.problems import TITLES
from service.observe import Watch
from tests.service.http_client import served
from tests.service.schemathesis_hooks import HELD

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


def test_the_file_is_what_make_openapi_writes() -> None:
    assert openapi.FILE.read_text() == openapi.text(), "run make openapi"


def test_every_operation_documents_its_problems() -> None:
    document: Any = openapi.document()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            problems = {code for code in operation["responses"] if code not in ("200", "201", "204")}
            assert problems >= {"405", "422", "429", "500", "503"}, path
            for code in problems:
                assert list(operation["responses"][code]["content"]) == ["application/problem+json"]
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document["paths"])))
    assert references <= set(document["components"]["schemas"])


def test_every_problem_and_every_route_is_in_the_page() -> None:
    page = (ROOT / "docs" / "http-api.md").read_text()
    said = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", page, re.MULTILINE)
    assert {name: int(status) for name, status in said} == {name: status for name, (status, _) in TITLES.items()}
    for path, operations in openapi.document()["paths"].items():
        assert [method for method in operations if f"`{method.upper()} {path}`" not in page] == []


class Counted:
    """The API, and how often each operation gave each status."""

    def __init__(self) -> None:
        self.api = openapi.in_memory(watch=Watch.here("openapi", io.StringIO()))
        self.statuses: Counter[tuple[str, int]] = Counter()

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        answer = self.api(event, context)
        method, path = event["requestContext"]["http"]["method"], event["rawPath"]
        end = re.fullmatch(r"/counters/.*/holds/.*/(capture|release)", path)
        named = re.sub(r"^/counters/.*?(/deltas|/holds|/history|/standing|)$", r"/counters/{counter}\1", path)
        named = f"/counters/{{counter}}/holds/{{id}}/{end[1]}" if end else named
        self.statuses[f"{method} {named}", answer["statusCode"]] += 1
        return answer


def holds(api: Counted, how: str) -> list[dict[str, str]]:
    """Holds to end in this way."""
    held = []
    for n in range(100):
        body = {"counter": f"seats:{how}", "amount": HELD, "expires_s": 3_600, "at": datetime.now(UTC).isoformat()}
        asked = json.dumps(body).encode()
        answer = api(event_of("POST", f"/counters/seats:{how}/holds", {"Idempotency-Key": f"hold {n}"}, asked))
        held.append({name: json.loads(answer["body"])[name] for name in ("counter", "id")})
    return held


def test_whatever_is_asked_is_answered_as_documented(tmp_path: Path) -> None:
    """Requests that fit the document, and others; all checks of schemathesis but those that schemathesis.toml names."""
    document, counted = openapi.document(), Counted()
    del document["security"]  # API Gateway authenticates, before this code
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "holds.json").write_text(json.dumps({how: holds(counted, how) for how in ("capture", "release")}))
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run"]
    command += ["openapi.json", "--max-examples", "10", "--seed", "1", "--generation-database", "none", "--no-color"]
    asked: Any = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(ROOT)}, "capture_output": True, "text": True}
    with served(counted) as port:
        run = subprocess.run([*command, "--url", f"http://{HOST}:{port}"], timeout=240, **asked)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Tested: 11" in run.stdout
    for path, operations in document["paths"].items():
        for method in operations:
            asked_for = f"{method.upper()} {path}"
            taken = sum(n for (each, code), n in counted.statuses.items() if each == asked_for and code < 300)
            assert taken >= 5, (method, path, counted.statuses)
