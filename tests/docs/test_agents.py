"""The document for agents: a gateway that knows nothing else makes tools of it, and calls them."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import boto3
import pytest
from botocore.stub import Stubber

from service.api.app import Api
from service.api.local import event_of
from service.api.openapi import for_agents
from service.observe import Watch
from tests.docs.pages import RECIPES, ROOT, instead, run

URL = "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"


class Gateway:
    """Makes a tool of each operation: its arguments are the parameters, and the body's fields."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.api = Api.in_memory(Watch.here("api", io.StringIO()))
        self.tools = {
            f"counters___{operation['operationId']}": (method.upper(), path, operation)
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
        }

    def named(self, said: dict[str, Any]) -> dict[str, Any]:
        """What a $ref names, or the thing itself."""
        kind, _, name = said.get("$ref", "").removeprefix("#/components/").partition("/")
        return self.named(self.document["components"][kind][name]) if name else said

    def parameters(self, tool: str) -> dict[str, str]:
        """Where each goes."""
        _, _, operation = self.tools[tool]
        every = map(self.named, operation.get("parameters", []))
        return {parameter["name"]: parameter["in"] for parameter in every}

    def fields(self, tool: str) -> list[str]:
        _, _, operation = self.tools[tool]
        body = operation.get("requestBody", {"content": {"application/json": {"schema": {}}}})
        return list(self.named(body["content"]["application/json"]["schema"]).get("properties", []))

    def call(self, tool: str, **arguments: Any) -> tuple[int, Any]:
        method, path, _ = self.tools[tool]
        places = self.parameters(tool)
        query, headers = (
            {name: given for name, given in arguments.items() if places.get(name) == place}
            for place in ("query", "header")
        )
        body = {name: given for name, given in arguments.items() if name not in places}
        assert set(body) <= set(self.fields(tool))
        headers |= {"content-type": "application/json"} if body else {}
        event = event_of(method, f"{path}?{urlencode(query)}", headers, json.dumps(body).encode())
        answer = self.api(event)
        return answer["statusCode"], json.loads(answer["body"] or "null")


@pytest.fixture(scope="module")
def gateway() -> Gateway:
    return Gateway(for_agents(URL))


def schemas(said: Any) -> Iterator[dict[str, Any]]:
    if isinstance(said, dict):
        yield said
    for each in said.values() if isinstance(said, dict) else said if isinstance(said, list) else ():
        yield from schemas(each)


def test_the_document_has_what_a_gateway_takes_and_nothing_else(gateway: Gateway) -> None:
    document = gateway.document
    assert document["servers"] == [{"url": URL}]
    for said in schemas(document):
        assert said.keys().isdisjoint({"anyOf", "oneOf", "allOf", "not", "security"})
        assert said.get("type") != "null"
        assert set(said.get("content", {})) <= {"application/json"}
    for tool in gateway.tools:
        names = [*gateway.parameters(tool), *gateway.fields(tool)]
        assert len(names) == len(set(names)) > 0
        assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in (tool, *names))
        assert "path" not in gateway.parameters(tool).values()
    for kind, name in re.findall(r"#/components/(\w+)/([\w-]+)", json.dumps(document)):
        assert name in document["components"][kind]


def test_an_agent_reserves_settles_and_moves_once_however_often(gateway: Gateway) -> None:
    page, at = run(RECIPES / "agents.md"), datetime.now(UTC)

    def use(name: str, number: int, **given: Any) -> tuple[int, Any]:
        tool = {"name": f"counters___{name}", "toolUseId": f"tooluse_{number}", "input": given}
        return gateway.call(str(tool["name"]), **page["arguments"](tool, at))

    wanted: dict[str, Any] = {"counters": ["llm:k", "llm:t"], "amount": 4_000, "expires_s": 600}
    (status, first), (_, again) = use("reserve", 1, **wanted), use("reserve", 1, **wanted)
    assert (status, again) == (201, first)
    status, over = use("reserve", 2, **wanted | {"amount": 7_000})
    assert (status, over["counter"], over["available"]) == (409, "llm:k", 6_000)
    for _ in range(2):
        assert use("settle", 3, holds=first["holds"], cost=1_500)[0] == 200
    for _ in range(2):
        moved = use("transfer", 4, source="llm:k", target="llm:u", amount=500)
        assert moved[0] in (200, 201)
    status, left = use("standingAny", 5, counter="llm:k")
    assert (status, left["value"], left["available"]["up"]) == (200, 1_000, 9_000)
    _, third = use("reserve", 6, **wanted)
    assert use("releaseAll", 7, holds=third["holds"])[0] == 204
    delta = {"counter": "calls", "change": 2, "idempotency_key": "a", "at": at.isoformat()}
    assert use("addMany", 8, deltas=[delta, delta])[0] == 200
    assert use("readAny", 9, counter="calls", max_age=0)[1]["value"] == 2
    assert use("series", 10, counter="calls", since=at.isoformat())[0] == 200


def test_boto3s_model_takes_the_target() -> None:
    named: Any = {"region_name": "eu-west-1"}
    named |= dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "x")
    client = boto3.client("bedrock-agentcore-control", **named)
    page = run(RECIPES / "agents.md")
    answer = {
        "gatewayArn": "arn:aws:bedrock-agentcore:eu-west-1:111122223333:gateway/g-1234567890",
        "targetId": "T123456789",
        "createdAt": datetime.now(UTC),
        "updatedAt": datetime.now(UTC),
        "status": "CREATING",
        "name": "counters",
        "targetConfiguration": {"mcp": {"openApiSchema": {"inlinePayload": "{}"}}},
        "credentialProviderConfigurations": [{"credentialProviderType": "GATEWAY_IAM_ROLE"}],
    }
    with Stubber(client) as stubber, instead(page, control=client):
        stubber.add_response("create_gateway_target", answer)
        assert page["add_tools"]("g-1234567890", json.dumps(for_agents(URL))) == "T123456789"


def test_the_command_writes_the_document_or_says_what_it_lacks(tmp_path: Path) -> None:
    file = tmp_path / "agents.json"

    def command(**environ: str) -> subprocess.CompletedProcess[str]:
        arguments = [sys.executable, "-m", "service.api.openapi", "--agents", str(file)]
        return subprocess.run(
            arguments, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
        )

    refused = command(LEDGER_API_URL="a1b2c3d4e5")
    assert (refused.returncode, file.exists()) == (2, False)
    assert "LEDGER_API_URL is 'a1b2c3d4e5': set it to the API's URL" in refused.stderr
    assert command(LEDGER_API_URL=URL).returncode == 0
    assert json.loads(file.read_text()) == for_agents(URL)
