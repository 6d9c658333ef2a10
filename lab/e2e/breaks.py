"""What is broken, in which metrics alarms must see it, and what mends it.

Rule 1: A break is what an operator could do by mistake, or AWS to them. What this engine does not
do, the proxy in
front of the table does: a role without its permission is one function's AccessDeniedException.
Rule 2: A break names metrics. The template says which alarms watch them: each of those must cross,
and there is one.
Rule 3: What is in QUIET must not cross, but where the break is seen in it: no good change is a dead
letter.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.e2e.alarms import Metric
from lab.e2e.deployed import TABLE
from lab.e2e.metrics import AGE, LAMBDA, LEDGER, SQS, VISIBLE
from lab.e2e.traffic import poison

CANARY_LATE, CHANGES_FAILED = Metric(LEDGER, "CanaryLagMs"), Metric(LEDGER, "ChangesFailed")


@dataclass(frozen=True, slots=True)
class Break:
    """`off`: the function whose event source is disabled; `refused`: the function that the table
    refuses, "" for everybody, and `answer` how; `letters`: queue and message of what no retry can
    help; `emptied`: what mends it."""

    name: str
    text: str
    seen_in: tuple[Metric, ...]
    off: str = ""
    refused: str = ""
    answer: str = ""
    letters: tuple[tuple[str, str], ...] = ()
    emptied: tuple[str, ...] = ()


def _queue(name: str, metric: str = VISIBLE) -> Metric:
    return Metric(SQS, metric, f"{TABLE}-{name}")


def _function(name: str, metric: str) -> Metric:
    return Metric(LAMBDA, metric, f"{TABLE}-{name}")


def _off(name: str, function: str, *seen_in: Metric) -> Break:
    return Break(
        name, f"the event source of {function} ({name}) is disabled", seen_in, off=function
    )


def _denied(function: str, *seen_in: Metric, emptied: tuple[str, ...] = ()) -> Break:
    text = f"the role of {function} has no right to the table"
    return Break(
        f"role-of-{function}", text, seen_in, refused=function, answer="denied", emptied=emptied
    )


QUIET = {_queue("changes-dlq"), Metric(LEDGER, "CanaryWrong"), Metric(LEDGER, "LanesDamaged")}
BREAKS = (
    _off("stream", "ring", _function("ring", "Invocations"), CANARY_LATE),
    _off("work", "compact", _queue("work", AGE), Metric(LEDGER, "LanesLooked"), CANARY_LATE),
    _off("changes", "add-from-queue", _queue("changes", AGE)),
    _denied("add-from-queue", CHANGES_FAILED),
    _denied("compact", Metric(LEDGER, "LanesFailed"), CANARY_LATE),
    _denied("canary", _function("canary", "Errors")),
    Break(
        "poison",
        "poison among the changes, and a message of work that names no lane",
        (_queue("changes-dlq"), _queue("work-dlq"), Metric(LEDGER, "WorkInvalid")),
        letters=(
            *(("changes", poison(number)) for number in range(7)),
            ("work", '{"lane": "nowhere"}'),
        ),
        emptied=("changes-dlq", "work-dlq"),
    ),
    # A sweep that runs meanwhile is given up, and nothing is to do again.
    Break(
        "throttled",
        "the table throttles every request",
        (CHANGES_FAILED,),
        answer="throttled",
        emptied=("failed",),
    ),
    _denied("sweep", _queue("failed"), emptied=("failed",)),
)
"""In the order in which they are done.

The last one fills a queue of what was given up as the service itself does.
"""
