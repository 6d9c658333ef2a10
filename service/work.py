"""The work queue: its message, and putting messages there.

Rule 1: The message is {"lane": "<Region>#<shard>#<counter>"}: look at the lane, and fold it if that is due. What else
it may say is in `Work`; docs/compaction.md has it for other programs.
Rule 2: A message names a lane of this Region or is refused.
Rule 3: Unknown fields are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from compactor.named import Named
from ledger import items
from ledger.dynamo import failures
from ledger.errors import LedgerError
from ledger.ranges import VERSION_MAX
from ledger.values import Lane

MESSAGES_MAX = 10
"""Of one SendMessageBatch."""

NAMES_MAX = 100
"""Sort keys in each list of a message, so that it has 20 KB at most."""

DELAY_S_MAX = 900
"""The longest delay of a message: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
sqs-message-timers.html"""

VERIFY_S = 300
"""After which a lane is verified that is visited now: in one batch the two would be one message again."""

KEY_MAX = 64
"""Characters of the longest sort key of an item that holds changes; a pack's has 59."""

TRIES_MAX = 10**6

FLAGS = {"fold": True, "sweep": False, "verify": False, "thresholds": False}
"""What a message is taken to say where it does not."""


class InvalidWork(LedgerError):
    """A message of the work queue names no lane of this Region. Nothing was read or written. It goes to the DLQ."""


NOTHING = Named()


@dataclass(frozen=True, slots=True)
class Work:
    """fold: look, and fold if that is due. late: items that came late, to be settled by name. again: those of them that
    were above the watermark once. sweep: look at everything. verify: recount. thresholds: evaluate the counter's.

    follows: the version that the visit before it left, of a lane so busy that its visits follow each other. since: the
    sort key behind which a visit of everything goes on, because one before it was stopped there. tries: how often it
    was sent again.
    """

    lane: Lane
    late: Named = NOTHING
    again: Named = NOTHING
    fold: bool = True
    sweep: bool = False
    verify: bool = False
    thresholds: bool = False
    follows: int | None = None
    since: str | None = None
    tries: int = 0

    @property
    def only_folds(self) -> bool:
        """Whether the next ring, or the sweep, asks for all that it asks for."""
        return replace(self, follows=None, since=None, tries=0) == Work(self.lane)

    @property
    def only_verifies(self) -> bool:
        return self.verify and not (self.fold or self.sweep or self.late or self.again or self.thresholds)

    def apart(self) -> list[Work]:
        """The same as works that name NAMES_MAX items each."""
        late, again, most = self.late.keys, self.again.keys, NAMES_MAX
        first = replace(self, late=replace(self.late, keys=late[:most]), again=replace(self.again, keys=again[:most]))
        starts = range(most, max(len(late), len(again)), most)
        named = ((Named(late[n : n + most]), Named(again[n : n + most])) for n in starts)
        return [first, *(Work(self.lane, *names, fold=False, tries=self.tries) for names in named)]

    def to_json(self) -> str:
        said: dict[str, Any] = {"lane": str(self.lane)}
        for name in ("late", "again"):
            named: Named = getattr(self, name)
            said |= {name: list(named.keys)} if named.keys else {}
            said |= {f"{name}_between": list(map(list, named.between))} if named.between else {}
        said |= {} if self.fold else {"fold": False}
        said |= {name: True for name in ("sweep", "verify", "thresholds") if getattr(self, name)}
        said |= {"follows": self.follows} if self.follows is not None else {}
        said |= {"since": self.since} if self.since is not None else {}
        return json.dumps(said | ({"tries": self.tries} if self.tries else {}))

    @classmethod
    def from_json(cls, body: str, region: str) -> Work:
        """Raises InvalidWork."""
        try:
            given: Any = json.loads(body)
            lane = Lane.parse(given["lane"])
            if lane.region != region:
                raise InvalidWork(f"{lane} is not a lane of {region}. Its own Region's compactor visits it.")
            said: dict[str, Any] = {name: _flag(given.get(name, usual)) for name, usual in FLAGS.items()}
            for name in ("late", "again"):
                said[name] = _named(given.get(name, []), given.get(f"{name}_between", []))
            follows = None if given.get("follows") is None else _number(given["follows"], VERSION_MAX)
            since = None if given.get("since") is None else _sort_key(given["since"])
            return cls(lane, **said, follows=follows, since=since, tries=_number(given.get("tries", 0), TRIES_MAX))
        except InvalidWork:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, LedgerError) as error:
            why = f"A work message is JSON with a lane, as docs/compaction.md says, not {ascii(body)[:200]}"
            raise InvalidWork(f"{why}: {type(error).__name__}.") from None

    def __or__(self, other: Work) -> Work:
        """What both ask for, of one lane."""
        folds = [each.follows for each in (self, other) if each.fold]
        plain = not folds or None in folds  # one that follows nothing folds in any case
        begins = [each.since for each in (self, other) if each.fold or each.sweep]
        return replace(
            self,
            late=self.late | other.late,
            again=self.again | other.again,
            fold=self.fold or other.fold,
            sweep=self.sweep or other.sweep,
            verify=self.verify or other.verify,
            thresholds=self.thresholds or other.thresholds,
            follows=None if plain else max(each for each in folds if each is not None),
            since=None if None in begins else min(filter(None, begins), default=None),
            tries=max(self.tries, other.tries),
        )


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


