"""Designs 2 and 3: optimistic concurrency control, a read and then a write on the condition that
nothing has changed.

Promises of both: no change overwrites another in one Region; limits hold, because the value is
known before it is written. With an entity tag (every writer leaves its own) a writer that got no
answer looks again, and knows its write by its tag. With the keys of the last writers in the item a
change that is delivered again finds its own key, too, and counts once, as long as no more than
`keep` others have written since.
Limits of both: two requests a change, and every writer but one at a time fails and tries again
after a pause. Regions overwrite each other, their lists too.
Of the tag: a writer whose tag was replaced before it looked cannot know whether it had counted:
that is OutcomeUnknown, and who sends the change again may count it twice. On the value itself not
even a tag tells. The SDK must not retry: it would hide that a failed condition may be one's own
success.
Of the keys: an item that is larger by `keep` keys at every write and read. A change that comes back
after `keep` others counts twice. What the key stood for is not kept.
Sources (of the tag, of the keys):
docs.aws.amazon.com/amazondynamodb/latest/developerguide/BestPractices_OptimisticLocking.html,
https://aws.amazon.com/blogs/database/implement-resource-counters-with-amazon-dynamodb/
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
from ledger.core.actions import Action, Add, Set
from ledger.core.conditions import Absent, Condition, Equals
from ledger.core.decoding import number
from ledger.core.errors import OutcomeUnknown
from ledger.core.requests import Get, Item, Program, Update

TAG, RECENT, VERSION = "tag", "recent", "version"


@dataclass(frozen=True, kw_only=True)
class Optimistic(SingleItem):
    """What the three have in common: they look, and write what they saw, changed."""

    def has(self, item: Item, key: str) -> bool:
        """Whether the item says that this change was made."""
        return False

    def is_in_doubt(self, item: Item, before: Item) -> bool:
        """Whether a write over `before` that got no answer may have been made, and overwritten."""
        return False

    def write(self, item: Item, key: str) -> tuple[Condition, tuple[Action, ...]]:
        """Whether nothing has changed, and what is written beside the value."""
        raise NotImplementedError

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        unknown: OutcomeUnknown | None = None
        before: Item = {}
        for attempt in range(TRIES_MAX):
            there: Item | None = yield Get(self.item_key(counter, shard))
            item = there or {}
            if self.has(item, key):
                return "recorded" if attempt else "replayed"
            if unknown is not None and self.is_in_doubt(item, before):
                raise unknown
            if not self.fits(integer(item, VALUE), change):
                return "refused"
            before, (same, more) = item, self.write(item, key)
            update = (Add(VALUE, change), *more)
            try:
                refused: Item | None = yield Update(
                    self.item_key(counter, shard), update, condition=same
                )
                if refused is None:
                    return "recorded"
            except OutcomeUnknown as error:
                if not more:  # nothing in the item would tell
                    raise
                unknown = error
            yield pause(attempt)
        raise unknown or Contended(
            f"{counter} had changed at each of {TRIES_MAX} tries. Nothing was written."
        )


@dataclass(frozen=True, kw_only=True)
class EntityTag(Optimistic):
    """The tag is the key of the change that was made last."""

    name: str = "optimistic, entity tag"
    sdk_attempts: int = 1
    claims: ClassVar = Claims(memory=Memory(writes=0), limit="hard")

    def has(self, item: Item, key: str) -> bool:
        return item.get(TAG) == text(key)

    def is_in_doubt(self, item: Item, before: Item) -> bool:
        return item.get(TAG) != before.get(TAG)  # another was last: before ours or after it?

    def write(self, item: Item, key: str) -> tuple[Condition, tuple[Action, ...]]:
        same = Equals(TAG, item[TAG]) if TAG in item else Absent(TAG)
        return same, (Set(TAG, text(key)),)


@dataclass(frozen=True, kw_only=True)
class OnValue(Optimistic):
    """The condition is that the value is still the one that was read.

    That it came back to it does no harm.
    """

    name: str = "optimistic, on the value"
    sdk_attempts: int = 1
    claims: ClassVar = Claims(limit="hard")

    def write(self, item: Item, key: str) -> tuple[Condition, tuple[Action, ...]]:
        return Equals(VALUE, number(integer(item, VALUE))) if item else Absent(VALUE), ()


@dataclass(frozen=True, kw_only=True)
class OptimisticHistory(Optimistic):
    """Whoever got no answer finds its key at the next look; or it finds the same version, and one
    of its two writes fails.
    """

    name: str = "optimistic with history"
    keep: int = 100

    @property
    def claims(self) -> Claims:
        return Claims(memory=Memory(writes=self.keep - 1), limit="hard")

    def has(self, item: Item, key: str) -> bool:
        return text(key) in self._recent(item)

    def write(self, item: Item, key: str) -> tuple[Condition, tuple[Action, ...]]:
        version = integer(item, VERSION)
        same = Equals(VERSION, number(version)) if version else Absent(VERSION)
        recent = {"L": [*self._recent(item), text(key)][-self.keep :]}
        return same, (Set(RECENT, recent), Set(VERSION, number(version + 1)))

    @staticmethod
    def _recent(item: Item) -> list[Item]:
        recent: list[Item] = item.get(RECENT, {"L": []})["L"]
        return recent
