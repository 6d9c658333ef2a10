"""Changes of counters as rows of JSONL or CSV, which `import` takes back: with its token a change counts once, wherever
it is imported.
"""

import csv
import json
from collections.abc import Iterator
from typing import TextIO

from ledger.message import time_text
from reader import Entry

FIELDS = ("counter", "change", "at", "token", "region")


def write(file: TextIO, format_: str, entries: Iterator[tuple[str, Entry]]) -> int:
    """Entries, one a line; how many they were."""
    rows = csv.DictWriter(file, FIELDS, lineterminator="\n")
    if format_ == "csv":
        rows.writeheader()
    count = 0
    for counter, entry in entries:
        count += 1
        fields = dict(zip(FIELDS, (counter, entry.change, time_text(entry.at), entry.token, entry.region), strict=True))
        if format_ == "csv":
            rows.writerow(fields)
        else:
            file.write(json.dumps(fields) + "\n")
    return count
