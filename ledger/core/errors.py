"""Every error that this library raises on purpose. With a + it is an Again, too.

LedgerError              every error below
  Again                  call again, later and slower
    NotQueued            the queue did not confirm a message
    NotYetReplicated     this Region lacks a segment yet
    OutOfReach           another Region may have the rights, and did not answer
    TransferStuck        a transfer's debit counts, its credit does not
    GaveUp               others kept writing the item
  InvalidInput           an argument is not acceptable; a ValueError, too
    ReadTooLarge         a read needs more than its reader may take
    InvalidCounter       the name of a counter
    InvalidChange        the size of a change
    InvalidKey           an idempotency key
    InvalidTime          a time
    InvalidSettings      settings that contradict each other
    InvalidMessage       a change as JSON
  TableError             the table did not answer as it should
    OutcomeUnknown +     a write may or may not have been applied
    Unavailable +        no answer, and nothing written
    Throttled +          too little capacity
    TransactionConflict +  others held the item
    NotAllowed           credentials, or their rights
    TableMissing         no such table here
    TableMismatch        the table refused the form of a request
    ItemTooLarge         more than 400 KB
  TokenConflict          the key names another change
  DamagedItem            an item is not what its key says
  LaneDamaged            a checkpoint and its segments contradict each other
  SettingsMismatch       the settings contradict the table's shape
  LaneUnread             nobody reads the lane
  ReadTooSlow            a read took too long, several times
  LimitReached           a change or a hold would pass a limit
  PeriodOver             the counter's period is over
  HoldEnded              the hold was ended before
  NoSuchHold             nobody granted the hold
  LimitMismatch          the limit has other sides than the gate
  GateLost               a gate is gone that decided before

Rule 1: A docstring and a message say what happened, whether anything was written, and what to do
next, in this order.
Rule 2: An error that concerns one change carries it as `delta`, ready for `Ledger.apply`. One that
a public call raises or answers carries as `cost` what the call cost, as a receipt does.
"""

from copyreg import __newobj__  # type: ignore[attr-defined]
from datetime import datetime
from typing import Any


def shown(value: object, most: int = 40) -> str:
    """What the caller passed, as a message shows it: short, in ASCII, with a … where it is cut.

    It never fails.
    """
    try:
        text = ascii(value)
        return text if len(text) <= most else f"{text[: most - 1]}…"
    except Exception:  # a number too long to print, a list too deep, a __repr__ that fails
        return f"an object of {ascii(type(value).__name__)[1:-1]}"


NOT_WRITTEN = " Nothing was written."
"""A message of InvalidInput says it at its end, or where its `why` does: before what to do."""

SOURCE = "https://github.com/exact-counter/exact-counter"
"""The repository's address, as pyproject.toml has it."""

PAGES = f"{SOURCE}/blob/main/"
"""Stands before `docs/` in a text that names a page: the wheel has no such folder."""


