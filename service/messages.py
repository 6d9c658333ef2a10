"""The message that asks for a job.

Rule 1: A message is JSON and names its job and a lane of this Region (docs/compaction.md), or it is refused. Unknown
fields are ignored.
Rule 2: One that names no job is a look, by hand.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

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
OWN = ("again", "follows", "since", "tries")
"""The fields of a job that stand in its message under their own names."""


class InvalidWork(LedgerError):
    """A message of the work queue asks for no job in a lane of this Region. Nothing was read or written. It goes to the
    DLQ."""


def _sort_key(given: str) -> str:
    if not items.highest_of(given):
        raise ValueError(given)
    return given


SortKey = Annotated[str, Field(max_length=KEY_MAX), AfterValidator(_sort_key)]


class Said(BaseModel):
    """What a message may say."""

    model_config = ConfigDict(strict=True)

    lane: str
    job: str = "look"
    again: bool = False
    follows: int | None = Field(None, ge=0, le=VERSION_MAX)
    since: SortKey | None = None
    tries: int = Field(0, ge=0, le=TRIES_MAX)
    keys: list[SortKey] = []
    between: list[tuple[SortKey, SortKey]] = []


def message_of(job: Job) -> str:
    said: dict[str, Any] = {"job": type(job).__name__.lower(), "lane": str(job.lane)}
    for field in fields(job):
        if field.name in OWN and getattr(job, field.name) != field.default:
            said[field.name] = getattr(job, field.name)
    if isinstance(job, Settle):
        said |= {"keys": job.named.keys} if job.named.keys else {}
        said |= {"between": job.named.between} if job.named.between else {}
    return json.dumps(said)


def job_of(body: str, settings: Settings) -> Job:
    """What a message asks for. Raises InvalidWork."""
    try:
        said = Said.model_validate_json(body)
        lane, kind = Lane.parse(said.lane), JOBS[said.job]
        given = {field.name: getattr(said, field.name) for field in fields(kind) if field.name in OWN}
        if kind is Settle:
            given["named"] = Named.of(said.keys) | Named((), tuple(said.between))
        if lane.region == settings.region:
            return kind(settings.known(lane), **given)
    except (ValueError, KeyError, LedgerError) as error:
        why = f"A work message is JSON with a job and a lane, as docs/compaction.md says, not {ascii(body)[:200]}"
        raise InvalidWork(f"{why}: {type(error).__name__}.") from None
    raise InvalidWork(f"{lane} is not a lane of {settings.region}. Its own Region's compactor visits it.")
