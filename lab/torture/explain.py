"""Says a violation so that a person can look into it: the counter, and the lines of its history as recorded."""

import json
from collections.abc import Sequence

from lab.torture.checker import Violation
from lab.torture.record import Line

SHOWN_VIOLATIONS, SHOWN_LINES = 5, 40


def explain(violations: Sequence[Violation], lines: Sequence[Line]) -> str:
    """Each of the first violations, with the latest lines of its counter's history, oldest first."""
    shown = ["\n".join([str(each), *_lines_of(each.counter, lines)[-SHOWN_LINES:]]) for each in violations]
    return "\n\n".join(shown[:SHOWN_VIOLATIONS] + list(map(str, violations[SHOWN_VIOLATIONS:])))


def _lines_of(counter: int | None, lines: Sequence[Line]) -> list[str]:
    """Without what the history says of other counters."""
    found = []
    for line in lines:
        values = [each for each in line["value"] if (each if isinstance(each, int) else each[0]) == counter]
        if line["f"] in ("add", "read") and values:
            found.append(f"  {json.dumps(line | {'value': values})}")
    return found
