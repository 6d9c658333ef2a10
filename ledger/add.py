"""The program `add`: one conditional put a change, and nothing else.

Rule 1: A delta is put IF attribute_not_exists(pk), so a change that is there already is a success (replayed) and
another change under the same token is a TokenConflict.
Rule 2: Nothing is read first.
Rule 3: A batch never gives up the condition, because an unconditional put could replace a delta by another change.
Rule 4: Where a role may insert and not look, what stands under a token that is taken may be this change or another. So
the change is put once more as a pack of one, whose key says what it holds: it is there for certain ("accepted"), counts
once, and if another change has its token, clean and verify tell.
"""

from collections.abc import Iterable, Sequence

from ledger import items
from ledger.conditions import Absent
from ledger.entries import Entries, packed
from ledger.errors import LedgerError, TableMismatch, TokenConflict
from ledger.requests import AlreadyThere, Item, Program, Put, PutMany, key_of
from ledger.values import Delta, Pack, Receipt


def add(delta: Delta) -> Program[Receipt]:
    """Put one delta. Raises TokenConflict, OutcomeUnknown and the other TableErrors, each with `delta`."""
    try:
        there: Item | AlreadyThere | None = yield Put(items.delta_item(delta), Absent())
        if isinstance(there, AlreadyThere):
            yield Put(items.pack_item(pack_of([delta])))
            return Receipt("accepted", delta)
        return Receipt("recorded", delta) if there is None else _replayed(delta, there)
    except LedgerError as error:
        error.delta = delta
        raise


def add_many(deltas: Iterable[Delta]) -> Program[list[Receipt | LedgerError]]:
    """Put many deltas: a receipt or an error for each, in order. A token that comes twice is sent once."""
    results: list[Receipt | LedgerError] = []
    first: dict[tuple[object, str], Delta] = {}
    todo = list(deltas)
    for delta in todo:
        first.setdefault((delta.lane, delta.token), delta)
    unique = list(first.values())
    answers = yield PutMany(tuple(items.delta_item(delta) for delta in unique))
    outcomes: dict[tuple[object, str], Receipt | LedgerError] = {}
    for delta, answer in zip(unique, answers, strict=True):
        outcomes[delta.lane, delta.token] = yield from _outcome(delta, answer)
    for delta in todo:
        sent, outcome = first[delta.lane, delta.token], outcomes[delta.lane, delta.token]
        if delta is not sent and delta.change != sent.change:  # only the table knows which of the two is there
            outcome = yield from _outcome(delta, AlreadyThere(None))
        elif delta is not sent and isinstance(outcome, Receipt):
            outcome = Receipt("replayed", delta)
        results.append(outcome)
    return results


def pack_of(deltas: Sequence[Delta]) -> Pack:
    """The pack of deltas of one lane, in the order of their tokens. Raises ValueError."""
    return Pack(deltas[0].lane, Entries.of(packed(delta.token, delta.change) for delta in deltas))


def _outcome(delta: Delta, answer: AlreadyThere | LedgerError | None) -> Program[Receipt | LedgerError]:
    try:
        match answer:
            case None:
                return Receipt("recorded", delta)
            case AlreadyThere(item=there) if there is not None:
                return _replayed(delta, there)
            case AlreadyThere():  # the store did not show which change is there: a single put does
                return (yield from add(delta))
            case error:
                raise error
    except LedgerError as error:
        error.delta = delta
        return error


def _replayed(delta: Delta, there: Item) -> Receipt:
    change = items.delta_of(delta.lane, there).change
    if key_of(there) != items.delta_key(delta):
        raise TableMismatch(
            f"The table holds {key_of(there)} where {items.delta_key(delta)} goes: its keys are not pk and sk. "
            "Nothing was written."
        )
    if change != delta.change:
        raise TokenConflict(
            f"{delta.lane.counter}: the token {delta.token} already stands for a change of {change}, not "
            f"{delta.change}. Nothing was written; the earlier change counts. A new change needs a new idempotency key."
        )
    return Receipt("replayed", delta)
