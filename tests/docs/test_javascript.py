"""The JavaScript of its recipe runs, with the Node that is here, on a real engine.

It takes the AWS SDK where `make package` has installed it, else a stand-in that sends the same
requests, unsigned.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from compactor import Compactor
from lab.engines.ministack import Engine
from ledger import Change, Ledger, Settings
from reader import Reader
from tests.docs.pages import DOCS, RECIPES, ROOT, blocks, rows
from tests.docs.test_typescript import NODE
from tests.world import create_table

HERE, THERE = "eu-west-1", "us-east-1"
AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
PAGE = RECIPES / "javascript.md"
SDK = ROOT / "node_modules" / "@aws-sdk" / "client-dynamodb"
STAND_IN = """
const scope = (region) => `AWS4-HMAC-SHA256 Credential=x/20260101/${region}/dynamodb/aws4_request`;
const bytes = (key, held) => (key === "B" ? Uint8Array.from(Buffer.from(held, "base64")) : held);
class Command { constructor(input) { this.input = input; } }
export class GetItemCommand extends Command {}
export class PutItemCommand extends Command {}
export class QueryCommand extends Command {}
export class DynamoDBClient {
  constructor({ region, endpoint }) { Object.assign(this, { region, endpoint }); }
  async send(command) {
    const answer = await fetch(this.endpoint, {
      method: "POST",
      headers: {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": `DynamoDB_20120810.${command.constructor.name.replace("Command", "")}`,
        Authorization: `${scope(this.region)}, SignedHeaders=host, Signature=x`,
      },
      body: JSON.stringify(command.input),
    });
    const said = JSON.parse(await answer.text(), bytes);
    if (answer.ok) return said;
    throw Object.assign(new Error(said.message), { name: said.__type.split("#").pop(), ...said });
  }
}
"""


@dataclass(frozen=True)
class World:
    """One Region's table on the engine: lanes of two Regions are in it."""

    folder: Path
    engine: Engine
    client: Any
    name: str

    @property
    def settings(self) -> Settings:
        return Settings(table=self.name, region=HERE, regions=(HERE, THERE), fold_min=1)

    def node(self, code: str) -> list[str]:
        assert NODE is not None, "This test runs the page's JavaScript: install Node.js."
        file = self.folder / "page.mjs"
        file.write_text(code.replace('TABLE = "counters"', f'TABLE = "{self.name}"'))
        environ = os.environ | {"DYNAMODB": self.engine.endpoint_url}
        environ |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "x")
        environ["NODE_NO_WARNINGS"] = "1"  # the SDK names the Node.js that it will want
        ran = subprocess.run([NODE, file], capture_output=True, text=True, env=environ, check=False)
        assert (ran.stderr, ran.returncode) == ("", 0)
        return ran.stdout.splitlines()


@pytest.fixture
def world(tmp_path: Path, engine: Engine, table_names: Iterator[str]) -> World:
    package = tmp_path / "node_modules" / "@aws-sdk" / "client-dynamodb"
    if SDK.exists():
        (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    else:
        package.mkdir(parents=True)
        (package / "index.mjs").write_text(STAND_IN)
        (package / "package.json").write_text('{"type": "module", "exports": "./index.mjs"}')
    name, client = next(table_names), engine.client(HERE)
    create_table(client, name, pk="S", sk="S")
    return World(tmp_path, engine, client, name)


def page() -> str:
    (code,) = blocks(PAGE, "javascript")
    return code


def functions() -> str:
    return page().partition("\nconst at =")[0] + "\n"


def test_the_page_prints_what_its_comments_say(world: World) -> None:
    claimed = re.findall(r"^console\.log.* // (.+)$", page(), re.MULTILINE)
    assert world.node(page()) == claimed == ["recorded", "replayed", "-6n"]
    ledger = Ledger(world.settings, client=world.client)
    receipt = ledger.add("stock:85123A", -6, idempotency_key="536365/1", at=AT)
    assert receipt.outcome == "replayed"


def test_its_tokens_are_those_of_the_data_model(world: World) -> None:
    cells = [[cell.strip("`") for cell in row] for row in rows(DOCS / "data-model.md", "counter")]
    asked = "".join(
        f"console.log(token({json.dumps(counter)}, {json.dumps(key)}, new Date('{at}')));\n"
        for counter, key, at, _, _ in cells
    )
    assert world.node(functions() + asked) == [row[4] for row in cells]
    assert len(cells) == 2


def test_it_reads_what_the_library_reads_folded_packed_and_far(world: World) -> None:
    settings, client = world.settings, world.client
    ledger, reader = Ledger(settings, client=client), Reader(settings, client=client)
    compactor = Compactor(settings, clients={HERE: client, THERE: client})
    ask = "console.log(String(await value('c')));\n"

    def agree() -> None:
        assert world.node(functions() + ask) == [str(reader.read("c").value)]

    agree()
    for n in range(5):
        ledger.add("c", 10**17 + n, idempotency_key=f"a{n}", at=AT + timedelta(seconds=n))
    ledger.add("c", -7, idempotency_key="far", at=AT, region=THERE)
    agree()
    compactor.compact("c")
    agree()
    packed = [Change("c", 3 - n, f"p{n}", AT + timedelta(seconds=4 + n)) for n in range(8)]
    for outcome in ledger.add_many(packed, pack=True):
        assert not isinstance(outcome, Exception)
    ledger.add("c", packed[3].change, idempotency_key="p3", at=packed[3].at)  # twice in the tail
    agree()
    compactor.compact("c")
    agree()
    assert reader.read("c").pending == 1  # of the other Region


def test_another_change_under_a_key_throws(world: World) -> None:
    calls = (
        "const at = new Date();\n"
        "await add('c', 2, 'k', at);\n"
        "console.log(await add('c', 3, 'k', at).catch((error) => error.message));\n"
        "console.log(await add('c', 0.5, 'k', at).catch((error) => error.name));\n"
    )
    said = world.node(functions() + calls)
    assert said == ["k of c stands for another change", "RangeError"]
