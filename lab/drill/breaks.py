"""What is broken, which alarms must tell it, and how it is mended.

Rule 1: A break is what an operator could do by mistake, or AWS to them. What this engine does not do, the proxy in
front of the table does: a role without its permission is one function's AccessDeniedException.
Rule 2: What must stay quiet while it lasts is said, too: no good change is among the dead letters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.drill.ground import Ground
from lab.e2e.traffic import poison

NO_LANE = '{"lane": "nowhere"}'


@dataclass(frozen=True, slots=True)
class Break:
    """`alarms`: those that must be in alarm while it lasts; `quiet`: those that must not."""

    name: str
    text: str
    alarms: tuple[str, ...]
    do: Callable[[Ground], None]
    mend: Callable[[Ground], None]
    quiet: tuple[str, ...] = ("changes-dlq", "value-wrong")


def _switched(name: str, function: str, *alarms: str) -> Break:
    text = f"the event source of {function} ({name}) is disabled"
    return Break(name, text, alarms, lambda ground: ground.switch(function, False), lambda g: g.switch(function, True))


def _denied(function: str, *alarms: str) -> Break:
    text = f"the role of {function} has no right to the table"
    return Break(
        f"role-of-{function}", text, alarms, lambda ground: ground.refuse("denied", function), lambda g: g.refuse("")
    )


def _poison(ground: Ground) -> None:
    for number in range(7):
        ground.send("changes", poison(number))
    ground.send("work", NO_LANE)


def _take_poison(ground: Ground) -> None:
    for queue in ("changes-dlq", "work-dlq"):
        ground.drain(queue)


def _take_failed(ground: Ground) -> None:
    """A sweep that ran meanwhile was given up, and is nothing to do again."""
    ground.refuse("")
    ground.drain("failed")


BREAKS = (
    _switched("stream", "ring", "canary-late"),
    _switched("work", "compact", "work-waiting", "canary-late"),
    _switched("changes", "add-from-queue", "changes-waiting"),
    _denied("add-from-queue", "changes-failing"),
    _denied("compact", "lanes-failing", "canary-late"),
    _denied("canary", "canary-late"),
    Break(
        "poison",
        "poison among the changes, and a message of work that names no lane",
        ("changes-dlq", "work-dlq"),
        _poison,
        _take_poison,
        quiet=("value-wrong",),
    ),
    Break(
        "throttled",
        "the table throttles every request",
        ("changes-failing",),
        lambda ground: ground.refuse("throttled"),
        _take_failed,
    ),
    Break(
        "role-of-sweep",
        "the role of sweep has no right to the table",
        ("work-dlq",),
        lambda ground: ground.refuse("denied", "sweep"),
        _take_failed,
    ),
)
"""In the order in which they are done. The last one fills a queue of what was given up as the service itself does."""