def _number(given: Any, most: int) -> int:
    if type(given) is not int or not 0 <= given <= most:
        raise ValueError(given)
    return given


@dataclass(frozen=True, slots=True)
class Message:
    """delay_s: until it can be received, at most DELAY_S_MAX."""

    work: Work
    delay_s: int = 0


def verify_of(lane: Lane) -> Message:
    """Verify is a message of its own: it may take all the time there is."""
    return Message(Work(lane, fold=False, verify=True), VERIFY_S)


@dataclass(frozen=True, slots=True)
class Send:
    """Put messages on the work queue. Answer: for each, in order, None, or the error for which it may not be there."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Bury:
    """Put a message that only a person can help on the DLQ. Answer: None. Raises the TableErrors."""

    body: str


class WorkQueue:
    """Answers Send and Bury from SQS queues."""

    def __init__(self, url: str, client: Any, dlq_url: str | None = None) -> None:
        self._url, self._dlq_url = url, dlq_url
        self._client = client

    def answer(self, request: Send | Bury, /) -> Any:
        if isinstance(request, Bury):
            return self._asked("send_message", QueueUrl=self._dlq_url, MessageBody=request.body) and None
        answers: list[LedgerError | None] = []
        for start in range(0, len(request.messages), MESSAGES_MAX):
            answers += self._put(request.messages[start : start + MESSAGES_MAX])
        return tuple(answers)

    def _put(self, messages: Iterable[Message]) -> list[LedgerError | None]:
        entries = [
            {"Id": str(n), "MessageBody": message.work.to_json(), "DelaySeconds": min(message.delay_s, DELAY_S_MAX)}
            for n, message in enumerate(messages)
        ]
        try:
            answer = self._asked("send_message_batch", QueueUrl=self._url, Entries=entries)
        except LedgerError as error:
            return [error] * len(entries)
        put = {each["Id"] for each in answer.get("Successful", ())}
        lost = NotPut("The work queue did not confirm a message. Nothing else was written.")
        return [None if entry["Id"] in put else lost for entry in entries]

    def _asked(self, operation: str, **arguments: Any) -> Any:
        try:
            return getattr(self._client, operation)(**arguments)
        except (ClientError, BotoCoreError) as failure:
            raise failures.error_of(failure, operation, True, "the work queue") from failure


class NotPut(LedgerError):
    """A message may not be on the work queue. Who sends it sends it again."""
