"""How many functions of ours a call passes through: how far a reader has to follow it."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
OURS = ("ledger", "reader", "compactor", "service")


class Passed(NamedTuple):
    """functions: those of our packages that ran, each once, as "file:name", in the order of their first call. depth: how
    many of them were on the stack at once, at most."""

    functions: tuple[str, ...]
    depth: int


def passed(call: Callable[[], Any], *, without: tuple[str, ...] = ()) -> Passed:
    """Make a call and count. without: files whose functions are not counted, such as that of the table in memory.

    A comprehension and a generator expression are part of the function in which they stand, and so is what a dataclass
    or a named tuple makes for itself: it stands in no file.
    """
    found: dict[str, None] = {}
    stack: list[bool] = []
    depth = 0

    def name_of(frame: FrameType) -> str:
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(ROOT) or frame.f_code.co_name.endswith("comp>") or frame.f_code.co_name == "<genexpr>":
            return ""
        file = str(path.relative_to(ROOT))
        return f"{file}:{frame.f_code.co_qualname}" if file.startswith(OURS) and file not in without else ""

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        if event == "call":
            name = name_of(frame)
            stack.append(bool(name))
            if name:
                found.setdefault(name)
                depth = max(depth, sum(stack))
        elif event == "return" and stack:
            stack.pop()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return Passed(tuple(found), depth)
