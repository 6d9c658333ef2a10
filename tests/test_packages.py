"""Who knows whom, read from the source."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("ledger", "reader", "compactor")
FILES = [path for package in OURS for path in sorted((ROOT / package).rglob("*.py"))]
NAMES = [str(path.relative_to(ROOT)) for path in FILES]
BOTO = {"ledger/client.py", "ledger/failures.py", "ledger/queue.py", "ledger/table.py"}
ATTRIBUTES = {"change", "total", "count", "watermark", "version", "last", "committed_ms", "entries", "noted_ms"}


def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text())


def at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but those under `if TYPE_CHECKING:`."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"):
            yield from at_run_time(child)


def imported(name: str) -> set[str]:
    """The top-level packages that a file imports when it runs."""
    found: set[str] = set()
    for node in at_run_time(tree(name)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=module, level=level):
                assert level == 0, f"{name}: a relative import"
                found.add((module or "").partition(".")[0])
    return found


def test_the_packages_are_found() -> None:
    assert {name.partition("/")[0] for name in NAMES} == set(OURS)
    assert set(NAMES) >= BOTO


@pytest.mark.parametrize("name", NAMES)
def test_packages_point_one_way(name: str) -> None:
    package = name.partition("/")[0]
    assert imported(name) & {*OURS, "demo", "bench", "tests", "infra", "service"} <= {package, "ledger"}


def test_boto3_is_known_to_the_table_edge_alone() -> None:
    assert {name for name in NAMES if imported(name) & {"boto3", "botocore"}} == BOTO


def test_what_lambda_alone_needs_is_not_imported() -> None:
    assert not [name for name in NAMES if imported(name) & {"aws_lambda_powertools", "pydantic"}]


def test_ulid_is_known_to_tokens_alone() -> None:
    assert {name for name in NAMES if "ulid" in imported(name)} == {"ledger/tokens.py"}


def test_the_environment_is_read_by_the_settings_alone() -> None:
    readers = set()
    for name in NAMES:
        for node in ast.walk(tree(name)):
            match node:
                case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "environb" | "getenv"):
                    readers.add(name)
                case ast.ImportFrom(module="os", names=names) if {"environ", "getenv"} & {n.name for n in names}:
                    readers.add(name)
    assert readers == {"ledger/settings.py"}


def test_attribute_names_are_known_to_items_alone() -> None:
    """As the key of a dictionary; the `version` in the one condition of the table edge is an expression."""
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
    assert knowing <= {"ledger/items.py"}


@pytest.mark.parametrize("package", OURS)
def test_a_package_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_a_module_opens_by_saying_what_it_is(name: str) -> None:
    assert ast.get_docstring(tree(name))
