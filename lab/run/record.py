"""The history of a run, recorded as Jepsen would: one JSON line when an operation is invoked, one
when it completes.

Rule 1: The line of an invocation is in the file before anything is sent: a process that is killed
then leaves an operation that may have happened.
Rule 2: Types: invoke; ok (it happened); fail (it certainly did not); info (it may have); broken (an
answer that nothing here can cause). Times are nanoseconds of the one monotonic clock. A process has
one operation open at a time.
Rule 3: An add's value is [[change, home, at_ms], …] when invoked and [[change, how], …] when
it completes, where how is ok, fail or info for each change. A read's is [counter, …], then
[[counter, sum, count], …].
Rule 4: Of each counter, a delta may count from when its first add was invoked, unless all its adds
certainly failed. It is acknowledged when one of them was ok. A strong read at home must hold it
once an add through its home Region was ok on time. An add whose process was killed has no line for
its end: it may have happened.
"""

import json
import os
import random
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from lab.run.plan import ON_TIME_MS, THREADS, Plan

Line = dict[str, Any]


class Recorder:
    """Appends to one file; may be used by the threads of one process. A line is one write."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, process: str, kind: str, f: str, value: object, **more: object) -> int:
        """Records a line; its time."""
        now_ns = time.monotonic_ns()
        line: Line = {
            "process": process,
            "type": kind,
            "f": f,
            "time": now_ns,
            "value": value,
            **more,
        }
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")
        return now_ns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


class Worker:
    """One thread of a process, under a name of its own: it acts until `stop.value` is true or
    its share is done.
    """

    def __init__(self, name: str, seed: int, recorder: Recorder, f: str) -> None:
        self._name, self._recorder, self._f = name, recorder, f
        self._rng = random.Random(f"{seed} {name}")

    def act(self, stop: Any) -> None:
        """Until it is over."""
        raise NotImplementedError

    def work(self, stop: Any) -> None:
        try:
            self.act(stop)
        except Exception as error:  # a thread that ends early would look like a quiet one
            self.broken(error)

    def broken(self, error: Exception, value: object = ()) -> None:
        """Records an error that no fault here can cause."""
        self._recorder.write(
            self._name, "broken", self._f, value, error=f"{type(error).__name__}: {error}"
        )


def work_all(workers: Iterable[Worker], stop: Any) -> None:
    """All at once, until each is done."""
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda worker: worker.work(stop), workers))


def lines_of(path: Path) -> list[Line]:
    """The lines of one file; the last one may be torn, if its process was killed."""
    if not path.exists():
        return []
    whole = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in whole]


def merged(paths: Iterable[Path]) -> list[Line]:
    """The lines of all files in the order of time."""
    return sorted(
        (line for path in paths for line in lines_of(path)), key=lambda line: int(line["time"])
    )


@dataclass(slots=True)
class Read:
    """One finished read of one counter."""

    process: str
    region: str
    strong: bool
    began_ns: int
    ended_ns: int
    value: int
    count: int | None


@dataclass(slots=True)
class AskedChange:
    """What the history says of one change. `delta`: the number k, where it adds 4^k."""

    number: int
    delta: int
    home: str
    at_ms: int
    invoked_ns: int
    ended: list[str] = field(default_factory=list)
    sends: int = 0
    owed_from_ns: int | None = None

    @property
    def may_count(self) -> bool:
        """Whether some add of it did not certainly fail; one that was cut off by a kill did not."""
        return len(self.ended) < self.sends or any(how != "fail" for how in self.ended)

    @property
    def acknowledged(self) -> bool:
        return "ok" in self.ended

    def owed_to(self, read: Read) -> bool:
        """Whether a read has to hold it, if it is a strong one."""
        return (
            self.home == read.region
            and self.owed_from_ns is not None
            and self.owed_from_ns < read.began_ns
        )


@dataclass(slots=True)
class CounterHistory:
    counter: str
    changes: dict[int, AskedChange] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)


Histories = dict[str, CounterHistory]


def histories_of(lines: Iterable[Line], plan: Plan) -> Histories:
    """By counter."""
    histories: Histories = {}

    def history(counter: str) -> CounterHistory:
        return histories.setdefault(counter, CounterHistory(counter))

    for line in lines:
        match line["f"], line["type"]:
            case "add", "invoke":
                for number, home, at_ms in line["value"]:
                    event = plan.events[number]
                    asked = AskedChange(
                        number, (event.change.bit_length() - 1) // 2, home, at_ms, line["time"]
                    )
                    history(event.counter).changes.setdefault(number, asked).sends += 1
            case "add", "ok" | "info" | "fail":
                for number, how in line["value"]:
                    change = history(plan.events[number].counter).changes[number]
                    change.ended.append(how)
                    on_time = line["time"] + plan.wall_ns <= (change.at_ms + ON_TIME_MS) * 1_000_000
                    if (
                        how == "ok"
                        and line["region"] == change.home
                        and on_time
                        and change.owed_from_ns is None
                    ):
                        change.owed_from_ns = line["time"]
            case "read", "ok":
                for counter, value, count in line["value"]:
                    about = (
                        line["process"],
                        line["region"],
                        line["strong"],
                        line["began"],
                        line["time"],
                    )
                    history(counter).reads.append(Read(*about, value, count))
    return histories
