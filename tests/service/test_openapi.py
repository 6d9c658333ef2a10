"""docs/openapi.json: it is what the routes say."""

import json
import re
from pathlib import Path
from typing import Any

from service.api import openapi
from service.api.problems import TITLES

PAGE = Path(__file__).parents[2] / "docs" / "http-api.md"


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
    page = PAGE.read_text("utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", page, re.MULTILINE)
    assert {name: int(status) for name, status in rows} == {name: status for name, (status, _) in TITLES.items()}
    for path, operations in openapi.document()["paths"].items():
        assert [method for method in operations if f"`{method.upper()} {path}`" not in page] == []
