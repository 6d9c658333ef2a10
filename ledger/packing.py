"""The program `add_packed`: many changes, many of them in one item.

Rule 1: A pack is put without a condition: its name follows from its content, so no put, repeated, late or from
elsewhere, changes what stands there. So whether a change was there before is not told.
Rule 2: A pack has changes of one lane, whose times lie within PACK_SPAN_MS. What goes with nothing else is put alone,
as `add` does, and has its definite outcome.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence

from ledger import items, tokens
from ledger.add import add_many
from ledger.add import pack_of as pack_of
from ledger.errors import LedgerError, TokenConflict
from ledger.requests import Program, Put, Together
from ledger.values import PACK_SPAN_MS, Delta, Lane, Receipt

PACK_CHANGES = 400
"""Most changes of a pack that is put here: ten write units, and 2 % above what any number can reach (docs/costs.md)."""

Outcome = Receipt | LedgerError


def add_packed(deltas: Iterable[Delta]) -> Program[list[Outcome]]:
    """Put many deltas in few items: a receipt or an error for each, in order; each error has its own `delta`.

    Of a token that comes with two changes the first is sent, the others are a TokenConflict.
    """
    todo = list(deltas)
    first: dict[tuple[Lane, str], Delta] = {}
    for delta in todo:
        first.setdefault((delta.lane, delta.token), delta)
    groups = list(_groups(first.values()))
    alone = [group[0] for group in groups if len(group) == 1]
    together = [group for group in groups if len(group) > 1]
    outcomes = dict(zip(alone, (yield from add_many(alone)), strict=True)) if alone else {}
    puts = tuple(Put(items.pack_item(pack_of(group))) for group in together)
    answers: tuple[LedgerError | None, ...] = (yield Together(puts)) if puts else ()
    for group, answer in zip(together, answers, strict=True):
        outcomes |= {delta: _packed_outcome(delta, answer) for delta in group}
    again: set[tuple[Lane, str]] = set()
    results = []
    for delta in todo:
        key = delta.lane, delta.token
        results.append(_told(delta, outcomes[first[key]], again=key in again))
        again.add(key)
    return results


def failed(failure: LedgerError, delta: Delta) -> LedgerError:
    """A failure as one change's own: raised in several threads, one object would gather all their tracebacks."""
    error = copy.copy(failure)
    error.delta = delta
    return error


def _groups(deltas: Iterable[Delta]) -> Iterator[list[Delta]]:
    """The deltas that go together into one item, in the order of their tokens."""
    group: list[Delta] = []
    for delta in sorted(deltas, key=lambda delta: (delta.lane, delta.token)):
        if group and not _fits(group, delta):
            yield group
            group = []
        group.append(delta)
    if group:
        yield group


def _fits(group: Sequence[Delta], delta: Delta) -> bool:
    span_ms = tokens.time_ms(delta.token) - tokens.time_ms(group[0].token)
    return delta.lane == group[0].lane and span_ms <= PACK_SPAN_MS and len(group) < PACK_CHANGES


def _packed_outcome(delta: Delta, answer: LedgerError | None) -> Outcome:
    return Receipt("accepted", delta) if answer is None else failed(answer, delta)


def _told(delta: Delta, outcome: Outcome, *, again: bool) -> Outcome:
    """The outcome of the change that was sent under a token, as that of one that was asked for under it."""
    sent = outcome.delta
    if sent is not None and delta.change != sent.change:
        conflict = TokenConflict(
            f"{delta.lane.counter}: the token {delta.token} came twice, with {sent.change} and with {delta.change}; "
            "the first was sent. Nothing was written for the second: a new change needs a new idempotency key."
        )
        conflict.delta = delta
        return conflict
    if isinstance(outcome, Receipt):
        return Receipt("replayed", delta) if again and outcome.outcome == "recorded" else outcome
    return failed(outcome, delta) if again else outcome
