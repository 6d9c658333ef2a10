"""What pyproject.toml cannot say of the build: the wheel's imports, and the links of its page.

A clone has `ledger/`, `reader/` and others at its top. In the wheel they stand below
`exact_counter`, where they overwrite no module of anybody else, and their imports say so.

Rule 1: a line keeps its number. So a traceback from the wheel names a line of the repository.
Rule 2: import statements alone change. Code that names a module by a string names it relative to
its package: `import_module(".x", __package__)`. The logger `ledger` keeps its name.
Rule 3: an editable installation is the clone as it is.
"""

import ast
import re
import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

ROOT = Path(__file__).parent
DOOR = "exact_counter."
FENCED = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!\[[^]]*\]|\])\((?![a-z]+:|#)([^)\s]+)\)")
"""A link to a file, or a picture."""


def below(source: str, packages: set[str]) -> str:
    """A module's text with each import of `packages` as one from below the door.

    Raises SyntaxError for `import ledger.x`, which would bind another name there.
    """
    lines = source.encode().splitlines(keepends=True)  # a position of ast counts bytes of UTF-8
    places: list[tuple[int, int]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if node.module.partition(".")[0] in packages:
                places.append((node.lineno, node.col_offset + len("from ")))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in packages:
                    if not alias.asname:
                        raise SyntaxError(f"line {node.lineno}: import {alias.name} as ...")
                    places.append((alias.lineno, alias.col_offset))
    for number, column in sorted(places, reverse=True):
        line = lines[number - 1]
        lines[number - 1] = line[:column] + DOOR.encode() + line[column:]
    return b"".join(lines).decode()


def absolute(readme: str, source: str, version: str) -> str:
    """The page with absolute links, because an index shows no file beside it.

    source: the repository's address; a link leads to its file at the tag of this version.
    """

    def address(link: re.Match[str]) -> str:
        kind = "raw" if link[1].startswith("!") else "blob"
        return f"{link[1]}({source}/{kind}/v{version}/{link[2]})"

    parts = FENCED.split(readme)
    for number in range(0, len(parts), 2):  # what stands between two blocks of code
        parts[number] = LINK.sub(address, parts[number])
    return "".join(parts)


class Below(build_py):
    def run(self) -> None:
        # another folder, of --build-lib, may have files of somebody else
        if Path(self.build_lib).resolve().is_relative_to(ROOT.resolve() / "build"):
            shutil.rmtree(self.build_lib, ignore_errors=True)  # what an earlier build left
        super().run()

    def build_module(self, *module: str) -> tuple[str, bool]:
        name, is_new = super().build_module(*module)
        if is_new and not self.editable_mode:
            packages = {package.removeprefix(DOOR).partition(".")[0] for package in self.packages}
            file = Path(name)
            file.write_bytes(below(file.read_text("utf-8"), packages - {DOOR[:-1]}).encode())
        return name, is_new


class AsItIs(editable_wheel):
    def run(self) -> None:
        distribution = self.distribution
        distribution.packages = [name.removeprefix(DOOR) for name in distribution.packages or ()]
        distribution.package_dir = {}
        data = distribution.package_data or {}
        distribution.package_data = {name.removeprefix(DOOR): data[name] for name in data}
        super().run()


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    module = (ROOT / "ledger" / "__init__.py").read_text("utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', module, re.MULTILINE)
    readme = (ROOT / "README.md").read_text("utf-8")
    setup(
        cmdclass={"build_py": Below, "editable_wheel": AsItIs},
        long_description=absolute(readme, project["urls"]["Source"], version),
        long_description_content_type="text/markdown",
    )


if __name__ == "__main__":
    main()
