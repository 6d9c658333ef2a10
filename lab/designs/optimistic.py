"""Design 2: optimistic concurrency control, a read and then a write on the condition that nothing
has changed.

Promises: no change overwrites another in one Region; limits hold, because the value is known before
it is written. With an entity tag (every writer leaves its own) a writer that got no answer looks
again, and knows its write by its tag.
Limits: two requests a change, and every writer but one at a time fails and tries again after a
pause. A writer whose tag was replaced before it looked cannot know whether it had counted: that is
OutcomeUnknown, and who sends the change again may count it twice. On the value itself not even a
tag tells. The SDK must not retry: it would hide that a failed condition may be one's own success.
Regions overwrite each other.
Source:
docs.aws.amazon.com/amazondynamodb/latest/developerguide/BestPractices_OptimisticLocking.html
"""

from dataclasses import dataclass
from typing import ClassVar

from lab.designs.design import (
    TRIES_MAX,
    VALUE,
    Claims,
    Contended,
    Memory,
    Outcome,
    SingleItem,
    integer,
    pause,
    text,
)
from ledger.core.actions import Add, Set
from ledger.core.conditions import Absent, Equals, Value
from ledger.core.decoding import number
from ledger.core.errors import OutcomeUnknown
from ledger.core.requests import Get, Item, Program, Update

TAG = "tag"


@dataclass(frozen=True, kw_only=True)
class EntityTag(SingleItem):
    """The tag is the key of the change that was made last."""

    name: str = "optimistic, entity tag"
    sdk_attempts: int = 1
    claims: ClassVar = Claims(memory=Memory(writes=0), limit="hard")

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        unknown: OutcomeUnknown | None = None
        written_over: Value | None = None
        for attempt in range(TRIES_MAX):
            item: Item | None = yield Get(self.item_key(counter, shard))
            tag = (item or {}).get(TAG)
            if tag == text(key):
                return "recorded" if attempt else "replayed"
            if unknown is not None and tag != written_over:
                raise unknown  # another was last: before ours or after it?
            if not self.fits(integer(item, VALUE), change):
                return "refused"
            written_over = tag
            update = (Add(VALUE, change), Set(TAG, text(key)))
            same = Absent(TAG) if tag is None else Equals(TAG, tag)
            try:
                refused: Item | None = yield Update(
                    self.item_key(counter, shard), update, condition=same
                )
                if refused is None:
                    return "recorded"
            except OutcomeUnknown as error:
                unknown = error
            yield pause(attempt)
        raise unknown or Contended(
            f"{counter} had changed at each of {TRIES_MAX} tries. Nothing was written."
        )


@dataclass(frozen=True, kw_only=True)
class OnValue(SingleItem):
    """The condition is that the value is still the one that was read.

    That it came back to it does no harm.
    """

    name: str = "optimistic, on the value"
    sdk_attempts: int = 1
    claims: ClassVar = Claims(limit="hard")

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        for attempt in range(TRIES_MAX):
            item: Item | None = yield Get(self.item_key(counter, shard))
            if not self.fits(integer(item, VALUE), change):
                return "refused"
            same = Absent(VALUE) if item is None else Equals(VALUE, number(integer(item, VALUE)))
            refused: Item | None = yield Update(
                self.item_key(counter, shard), (Add(VALUE, change),), condition=same
            )
            if refused is None:
                return "recorded"
            yield pause(attempt)
        raise Contended(f"{counter} had changed at each of {TRIES_MAX} tries. Nothing was written.")
