"""The OpenAPI document of the HTTP API: `make docs` writes it to docs/openapi.json, and a test
compares the file.

Rule 1: It comes from the routes and models alone, so it cannot differ from the code. It needs no
table and no environment.
"""

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

from aws_lambda_powertools.event_handler.openapi.models import APIKey

from service.api.app import Api
from service.api.documented import ABOUT
from service.api.problems import CONTENT_TYPE, TITLES
from service.observe import Watch

FILE = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
SIGNED = {
    "name": "Authorization",
    "in": "header",
    "description": "AWS Signature Version 4, or the JWT of a deployment",
}


def document() -> dict[str, Any]:
    """The document, which describes each thing once.

    It leaves out Powertools' own errors, which this API never answers, and the titles that pydantic
    makes of names. It describes an optional parameter as what it is when it is there: a query holds
    no null. A 204 has no body. A parameter of several routes is a component, and so are the
    problems, which are the default of every route.
    """
    app = Api.in_memory(Watch.here("api")).app
    text = app.get_openapi_json_schema(
        **ABOUT,
        security_schemes={"iam": APIKey.model_validate(SIGNED)},
        security=[{"iam": []}],
    )
    said: dict[str, Any] = json.loads(text, object_hook=_plain) | {"info": json.loads(text)["info"]}
    titles = "; ".join(f"{status} {name}: {title}" for name, (status, title) in TITLES.items())
    problem = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    problems = {"Problem": {"description": titles, "content": {CONTENT_TYPE: problem}}}
    components = said["components"] | {"responses": problems, "parameters": {}}
    for name in ("HTTPValidationError", "ResponseValidationError", "ValidationError"):
        components["schemas"].pop(name)
    operations = [operation for path in said["paths"].values() for operation in path.values()]
    for operation in operations:
        operation["responses"].pop("422")
        operation["responses"].get("204", {}).pop("content", None)
        operation["responses"]["default"] = {"$ref": "#/components/responses/Problem"}
        for parameter in operation.get("parameters", []):
            schema = parameter["schema"]
            for kind in schema.pop("anyOf", []):
                schema |= {} if kind == {"type": "null"} else kind
            if schema.get("description") == parameter["description"]:
                del schema["description"]
    _share_parameters(operations, components["parameters"])
    return said | {"components": components}


def _plain(said: dict[str, Any]) -> dict[str, Any]:
    """Without titles, and each paragraph of a description in one line, wherever the lines of its
    docstring end.
    """
    plain = {
        name: value for name, value in said.items() if name != "title" or isinstance(value, dict)
    }
    if isinstance(described := plain.get("description"), str):
        plain["description"] = re.sub(r"(?<!\n)\n(?!\n)", " ", described)
    return plain


def _share_parameters(operations: list[dict[str, Any]], shared: dict[str, Any]) -> None:
    every = [parameter for operation in operations for parameter in operation.get("parameters", [])]
    for operation in operations:
        for place, parameter in enumerate(operation.get("parameters", [])):
            if every.count(parameter) > 1:
                name = f"{parameter['name']}-in-{parameter['in']}"
                shared[name] = parameter
                operation["parameters"][place] = {"$ref": f"#/components/parameters/{name}"}


def for_agents(url: str) -> dict[str, Any]:
    """The document for a gateway that makes a tool of each operation, such as Amazon Bedrock
    AgentCore's. `url`: of the deployed API.

    It leaves out what such a gateway does not take, and what it does itself: anyOf and not (their
    descriptions say the same), other media types than JSON, and who may call. A tool's arguments
    have no places, so a route whose path repeats a name of its body is not a tool.
    Source:
    https://docs.aws.amazon.com/bedrock-agentcore/latest/devguide/gateway-schema-openapi.html
    """
    said: dict[str, Any] = json.loads(json.dumps(document()), object_hook=_without_choices)
    del said["security"], said["components"]["securitySchemes"]
    del said["components"]["responses"]["Problem"]["content"]
    paths = {path: operations for path, operations in said["paths"].items() if "{" not in path}
    return said | {"servers": [{"url": url}], "paths": paths}


def _without_choices(said: dict[str, Any]) -> dict[str, Any]:
    """A schema that may be null becomes what it is when it is there; any other choice goes."""
    said.pop("not", None)
    kinds = [kind for kind in said.pop("anyOf", []) if kind != {"type": "null"}]
    return (kinds[0] if len(kinds) == 1 else {}) | said


def text() -> str:
    return _json(document()) + "\n"


def _json(said: Any, indent: int = 0) -> str:
    """As JSON: on one line where that has room, else a line a member."""
    line = json.dumps(said, ensure_ascii=False)
    if not isinstance(said, dict | list) or indent + len(line) <= 100:
        return line
    parts = (
        [f"{json.dumps(name)}: " for name in said] if isinstance(said, dict) else [""] * len(said)
    )
    values = said.values() if isinstance(said, dict) else said
    start = "\n" + " " * (indent + 2)
    members = f",{start}".join(
        part + _json(value, indent + 2) for part, value in zip(parts, values, strict=True)
    )
    return f"{line[0]}{start}{members}{start[:-2]}{line[-1]}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m service.api.openapi", description=f"Writes {FILE}."
    )
    parser.add_argument(
        "--agents",
        type=Path,
        metavar="FILE",
        help="writes the document for a gateway of tools instead, of the API at LEDGER_API_URL",
    )
    file: Path | None = parser.parse_args().agents
    if file is None:
        FILE.write_text(text())
    else:
        url = os.environ.get("LEDGER_API_URL", "")
        if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", url):
            parser.error(f"LEDGER_API_URL is {url!r}: set it to the API's URL, https://...")
        file.write_text(_json(for_agents(url)) + "\n")
    print(f"wrote {file or FILE}")


if __name__ == "__main__":
    main()
