"""Every error that this library raises on purpose.

Rule 1: A docstring says what happened, whether anything was written, and what to do next.
Rule 2: A caller who catches `LedgerError` has caught them all.
Rule 3: An error that concerns one change carries it as `delta`, ready for `Ledger.apply`.
Rule 4: An error that a public call raises or answers carries as `cost` what the call cost, as a receipt does.
Rule 5: An error of a call that only reads says nothing of writing.
"""

from __future__ import annotations

import copyreg
from datetime import datetime
from typing import Any


def shown(value: object, most: int = 40) -> str:
    """What was passed, as a message shows it: short, ASCII, a … where it was cut, and never a failure of its own."""
    try:
        text = ascii(value)
        return text if len(text) <= most else f"{text[: most - 1]}…"
    except Exception:  # a number too long to print, a list too deep, a __repr__ that fails
        return f"an object of {ascii(type(value).__name__)[1:-1]}"


NOT_WRITTEN = " Nothing was written."


class LedgerError(Exception):
    """The root of the tree. `delta`: the Delta it concerns, or None. `cost`: the Cost of the call, or None."""

    delta: Any = None
    cost: Any = None
    of_read = False
    """The call that raised it only reads."""

    def __str__(self) -> str:
        text = super().__str__()
        return text.replace(NOT_WRITTEN, "") if self.of_read else text

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as it is, whatever its class takes to be made."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class Again(LedgerError):
    """Make the same call again, later and slower: with the same idempotency key and `at` a change counts once.

    The base of all errors that ask for nothing else. A call without a key is another change each time: apply `delta`.
    """


class InvalidInput(LedgerError, ValueError):
    """An argument is not acceptable. Nothing was written. Correct it; a retry of the same call fails again."""

    _so = NOT_WRITTEN

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}{self._so}")
        self.why = why


class InvalidCounter(InvalidInput):
    """A counter's name is not 1 to 256 printable ASCII characters without spaces. Nothing was written."""


class InvalidChange(InvalidInput):
    """A change is not an `int` of magnitude at most 10**18. Nothing was written."""


class InvalidKey(InvalidInput):
    """An idempotency key is not text of 1 to 1,024 bytes, or `at` and it did not come together. Nothing was written."""


class InvalidTime(InvalidInput):
    """A time is not an aware `datetime`, is before 1970, or is more than five minutes ahead. Nothing was written.
    Or the given `clock` did not answer whole milliseconds since 1970."""


class InvalidSettings(InvalidInput):
    """Settings are out of range or contradict each other. Nothing was sent. The message names the settings."""

    _so = ""  # whoever makes settings asked for nothing to be written


class InvalidMessage(InvalidInput):
    """A JSON message is no change as docs/producers.md describes it. `field` names what is wrong, or is None. Nothing
    was written. Correct its sender."""

    def __init__(self, why: str, field: str | None = None) -> None:
        super().__init__(why)
        self.field = field


class NotQueued(Again):
    """The queue did not confirm a message; it may or may not be in it. Nothing was written to the table by this call.
    Send the same change again, with the same idempotency key and `at`: it counts once."""


class TokenConflict(LedgerError):
    """The same counter, key and time was already used for another change. Nothing was written: that change is kept.

    Use a new idempotency key for what is really a new change. A Region that has not received the first one accepts the
    second: the last writer wins, unless the first was folded before; then clean and `verify` report the other.
    """


class TableError(LedgerError):
    """The table did not do what was asked; the subclasses say what is known."""


class OutcomeUnknown(TableError, Again):
    """A write may or may not have been applied (a time-out, a lost connection or a 5xx answer).

    Of an add: pass `error.delta` to `Ledger.apply`, here or in another Region, or call again with the same idempotency
    key and `at` if you gave them. A call without a key would be a new change. A compactor starts again next time.
    """

    def __str__(self) -> str:
        retry = (
            " To retry, pass this error's delta to Ledger.apply, or call again with the same idempotency_key and at if "
            "you gave them: it counts once."
        )
        return f"{super().__str__()}{retry if self.delta is not None else ''}"


class Unavailable(TableError, Again):
    """A read got no answer, or a write found no connection and was never sent. Nothing was written. Check `region` and
    `endpoint_url`; the retries of the SDK are already used up."""


class Throttled(TableError, Again):
    """The table refused a request for lack of capacity, also after retries. Nothing was written. Call again, slower."""


class TransactionConflict(TableError, Again):
    """A request kept meeting a transaction on the same item, or a write of it in another Region where Regions are
    strongly consistent. Nothing was written. Call again."""


class NotAllowed(TableError):
    """Credentials are missing or lack the permission that the message names. Nothing was written."""


class TableMissing(TableError):
    """There is no such table in this Region. Nothing was written. Check `table`, `region` and `endpoint_url`."""


class TableMismatch(TableError):
    """The table refused the shape of a request. Nothing was written. It needs the string keys `pk` and `sk`."""


