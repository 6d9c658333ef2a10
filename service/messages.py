"""The message that asks for a job.

Rule 1: A message is JSON and names its job and a lane of this Region (docs/compaction.md), or it is refused. Unknown
fields are ignored.
Rule 2: One that names no job is by hand, or of the version before, because a deployment finds such on the queue: flags
ask for several jobs, and {"lane": "<lane>"} for a look. Nobody writes them any more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from compactor.named import Named
from ledger import items
from ledger.errors import LedgerError
from ledger.ranges import VERSION_MAX
from ledger.settings import Settings
from ledger.values import Lane
from service.jobs import Evaluate, Job, Look, Settle, Sweep, Verify

KEY_MAX = 64
"""Characters of the longest sort key of an item that holds changes; a pack's has 59."""

TRIES_MAX = 10**6

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
        return [_job(said, lane)] if "job" in said else _jobs_by_flags(said, lane)
    except InvalidWork:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, LedgerError) as error:
        why = f"A work message is JSON with a job and a lane, as docs/compaction.md says, not {ascii(body)[:200]}"
        raise InvalidWork(f"{why}: {type(error).__name__}.") from None


def _job(said: Mapping[str, Any], lane: Lane) -> Job:
    kind = JOBS[said["job"]]
    names = [field.name for field in fields(kind) if field.name in READERS and field.name in said]
    given: dict[str, Any] = {name: READERS[name](said[name]) for name in names}
    if kind is Settle:
        given["named"] = _named(said.get("keys", []), said.get("between", []))
    return kind(lane, **given)


def _jobs_by_flags(said: Mapping[str, Any], lane: Lane) -> list[Job]:
    """`fold` is true where it is missing. A sweep looks, too."""
    late, again = (_named(said.get(name, []), said.get(f"{name}_between", [])) for name in ("late", "again"))
    fold, sweep, verify, evaluate = (
        _flag(said.get(name, name == "fold")) for name in ("fold", "sweep", "verify", "thresholds")
    )
    follows, since = (None if said.get(name) is None else READERS[name](said[name]) for name in ("follows", "since"))
    tries = READERS["tries"](said.get("tries", 0))
    jobs: list[tuple[bool, Job]] = [
        (bool(late), Settle(lane, late, tries=tries)),
        (bool(again), Settle(lane, again, again=True, tries=tries)),
        (sweep, Sweep(lane, since, tries)),
        (fold and not sweep, Look(lane, follows, since, tries)),
        (evaluate, Evaluate(lane, tries)),
        (verify, Verify(lane, tries)),
    ]
    return [job for wanted, job in jobs if wanted]


def _named(keys: Any, between: Any) -> Named:
    if not all(isinstance(each, list) for each in (keys, between, *between)) or any(len(pair) != 2 for pair in between):
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
"""The fields of a job that stand in its message under their own names; each raises ValueError or TypeError."""
