"""The house, read from its source: who may import whom, and what an installation holds.

A room is a top-level package; in lab/, which is never installed, it is each folder (and each file
beside them).
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from lab.measure.starts import ENVIRONMENT
from ledger import __version__
from service.api import openapi

ROOT = Path(__file__).parent.parent
OURS = ("ledger", "reader", "compactor")
KNOWS = {
    "ledger": set(),
    "reader": {"ledger"},
    "compactor": {"ledger"},
    "simulator": {"ledger", "reader"},
    "infra": {"ledger"},
    "service": {"ledger", "reader", "compactor"},
    "ledgerctl": {"ledger", "reader", "compactor"},
    "exact_counter": {"ledger", "reader", "compactor", "simulator", "ledgerctl"},
    "lab": {"ledger", "reader", "compactor", "simulator", "service", "ledgerctl", "infra"},
}
NAMES = [
    str(path.relative_to(ROOT))
    for package in OURS
    for path in sorted((ROOT / package).rglob("*.py"))
]
FLOORS_OF_THE_LEDGER: dict[str, set[str]] = {
    "ledger.core": set(),
    "ledger.lane": {"ledger.core"},
    "ledger.gate": {"ledger.core", "ledger.lane"},
    "ledger.tables": {"ledger.core", "ledger.lane", "ledger.gate"},
    "ledger.client": {"ledger.core", "ledger.lane", "ledger.gate", "ledger.tables"},
    "ledger.budgets": {"ledger.core", "ledger.gate", "ledger.tables", "ledger.client"},
}
"""Which rooms of the ledger each of them may know."""

FACES = {
    "ledger.aio",
    "ledger.conditions",
    "ledger.dynamo",
    "ledger.errors",
    "ledger.memory",
    "ledger.message",
    "ledger.queue",
    "ledger.requests",
}
"""Public names without code, for users alone."""

BOTO = {
    "ledger/client/queue.py",
    "ledger/tables/aio.py",
    "ledger/tables/boto.py",
    "ledger/tables/connections.py",
    "ledger/tables/failures.py",
    "ledger/tables/fast.py",
    "ledger/tables/fast_checks.py",
    "ledger/tables/signing.py",
    "ledger/tables/send.py",
}
ATTRIBUTES = {
    "change",
    "days",
    "retires",
    "total",
    "count",
    "watermark",
    "version",
    "last",
    "committed_ms",
    "entries",
    "noted_ms",
}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
DISTRIBUTIONS = {"boto3": "boto3", "botocore": "boto3", "cachetools": "cachetools"}
CLI = {"rich": "rich", "typer": "typer"}


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=]", each)[0] for each in requirements}


def third_party(*packages: str) -> set[str]:
    """The distributions that the programs and modules of some packages of the wheel import."""
    names = [
        str(path.relative_to(ROOT))
        for package in packages
        for path in (ROOT / package).rglob("*.py")
    ]
    found = set().union(*(imported(name) for name in names))
    return {known for name, known in (DISTRIBUTIONS | CLI).items() if name in found} | (
        found & {"aws_lambda_powertools", "pydantic", "service", "infra"}
    )


@cache
def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text())


def at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but those under `if TYPE_CHECKING:`."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (
            isinstance(child, ast.If)
            and isinstance(child.test, ast.Name)
            and child.test.id == "TYPE_CHECKING"
        ):
            yield from at_run_time(child)


def modules(name: str, nodes: Callable[[ast.AST], Iterator[ast.AST]] = ast.walk) -> set[str]:
    """The modules, and what is taken from them by name, that a file imports."""
    found: set[str] = set()
    for node in nodes(tree(name)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=module, level=level, names=names):
                assert level == 0, f"{name}: a relative import"
                found |= {f"{module}.{alias.name}" for alias in names}
    return found


def imported(name: str) -> set[str]:
    """The top-level packages that a file imports when it runs."""
    return {module.partition(".")[0] for module in modules(name, at_run_time)}


def arrows(folder: str, depth: int) -> set[tuple[str, str]]:
    """(who, whom) between the rooms of a folder, also for types alone; a room's name has `depth`
    parts.
    """
    names = [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py")]
    return {
        (".".join(name.with_suffix("").parts[:depth]), ".".join(module.split(".")[:depth]))
        for name in names
        for module in modules(str(name))
    }


@pytest.mark.parametrize("room", KNOWS)
def test_a_room_knows_those_below_it_alone(room: str) -> None:
    assert {whom for _, whom in arrows(room, 1)} & {*KNOWS, "tests"} <= {room} | KNOWS[room]


def test_the_ledger_has_these_rooms_and_faces_and_no_other() -> None:
    there = {
        ".".join(("ledger", *path.relative_to(ROOT / "ledger").with_suffix("").parts[:1]))
        for path in (ROOT / "ledger").rglob("*.py")
    }
    assert there == {*FLOORS_OF_THE_LEDGER, *FACES, "ledger.__init__"}


@pytest.mark.parametrize("room", FLOORS_OF_THE_LEDGER)
def test_a_room_of_the_ledger_knows_those_below_it_alone(room: str) -> None:
    known = {whom for who, whom in arrows("ledger", 2) if who == room}
    assert {whom for whom in known if whom.startswith("ledger")} <= {room} | FLOORS_OF_THE_LEDGER[
        room
    ]


def test_our_own_code_imports_floors_and_no_face() -> None:
    """`ledger` itself does, whose users find `ledger.errors` there; `exact_counter`, which is made
    of public names, does, too; tests and pages may.
    """
    rooms = KNOWS.keys() - {"exact_counter"}
    entered = {(who, whom) for room in rooms for who, whom in arrows(room, 2) if whom in FACES}
    assert {who for who, _ in entered} - FACES <= {"ledger.__init__"}


def test_arrows_inside_the_lab_lead_down() -> None:
    graph: dict[str, set[str]] = {}
    for who, whom in arrows("lab", 2):
        graph.setdefault(who, set()).update({whom} - {who})
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle
    assert len(graph) > 8


FLOORS_MAX = 7
ROOMS = sorted(
    {
        path.parent
        for package in (*OURS, "simulator", "service", "ledgerctl", "infra")
        for path in (ROOT / package).rglob("*.py")
    }
)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT)))
def test_a_room_has_no_circle_and_at_most_seven_floors(room: Path) -> None:
    """By what its files import of each other, imports for annotations too.

    A folder in it is a room of its own.
    """
    prefix = ".".join(room.relative_to(ROOT).parts)
    files = {f"{prefix}.{path.stem}": path for path in room.glob("*.py") if path.stem != "__init__"}
    graph = {name: {*files} & modules_of(path) for name, path in files.items()}
    floor: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():  # raises CycleError with the circle
        floor[name] = 1 + max((floor[below] for below in graph[name]), default=0)
    assert max(floor.values(), default=0) <= FLOORS_MAX, floor


def modules_of(path: Path) -> set[str]:
    """The modules that a file imports, whether by their name or for a name in them."""
    found = modules(str(path.relative_to(ROOT)))
    return found | {name.rpartition(".")[0] for name in found}


RARELY_USED = {
    "ledger.gate.gates",
    "ledger.client.gather",
    "ledger.client.message",
    "ledger.client.queue",
    "ledger.budgets",
    "asyncio",
}
"""What an import of the ledger leaves to those who have limits, gather, queue, reserve or await."""


def test_an_import_of_the_ledger_takes_few_files() -> None:
    code = (
        "import boto3, sys; known = {*sys.modules}; import ledger; "
        "print(*sorted({*sys.modules} - known))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not RARELY_USED & {*loaded}
    assert 10 < len([name for name in loaded if name.partition(".")[0] == "ledger"]) <= 47


UNUSED = {
    "add_from_queue": {"asyncio", "compactor", "ledger.gate.gates", "pydantic", "reader"},
    "api": {
        "aws_lambda_powertools.event_handler.openapi.models",
        "compactor",
        "ledger.tables.memory",
    },
    "ring": {"asyncio", "compactor", "ledger.gate.gates", "pydantic", "reader"},
    "compact": {
        "asyncio",
        "compactor.compactor",
        "compactor.verify",
        "ledger.gate.gates",
        "pydantic",
        "reader",
    },
    "sweep": {"asyncio", "compactor", "ledger.gate.gates", "pydantic", "reader"},
    "canary": {"asyncio", "compactor", "pydantic"},
}
"""What the first event of a function may not need."""


@pytest.mark.parametrize("function", UNUSED)
def test_a_function_starts_without_what_it_may_not_need(function: str) -> None:
    """And without boto3, of which botocore is enough, and without a client: that is made by who
    sends.
    """
    code = (
        f"import sys, service.{function}.main, ledger.tables.boto as c; "
        "print(c._client.cache_info().currsize)"
    )
    command = [sys.executable, "-c", f"{code}; print(*sys.modules)"]
    ran = subprocess.run(
        command, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=True
    )
    clients, *loaded = ran.stdout.split()
    assert (clients, (UNUSED[function] | {"boto3", "s3transfer"}) & {*loaded}) == ("0", set())


def test_boto3_is_known_to_the_table_edge_alone() -> None:
    assert {name.partition("/")[0] for name in NAMES} == set(OURS)
    assert {name for name in NAMES if imported(name) & {"boto3", "botocore"}} == BOTO
    assert {name for name in NAMES if imported(name) & {"aiobotocore", "aiohttp"}} == {
        "ledger/tables/aio.py"
    }
    assert not [
        name for name in NAMES if imported(name) & {"aws_lambda_powertools", "pydantic", "ulid"}
    ]


def test_the_environment_is_read_by_the_settings_alone() -> None:
    reads = re.compile(r"\bos\.(environ|environb|getenv)\b|\bfrom os import .*\b(environ|getenv)\b")
    assert [name for name in NAMES if reads.search((ROOT / name).read_text())] == [
        "ledger/core/settings.py"
    ]


def test_attribute_names_are_known_to_items_alone() -> None:
    """As the key of a dictionary; the `version` in the one condition of the table edge is an
    expression.
    """
    knowing = set()
    for name in NAMES:
        for node in ast.walk(tree(name)):
            match node:
                case ast.Dict(keys=keys):
                    texts = {key.value for key in keys if isinstance(key, ast.Constant)}
                case ast.Subscript(slice=ast.Constant(value=text)):
                    texts = {text}
                case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=text), *_]):
                    texts = {text}
                case _:
                    continue
            if texts & ATTRIBUTES:
                knowing.add(name)
    assert knowing <= {"ledger/core/items.py"}


NAMES_LANES = {"compactor/lanes.py", "ledger/lane/directory.py", "reader/counters_page.py"}
"""They leave out periods that are kept no longer, or take a filter that does."""


def test_few_files_make_lanes_of_the_directory_s_items() -> None:
    """All others get lanes that are kept, so none forgets to ask."""
    makes = re.compile(r"\bdirectory\.lane_of\b|from ledger\.lane\.directory import .*\blane_of\b")
    own = {"ledger/lane/directory.py"}
    found = {str(path) for path in MODULES if makes.search((ROOT / path).read_text())}
    assert {name for name in found if not name.startswith("lab/")} | own == NAMES_LANES


def test_a_loop_over_pages_stands_in_one_file_alone() -> None:
    """So that none forgets to go on, or stops in silence; and one place starts a slow read
    again.
    """
    for bound, file in (("PAGES_MAX", "ledger/lane/tail.py"), ("STARTS_MAX", "reader/read.py")):
        assert [
            str(path) for path in MODULES if re.search(rf"\b{bound}\b", (ROOT / path).read_text())
        ] == [file]


def test_the_wheel_holds_and_needs_what_it_imports() -> None:
    setuptools = PROJECT["tool"]["setuptools"]
    there = {"exact_counter", *setuptools["package-dir"].values()}
    folders = {
        path.parent.relative_to(ROOT) for name in there for path in (ROOT / name).rglob("*.py")
    }
    below = {".".join(("exact_counter", *folder.parts)) for folder in folders}
    assert {*setuptools["packages"]} == below - {"exact_counter.exact_counter"} | {"exact_counter"}
    assert setuptools["package-dir"] == {
        f"exact_counter.{name}": name for name in there - {"exact_counter"}
    }
    assert not there & {"infra", "lab", "service", "tests"}
    assert all(KNOWS[package] <= there for package in there)
    assert (
        third_party(*OURS)
        == named(PROJECT["project"]["dependencies"])
        == set(DISTRIBUTIONS.values())
    )
    extra = named(PROJECT["project"]["optional-dependencies"]["cli"])
    assert third_party("simulator") <= {*DISTRIBUTIONS.values(), *extra}
    assert named(PROJECT["project"]["optional-dependencies"]["async"]) == {"aiobotocore"}
    assert named(PROJECT["project"]["optional-dependencies"]["fast"]) == {"httptools"}
    assert "cachetools>=5" in PROJECT["project"]["dependencies"]  # google-auth holds it below 6
    assert "cachetools==5.0.0 " in (ROOT / "requirements" / "oldest.lock").read_text()


def test_there_is_one_version() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "ledger.__version__"}
    assert openapi.document()["info"]["version"] == __version__
    assert (
        re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
        == __version__
    )
    assert f"git checkout v{__version__} &&" in (ROOT / "docs" / "deploying.md").read_text()


SPOKEN = re.compile(
    r"^(Rules|Rule|The rules a change must keep|Rules a change must keep):", re.MULTILINE
)
MODULES = [
    path.relative_to(ROOT) for folder in KNOWS for path in sorted((ROOT / folder).rglob("*.py"))
]


def test_a_package_is_typed_and_its_modules_say_what_they_are() -> None:
    typed = (*OURS, "simulator", "exact_counter")
    assert all((ROOT / package / "py.typed").is_file() for package in typed)
    assert [name for name in NAMES if not ast.get_docstring(tree(name))] == []
    assert not [path for path in MODULES if SPOKEN.search(ast.get_docstring(tree(str(path))) or "")]


def test_a_name_of_a_test_has_at_most_60_characters() -> None:
    """The thing first, then the fact: reports and tables show it whole. A docstring says more."""
    names = {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert sorted(name for name in names if len(name) > 60) == []
