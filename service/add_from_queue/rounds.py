"""The changes of a batch, added in rounds: every change, then what follows those that count, then what must come back.

Rule 1: the steps of a transfer, and their keys, are those of `Ledger.transfer`. So a message and a caller may finish
the same transfer.
Rule 2: nothing follows a change that may not count, and a transfer has an outcome only when all of it is decided. If a
limit refused the credit, and the debit came back, the outcome is a refusal.
Rule 3: a refused refund is rare, so `Ledger.transfer`, which knows the next key, tries each one alone.
"""

from collections.abc import Callable, Mapping, Sequence

from ledger import Change, Ledger, Receipt
from ledger.errors import LedgerError, LimitReached
from ledger.saga import steps
from service.observe import Outcome

Regions = Mapping[int, str]
"""The Region of a transfer's debit, by the transfer's place in its batch."""


def add_all(ledger: Ledger, changes: Sequence[Change], *, pack: bool) -> list[Outcome]:
    """An outcome for each change or transfer, in order. pack: as `Ledger.add_many` takes it."""

    def step(regions: Regions, make: Callable[[Change, str], Change]) -> dict[int, Outcome]:
        made = [make(changes[number], region) for number, region in regions.items()]
        return dict(zip(regions, ledger.add_many(made, pack=pack), strict=True)) if made else {}

    outcomes = ledger.add_many((steps.debit(each) if each.then else each for each in changes), pack=pack)
    taken = {
        number: outcome.delta.lane.region
        for number, (change, outcome) in enumerate(zip(changes, outcomes, strict=True))
        if change.then is not None and isinstance(outcome, Receipt)
    }
    credits = step(taken, steps.credit)
    refused = {number: taken[number] for number, credit in credits.items() if isinstance(credit, LimitReached)}
    for number, back in step(refused, lambda change, region: steps.refund(change, region, 0)).items():
        if isinstance(back, LimitReached):
            credits[number] = _refunded(ledger, changes[number], taken[number], credits[number])
        elif isinstance(back, LedgerError):
            credits[number] = back
    for number, credit in credits.items():
        outcomes[number] = credit if isinstance(credit, LedgerError) else outcomes[number]
    return outcomes


def _refunded(ledger: Ledger, of: Change, region: str, refused: Outcome) -> Outcome:
    """The refusal of the credit, once the debit is back under another key."""
    key, at, then = of.idempotency_key, of.at, of.then
    assert key is not None
    assert at is not None
    assert then is not None
    try:
        ledger.transfer(of.counter, then.counter, then.change, idempotency_key=key, at=at, region=region)
    except LedgerError as error:
        return error
    return refused
