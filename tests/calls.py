"""How many functions of ours a call passes through: how far whoever changes a rule has to follow
it.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import ledger

# `make dist` runs the tests on the wheel
ROOTS = {Path(__file__).parents[1], Path(ledger.__file__).parents[1]}
OURS = ("ledger", "reader", "compactor", "service")


class Passed(NamedTuple):
    """functions: those of our packages that ran, each once, as "file:name", in the order of their
    first call. depth: how many of them were on the stack at once, at most."""

    functions: tuple[str, ...]
    depth: int


def passed(
    call: Callable[[], Any],
    *,
    below: str = "",
    without: tuple[str, ...] = ("ledger/tables/memory.py",),
) -> Passed:
    """Make a call and count. below: this function, such as "ledger/lane/add.py:add", and what it
    calls, nothing else.
    without: files that are not counted, such as that of the table in memory.

    A comprehension is part of the function in which it stands; what a data class makes for itself
    stands in no file.
    """
    found: dict[str, None] = {}
    stack: list[str] = []
    depth = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        if event == "call":
            stack.append(_name_of(frame, without))
            counted = stack[stack.index(below) :] if below in stack else [] if below else stack
            if counted and stack[-1]:
                found.setdefault(stack[-1])
                depth = max(depth, sum(map(bool, counted)))
        elif event == "return" and stack:
            stack.pop()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return Passed(tuple(found), depth)


def _name_of(frame: FrameType, without: tuple[str, ...]) -> str:
    """ "" for what is not counted."""
    code, path = frame.f_code, Path(frame.f_code.co_filename)
    files = [str(path.relative_to(root)) for root in ROOTS if path.is_relative_to(root)]
    if not files or code.co_name.endswith(("comp>", "<genexpr>")):
        return ""
    file = min(files, key=len)
    return (
        f"{file}:{code.co_qualname}"
        if file.partition("/")[0] in OURS and file not in without
        else ""
    )
