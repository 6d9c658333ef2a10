"""What a Ledger does in several steps: `hold_all` and `transfer`, as its methods.

Rule 1: nothing is decided here: the programs of this folder are run, as AsyncLedger awaits them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from ledger.gate.hold import Hold
from ledger.observing import DONE, Observer, observed, of_transfer
from ledger.programs import Rules
from ledger.requests import Program, Result
from ledger.saga.holds import Holds
from ledger.values import Transfer


class SagaCalls:
    """Of a Ledger."""

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
        """Set `amount` aside in each of several limited counters, or in none: by a hold of each, one after the other,
        each at the price of a hold.

        counters: the narrowest first (key, team, organisation), so that a call that is refused takes nothing from
        others meanwhile. With a key the same call again, here or elsewhere, holds once, and has the same answer. The
        rest is as for `hold`.

        Raises what `hold` does. After LimitReached, whose `counter` refused, nothing is held, and that is final for
        the key. After another error what was granted is released, or, of a call with a key, is held until `expires` is
        over or the same call goes on. What could not be released a note of the error names: it ends by itself.
        """
        from ledger.saga import hold_all

        asked = hold_all.prepare(self._rules, counters, amount, expires, idempotency_key, at, region)
        self._run(hold_all.hold_all(self._rules, asked))
        return Holds(Hold(delta, self) for delta in asked.deltas)

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
        """Move `amount`, 1 to 10**18, from one counter to another, exactly once. An `add` to each, and a third one back
        where the target's limit refuses it. Until it returns, the amount may be missing in both, and is never in both.

        idempotency_key: up to 1,012 bytes. After any error but InvalidInput repeat the call, with the same key, `at`
        and `region`, in any process, until it returns: whoever does finishes it. Or send it to the queue of changes,
        which does that. The rest is as for `add`.

        Raises InvalidInput, SettingsMismatch (nothing written), TransferStuck and what `add` does but LimitReached:
        what a limit refuses is the `outcome`. PeriodOver is final, also for a transfer that was left half-way.
        """
        from ledger.saga.steps import transfer_of
        from ledger.saga.transfer import transfer

        of = transfer_of(source, target, amount, idempotency_key, at, region)
        return self._run(transfer(self._rules, of))
