"""`AddFromQueue`: a batch of SQS messages, of one change or of many, becomes one `Ledger.add_many`,
or one a round.

Rule 1: The handler acknowledges a message only when each of its changes is recorded, now or before,
or accepted in a pack, or refused by its limit, which is an answer and final; of a transfer, every
step (rounds.py). Or when the message is poison, and the dead-letter queue has confirmed a copy: its
body, its attributes, and as a further attribute the error. A crash in between makes two copies, and
a redrive counts each change once.
Rule 2: Poison is what no retry changes: a message that nobody can read, an invalid change, a key
that stands for another change. It goes to the dead-letter queue at once and whole, and its good
changes count once.
Rule 3: A message for which the table or a queue failed is reported as failed and comes again, later
each time (record.py), until it is done; also if another of its changes is poison.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, islice, zip_longest
from typing import Any

from ledger import Change, Ledger, Receipt, Then
from ledger.client.message import dumps_many, loads_many
from ledger.core.checks import AHEAD_MAX_MS, to_ms
from ledger.core.clocks import Clock, wall_clock
from ledger.core.errors import InvalidTime, LedgerError, LimitReached, NotQueued, PeriodOver
from ledger.core.running import or_error
from service.add_from_queue.deadline import Deadline, NotInTime, in_time
from service.add_from_queue.outcomes import counters_of, outcome_of
from service.add_from_queue.parcel import POISON, Parcel, in_turn, lines_of
from service.add_from_queue.record import (
    WAIT_MAX_S,
    WAIT_S,
    Record,
    attributes_of,
    came_before,
    group_of,
    wait_of,
)
from service.add_from_queue.rounds import FIRST, add_all
from service.observe import Watch, report_each
from service.sqs import STOPPED, SqsQueue
from service.writable import refusal


class AddFromQueue:
    """The handler. It keeps nothing from one batch to the next. pack: as `Ledger.add_many` takes
    it. prefixes: of the counters that it writes. outcomes: the queue for whether each change of a
    limited counter counts. changes: the queue that the messages come from. Without dead_letters and
    changes, the queue's own policy decides what comes again."""

    def __init__(
        self,
        ledger: Ledger,
        watch: Watch,
        *,
        pack: bool,
        outcomes: SqsQueue | None = None,
        prefixes: tuple[str, ...] = (),
        dead_letters: SqsQueue | None = None,
        changes: SqsQueue | None = None,
        clock: Clock = wall_clock,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._ledger, self._watch, self._pack = ledger, watch, pack
        self._prefixes = prefixes
        self._outcomes, self._dead_letters, self._changes = outcomes, dead_letters, changes
        self._clock, self._jitter = clock, jitter

    def __call__(
        self, event: dict[str, Any], context: object = None
    ) -> dict[str, list[dict[str, str]]]:
        """The partial batch response: the messages that failed."""
        deadline = Deadline(context, answers=self._outcomes is not None)
        parcels = self._add(event["Records"], deadline)
        for parcel in parcels:
            self._judge(parcel)
        self._queue_outcomes(parcels, deadline)
        failed = [parcel for parcel in parcels if parcel.error is not None]
        for parcel in failed:
            if isinstance(parcel.error, NotInTime):
                self._send_rest(parcel, deadline)
        copied = sum(self._set_aside(parcel) for parcel in failed if not deadline.is_near())
        stays = [parcel for parcel in failed if parcel.error is not None]
        # Rule 5: ChangesFailed counts the messages that failed, not those that wait for their time.
        self._watch.publish({"ChangesFailed": sum(parcel.wait_s is None for parcel in stays)})
        self._postpone(stays, deadline)
        if cut := sum(parcel.is_cut for parcel in failed):
            self._watch.logger.warning(
                "the function's time was nearly over: what is left of its messages comes again",
                extra={"cut": cut},
            )
        counted = {
            "messages": len(parcels),
            "changes": sum(len(parcel.outcomes) for parcel in parcels),
        }
        self._watch.logger.info(
            "added a batch", extra=counted | {"buried": copied, "failed": len(stays)}
        )
        return {"batchItemFailures": [{"itemIdentifier": parcel.name} for parcel in stays]}

    def _add(self, records: Sequence[Record], deadline: Deadline) -> list[Parcel]:
        parcels = []
        for record in records:
            try:
                parcels.append(Parcel(record, loads_many(record["body"])))
            except LedgerError as error:
                parcels.append(Parcel(record, (), [error]))
        # Rule 8: the function ends before Lambda kills it (deadline.py). It adds the messages in
        # their order, but large ones last, so that no message takes the others' time.
        turn = in_turn(parcels)
        changes = list(chain.from_iterable(parcel.changes for parcel in turn))
        refused = [self._refusal(change) for change in changes]
        taken = [change for change, error in zip(changes, refused, strict=True) if error is None]
        first = FIRST if any(map(came_before, records)) else ()
        added = iter(
            add_all(
                in_time(self._ledger, deadline.ends_adding), taken, pack=self._pack, first=first
            )
        )
        outcomes = (error or next(added) for error in refused)
        for parcel in turn:
            parcel.outcomes = list(islice(outcomes, len(parcel.changes))) or parcel.outcomes
        # Rule 6: log lines name no amount, and an error of many changes of a message has one line.
        report_each(self._watch, lines_of(parcels))
        return parcels

    def _refusal(self, change: Change) -> LedgerError | None:
        error = refusal(change.counter, self._prefixes)
        if error is not None or change.then is None:
            return error
        return refusal(change.then.counter, self._prefixes) or self._untaken(change, change.then)

    def _untaken(self, change: Change, then: Then) -> LedgerError | None:
        """Why the ledger would not take what follows a change, where that is known before it
        adds the change.
        """
        named: Any = {
            "idempotency_key": change.idempotency_key,
            "at": change.at,
            "region": change.region,
        }
        made = or_error(partial(self._ledger.prepare, then.counter, then.change, **named))
        if isinstance(made, LedgerError):
            return made
        return or_error(self._ledger.settings.plan(then.counter).check_takes, self._clock())

    def _judge(self, parcel: Parcel) -> None:
        """Set why a message is not done: an error that passes, if there is one, else its poison."""
        failures = [
            (change, each)
            for change, each in zip_longest(parcel.changes, parcel.outcomes)
            if isinstance(each, LedgerError) and not self._is_answer(change, each)
        ]
        passes = [error for _, error in failures if not isinstance(error, POISON)]
        parcel.error = passes[0] if passes else failures[0][1] if failures else None
        if failures and not passes:
            # Rule 4: a change that is ahead of this clock by no more than the longest wait comes
            # again when its time has come.
            early = (
                self._ahead_s(change)
                for change, error in failures
                if change is not None and isinstance(error, InvalidTime)
            )
            parcel.wait_s = max(
                (wait_s for wait_s in early if 0 < wait_s <= WAIT_MAX_S), default=None
            )

    def _is_answer(self, change: Change | None, error: LedgerError) -> bool:
        # Rule 9: "the period is over" is an answer, too, `refused`, for any counter. It is poison
        # without a queue of outcomes, and for a transfer, whose debit may count.
        if isinstance(error, PeriodOver):
            return self._outcomes is not None and change is not None and change.then is None
        return isinstance(error, LimitReached)

    def _ahead_s(self, change: Change) -> int:
        """The seconds until the ledger takes a change's time."""
        assert change.at is not None
        return -((self._clock() - (to_ms(change.at) - AHEAD_MAX_MS)) // 1_000)

    def _queue_outcomes(self, parcels: Sequence[Parcel], deadline: Deadline) -> None:
        """Put the decisions of gates on the queue of outcomes.

        A message with one that may be missing is not done.
        """
        # Rule 7: this queues what is decided, and not what may still be decided. An answer is for
        # ever, so a message that comes again queues the same one. The answer names its change as
        # the message did, and no amount; the format is public: docs/producers.md.
        if self._outcomes is None:
            return
        settings = self._ledger.settings
        limit_of = settings.limit_of
        decided = [
            (parcel, place, text)
            for parcel in in_turn(parcels)
            for place, (change, outcome) in enumerate(
                zip(parcel.changes, parcel.outcomes, strict=False)
            )
            if any(map(limit_of, counters_of(change))) or isinstance(outcome, PeriodOver)
            if (text := outcome_of(change, outcome, settings.region)) is not None
        ]
        whys = self._outcomes.put_each(
            [text for _, _, text in decided], stop=deadline.ends_answering
        )
        for (parcel, place, _), why in zip(decided, whys, strict=True):
            if why == STOPPED:  # as if there had been no time for the change
                parcel.outcomes[place] = error = NotInTime()
                parcel.error = parcel.error or error
            elif why is not None and not isinstance(parcel.error, NotQueued):
                parcel.error, named = NotQueued(why), {"message_id": parcel.name}
                self._watch.logger.error(
                    "SQS did not confirm outcomes, so their message comes again", extra=named
                )
                self._watch.logger.debug("why", extra=named | {"why": why})

    def _send_rest(self, parcel: Parcel, deadline: Deadline) -> None:
        """Send what there was no time for as a message of its own, so that each receive leaves
        less, however slow the table is.

        If SQS confirms it, the message is done.
        """
        pairs = [*zip(parcel.changes, parcel.outcomes, strict=False)]
        rest = [change for change, outcome in pairs if isinstance(outcome, NotInTime)]
        done = sum(
            isinstance(outcome, Receipt) or self._is_answer(change, outcome)
            for change, outcome in pairs
        )
        if (
            self._changes is None
            or not (rest and done)
            or len(rest) + done < len(pairs)
            or deadline.is_near()
        ):
            return
        attributes, group = attributes_of(parcel.record), group_of(parcel.record)
        why = self._changes.put(dumps_many(rest), attributes, group=group, delay_s=WAIT_S)
        parcel.error = None if why is None else parcel.error

    def _set_aside(self, parcel: Parcel) -> bool:
        """Copy poison to the dead-letter queue.

        Whether the queue confirmed it: then the message is done.
        """
        error = parcel.error
        if self._dead_letters is None or not isinstance(error, POISON) or parcel.wait_s is not None:
            return False
        attributes = attributes_of(parcel.record, type(error).__name__)
        why = self._dead_letters.put(
            parcel.record["body"], attributes, group=group_of(parcel.record)
        )
        extra = {"message_id": parcel.name, "error": type(error).__name__}
        if why is not None:
            self._watch.logger.error(
                "SQS did not confirm a dead letter, so the message comes again",
                extra=extra | {"why": why},
            )
            return False
        self._watch.logger.warning(
            "moved a message to the dead-letter queue, because no retry can help", extra=extra
        )
        parcel.error = None
        return True

    def _postpone(self, stays: Sequence[Parcel], deadline: Deadline) -> None:
        if self._changes is None or not stays:
            return
        seconds = [self._wait_s(parcel) for parcel in stays]
        handles = [parcel.record["receiptHandle"] for parcel in stays]
        # A wait that could not be set is no failure: the queue has its own.
        for why in filter(None, self._changes.hide(handles, seconds, deadline.is_near)):
            self._watch.logger.warning(
                "SQS did not set a wait for a message, so it comes again sooner", extra={"why": why}
            )

    def _wait_s(self, parcel: Parcel) -> int:
        if parcel.wait_s is not None:
            return parcel.wait_s
        if isinstance(parcel.error, NotInTime):  # nothing is in its way
            return WAIT_S
        return wait_of(parcel.record, self._jitter())
