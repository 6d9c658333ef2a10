"""The TypeScript of its recipe runs, with the Node that is here, against the API that listens on
this computer.
"""

import io
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import Limit, Settings
from ledger.tables.memory import MemoryTable
from reader import Reader
from service.api.app import Api
from service.api.problems import Problem
from service.loopback import HOST
from service.observe import Watch
from tests.docs.pages import RECIPES, blocks
from tests.service.support import served
from tests.world import A

PAGE = RECIPES / "typescript.md"
SETTINGS = Settings(table="memory", region=A, limits={"llm:": Limit(ceiling=10_000, region=A)})
NODE = shutil.which("node")
STRIPS_TYPES = (22, 18)
"""From this version of Node on, types in a file are erased by Node itself."""

Answers = Callable[[dict[str, Any]], dict[str, Any]]


def erased(code: str) -> str:
    """The page's code without its types, for a Node that does not erase them: they stand in
    `type` and signatures.
    """
    code = re.sub(r"^type .*;\n", "", code, flags=re.MULTILINE)
    named = r": (?:Promise<\w+>|\w+(?:\[\])?)"
    return re.sub(
        r"^async function .*$", lambda line: re.sub(named, "", line[0]), code, flags=re.MULTILINE
    )


def node(folder: Path, port: int, code: str) -> subprocess.CompletedProcess[str]:
    assert NODE is not None, "This test runs the page's TypeScript: install Node.js 20 or later."
    said = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = map(int, said.strip("v\n").split(".")[:2])
    file = folder / ("page.mts" if (major, minor) >= STRIPS_TYPES else "page.mjs")
    file.write_text(code if file.suffix == ".mts" else erased(code))
    environ = os.environ | {"COUNTERS_API": f"http://{HOST}:{port}"}
    return subprocess.run(
        [NODE, str(file)], capture_output=True, text=True, env=environ, check=False
    )


class LosesAnswers:
    """An API that has every first request of a path answered, and the answer lost."""

    def __init__(self, api: Answers) -> None:
        self.api = api
        self.paths: list[str] = []

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        answer = self.api(event)
        self.paths.append(event["rawPath"])
        if self.paths.count(event["rawPath"]) % 2:
            return Problem("outcome-unknown", "lost").answer(now_ms=0)
        return answer


@pytest.mark.parametrize("loses", [False, True])
def test_the_page_reserves_and_settles_also_without_answers(tmp_path: Path, loses: bool) -> None:
    table = MemoryTable()
    api = Api(SETTINGS, Watch.here("api", io.StringIO()), table=table)
    (code,) = blocks(PAGE, "typescript")
    with served(LosesAnswers(api) if loses else api) as port:
        run = node(tmp_path, port, code)
    assert (run.stderr, run.returncode) == ("", 0)
    claimed = re.findall(r"// (.+)$", code.partition("const hello")[2], re.MULTILINE)
    assert run.stdout.splitlines() == claimed
    reader = Reader(SETTINGS, table=table)
    for budget in ("llm:key-1", "llm:team-1"):
        standing = reader.standing(budget)
        assert (standing.value, standing.held.up) == (1_730, 0)


def test_a_call_that_fails_gives_everything_back(tmp_path: Path) -> None:
    table = MemoryTable()
    (code,) = blocks(PAGE, "typescript")
    code = code.replace('({ answer: "Hello", cost: 1_730 })', '{ throw new Error("down"); }')
    code = code.replace("4_096, hello)", "4_096, hello).catch((e) => e.message)").replace(
        "9_000, hello", "9_001, hello"
    )
    with served(Api(SETTINGS, Watch.here("api", io.StringIO()), table=table)) as port:
        run = node(tmp_path, port, code)
    assert (run.stderr, run.stdout.splitlines()) == ("", ["down", "down"])
    standing = Reader(SETTINGS, table=table).standing("llm:team-1")
    assert (standing.value, standing.held.up) == (0, 0)
