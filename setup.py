"""The long description of a distribution: README.md, with links that lead somewhere from an index.

An index shows the page alone, so each link to a file and each picture gets the address that the
file has in the repository, at the tag of this version. All else of the build is in pyproject.toml.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
FENCED = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
TO_A_FILE = r"\((?![a-z]+:|#)([^)\s]+)\)"
PICTURE = re.compile(rf"(!\[[^]]*\]){TO_A_FILE}")
LINK = re.compile(rf"(\]){TO_A_FILE}")


def absolute(readme: str, source: str, version: str) -> str:
    """The page with absolute links. source: the repository's address."""
    parts = FENCED.split(readme)
    for number in range(0, len(parts), 2):  # what stands between two blocks of code
        prose = PICTURE.sub(rf"\1({source}/raw/v{version}/\2)", parts[number])
        parts[number] = LINK.sub(rf"\1({source}/blob/v{version}/\2)", prose)
    return "".join(parts)


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    module = (ROOT / "ledger" / "__init__.py").read_text("utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', module, re.MULTILINE)
    setup(
        long_description=absolute(
            (ROOT / "README.md").read_text("utf-8"), project["urls"]["Source"], version
        ),
        long_description_content_type="text/markdown",
    )


if __name__ == "__main__":
    main()
