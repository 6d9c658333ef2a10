"""`Ledger`: what a producer calls to add changes.

Rule 1: A token is made once, before anything is sent.
Rule 2: A retry never makes a new one.
Rule 3: The lane of a change is decided by the Region where the change was first asked for, not by the one that happens
to write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ledger import add as programs
from ledger import clocks
from ledger.errors import InvalidInput, LedgerError, shown
from ledger.forks import PerProcess
from ledger.gather import Gatherer
from ledger.packing import add_packed, failed
from ledger.prepare import prepared
from ledger.requests import Program, Table, run
from ledger.settings import Settings, check_settings
from ledger.shape import ShapeCheck
from ledger.table import table_of
from ledger.values import Change, Delta, Receipt, check_changes

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class Ledger:
    """Adds changes to counters. Thread-safe; make one a process and keep it.

    gather: while a put of a lane is in flight, further adds of that lane from other threads gather and leave in one
    pack when it returns: a tenth of the write units and of the requests under load. Nobody waits for a timer, and a
    change alone is put as ever. The outcome of one that went in a pack is "accepted", as with `add_many(pack=True)`.

    client: a boto3 DynamoDB client, else one is made with this library's time-outs, retries and pool. clock() returns
    milliseconds since 1970, entropy(n) n random bytes. table: anything that answers requests, such as a MemoryTable.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        gather: bool = False,
        client: DynamoDBClient | None = None,
        clock: clocks.Clock = clocks.wall_clock,
        entropy: clocks.Entropy = clocks.entropy,
        table: Table | None = None,
    ) -> None:
        self.settings = check_settings(settings)
        self._table = table_of(settings, table, client)
        self._clock = clocks.checked(clock)
        self._entropy = clocks.checked_entropy(entropy)
        self._now = clocks.instants(self._clock)
        self._shape = ShapeCheck(settings)
        if type(gather) is not bool:
            raise InvalidInput(f"gather={shown(gather)} is not True or False.")
        self._gatherer = PerProcess(lambda: Gatherer(self._send)) if gather else None

    def close(self) -> None:
        """With `gather`: take no further changes, which raise Unavailable, and return when each taken has its outcome.
        Not from a signal's handler, which may have stopped the very call that it would wait for: set a flag there.

        Without, every call has ended when it returns, and there is nothing to close.
        """
        if self._gatherer is not None:
            self._gatherer.value.close()

    def add(
        self,
        counter: str,
        change: int,
        *,
        idempotency_key: str | None = None,
        at: datetime | None = None,
        region: str | None = None,
    ) -> Receipt:
        """Record one change, exactly once however often this is called with the same key and `at`. One PutItem, and
        before the first one of this object a GetItem of the table's shape.

        counter: 1 to 256 printable ASCII characters without spaces. change: an int of magnitude at most 10**18.
        idempotency_key (1 to 1,024 bytes) and at (an aware datetime, 1970 to five minutes ahead: when the change was
        first asked for, the same on every retry; kept to the millisecond) go together. region: where it was first asked
        for, when that is not here: a fail-over must name it, or the change counts in two lanes.

        `at` is when the change was decided. Of work that takes longer than `allowed_lateness_ms` that is its end, noted
        once, before the first attempt: with an older `at` the change may be a stray, in no value until it is settled.

        Raises InvalidInput, SettingsMismatch and TokenConflict (nothing written), OutcomeUnknown (call again with the
        same key, or pass its `delta` to `apply`) and the other TableErrors.
        """
        return self._put(self.prepare(counter, change, idempotency_key=idempotency_key, at=at, region=region))

    def prepare(
        self,
        counter: str,
        change: int,
        *,
        idempotency_key: str | None = None,
        at: datetime | None = None,
        region: str | None = None,
    ) -> Delta:
        """The delta that `add` would put, without sending anything: to be kept, or sent elsewhere, then applied.

        Raises InvalidInput.
        """
        asked = Change(counter, change, idempotency_key, at, region)
        return prepared(asked, self.settings, self._clock, self._entropy)

    def apply(self, delta: Delta) -> Receipt:
        """Put a delta that `prepare` made, or that a receipt or an error carries. Any number of times, in any Region.

        Raises InvalidInput (a lane that no reader of these settings looks at: nothing written), SettingsMismatch,
        TokenConflict, OutcomeUnknown and the other TableErrors.
        """
        given: object = delta
        if not isinstance(given, Delta):
            raise InvalidInput(f"apply takes a Delta: prepare's, a receipt's or an error's, not {shown(given)}.")
        lane = delta.lane
        expected = self.settings.lane_for(lane.counter, delta.token, lane.region)
        if lane != expected or lane.region not in self.settings.regions:
            raise InvalidInput(
                f"No reader looks at the lane {lane}: regions={self.settings.regions!r}, and this token's shard is "
                f"{expected.shard}. The settings must be those with which the delta was prepared."
            )
        return self._put(replace(delta, lane=expected))  # which knows how many shards this table has

    def _put(self, delta: Delta) -> Receipt:
        try:
            self._shape.ask(self._table, self._now)
        except LedgerError as error:
            error.delta = delta
            raise
        if self._gatherer is not None:
            return self._gatherer.value.add(delta)
        return run(programs.add(delta), self._table, self._now)

    def _send(self, deltas: Sequence[Delta]) -> Sequence[Receipt | LedgerError]:
        """One change as `add` does, several in packs."""
        if len(deltas) > 1:
            return run(add_packed(deltas), self._table, self._now)
        try:
            return [run(programs.add(deltas[0]), self._table, self._now)]
        except LedgerError as error:
            return [error]

    def add_many(self, changes: Iterable[Change], *, pack: bool = False) -> list[Receipt | LedgerError]:
        """Record many changes: a Receipt or a LedgerError for each, in order; look at every one, no Change raises.

        pack: several changes of a lane within ten seconds travel and stand in one item, for a write unit a KB, 38
        changes and more. They count exactly once as all do, but whether one was there before is not told ("accepted"),
        and another change under a token that is taken is found by `clean` and `verify`, not here: the first of them in
        the order of the items counts until one is folded, so do not mix `pack` with code that relies on TokenConflict.
        A change that goes with no other is put alone and has its definite outcome. A put that fails fails for all its
        changes, each with its own `delta` for `apply`.

        Without it 25 changes travel in one request (BatchExecuteStatement of PartiQL INSERTs: each is a conditional put
        on its own, at the price of a PutItem). BatchWriteItem would need as few, but has no conditions: it could
        replace a delta by another change. A change that is there already costs a PutItem more when the store does not
        show it.
        A role without dynamodb:PartiQLInsert costs a PutItem a change.

        Raises InvalidInput, before anything is sent, for what is no Change, such as a tuple.
        """
        deltas: list[Delta | LedgerError] = []
        for c in check_changes("add_many", changes):
            try:
                deltas.append(prepared(c, self.settings, self._clock, self._entropy))
            except LedgerError as error:
                deltas.append(error)
        if type(pack) is not bool:
            raise InvalidInput(f"pack={shown(pack)} is not True or False.")
        program = add_packed if pack else programs.add_many
        outcomes = iter(self._put_many([delta for delta in deltas if isinstance(delta, Delta)], program))
        return [next(outcomes) if isinstance(delta, Delta) else delta for delta in deltas]

    def _put_many(
        self, deltas: list[Delta], program: Callable[[list[Delta]], Program[list[Receipt | LedgerError]]]
    ) -> list[Receipt | LedgerError]:
        try:
            if deltas:
                self._shape.ask(self._table, self._now)
        except LedgerError as failure:
            return [failed(failure, delta) for delta in deltas]
        return run(program(deltas), self._table, self._now)
