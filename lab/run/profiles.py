"""How gentle or rough a run is: what it meets, and the least that it has to have done.

Rule 1: A floor is so far below what a run does that only a run that shows nothing misses it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lab.engines.proxy_faults import FAULTS, Mix


@dataclass(frozen=True, slots=True)
class Profile:
    """pause_s: how long a writer rests between two batches, at most. again_s: how long it waits before it sends again,
    at most. resending_s: for how long, once half of the writers are done. kills: processes are killed, and storms
    of faults come. faults: what the proxy does; None draws a mix. naive: the designs that count beside ours.

    floors: what a run must have of each, at least, as (number, share of what was asked of it).
    """

    pause_s: float
    again_s: float
    resending_s: float
    kills: bool
    faults: Mix | None
    naive: tuple[str, ...]
    floors: Mapping[str, tuple[int, float]]


GENTLE_KINDS = ("500 after it applied", "answer dropped after it applied", "throttled", "repeated late")

GENTLE = Profile(
    pause_s=1.6,
    again_s=7.0,
    resending_s=60.0,
    kills=False,
    faults={fault: 0.01 for fault in FAULTS if fault.kind in GENTLE_KINDS},
    naive=("atomic ADD", "naive merge"),
    floors={
        "changes acknowledged": (1, 1.0),
        "of them owed to strong reads": (1, 0.01),
        "read ok": (1, 0.01),
        "packed": (1, 0.01),
        "folded": (1, 0.01),
        "settled": (1, 0.0),
        "cleaned": (1, 0.01),
        "faults": (1, 0.01),
    },
)
"""Events of a user, counted by ours and by two naive designs; no process is killed."""

ROUGH = Profile(
    pause_s=0.5,
    again_s=16.0,
    resending_s=12.0,
    kills=True,
    faults=None,
    naive=(),
    floors={
        "operations": (0, 1.0),
        "changes acknowledged": (0, 0.5),
        "of them owed to strong reads": (0, 0.01),
        "cleaned": (0, 0.001),
        "read ok": (0, 0.01),
        "faults": (0, 0.05),
    },
)
"""Numbered changes of many counters; processes are killed, and storms of faults come."""
