"""The programs `add`, one conditional put for a change, and `add_packed`, many changes in few
items.

Rule 1: a delta is put IF attribute_not_exists(pk), so a change that is there already is a success
(replayed), and another change under the same token is a TokenConflict. Nobody reads first.
Rule 2: a batch keeps the condition, because an unconditional put could replace a delta by another
change.
Rule 3: a pack's content gives its name, so no put, repeated, late or from elsewhere, changes the
item of that name, and a pack that is there already is a success. So nobody learns whether a change
was there before.
"""

import copy
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from ledger.core import items
from ledger.core.conditions import Absent
from ledger.core.entries import Entries, packed
from ledger.core.errors import LedgerError, TableMismatch, TokenConflict
from ledger.core.requests import AlreadyThere, Item, Program, Put, PutMany, Together, key_of
from ledger.core.running import Doubt
from ledger.core.values import Delta, Pack, Receipt

DeltaName = tuple[str, str]
"""A lane's name and a token, in a delta's place where it is looked up: texts keep their hash."""


def add(delta: Delta) -> Program[Receipt]:
    """Put one delta.

    Raises TokenConflict, OutcomeUnknown and the other TableErrors, each with `delta`.
    """
    try:
        there: Item | AlreadyThere | None = yield Put(items.delta_item(delta), Absent())
        if isinstance(there, AlreadyThere):
            # The role may insert and not look, so what is there may be this change or another. It
            # is put once more as a pack of one, whose key names its content: it is there for
            # certain, and counts once. If another change has its token, clean and verify report it.
            with Doubt() as doubt:  # what is there may be of an earlier attempt
                doubt.note(there)
                yield Put(items.pack_item(pack_of([delta])))
            return Receipt("accepted", delta)
        return Receipt("recorded", delta) if there is None else _replayed(delta, there)
    except LedgerError as error:
        error.delta = delta
        raise


def add_many(deltas: Iterable[Delta]) -> Program[list[Receipt | LedgerError]]:
    """Put many deltas: a receipt or an error for each, in order.

    It sends a token that comes twice once.
    """
    results: list[Receipt | LedgerError] = []
    todo = list(deltas)
    first = _first(todo)
    answers = yield PutMany(tuple(map(items.delta_item, first.values())))
    outcomes: dict[DeltaName, Receipt | LedgerError] = {}
    for (named, delta), answer in zip(first.items(), answers, strict=True):
        outcomes[named] = yield from _outcome(delta, answer)
    for delta in todo:
        sent, outcome = first[_name(delta)], outcomes[_name(delta)]
        # only the table knows which of the two is there
        if delta is not sent and delta.change != sent.change:
            outcome = yield from _outcome(delta, AlreadyThere(None))
        elif delta is not sent and isinstance(outcome, Receipt):
            outcome = Receipt("replayed", delta)
        results.append(outcome)
    return results


def _name(delta: Delta) -> DeltaName:
    return delta.lane.name, delta.token


def pack_of(deltas: Sequence[Delta]) -> Pack:
    """The pack of deltas of one lane, in the order of their tokens. Raises ValueError."""
    return Pack(deltas[0].lane, Entries.of(packed(delta.token, delta.change) for delta in deltas))


def _outcome(
    delta: Delta, answer: AlreadyThere | LedgerError | None
) -> Program[Receipt | LedgerError]:
    try:
        match answer:
            case None:
                return Receipt("recorded", delta)
            case AlreadyThere(item=there) if there is not None:
                return _replayed(delta, there)
            case AlreadyThere():  # the store did not show which change is there; a single put does
                with Doubt() as doubt:  # its error does not deny what the batch may have written
                    doubt.note(answer)
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
            f"The table answers with {key_of(there)} for the key {items.delta_key(delta)}. Nothing "
            "was written. The table needs the string keys pk and sk."
        )
    if change != delta.change:
        raise TokenConflict(
            f"{delta.lane.counter}: this key (its token is {delta.token}) already stands for a "
            f"change of {change}, not {delta.change}. Nothing was written; the earlier change "
            "counts. A new change needs a new idempotency key."
        )
    return Receipt("replayed", delta)


