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
from ledger import failures, items
from ledger.errors import LedgerError
from ledger.values import VERSION_MAX, Lane

MESSAGES_MAX = 10
"""Of one SendMessageBatch. A message has 20 KB at most: KEYS_MAX sort keys in two lists."""

DELAY_S_MAX = 900
"""The longest delay of a message: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
sqs-message-timers.html"""

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

    follows: the version that the visit before it left, of a lane so busy that its visits follow each other. tries: how
    often it was sent again.
    """

    lane: Lane
    late: Named = NOTHING
    again: Named = NOTHING
    fold: bool = True
    sweep: bool = False
    verify: bool = False
    thresholds: bool = False
    follows: int | None = None
    tries: int = 0

    @property
    def looks(self) -> bool:
        """Whether it is about what is in the lane, and not about the counter's value alone."""
        return self.fold or self.sweep or self.verify or bool(self.late or self.again)

    def to_json(self) -> str:
        said: dict[str, Any] = {"lane": str(self.lane)}
        for name in ("late", "again"):
            named: Named = getattr(self, name)
            said |= {name: list(named.keys)} if named.keys else {}
            said |= {f"{name}_between": list(map(list, named.between))} if named.between else {}
        said |= {} if self.fold else {"fold": False}
        said |= {name: True for name in ("sweep", "verify", "thresholds") if getattr(self, name)}
        said |= {"follows": self.follows} if self.follows is not None else {}
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
            return cls(lane, **said, follows=follows, tries=_number(given.get("tries", 0), TRIES_MAX))
        except InvalidWork:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, LedgerError) as error:
            why = f"A work message is JSON with a lane, as docs/compaction.md says, not {ascii(body)[:200]}"
            raise InvalidWork(f"{why}: {type(error).__name__}.") from None

    def __or__(self, other: Work) -> Work:
        """What both ask for, of one lane."""
        folds = [each.follows for each in (self, other) if each.fold]
        plain = not folds or None in folds  # one that follows nothing folds in any case
        return replace(
            self,
            late=self.late | other.late,
            again=self.again | other.again,
            fold=self.fold or other.fold,
            sweep=self.sweep or other.sweep,
            verify=self.verify or other.verify,
            thresholds=self.thresholds or other.thresholds,
            follows=None if plain else max(each for each in folds if each is not None),
            tries=max(self.tries, other.tries),
        )


def _named(keys: Any, between: Any) -> Named:
    if not all(isinstance(each, list) for each in (keys, between, *between)) or any(len(pair) != 2 for pair in between):
        raise ValueError(between)
    given = [*keys, *(key for pair in between for key in pair)]
    if not all(isinstance(key, str) and len(key) <= KEY_MAX and items.highest_of(key) for key in given):
        raise ValueError(given)
    return Named.of(keys) | Named((), tuple((first, last) for first, last in between))


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
