"""The message that requests a job.

Rule 1: A message is JSON and names its job and a lane of this Region (docs/compaction.md), or
`job_of` refuses it. It ignores unknown fields.
Rule 2: A message with a lane alone is a look, by hand. An early version requested several jobs by
flags; `job_of` refuses such a message, because the sweep does the same within a day.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ledger.core import items
from ledger.core.errors import LedgerError, shown
from ledger.core.ranges import VERSION_MAX
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.lane.named import Named
from service.jobs import Evaluate, Job, Look, Settle, Sweep, Verify

KEY_MAX = 64
"""Characters of the longest sort key of an item that holds changes; a pack's has 59."""

TRIES_MAX = 10**6

NOTHING_DONE = "Nothing was read or written."
BY_FLAGS = (
    "A version before 0.1.0 wrote such flags. Delete the message: the sweep does the same "
    "within a day."
)

JOBS: dict[str, type[Job]] = {
    "look": Look,
    "settle": Settle,
    "sweep": Sweep,
    "verify": Verify,
    "evaluate": Evaluate,
}


class InvalidWork(LedgerError):
    """A message of the work queue requests no job in a lane of this Region. Nothing was read or
    written. The compactor puts it on the DLQ."""


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


def job_of(body: str, settings: Settings) -> Job:
    """The job that a message requests. Raises InvalidWork."""
    try:
        said: Any = json.loads(body)
        lane = Lane.parse(said["lane"])
        if lane.region != settings.region:
            where = f"{lane} is not a lane of {settings.region}. {NOTHING_DONE}"
            raise InvalidWork(f"{where} Its own Region's compactor visits it: delete the message.")
        if "job" not in said and len(said) > 1:
            raise InvalidWork(
                f"{lane}: no job, but {shown(sorted(said))}. {NOTHING_DONE} {BY_FLAGS}"
            )
        kind = JOBS[said.get("job", "look")]
        names = [
            field.name for field in fields(kind) if field.name in READERS and field.name in said
        ]
        given: dict[str, Any] = {name: READERS[name](said[name]) for name in names}
        if kind is Settle:
            given["named"] = _named(said.get("keys", []), said.get("between", []))
        return kind(settings.known(lane), **given)
    except InvalidWork:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, LedgerError) as error:
        why = (
            f"This is no work message ({type(error).__name__}): {ascii(body)[:200]}. {NOTHING_DONE}"
        )
        raise InvalidWork(
            f"{why} Send JSON with a job and a lane, as docs/compaction.md says."
        ) from None


def _named(keys: Any, between: Any) -> Named:
    if not all(isinstance(each, list) for each in (keys, between, *between)) or any(
        len(pair) != 2 for pair in between
    ):
        raise ValueError(between)
    for key in (*keys, *(key for pair in between for key in pair)):
        _sort_key(key)
    return Named.of(keys) | Named((), tuple((first, last) for first, last in between))


def _sort_key(given: Any) -> str:
    if not (isinstance(given, str) and len(given) <= KEY_MAX and items.highest_of(given)):
        raise ValueError(given)
    return given


def _flag(given: Any) -> bool:
    if type(given) is not bool:
        raise ValueError(given)
    return given


def _whole(most: int) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        if type(given) is not int or not 0 <= given <= most:
            raise ValueError(given)
        return given

    return read


READERS: dict[str, Callable[[Any], Any]] = {
    "again": _flag,
    "follows": _whole(VERSION_MAX),
    "since": _sort_key,
    "tries": _whole(TRIES_MAX),
}
"""By field of a job, what reads the field of that name in a message.

Each raises ValueError or TypeError.
"""
