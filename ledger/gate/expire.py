"""The program `free`: holds whose time is over end, in the gate and among those that were filed.

Rule 1: whoever is short of rights ends them, by its own clock; there is no sweeper.
Rule 2: an end in the gate asks that the entry is the very one that was seen. The end of a filed one is decided by its
own token, as any token that is looked up: nothing was filed since, and the gate does not know it.
Rule 3: the item of a hold is a note. That of a decided token is only deleted; that of a hold in the gate is left alone.
"""

from ledger.gate import items, updates
from ledger.gate.gate import Gate
from ledger.gate.gates import TRIES_MAX, Gates
from ledger.gate.look_up import look_up
from ledger.paging import Pages
from ledger.requests import DeleteMany, Instant, Item, Now, Page, Program, Query, Written, keyed
from ledger.values import Lane

NOTES_OF_PAGE = 25


def free(gates: Gates, gate: Gate) -> Program[Gate]:
    """The gate after what could be ended there has ended. Raises the TableErrors and DamagedItem."""
    now: Instant = yield Now()
    gate = yield from _in_gate(gates, gate, now.wall_ms)
    return (yield from _filed(gates, gate, now.wall_ms))


def _in_gate(gates: Gates, gate: Gate, now_ms: int) -> Program[Gate]:
    for _ in range(TRIES_MAX):
        over = dict(sorted(gate.over(now_ms).items())[: updates.EXPIRED_MAX])
        if not over:
            break
        answer: Item | Written = yield gates.at(gate.lane, updates.expire(gate.lane, gates.limit, over))
        gate = gates.gate(gate.lane, answer.item if isinstance(answer, Written) else answer)
    return gate


def _filed(gates: Gates, gate: Gate, now_ms: int) -> Program[Gate]:
    pages = Pages(Query(items.hold_pk(gate.lane), None, items.holds_until(now_ms), NOTES_OF_PAGE))
    while pages.more:
        page: Page = yield from gates.home(gate.lane, pages.read())
        gate = yield from _of_page(gates, gate, dict(items.hold_of(gate.lane, item) for item in page.items))
    return gate


def _of_page(gates: Gates, gate: Gate, notes: dict[str, int]) -> Program[Gate]:
    """End what is not decided, then delete the notes of all that are."""
    for _ in range(TRIES_MAX):
        unknown = {token: n for token, n in notes.items() if token not in gate.recent and token not in gate.held}
        decided = [token for token in notes if token in gate.recent]
        going_on: dict[str, int] = {}
        for token, amount in unknown.items():
            known = yield from look_up(gates, gate.lane, token)
            if known is not None and known.outcome is not None:
                decided.append(token)
            elif known is not None:
                going_on[token] = amount
        answer: Item | Written | None = None
        if going_on:
            answer = yield gates.at(gate.lane, updates.expire(gate.lane, gates.limit, going_on, gate.version))
        if answer is None or isinstance(answer, Written):
            ended = [*decided, *going_on]
            yield from forget(gates, gate.lane, {token: notes[token] for token in ended})
            return gates.gate(gate.lane, answer.item) if isinstance(answer, Written) else gate
        gate = gates.gate(gate.lane, answer)
    return gate


def forget(gates: Gates, lane: Lane, notes: dict[str, int]) -> Program[None]:
    """Delete the notes of holds that ended; one that stays is found to be decided, and deleted then."""
    if notes:
        keys = tuple(keyed(items.hold_key(lane, token)) for token in notes)
        yield gates.at(lane, DeleteMany(keys))
