"""What a PartiQL statement writes, read from the two forms that this library sends."""

import re
from collections.abc import Mapping
from typing import Any

from ledger.units import Item

INSERT = re.compile(r"""\s*INSERT\s+INTO\s+"?([\w.-]+)"?\s+VALUE\s*\{(.*)\}\s*""", re.IGNORECASE | re.DOTALL)
MEMBER = re.compile(r"""\s*['"]([^'"]+)['"]\s*:\s*\?\s*""")


DELETE = re.compile(r"""\s*DELETE\s+FROM\s+"?([\w.-]+)"?\s+WHERE\s+(.*)""", re.IGNORECASE | re.DOTALL)
TERM = re.compile(r"""\s*"?([^"=\s]+)"?\s*=\s*\?\s*""")
AND = re.compile(r"\sAND\s", re.IGNORECASE)


def written(statement: Mapping[str, Any]) -> tuple[str, str, Item] | None:
    """Put or Delete, the table, and the item, all values parameters; None for any other statement.

    The forms are `INSERT INTO "table" VALUE {'pk': ?, ...}` and `DELETE FROM "table" WHERE "pk" = ? AND ...`.
    """
    text = statement["Statement"]
    if insert := INSERT.fullmatch(text):
        kind, table, members = "Put", insert[1], [MEMBER.fullmatch(member) for member in insert[2].split(",")]
    elif delete := DELETE.fullmatch(text):
        kind, table, members = "Delete", delete[1], [TERM.fullmatch(term) for term in AND.split(delete[2])]
    else:
        return None
    names = [member[1] for member in members if member]
    values = statement.get("Parameters", [])
    if not len(members) == len(names) == len(values):
        return None
    return kind, table, dict(zip(names, values, strict=True))
