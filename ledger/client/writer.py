"""`Ledger`: what a producer calls to add changes.

Rule 1: A token is made once, before anything is sent.
Rule 2: A retry never makes a new one.
Rule 3: The Region where a change was first requested decides its lane, not the Region that happens
to write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ledger.client import preparing, programs
from ledger.client.holds import Hold, Holds
from ledger.client.preparing import Rules
from ledger.core import clocks
from ledger.core.checks import check_flag
from ledger.core.clocks import PerProcess
from ledger.core.cost import carried
from ledger.core.errors import LedgerError
from ledger.core.observing import DONE, Observe, Observer, observed, of_transfer
from ledger.core.requests import AtOnce, Now, Program, Request, Result, Table
from ledger.core.running import drive
from ledger.core.settings import ClientName, Settings
from ledger.core.values import Change, Delta, Lane, Receipt, Transfer
from ledger.lane.add import Outcome
from ledger.tables.dynamo import table_of
from ledger.tables.failures import DynamoDBClient

if TYPE_CHECKING:
    from ledger.client.gather import Gatherer


LANES_AT_ONCE = 8
"""Limited lanes of one batch that are written at once."""


class Ledger:
    """Adds changes to counters. It is thread-safe: make one in each process and keep it.

    - client: a boto3 DynamoDB client; without it the ledger makes one with this library's
      time-outs, retries and pool. client="fast": it makes a `FastClient`, which takes a fraction of
      the CPU, or raises InvalidSettings, which names the reason against it. clients: by Region,
      because another Region may decide a limited counter's change. A client that asks
      AWS in another Region than the one that it is given for raises InvalidSettings.
    - table, tables: anything that answers requests, such as a MemoryTable; tables by Region. If the
      settings have several `regions`, a limited counter needs `tables=`: with a `table=` that
      reaches no other Region, a call that needs rights from there raises OutOfReach.
    - gather: while a put is in flight, further adds from other threads gather. When it returns they
      leave in one request, those of up to 25 lanes, each lane's in a pack. Under load that takes a
      tenth of the requests, and for busy counters a tenth of the write units. No change waits for a
      timer, and a change alone is put as always. The outcome of a change in a pack is "accepted",
      as with `add_many(pack=True)`. Each limited counter gathers for itself.
    - clock() returns milliseconds since 1970, entropy(n) n random bytes.
    - observe: the ledger calls it with an `Observed` after each call that sends anything, in the
      caller's thread.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        gather: bool = False,
        client: DynamoDBClient | ClientName | None = None,
        clients: Mapping[str, DynamoDBClient] | None = None,
        clock: clocks.Clock = clocks.wall_clock,
        entropy: clocks.Entropy = clocks.entropy,
        table: Table | None = None,
        tables: Mapping[str, Table] | None = None,
        observe: Observe | None = None,
    ) -> None:
        self._rules = Rules(settings, clock, entropy)
        self.settings = settings
        self._observer = Observer(observe)
        self._table = table_of(settings, client=client, clients=clients, table=table, tables=tables)
        self._gatherer: PerProcess[Gatherer] | None = None
        if check_flag("gather", gather):
            from ledger.client.gather import Gatherer

            self._gatherer = PerProcess(lambda: Gatherer(self._gathered, self._is_limited))

    def close(self) -> None:
        """With `gather`: refuse further changes (Unavailable), and return when each change taken
        before has its outcome. Do not call it in a signal's handler, which may have interrupted a
        call that `close` waits for: set a flag there.
        """
        if self._gatherer is not None:
            self._gatherer.value.close()

    @observed("ledger.add")
    def add(
        self,
        counter: str,
        change: int,
        *,
        idempotency_key: str | None = None,
        at: datetime | None = None,
        region: str | None = None,
    ) -> Receipt:
        """Record one change, exactly once however often you call it with the same key and `at`.

        It sends one PutItem. For a counter with a limit it sends one UpdateItem while there is
        enough in this Region, and some requests more for the counter's first change. Before its
        first request a ledger reads the table's shape, by a GetItem.

        - counter: 1 to 256 printable ASCII characters without spaces.
        - change: an int of magnitude at most 10**18.
        - idempotency_key: 1 to 1,024 bytes. It needs `at`, unless it is a ULID or a UUIDv7 in its
          canonical spelling: then you may leave out `at`, which is the time in the key.
        - at: an aware datetime, 1970 to five minutes ahead, kept to the millisecond: when the
          change was decided, the same on every retry.
        - region: where the change was first requested, if that is not here. A fail-over must name
          it, or the change counts in two lanes.

        For work that takes longer than `allowed_lateness_ms`, let `at` be its end, and note it
        once, before the first attempt: with an older `at` the change may be a stray, in no value
        until it is settled.

        Raises InvalidInput, SettingsMismatch and TokenConflict (nothing written), OutcomeUnknown
        (call again with the same key, or pass its `delta` to `apply`) and the other TableErrors.
        """
        requested = Change(counter, change, idempotency_key, at, region)
        return self._put(preparing.prepare(self._rules, requested))

    @observed("ledger.add_up_to")
    def add_up_to(
        self,
        counter: str,
        change: int,
        *,
        idempotency_key: str,
        at: datetime | None = None,
        region: str | None = None,
    ) -> Receipt:
        """Count as much of a change as the limit leaves, in all Regions together: all of it, a
        part, or nothing, which is LimitReached. `receipt.change` says how much counts. While there
        is enough in this Region it sends one UpdateItem, as `add` does.

        change: 1 to 10**18, or as much below 0, on a side that has a limit. The part is what all
        lanes had, each read at its own moment during the call. The same key and `at` get the same
        answer for ever, a part or a refusal, even where more is left later; another `change` under
        them gets no more. An `add` under the same key is another change. A call for more than is
        left moves the rights of all Regions to this one. The rest is as for `add`.

        Raises what `hold` raises but HoldEnded. No error has a `delta`: after OutcomeUnknown call
        again.
        """
        requested = Change(counter, change, idempotency_key, at, region)
        delta = preparing.prepare_up_to(self._rules, requested)
        return self._run(programs.add_up_to(self._rules, delta))

    def prepare(
        self,
        counter: str,
        change: int,
        *,
        idempotency_key: str | None = None,
        at: datetime | None = None,
        region: str | None = None,
    ) -> Delta:
        """The delta that `add` would put. Nothing is sent: keep it, or send it elsewhere, then
        `apply` it.

        Raises InvalidInput.
        """
        return preparing.prepare(self._rules, Change(counter, change, idempotency_key, at, region))

    @observed("ledger.apply")
    def apply(self, delta: Delta) -> Receipt:
        """Put a delta that `prepare` made, or that a receipt or an error carries, any number of
        times, in any Region.

        Raises InvalidInput if no reader of these settings looks at its lane (nothing written), and
        SettingsMismatch, TokenConflict, OutcomeUnknown and the other TableErrors.
        """
        return self._put(preparing.ours(self.settings, delta))

    @observed("ledger.add_many")
    def add_many(
        self, changes: Iterable[Change], *, pack: bool = False
    ) -> list[Receipt | LedgerError]:
        """Record many changes. It returns a Receipt or a LedgerError for each, in order: look at
        every one.

        pack: several changes of a lane within ten seconds travel and stay in one item: a write unit
        pays for a KB of it, which holds 38 changes and more. Each counts exactly once, as always,
        but the answer does not say whether it was there before ("accepted"). If a token already
        stands for another change, this call does not see that; `clean` and `verify` report it
        later. Until one of the two is folded, the first in the order of the items counts. So do not
        mix `pack` with code that relies on TokenConflict. A change that shares no item is put
        alone, with a definite outcome. If a put fails, all its changes fail, each with its own
        `delta` for `apply`.

        Without `pack` 25 changes travel in one request: a BatchExecuteStatement of conditional
        puts, at the price of a PutItem each, because BatchWriteItem has no conditions. A change
        that is there already costs a PutItem more when the store does not show it. With a role that
        lacks dynamodb:PartiQLInsert each change takes a PutItem.

        Raises InvalidInput, before anything is sent, for what is no Change, such as a tuple.
        """
        return self._send(preparing.prepare_many(self._rules, changes, pack), pack=pack)

    @observed("ledger.hold", DONE)
    def hold(
        self,
        counter: str,
        amount: int,
        *,
        expires: timedelta,
        idempotency_key: str | None = None,
        at: datetime | None = None,
        region: str | None = None,
    ) -> Hold:
        """Set `amount` of a limited counter aside, until you capture or release it, or its time is
        over. It sends one UpdateItem while there is enough in this Region.

        amount: as the change that would count: below 0 it takes what is left above the floor, above
        0 what is left below the ceiling; that side must have a limit. expires: how long it holds
        from `at` on, up to 400 days, rounded up by a thousandth at most. After that the amount is
        free for others, and a call that needs it removes the hold. The same key with another
        `expires` makes a second hold. The rest is as for `add`.

        Raises InvalidInput and SettingsMismatch (nothing written), LimitReached (final for its
        key), OutOfReach (nothing decided: call again), HoldEnded (this key's hold was captured,
        released or expired), TokenConflict, and what reading and writing a gate raises:
        LimitMismatch, GateLost, GaveUp, DamagedItem and the TableErrors.
        """
        delta = preparing.prepare_hold(
            self._rules, Change(counter, amount, idempotency_key, at, region), expires
        )
        self._run(programs.hold(self._rules, delta))
        return Hold(delta, self)

    def parse_hold(self, counter: str, id: str) -> Hold:
        """The hold with this `id`, for you to capture or release here.

        Nothing is sent. Raises InvalidInput.
        """
        return Hold.parse(counter, id, self)

    @observed("ledger.capture")
    def capture(self, hold: Hold, amount: int | None = None) -> Receipt:
        """Count `amount` of a hold, because what it was for has happened; all of it if you give no
        amount. Others can take the rest again. For a part of a hold below 0 you may give the
        magnitude: 2 is -2. The outcome is "replayed" when it was captured before, with the same
        amount.

        Raises HoldEnded (the hold was captured with another amount, released or expired: `state`
        and `actual` say which), NoSuchHold, InvalidInput, OutcomeUnknown (call again) and the
        errors of gates and tables that `hold` raises.
        """
        return self._run(programs.capture(self._rules, hold, amount))

    @observed("ledger.release", DONE)
    def release(self, hold: Hold) -> None:
        """Let a hold go: nothing counts, others can take all of it.

        To release it again changes nothing. Raises as `capture`.
        """
        self._run(programs.release(self._rules, hold))

    @observed("ledger.hold_all", DONE)
    def hold_all(
        self,
        counters: Iterable[str],
        amount: int,
        *,
        expires: timedelta,
        idempotency_key: str | None = None,
        at: datetime | None = None,
        region: str | None = None,
    ) -> Holds:
        """Set `amount` aside in each of several limited counters, or in none. It makes a hold in
        one after the other.

        counters: the narrowest first (key, team, organisation), so that a call that is refused
        takes nothing from others meanwhile. With a key you may repeat the call, anywhere: it holds
        once. Key, `at` and the counters name the call, in whatever order they come; with another
        `expires` you get the holds that the first one made, until the end that it gave them. The
        rest is as for `hold`.

        Raises what `hold` raises. After LimitReached, whose `counter` refused, nothing is held, and
        that is final for the key. After another error a call without a key releases the holds it
        was granted; those of a call with a key stay until `expires` is over or you repeat the call.
        A note names unreleased holds: they end by themselves.
        """
        from ledger.client import hold_all

        call = hold_all.prepare(self._rules, counters, amount, expires, idempotency_key, at, region)
        granted = self._run(hold_all.hold_all(self._rules, call))
        return Holds(Hold(delta, self) for delta in granted)

    @observed("ledger.transfer", of_transfer)
    def transfer(
        self,
        source: str,
        target: str,
        amount: int,
        *,
        idempotency_key: str,
        at: datetime | None = None,
        region: str | None = None,
    ) -> Transfer:
        """Move `amount`, 1 to 10**18, from one counter to another, exactly once. It makes an `add`
        to each, and where the target's limit refuses that, a third one, which gives the amount back
        to the source. Before it returns, the amount may be in neither, never in both.

        idempotency_key: up to 1,012 bytes. Key, source and target name the transfer: with another
        source or target the same key is another transfer. After any error but InvalidInput repeat
        the call, with the same key, `at` and `region`, in any process, until it returns. Or send it
        to the queue of changes. The rest is as for `add`.

        Raises InvalidInput, SettingsMismatch (nothing written), TransferStuck and what `add` raises
        but LimitReached: a refusal is an `outcome`. PeriodOver is final, also for a transfer that
        is half-way.
        """
        from ledger.client.saga_steps import transfer_of
        from ledger.client.transfer import transfer

        of = transfer_of(source, target, amount, idempotency_key, at, region)
        return self._run(transfer(self._rules, of))

    @observed("ledger.set_limit", DONE)
    def set_limit(
        self, counter: str, *, floor: int | None = None, ceiling: int | None = None
    ) -> None:
        """Give one counter another floor, another ceiling or both; a side that you do not name
        stays. It writes in the Region of the counter's Limit. Other counters still begin with the
        limit of the settings.

        Raises LimitReached when the value with all holds is beyond the new limit (nothing was
        written), InvalidInput for a side that has no limit or a Limit without a region, and the
        errors of gates and tables that `hold` raises.
        """
        self._run(programs.set_limit(self._rules, counter, floor=floor, ceiling=ceiling))

    def _run(self, program: Program[Result]) -> Result:
        return drive(program, self._answer)

    def _put(self, delta: Delta) -> Receipt:
        if self._gatherer is None:
            return self._run(programs.add(self._rules, delta))
        self._run(programs.check_first(self._rules, delta))
        # Rule 4: the change waits for the put that is in flight, and shares the next one.
        return self._gatherer.value.add(delta)

    def _send(self, deltas: Sequence[Delta | LedgerError], *, pack: bool) -> list[Outcome]:
        return self._run(programs.add_many(self._rules, deltas, pack))

    def _gathered(self, deltas: Sequence[Delta]) -> Sequence[Outcome]:
        return self._run(programs.lane_outcomes(self._rules, deltas))

    def _is_limited(self, lane: Lane) -> bool:
        return self.settings.limit_of(lane.counter) is not None

    def _answer(self, request: Request) -> Any:
        match request:
            case Now():
                return self._rules.now()
            case AtOnce(parts):
                return self._at_once(parts)
        return self._table.answer(request)

    def _at_once(self, parts: Sequence[Program[Any]]) -> list[Any]:
        one_at_a_time = getattr(self._table, "one_at_a_time", False)
        at_once = 1 if one_at_a_time else min(len(parts), LANES_AT_ONCE)
        if at_once < 2:
            return [*map(self._run, parts)]
        with ThreadPoolExecutor(at_once, thread_name_prefix="ledger-lanes") as workers:
            return [*workers.map(carried(self._run), parts)]


def add_deltas(ledger: Ledger, deltas: Sequence[Delta | LedgerError]) -> list[Outcome]:
    """Put deltas that `prepare` made, for an import: an outcome for each, in order, as from
    `add_many`.
    """
    return ledger._send(deltas, pack=False)


def shape_errors(ledger: Ledger, counters: Iterable[str]) -> dict[str, LedgerError]:
    """The counters that the table's shape refuses, or could not be checked, each with its error;
    nothing is written.
    """
    return ledger._run(programs.shape_errors(ledger._rules, counters))
