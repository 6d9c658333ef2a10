"""Messages of the work queue as the version before wrote them: one may ask for several jobs, by flags.

Rule 1: A deployment finds such messages on the queue, so they are understood; nobody writes them any more.
Rule 2: `fold` is true where it is missing, so {"lane": "<lane>"} asks for a look. A sweep looks, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.ranges import VERSION_MAX
from ledger.values import Lane
from service.fields import TRIES_MAX, flag, named_of, sort_key, whole
from service.jobs import Evaluate, Job, Look, Settle, Sweep, Verify


def jobs_of(said: Mapping[str, Any], lane: Lane) -> list[Job]:
    """The jobs that such a message asks for in a lane. Raises ValueError and TypeError."""
    late, again = (named_of(said.get(name, []), said.get(f"{name}_between", [])) for name in ("late", "again"))
    fold, sweep = flag(said.get("fold", True)), flag(said.get("sweep", False))
    verify, thresholds = flag(said.get("verify", False)), flag(said.get("thresholds", False))
    follows = None if said.get("follows") is None else whole(VERSION_MAX)(said["follows"])
    since = None if said.get("since") is None else sort_key(said["since"])
    tries = whole(TRIES_MAX)(said.get("tries", 0))
    jobs: list[tuple[bool, Job]] = [
        (bool(late), Settle(lane, late, tries=tries)),
        (bool(again), Settle(lane, again, again=True, tries=tries)),
        (sweep, Sweep(lane, since, tries)),
        (fold and not sweep, Look(lane, follows, since, tries)),
        (thresholds, Evaluate(lane, tries)),
        (verify, Verify(lane, tries)),
    ]
    return [job for wanted, job in jobs if wanted]