class LedgerError(Exception):
    """The root of the tree.

    `delta`: the Delta that failed, or None. `cost`: the Cost of the call, or None.
    """

    delta: Any = None
    cost: Any = None
    of_read = False
    """The call that raised it only reads."""
    is_decision = False
    """The table decided what the change stands for, so the error is true of each attempt at it."""
    stays = ""
    """What earlier steps of the call left in the table."""

    def leaves(self, what: str) -> None:
        """Note what earlier steps of the call left: the message says that, and no longer that
        nothing was written.
        """
        self.add_note(what)
        self.stays += f" {what}"

    def __str__(self) -> str:
        text = super().__str__()
        if self.of_read:  # that a read wrote nothing says itself
            return text.replace(NOT_WRITTEN, "")
        for denial in (NOT_WRITTEN, " Nothing was decided.") if self.stays else ():
            instead = "" if self.stays in text else self.stays
            text = text.replace(denial, instead, 1).replace(denial, "")
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it as it is, whatever arguments its class takes."""
        return __newobj__, (type(self), *self.args), self.__dict__


class Again(LedgerError):
    """Make the same call again, later and slower: with the same idempotency key and `at` a change
    counts once.

    It is the base of all errors that have no other remedy. Without a key each call makes another
    change: pass the error's `delta` to `apply` instead.
    """


class InvalidInput(LedgerError, ValueError):
    """An argument is not acceptable.

    Nothing was written. Correct the argument: the same call fails again.
    """

    _so = NOT_WRITTEN

    def __init__(self, why: str) -> None:
        super().__init__(why if NOT_WRITTEN in why else f"{why}{self._so}")
        self.why = why.replace(NOT_WRITTEN, "")


class ReadTooLarge(InvalidInput):
    """A read needs more read units than its reader may take, so it was ended. Nothing was written.
    Ask for a shorter time or for fewer entries."""


class InvalidCounter(InvalidInput):
    """A counter's name is not 1 to 256 printable ASCII characters without spaces.

    Nothing was written.
    """


class InvalidChange(InvalidInput):
    """A change is not an `int` of magnitude at most 10**18. Nothing was written."""


class InvalidKey(InvalidInput):
    """An idempotency key is not text of 1 to 1,024 bytes; or you gave a key without `at`, or `at`
    without a key.

    Nothing was written.
    """


class InvalidTime(InvalidInput):
    """A time is not an aware `datetime`, is before 1970, or is more than five minutes ahead. Or the
    `clock` that you gave did not return whole milliseconds since 1970. Nothing was written."""


class InvalidSettings(InvalidInput):
    """Settings are out of range or contradict each other.

    Nothing was sent. The message names the settings.
    """

    _so = ""  # who makes settings sends nothing yet


class InvalidMessage(InvalidInput):
    """A JSON message is no change as the page "Producers" describes it. Nothing was written.
    Correct its sender. `field` names what is wrong, or is None."""

    def __init__(self, why: str, field: str | None = None) -> None:
        super().__init__(why)
        self.field = field


class NotQueued(Again):
    """The queue did not confirm a message, so the message may or may not be in it. Nothing was
    written to the table. Send the same change again, with the same idempotency key and `at`: it
    counts once."""


class TokenConflict(LedgerError):
    """The same counter, key and time already name another change. Nothing was written: that change
    stays.

    For a change that is really new use a new idempotency key. A Region that has not received the
    first change yet accepts the second one: then the last writer wins. If a compactor had folded
    the first one by then, clean and `verify` report the second one.
    counts: the change that counts, where the counter has a limit; else None.
    """

    is_decision = True
    counts: int | None = None


class TableError(LedgerError):
    """The table did not answer a request as it should; the subclass says what is known of it."""


class OutcomeUnknown(TableError, Again):
    """A write may or may not have been applied (a time-out, a lost connection or a 5xx answer).

    After an add, pass `error.delta` to `Ledger.apply`, in any Region, or call again with the same
    idempotency key and `at` if you gave them. A call without a key would be a new change. A
    compactor starts again by itself.
    """

    def __str__(self) -> str:
        apply = "" if self.delta is None else "pass this error's delta to Ledger.apply, or "
        retry = (
            f"To retry, {apply}call again with the same idempotency_key and at if you gave "
            "them: it counts once."
        )
        return f"{super().__str__()} {retry}"


class Unavailable(TableError, Again):
    """A read got no answer; or a write found no connection, so it never left this process; or the
    signature or the token of a request was too old. Nothing was written. The SDK has used up its
    retries: check `region`, `endpoint_url` and what the message names, then call again."""


class Throttled(TableError, Again):
    """The table refused a request, and its retries, for lack of capacity. Nothing was written. Call
    again, slower.

    reasons: what DynamoDB named, such as TableWriteKeyRangeThroughputExceeded (a partition key, so
    one lane), TableWriteAccountLimitExceeded (a quota) or TableWriteMaxOnDemandThroughputExceeded
    (the table's own maximum).
    """

    reasons: tuple[str, ...] = ()


class TransactionConflict(TableError, Again):
    """At each try a transaction held the item, or another Region was writing it (where Regions are
    strongly consistent). Nothing was written. Call again."""


class NotAllowed(TableError):
    """Credentials are missing or lack the permission that the message names.

    Nothing was written. Give this process credentials with that permission.
    """

    is_denied = False
    """The role lacks a permission; else its credentials are missing, wrong or expired.

    A table of your own that raises NotAllowed sets it: after a denial a process goes on without the
    table's shape, else it reads the shape again before each call.
    """


def is_denied(outcome: object) -> bool:
    """Whether it is the error of a role that lacks a permission. Credentials that AWS does not
    accept say nothing of a role, and no other request would do better with them.
    """
    return isinstance(outcome, NotAllowed) and outcome.is_denied


class TableMissing(TableError):
    """There is no such table in this Region.

    Nothing was written. Check `table`, `region` and `endpoint_url`.
    """


class TableMismatch(TableError):
    """The table refused the form of a request.

    Nothing was written. Make a table with the string keys `pk` and `sk`.
    """


class ItemTooLarge(TableError):
    """The item would have more than 400 KB. Nothing was written. No retry helps."""


class DamagedItem(LedgerError):
    """The item `pk`, `sk` is not what its key says. Nothing was written, and no read counts it as
    0.

    Move or correct what a person or another program wrote there. `Compactor.rebuild` recomputes a
    damaged checkpoint; restore a damaged segment from a backup.
    """

    def __init__(self, pk: str, sk: str, why: str) -> None:
        super().__init__(
            f"The item pk={pk!r}, sk={sk!r} is damaged or not ours: {why}. It was left as it is. "
            "Correct or move it."
        )
        self.pk, self.sk, self.why = pk, sk, why


class LaneDamaged(LedgerError):
    """A lane's checkpoint and segments contradict each other. Nothing was written; the compactor
    leaves the lane alone.

    Only a restore, a replica that was made again or somebody who edits the table can cause this.
    Stop the compactor, look at the lane, then call `Compactor.rebuild`. Of a limited counter
    `rebuild` itself raises this error where segments list a token with two outcomes: only a person
    can say which of them counts.
    """


class SettingsMismatch(LedgerError):
    """This process's settings contradict the table's `shape` item. Nothing was written, and no
    value was read.

    Correct the process: with other shards or Regions it would add where nobody reads, or read only
    a part; without a limit it would pass that limit. `ledgerctl init` adds a limit that the shape
    lacks. A table whose Regions are strongly consistent takes limited counters alone. The next call
    reads the shape again.
    """


class LaneUnread(LedgerError):
    """A lane that no reader of these settings looks at holds changes: they are in no value. None of
    them is lost.

    A process added with other `regions` or `shards`, or without the counter's limit. Correct the
    settings that are wrong, then move the changes: the page "A value may be wrong", under
    `lanes-unread`.
    """


class ReadTooSlow(LedgerError):
    """A read took longer than `read_time_max_ms`, several times.

    Nothing was written. Compact, then read again.
    """


class NotYetReplicated(Again):
    """This Region does not hold every segment that its checkpoint counts yet.

    Nothing was written. Call again later.
    """


class LimitReached(LedgerError):
    """A change or a hold would pass a limit, in all Regions together. Nothing of it counts, and
    that is final for its token: the same call is refused again, even when there is room later. A
    new attempt needs a new idempotency key.

    - counter: whose limit it is. limit: the floor or the ceiling in the way.
    - available: how far the value could still go towards it in all Regions together, 0 or more,
      also towards a floor.
    - remembered: whether limit and available come from another call of this process, up to a second
      ago.
    - replayed: whether an earlier call with this token was refused. Then limit and available are
      read again, from the gates as this Region has them; they are None where that read failed, and
      for a counter with more than 100 gates.
    - resets_at: when the next period begins, by UTC (`Period.end` says it for a zone). None for a
      counter without periods, and where that time has passed.
    """

    is_decision = True

    def __init__(
        self,
        *args: object,
        counter: str | None = None,
        limit: int | None = None,
        available: int | None = None,
        remembered: bool = False,
        replayed: bool = False,
        resets_at: datetime | None = None,
    ) -> None:
        super().__init__(*args)
        self.counter, self.limit, self.available = counter, limit, available
        self.remembered, self.replayed, self.resets_at = remembered, replayed, resets_at


class PeriodOver(LedgerError):
    """The counter's period is over, by its name and this clock: it takes no more changes and holds,
    or it can no longer be read, because the table deletes its items. Nothing was written, and no
    further attempt writes. An earlier attempt whose answer was lost may count: its history shows
    it. counter: its name. since: when that began.
    """

    def __init__(self, *args: object, counter: str = "", since: datetime | None = None) -> None:
        super().__init__(*args)
        self.counter, self.since = counter, since


class OutOfReach(Again):
    """The rights here are too few, and a Region that may have more did not answer. Nothing was
    decided. Call again.

    Or a lane that these settings do not know has more, and the message names it: the table got a
    Region or shards after this process started. Then give the process the settings of the table's
    shape first.
    """


class TransferStuck(Again):
    """A transfer's debit counts, its target refused the credit, and its source refused the refund,
    because others took the room meanwhile. Nothing is lost. Make room in the source, then repeat
    the same call until it returns.
    """


class HoldEnded(LedgerError):
    """The hold was captured, released or expired before: `state`.

    `actual`: what counts of it. Nothing was written.
    """

    is_decision = True

    def __init__(self, message: str, state: str = "expired", actual: int = 0) -> None:
        super().__init__(message)
        self.state, self.actual = state, actual


class NoSuchHold(LedgerError):
    """The lane has no such hold: nobody granted it, or its id is damaged.

    Nothing was written. Use `Hold.id`.
    """


class LimitMismatch(LedgerError):
    """This process's limit has other sides than the counter's gate. Or the counter has changes from
    before it had a limit, which no gate decided. Nothing was written. Correct the settings, or
    count under another name.
    """


class GateLost(LedgerError):
    """A lane's gate is gone, though it decided before. Nothing was written. The lane decides
    nothing until it is back.

    Only a restore or somebody who edits the table can do this. Restore its items, then call
    `Compactor.rebuild`: what the gate had decided and not filed is in no other item.
    """


class GaveUp(Again):
    """Others kept writing the item that this call was to write. Nothing is lost.

    A compactor: another compactor was faster, or a commit was still landing. The next run goes on.
    A change or a hold: the gate changed at each of many tries, or more expired holds had to end
    than one call can end. Nothing was decided: call again. A rebuild: a gate changed meanwhile.
    Stop all processes that write it, then rebuild again.
    """
