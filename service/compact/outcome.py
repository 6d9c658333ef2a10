"""`Outcome`: how a job of the work queue ended."""

from enum import Enum

NOT_WHOLE = "a visit failed before its end"


class Outcome(Enum):
    """text: the outcome's name in the job's log line. metric: what counts it; None: nothing does.
    level, says: of the line itself.
    """

    LOOKED = "looked", None, "debug", "looked"
    ENDED = "ended", None, "debug", "looked"
    """Another chain of visits goes on."""
    VISITED = "visited", None, "info", "visit"
    SETTLED = "settled", None, "info", "settled"
    VERIFIED = "verified", None, "info", "verified"
    UNVERIFIED = "gave up", "LanesGaveUp", "info", "gave up"
    """The lane was too busy, or its tail too long: another pass of the sweep picks it."""
    EVALUATED = "evaluated", None, "info", "evaluated"
    PUT_OFF = "put off", None, "info", "put off"
    """Until no other job of the lane comes with it."""
    RETIRED = "retired", None, "info", "retired"
    """Its counter's period is one that nobody looks at any more."""
    STOPPED = "stopped", None, "warning", "a visit ran out of time"
    """Which metric counts it depends on the job: see `Done.metrics`."""
    GAVE_UP = "gave up", "LanesGaveUp", "warning", NOT_WHOLE
    FAILED = "failed", "LanesFailed", "error", NOT_WHOLE
    DAMAGED = "damaged", "LanesDamaged", "error", NOT_WHOLE

    def __init__(self, text: str, metric: str | None, level: str, says: str) -> None:
        self.text, self.metric, self.level, self.says = text, metric, level, says