class ItemTooLarge(TableError):
    """The item would have more than 400 KB. Nothing was written, and no retry helps."""


class DamagedItem(LedgerError):
    """The item `pk`, `sk` is not what its key says it is. Nothing was written, and it is never read as 0.

    What was written there by hand or by another program must be moved or put right. A damaged checkpoint is recomputed
    by `Compactor.rebuild`; a damaged segment must come from a backup.
    """

    def __init__(self, pk: str, sk: str, why: str) -> None:
        super().__init__(f"The item pk={pk!r}, sk={sk!r} is damaged or not ours: {why}.")
        self.pk, self.sk, self.why = pk, sk, why


class LaneDamaged(LedgerError):
    """A lane's checkpoint and segments contradict each other. Nothing was written; the compactor leaves the lane alone.

    Only a restore, a replica that was made again or a hand in the table can do this. Stop the compactor, look at the
    lane, then `Compactor.rebuild`. Raised by that, of a lane with a gate: a token is listed with two outcomes, and only
    a person can say which of them counts.
    """


class SettingsMismatch(LedgerError):
    """This process's settings contradict the table's `shape` item. Nothing was written, and no value was read.

    Correct the process: with other shards or Regions it would add where nobody reads, or read only a part; without a
    limit it would pass it. A limit that the shape lacks `ledgerctl init` adds; a table whose Regions are strongly
    consistent takes limited counters alone. Asked again at the next call.
    """


class LaneUnread(LedgerError):
    """Changes stand in a lane that no reader of these settings looks at: they are in no value. None of them is lost.

    Somebody added with other `regions` or `shards`, or without the counter's limit. Correct whose settings are wrong,
    then move the changes: docs/operations/values.md, `lanes-unread`.
    """


class ReadTooSlow(LedgerError):
    """A read took longer than `read_time_max_ms`, several times over. Nothing was written. Compact, then read again."""


class NotYetReplicated(Again):
    """This Region does not hold every segment that its checkpoint counts. Nothing was written. Ask again later."""


class LimitReached(LedgerError):
    """A limit is in the way of a change or a hold, in all Regions together. Nothing counts, and that is final for its
    token: the same call is refused again, whatever comes back meanwhile. A new attempt needs a new idempotency key.

    counter: whose limit it is. limit: the floor or the ceiling in the way. available: how far the value could still go
    towards it in all Regions together, from 0 up, also towards a floor. Both are None of a refusal that is repeated.
    remembered: whether this process asked for both up to a second before, for another call. resets_at: of a period,
    when the next one begins, by UTC (`Period.end` says it of a zone); else None.
    """

    def __init__(
        self,
        *args: object,
        counter: str | None = None,
        limit: int | None = None,
        available: int | None = None,
        remembered: bool = False,
        resets_at: datetime | None = None,
    ) -> None:
        super().__init__(*args)
        self.counter, self.limit, self.available = counter, limit, available
        self.remembered, self.resets_at = remembered, resets_at


class PeriodOver(LedgerError):
    """The counter's period is over, by its name and this clock: it takes no more changes and holds, or nobody may look
    at it, because its items are deleted. Nothing was written, now or by a further attempt. An earlier attempt, whose
    answer was lost, may count: the history says. `counter` names it, `since` says from when on.
    """

    def __init__(self, *args: object, counter: str = "", since: datetime | None = None) -> None:
        super().__init__(*args)
        self.counter, self.since = counter, since


class OutOfReach(Again):
    """The rights here are too few, and a Region that may have more could not be asked. Nothing was decided."""


class TransferStuck(Again):
    """A transfer's debit counts, its credit was refused, and so was giving back: the source's room was taken meanwhile.
    Nothing is lost. The same call again asks to give back under the next key, and goes on until that counts, once.
    """


class HoldEnded(LedgerError):
    """A hold was captured, released or expired before: `state`. `actual`: what counts of it. Nothing was written."""

    def __init__(self, message: str, state: str = "expired", actual: int = 0) -> None:
        super().__init__(message)
        self.state, self.actual = state, actual


class NoSuchHold(LedgerError):
    """There is no such hold in its lane: it was never granted, or it is damaged. Nothing was written."""


class LimitMismatch(LedgerError):
    """This process's limit contradicts the counter's gate: other sides are limited. Or the counter has changes from
    before it had a limit, which no gate decided. Nothing was written.
    """


class GateLost(LedgerError):
    """A lane's gate is gone, though it decided before. Nothing was written, and nothing is decided until it is back.

    Only a restore or a hand in the table can do this. Restore its items, then `Compactor.rebuild`: what the gate had
    decided and not filed is in no other item.
    """


class GaveUp(Again):
    """Others kept writing what this call was to write. Nothing is lost.

    A compactor's step met another compactor, or a commit still landing: the next run goes on. A gate changed at each of
    many tries: nothing was decided. While it was rebuilt: stop whoever writes it before you rebuild again.
    """
