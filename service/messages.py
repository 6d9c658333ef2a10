"""The message that asks for a job.

Rule 1: A message is JSON and names its job and a lane of this Region (docs/compaction.md), or it is refused. Unknown
fields are ignored.
Rule 2: One that names no job is of the version before, or by hand: old_messages.py says what jobs it asks for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from ledger.errors import LedgerError
from ledger.ranges import VERSION_MAX
from ledger.settings import Settings
from ledger.values import Lane
from service import old_messages
from service.fields import TRIES_MAX, flag, named_of, sort_key, whole
from service.jobs import Evaluate, Job, Look, Settle, Sweep, Verify

JOBS: dict[str, type[Job]] = {"look": Look, "settle": Settle, "sweep": Sweep, "verify": Verify, "evaluate": Evaluate}


class InvalidWork(LedgerError):
    """A message of the work queue asks for no job in a lane of this Region. Nothing was read or written. It goes to the
    DLQ."""


def message_of(job: Job) -> str:
    said: dict[str, Any] = {"job": type(job).__name__.lower(), "lane": str(job.lane)}
    for field in fields(job):
        value = getattr(job, field.name)
        if field.name in READERS and value != field.default:
            said[field.name] = value
    if isinstance(job, Settle):
        said |= {"keys": job.named.keys} if job.named.keys else {}
        said |= {"between": job.named.between} if job.named.between else {}
    return json.dumps(said)


def jobs_of(body: str, settings: Settings) -> list[Job]:
    """What a message asks for. Raises InvalidWork."""
    try:
        said: Any = json.loads(body)
        lane = Lane.parse(said["lane"])
        if lane.region != settings.region:
            raise InvalidWork(f"{lane} is not a lane of {settings.region}. Its own Region's compactor visits it.")
        lane = settings.known(lane)
        return [_job(said, lane)] if "job" in said else old_messages.jobs_of(said, lane)
    except InvalidWork:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, LedgerError) as error:
        why = f"A work message is JSON with a job and a lane, as docs/compaction.md says, not {ascii(body)[:200]}"
        raise InvalidWork(f"{why}: {type(error).__name__}.") from None


def _job(said: Mapping[str, Any], lane: Lane) -> Job:
    kind = JOBS[said["job"]]
    given: dict[str, Any] = {
        field.name: READERS[field.name](said[field.name])
        for field in fields(kind)
        if field.name in READERS and field.name in said
    }
    if kind is Settle:
        given["named"] = named_of(said.get("keys", []), said.get("between", []))
    return kind(lane, **given)


READERS: dict[str, Callable[[Any], Any]] = {
    "again": flag,
    "follows": whole(VERSION_MAX),
    "since": sort_key,
    "tries": whole(TRIES_MAX),
}
"""The fields of a job that stand in its message under their own names, and how each is read."""
