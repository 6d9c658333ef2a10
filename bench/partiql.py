"""The item that a PartiQL INSERT carries, read from the one form of the statement that our writers send."""

import re
from collections.abc import Mapping
from typing import Any

from infra.ledgerctl.units import Item

INSERT = re.compile(r"""\s*INSERT\s+INTO\s+"?([\w.-]+)"?\s+VALUE\s*\{(.*)\}\s*""", re.IGNORECASE | re.DOTALL)
MEMBER = re.compile(r"""\s*['"]([^'"]+)['"]\s*:\s*\?\s*""")


def inserted(statement: Mapping[str, Any]) -> tuple[str, Item] | None:
    """The table and item of `INSERT INTO "table" VALUE {'pk': ?, ...}`, all values parameters; None for any other."""
    insert = INSERT.fullmatch(statement["Statement"])
    if insert is None:
        return None
    members = [MEMBER.fullmatch(member) for member in insert[2].split(",")]
    names = [member[1] for member in members if member]
    values = statement.get("Parameters", [])
    if not len(members) == len(names) == len(values):
        return None
    return insert[1], dict(zip(names, values, strict=True))
