"""The methods of a Ledger that take several steps: `hold_all` and `transfer`.

Rule 1: they only run the programs of this folder, which AsyncLedger awaits.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from ledger.client.holds import Hold, Holds
from ledger.client.programs import Rules
from ledger.core.observing import DONE, Observer, observed, of_transfer
from ledger.core.requests import Program, Result
from ledger.core.values import Transfer


class SagaCalls:
    """The base of Ledger."""

    _rules: Rules
    _observer: Observer

    def _run(self, program: Program[Result]) -> Result:
        raise NotImplementedError

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
        at: datetime,
        region: str | None = None,
    ) -> Transfer:
        """Move `amount`, 1 to 10**18, from one counter to another, exactly once. It makes an `add`
        to each, and a third one back where the target's limit refuses it. Before it returns, the
        amount may be in neither, never in both.

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