PACK_CHANGES = 400
"""The most changes of a pack: ten write units, a cost 2 % above the least that any number
reaches (docs/costs.md).
"""

Outcome = Receipt | LedgerError


def add_packed(deltas: Iterable[Delta]) -> Program[list[Outcome]]:
    """Put many deltas in few items: a receipt or an error for each, in order; each error has its
    own `delta`.

    If a token comes with two changes it sends the first; the other is a TokenConflict.
    """
    todo = list(deltas)
    first = _first(todo)
    groups = list(_groups(first.values()))
    # what goes with no other is put alone, as `add` does, and has its definite outcome
    alone = [group[0] for group in groups if len(group) == 1]
    together = [group for group in groups if len(group) > 1]
    packs = tuple(items.pack_item(pack_of(group)) for group in together)
    if len(packs) == 1 and not alone:
        answers: Sequence[AlreadyThere | LedgerError | None] = yield Together((Put(packs[0]),))
    else:
        answers = (yield PutMany((*map(items.delta_item, alone), *packs))) if alone or packs else ()
    outcomes: dict[DeltaName, Outcome] = {}
    for delta, answer in zip(alone, answers, strict=False):
        outcomes[_name(delta)] = yield from _outcome(delta, answer)
    for group, answer in zip(together, answers[len(alone) :], strict=True):
        for delta in group:
            outcomes[delta.lane.name, delta.token] = (
                failed(answer, delta)
                if isinstance(answer, LedgerError)
                else Receipt("accepted", delta)
            )
    if len(first) == len(todo):  # no token comes twice, so `first` has their order
        return [outcomes[name] for name in first]
    again: set[DeltaName] = set()
    results = []
    for delta in todo:
        name = _name(delta)
        results.append(_own(delta, outcomes[name], again=name in again))
        again.add(name)
    return results


def _first(deltas: Iterable[Delta]) -> dict[DeltaName, Delta]:
    first: dict[DeltaName, Delta] = {}
    for delta in deltas:
        first.setdefault((delta.lane.name, delta.token), delta)
    return first


def failed(failure: LedgerError, delta: Delta) -> LedgerError:
    """A copy of a failure for one change: one object, raised in several threads, would gather
    all their tracebacks.
    """
    error = copy.copy(failure)
    error.delta = delta
    return error


def _groups(deltas: Iterable[Delta]) -> Iterator[list[Delta]]:
    """Yield the deltas that go together into one item: of one lane, in the order of their tokens,
    with times within PACK_SPAN_MS.
    """
    by_lane: dict[str, list[Delta]] = {}
    for delta in deltas:
        by_lane.setdefault(delta.lane.name, []).append(delta)
    for of_lane in sorted(by_lane.values(), key=lambda same: same[0].lane):
        ordered = sorted(of_lane, key=_token)
        start = 0
        while start < len(ordered):
            last = items.last_with(ordered[start].token)
            most = min(start + PACK_CHANGES, len(ordered))
            end = bisect_right(ordered, last, start, most, key=_token)
            yield ordered[start:end]
            start = end


_token = attrgetter("token")


def _own(delta: Delta, outcome: Outcome, *, again: bool) -> Outcome:
    """The outcome of a requested change, from that of the change that was sent under its token."""
    sent = outcome.delta
    if sent is not None and delta.change != sent.change:
        conflict = TokenConflict(
            f"{delta.lane.counter}: the token {delta.token} came twice in this call, with "
            f"{sent.change} and with {delta.change}; the first was sent. Nothing was written for "
            "the second. A new change needs a new idempotency key."
        )
        return failed(conflict, delta)
    if isinstance(outcome, Receipt):
        return Receipt("replayed", delta) if again and outcome.outcome == "recorded" else outcome
    return failed(outcome, delta) if again else outcome
