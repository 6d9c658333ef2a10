"""The changes of a batch, added in rounds: every change, then what follows those that count, then
what must come back. Changes of which a part may count come first, each by itself.

Rule 1: the steps of a transfer, and their names, are those of `Ledger.transfer`. So a message and a
caller may finish the same transfer.
Rule 2: nothing follows a change that may not count, and a transfer has an outcome only when all of
it is decided. If a limit refused the credit, and the debit came back, the outcome is a refusal.
Rule 3: it yields the calls, each a function of the ledger, so that a history may play the queue
beside its callers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from ledger import Change, Ledger, Receipt, Settings
from ledger.client import saga_steps as steps
from ledger.client.writer import shape_errors
from ledger.core.errors import LedgerError, LimitReached
from ledger.core.limit import UP
from ledger.core.running import drive
from ledger.lane.add import Outcome

SLICE = 1_000
"""Changes that go through their rounds together."""

FIRST = (1, 10, 100)
"""The first slices of a batch that came before: of these some are done, however little there is
time for.
"""

Call = Callable[[Any], Any]
"""A call of a ledger; its answer comes back to the `yield`."""


def add_all(
    ledger: Ledger, changes: Sequence[Change], *, pack: bool, first: Sequence[int] = ()
) -> list[Outcome]:
    """An outcome for each change or transfer, in order. pack: as `Ledger.add_many` takes it. first:
    the sizes of the first slices."""
    # Rule 6: a batch goes in slices, each through all its rounds. So an invocation does as a whole
    # what it has time for. A batch with a message that came before, perhaps for lack of time,
    # begins with small slices.
    outcomes: list[Outcome] = []
    sizes = chain(first, repeat(SLICE))
    while len(outcomes) < len(changes):
        part = changes[len(outcomes) : len(outcomes) + next(sizes)]
        outcomes += drive(rounds(ledger.settings, part, pack=pack), lambda call: call(ledger))
    return outcomes


def rounds(
    settings: Settings, changes: Sequence[Change], *, pack: bool
) -> Generator[Call, Any, list[Outcome]]:
    """The calls for a slice, in turn."""
    targets = {
        number: change.then.counter
        for number, change in enumerate(changes)
        if change.then is not None
    }
    outcomes: dict[int, Outcome] = {}
    for number, change in enumerate(changes):
        if change.partial:
            try:
                outcomes[number] = yield _add_up_to(change)
            except LedgerError as error:
                outcomes[number] = error
    if not targets and not outcomes:
        added: list[Outcome] = yield _add_many(changes, pack)
        return added
    # Rule 4: a transfer takes nothing before the table's shape has both of its counters.
    lacking = (yield _shape_errors(targets.values())) if targets else {}
    outcomes |= {number: lacking[target] for number, target in targets.items() if target in lacking}
    first = {
        number: steps.debit(change) if number in targets else change
        for number, change in enumerate(changes)
        if number not in outcomes
    }
    outcomes |= yield from _added(first, pack)
    debited = {
        number: (changes[number], outcome.delta.lane.region)
        for number, outcome in outcomes.items()
        if number in targets and isinstance(outcome, Receipt)
    }
    credits = yield from _added(
        {number: steps.credit(*debit) for number, debit in debited.items()}, pack
    )
    refused = {
        number: debited[number]
        for number, credit in credits.items()
        if isinstance(credit, LimitReached)
    }
    backs = yield from _refunds(settings, refused, pack)
    for results in (credits, backs):
        outcomes |= {
            number: result for number, result in results.items() if isinstance(result, LedgerError)
        }
    return [outcomes[number] for number in range(len(changes))]


def _refunds(
    settings: Settings, debited: Mapping[int, tuple[Change, str]], pack: bool
) -> Generator[Call, Any, dict[int, Outcome]]:
    """Refund debits whose credits were refused: an outcome for each that fails, and for most."""
    # Rule 5: a source without a ceiling takes every refund, so these travel together. Where a
    # ceiling may be in the way, `Ledger.transfer` tries each alone: an add would have its refusal
    # decided for ever.
    alone = {number for number, (of, _) in debited.items() if _has_ceiling(settings, of.counter)}
    together = {
        number: steps.refund(*debit, 0) for number, debit in debited.items() if number not in alone
    }
    backs = yield from _added(together, pack)
    for number in sorted(alone):
        try:
            yield _finish(*debited[number])
        except LedgerError as error:
            backs[number] = error
    return backs


def _added(made: Mapping[int, Change], pack: bool) -> Generator[Call, Any, dict[int, Outcome]]:
    return dict(zip(made, (yield _add_many(made.values(), pack)), strict=True)) if made else {}


def _has_ceiling(settings: Settings, counter: str) -> bool:
    limit = settings.limit_of(counter)
    return limit is not None and limit.has(UP)


def _shape_errors(counters: Iterable[str]) -> Call:
    return lambda ledger: shape_errors(ledger, counters)


def _add_many(changes: Iterable[Change], pack: bool) -> Call:
    return lambda ledger: ledger.add_many([*changes], pack=pack)


def _add_up_to(change: Change) -> Call:
    named = {"idempotency_key": change.idempotency_key, "at": change.at, "region": change.region}
    return lambda ledger: ledger.add_up_to(change.counter, change.change, **named)


def _finish(of: Change, region: str) -> Call:
    """Refund a transfer whose debit counts and whose credit was refused.

    Raises the error of one that is not.
    """
    key, at, then = of.idempotency_key, of.at, of.then
    assert key is not None
    assert at is not None
    assert then is not None

    def call(ledger: Any) -> Any:
        return ledger.transfer(
            of.counter, then.counter, then.change, idempotency_key=key, at=at, region=region
        )

    return call
