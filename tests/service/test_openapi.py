"""docs/openapi.json: it is what the routes say, and what schemathesis asks by it is answered as it says."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics

from service.api import openapi
from service.api.local import HOST, serve
from service.api.problems import TITLES
from service.observe import Watch

ROOT = Path(__file__).parents[2]
OPEN = """
[[operations]]
include-operation-id = "addMany"
checks.negative_data_rejection.enabled = false # the answer is 200, and the result of that change says 422
"""
NOT_ASKED = "ignored_auth,positive_data_acceptance"  # API Gateway authenticates; a key without a time is refused


def test_the_file_is_what_make_openapi_writes() -> None:
    assert openapi.FILE.read_text() == openapi.text(), "run make openapi"


def test_every_operation_documents_its_problems() -> None:
    document: Any = openapi.document()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            problems = {code for code in operation["responses"] if code not in ("200", "201")}
            assert problems >= {"405", "422", "429", "500", "503"}, path
            for code in problems:
                assert list(operation["responses"][code]["content"]) == ["application/problem+json"]
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document["paths"])))
    assert references <= set(document["components"]["schemas"])


def test_every_problem_is_in_the_page() -> None:
    page = (ROOT / "docs" / "http-api.md").read_text()
    said = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", page, re.MULTILINE)
    assert {name: int(status) for name, status in said} == {name: status for name, (status, _) in TITLES.items()}


def test_every_route_is_in_the_page() -> None:
    page = (ROOT / "docs" / "http-api.md").read_text()
    for path, operations in openapi.document()["paths"].items():
        for method in operations:
            assert f"`{method.upper()} {path}`" in page


@pytest.fixture
def url() -> Iterator[str]:
    """The API on a table in memory, behind a real server on loopback."""
    watch = Watch(Logger(service="openapi", stream=io.StringIO()), EphemeralMetrics(namespace="Ledger", service="test"))
    server = serve(openapi.in_memory(watch=watch), port=0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://{HOST}:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_whatever_is_asked_is_answered_as_documented_and_never_by_a_5xx(url: str, tmp_path: Path) -> None:
    document = openapi.document()
    del document["security"]
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "schemathesis.toml").write_text(OPEN)
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run", "openapi.json"]
    command += ["--url", url, "--max-examples", "10", "--seed", "1", "--generation-database", "none", "--no-color"]
    command += ["--exclude-checks", NOT_ASKED]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Tested: 6" in run.stdout
