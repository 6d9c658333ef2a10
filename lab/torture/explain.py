"""Says a violation so that a person can look into it: the counter, the deltas, and what the history holds of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lab.torture.checker import Violation
from lab.torture.plan import name_of
from lab.torture.record import Line

SHOWN_VIOLATIONS, SHOWN_LINES = 5, 40


def explain(violations: Sequence[Violation], lines: Sequence[Line]) -> str:
    """Each of the first violations, with the latest lines of its counter's history, oldest first."""
    shown = [_one(violation, lines) for violation in violations[:SHOWN_VIOLATIONS]]
    return "\n\n".join([*shown, *map(str, violations[SHOWN_VIOLATIONS:])])


def _one(violation: Violation, lines: Sequence[Line]) -> str:
    if violation.counter is None:
        return str(violation)
    told = list(_told(violation.counter, lines))
    left_out = [f"  … {len(told) - SHOWN_LINES} earlier lines"] if len(told) > SHOWN_LINES else []
    return "\n".join([str(violation), *left_out, *told[-SHOWN_LINES:]])


def _told(counter: int, lines: Iterable[Line]) -> Iterable[str]:
    for line in lines:
        if line["f"] not in ("add", "read"):
            continue
        what = [_value(each) for each in line["value"] if (each if isinstance(each, int) else each[0]) == counter]
        if what:
            where = f" in {line['region']}" if "region" in line else ""
            yield (
                f"  {line['time'] / 1e9:.3f} s  {line['process']}: {line['type']} {line['f']}{where} "
                f"{name_of(counter)} {', '.join(what)}"
            )


def _value(value: object) -> str:
    match value:
        case [_, number, str(home), int(at_ms)]:
            return f"delta {number} of {home} at {at_ms} ms"
        case [_, number, str(how)]:
            return f"delta {number} {how}"
        case [_, total, count, _]:
            return f"= {total} ({count} deltas)"
    return ""
