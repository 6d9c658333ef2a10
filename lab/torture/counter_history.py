"""The history of a round told counter by counter, for the checker: pure.

Rule 1: A delta was asked for when its first add was invoked, unless each of its adds certainly failed; it was
acknowledged when one of them was ok; it is owed to strong reads at home from when an add through its home Region was ok
on time.
Rule 2: An add whose process was killed has no line for its end: it may have happened.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lab.torture.record import Line


@dataclass(slots=True)
class Change:
    """What the history says of one delta."""

    number: int
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
    at_home: int | None
    """What it says of the lanes of its own Region."""


@dataclass(slots=True)
class CounterHistory:
    """The history of one counter."""

    counter: int
    changes: dict[int, Change] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)


def histories_of(lines: Iterable[Line], *, on_time_ns: int, wall_ns: int) -> dict[int, CounterHistory]:
    """The history by counter. A delta is on time until `on_time_ns` after its instant; wall = monotonic + `wall_ns`."""
    told: dict[int, CounterHistory] = {}
    for line in lines:
        match line["f"], line["type"]:
            case "add", "invoke":
                for counter, number, home, at_ms in line["value"]:
                    history = told.setdefault(counter, CounterHistory(counter))
                    change = history.changes.setdefault(number, Change(number, home, at_ms, line["time"]))
                    change.sends += 1
            case "add", "ok" | "info" | "fail":
                for counter, number, how in line["value"]:
                    change = told[counter].changes[number]
                    change.ended.append(how)
                    on_time = line["time"] + wall_ns <= change.at_ms * 1_000_000 + on_time_ns
                    if how == "ok" and line["region"] == change.home and on_time and change.owed_from_ns is None:
                        change.owed_from_ns = line["time"]
            case "read", "ok":
                for counter, value, count, parts in line["value"]:
                    about = line["process"], line["region"], line["strong"], line["began"], line["time"]
                    at_home = None if parts is None else parts.get(line["region"], 0)
                    told.setdefault(counter, CounterHistory(counter)).reads.append(Read(*about, value, count, at_home))
    return told
