"""Changes of counters as rows of JSONL or CSV, which `import` takes back.

Rule 1: A row has counter, change, at, token, Region: with the token the same change counts once, wherever it is
imported.
"""

import csv
import json
from collections.abc import Iterator
from typing import Any, TextIO

from ledger.message import time_text
from reader import Entry

FIELDS = ("counter", "change", "at", "token", "region")


def write(file: TextIO, format_: str, entries: Iterator[tuple[str, Entry]]) -> int:
    """Entries, one a line; how many they were."""
    rows: Any = csv.DictWriter(file, FIELDS, lineterminator="\n") if format_ == "csv" else None
    if rows:
        rows.writeheader()
    count = 0
    for counter, entry in entries:
        fields = dict(zip(FIELDS, (counter, entry.change, time_text(entry.at), entry.token, entry.region), strict=True))
        if rows:
            rows.writerow(fields)
        else:
            file.write(json.dumps(fields) + "\n")
        count += 1
    return count
