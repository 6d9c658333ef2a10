"""The reference names all that a user imports."""

import re
from importlib import import_module

from tests.docs.pages import DOCS

PACKAGES = ("ledger", "ledger.budgets", "reader", "compactor")


def test_every_public_name_stands_in_the_reference() -> None:
    pages = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    there = set(re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE))
    public = {
        f"{package}.{name}" for package in PACKAGES for name in import_module(package).__all__
    }
    assert public - there == set()
