"""The history of a run, recorded as Jepsen would: one JSON line when an operation is invoked, one when it completes.

Rule 1: The line of an invocation is in the file before anything is sent: a process that is killed then leaves an
operation that may have happened.
Rule 2: Types: invoke; ok (it happened); fail (it certainly did not); info (it may have); broken (an answer that nothing
here can cause). Times are nanoseconds of the one monotonic clock. A process has one operation open at a time.
Rule 3: An add's value is [[counter, delta, home, at_ms], …] when invoked and [[counter, delta, how], …] when it
completes, where how is ok, fail or info for each change. A read's is [counter, …], then [[counter, sum, count,
by_region], …].
"""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

Line = dict[str, Any]


class Recorder:
    """Appends to one file; may be used by the threads of one process. A line is one write."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, process: str, kind: str, f: str, value: object, **more: object) -> int:
        """Records a line; its time."""
        now_ns = time.monotonic_ns()
        line: Line = {"process": process, "type": kind, "f": f, "time": now_ns, "value": value, **more}
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")
        return now_ns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def lines_of(path: Path) -> list[Line]:
    """The lines of one file; the last one may be torn, if its process was killed."""
    if not path.exists():
        return []
    whole = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in whole]


def merged(paths: Iterable[Path]) -> list[Line]:
    """The lines of all files in the order of time."""
    return sorted((line for path in paths for line in lines_of(path)), key=lambda line: int(line["time"]))
