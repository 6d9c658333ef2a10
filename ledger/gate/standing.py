"""The programs that read limited lanes: their standing, and all that they ever decided.

Rule 1: a counter's value is the sum of what each gate says. A read takes copies of other Regions' gates, each of its
own moment, so it may have a sale without the delivery that funded it. It is *closed* when everything that was taken
over is seen as given: then it is certainly within the limit.
Rule 2: a history is what the gate has not filed, and what segments and late entries of its version or older list. It
must be as many as the gate counts, else it is read again: a roll went by.
"""

from dataclasses import dataclass

from ledger.errors import NotYetReplicated
from ledger.gate import items
from ledger.gate.gates import Gates
from ledger.gate.limits import Gate, counts, name_of
from ledger.paging import Pages
from ledger.requests import Get, GetMany, Item, Page, Program, Query
from ledger.values import Lane

HISTORY_TRIES = 5


@dataclass(frozen=True, slots=True)
class Standing:
    """The gates of a counter as one Region sees them; those that are not there have decided nothing."""

    gates: tuple[Gate, ...]

    @property
    def value(self) -> int:
        return sum(gate.value for gate in self.gates)

    @property
    def count(self) -> int:
        return sum(gate.number for gate in self.gates)

    @property
    def is_closed(self) -> bool:
        """Whether every lane that got something is seen with the lane that gave it."""
        known = {name_of(gate.lane): gate for gate in self.gates}
        return all(
            name in known and known[name].given.get((name_of(gate.lane), side), 0) >= got
            for gate in self.gates
            for (name, side), got in gate.got.items()
        )


def standing(gates: Gates, *, consistent: bool) -> Program[Standing]:
    """One request: what the process's own Region holds. Raises DamagedItem, LimitMismatch and the TableErrors."""
    found = yield GetMany(tuple(map(items.gate_key, gates.lanes)), consistent)
    there = [gates.gate(lane, item) for lane, item in zip(gates.lanes, found, strict=True) if item is not None]
    return Standing(tuple(there))


def outcomes(lane: Lane, *, consistent: bool) -> Program[dict[str, int]]:
    """Every token that the lane decided, in order, with its outcome.

    Raises NotYetReplicated, DamagedItem and the TableErrors.
    """
    for _ in range(HISTORY_TRIES):
        item: Item | None = yield Get(items.gate_key(lane), consistent)
        if item is None:
            return {}
        gate = items.gate_of(lane, item)
        filed = yield from filed_upto(lane, gate.version, consistent=consistent)
        left = {token: outcome for token, outcome in filed.items() if token not in gate.recent}
        if sum(map(counts, left.values())) == gate.count:
            return dict(sorted((left | dict(gate.recent)).items()))
    raise NotYetReplicated(f"{lane}: not all that its gate counts is here yet. Nothing was written. Ask again later.")


def filed_upto(lane: Lane, version: int, *, consistent: bool = True) -> Program[dict[str, int]]:
    """What segments and late entries of that version and older list."""
    found: dict[str, int] = {}
    pages = Pages(Query(items.past_pk(lane), consistent=consistent))
    while pages.more:
        page: Page = yield from pages.read()
        for item in page.items:
            if item["sk"]["S"].startswith(items.SEGMENTS_FROM):
                filed = items.filed_of(lane, item)
                if filed.version <= version:
                    found |= filed.outcomes
            else:
                token, outcome, of = items.late_of(lane, item)
                if of <= version:
                    found[token] = outcome
    return found
