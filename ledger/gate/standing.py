"""The programs that read limited lanes: their standing, and all that they ever decided.

Rule 1: a counter's value is the sum of what each gate says. A read takes copies of other Regions' gates, each of its
own moment, so it may have a sale without the delivery that funded it. It is *closed* when everything that was taken
over is seen as given: then it is certainly within the limit.
Rule 2: a history is what the gate has not filed, and what segments and late entries of its version or older list. It
must list as many changes as the gate counts, else it is read again: a roll went by.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.errors import NotYetReplicated
from ledger.gate import items
from ledger.gate.filed import Filed
from ledger.gate.gate import Gate, name_of
from ledger.gate.gates import Gates
from ledger.gate.outcome import counts
from ledger.paging import Pages
from ledger.requests import Get, GetMany, Item, Page, Program, Query
from ledger.values import Lane

HISTORY_TRIES = 5

Listed = tuple[int, str, int]
"""(version, token, outcome), as often as it is listed."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The gates of a counter as one Region sees them; those that are not there have decided nothing."""

    gates: tuple[Gate, ...]

    @classmethod
    def of(cls, gates: Gates, found: Sequence[Item | None]) -> "Standing":
        """From the items of its gates, in the order of the lanes. Raises DamagedItem and LimitMismatch."""
        there = zip(gates.lanes, found, strict=True)
        return cls(tuple(gates.gate(lane, item) for lane, item in there if item is not None))

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
    return Standing.of(gates, (yield GetMany(tuple(map(items.gate_key, gates.lanes)), consistent)))


def outcomes(lane: Lane, *, consistent: bool) -> Program[dict[str, int]]:
    """Every token that the lane decided, in order, with its outcome.

    What counts is whole. From copies, in a Region that lags, refusals and holds that ended without a change may be
    missing: the gate does not count them. Raises NotYetReplicated, DamagedItem and the TableErrors.
    """
    for _ in range(HISTORY_TRIES):
        item: Item | None = yield Get(items.gate_key(lane), consistent)
        if item is None:
            return {}
        gate = items.gate_of(lane, item)
        listed = yield from listed_in(lane, consistent=consistent)
        left = filed_by(gate, listed)
        if sum(map(counts, left.values())) == gate.count:
            return dict(sorted((left | dict(gate.recent)).items()))
    raise NotYetReplicated(f"{lane}: not all that its gate counts is here yet. Nothing was written. Ask again later.")


def filed_by(gate: Gate, listed: Iterable[Listed]) -> dict[str, int]:
    """What the gate says that it filed: up to its version, and no longer in it."""
    return {token: n for version, token, n in listed if version <= gate.version and token not in gate.recent}


def listed_in(lane: Lane, *, consistent: bool) -> Program[list[Listed]]:
    """All that segments and late entries list. Raises DamagedItem and the TableErrors."""
    segments, late = yield from past_in(lane, consistent=consistent)
    return [*late, *entries_of(segments)]


def entries_of(segments: Iterable[Filed]) -> list[Listed]:
    return [(filed.version, token, outcome) for filed in segments for token, outcome in filed.outcomes.items()]


def past_in(lane: Lane, *, consistent: bool) -> Program[tuple[list[Filed], list[Listed]]]:
    """The segments, in the order of their `hi`, and the late entries. Raises DamagedItem and the TableErrors."""
    segments: list[Filed] = []
    late: list[Listed] = []
    pages = Pages(Query(items.past_pk(lane), consistent=consistent))
    while pages.more:
        page: Page = yield from pages.read()
        for item in page.items:
            if item["sk"]["S"].startswith(items.SEGMENTS_FROM):
                segments.append(items.filed_of(lane, item))
            else:
                token, outcome, version = items.late_of(lane, item)
                late.append((version, token, outcome))
    return segments, late
