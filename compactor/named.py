"""The program `settle_named`: of the items that somebody names, those below the watermark get into the sum.

Rule 1: Begin, then the named items strongly, then their covers strongly. An item that is gone was cleaned, so it was
listed; an eventually consistent read that does not see it yet would lose it.
Rule 2: An entry above the watermark is in the tail, but a fold that is under way may not have seen it and pass it. So
its item is named again ASK_AGAIN_MS later: by then each such fold has committed or never will (fold.py, rule 4), and
every other one sees it. Once is not enough, and twice is.
Rule 3: A damaged item hides no other: it is told when the others are settled.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from compactor.commit import begin
from compactor.report import Tally
from compactor.settle import COMMITS_MAX, settle_these
from ledger import items, tokens
from ledger.errors import DamagedItem
from ledger.paging import Pages
from ledger.requests import GetMany, Item, Key, Page, Program, Query, key_of
from ledger.tail import HIGHEST, LOWEST
from ledger.values import Lane

ASK_AGAIN_MS = 300_000
"""Twice what a commit may come after its Query, and a minute for what was sent at the last moment."""

KEYS_MAX, BETWEEN_MAX = 100, 10
"""Of what is named; more is named by fewer and wider ranges, so that a message stays small however much is joined."""


@dataclass(frozen=True, slots=True)
class Named:
    """Items of a lane by their sort keys. between: pairs of a first and a last one, and all that are in between."""

    keys: tuple[str, ...] = ()
    between: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, keys: Iterable[str]) -> "Named":
        """These; many are named by the first and the last."""
        some = sorted(set(keys))
        return cls(tuple(some)) if len(some) <= KEYS_MAX else cls((), ((some[0], some[-1]),))

    def __bool__(self) -> bool:
        return bool(self.keys or self.between)

    def __or__(self, other: "Named") -> "Named":
        named = Named.of((*self.keys, *other.keys))
        between = sorted({*self.between, *other.between, *named.between})
        if len(between) > BETWEEN_MAX:
            between = [(between[0][0], max(last for _, last in between))]
        return Named(named.keys, tuple(between))


def settle_named(
    lane: Lane, tally: Tally, named: Named, *, fold_max: int, commits_max: int = COMMITS_MAX
) -> Program[Named]:
    """Settle what is named; those that have entries above the watermark, to be named again.

    Raises GaveUp, LaneDamaged, DamagedItem, OutcomeUnknown and the other TableErrors; what was committed stays.
    """
    checkpoint = yield from begin(lane)
    if checkpoint is None:
        return named
    watermark = tokens.to_bytes(checkpoint.watermark)
    above: list[Named] = []
    below: list[bytes] = []
    damage: DamagedItem | None = None
    for part in _parts(named):
        reading = _Reading(lane, part)
        while reading.more:
            for item in (yield from reading.read()):
                try:
                    held = items.entries_of(lane, item)
                except DamagedItem as error:
                    damage = error
                    continue
                if len(held.between(watermark, HIGHEST)):
                    above.append(part if part.between else Named((key_of(item).sk,)))
                below += held.between(LOWEST, watermark).apart
    yield from settle_these(lane, tally, below, fold_max=fold_max, commits_max=commits_max)
    if damage is not None:
        raise damage
    return reduce(Named.__or__, above, Named())


def _parts(named: Named) -> list[Named]:
    return [*([Named(named.keys)] if named.keys else []), *(Named((), (pair,)) for pair in named.between)]


class _Reading:
    """The named items that are there, read strongly: `while reading.more: items = yield from reading.read()`."""

    def __init__(self, lane: Lane, part: Named) -> None:
        self.more = True
        self._pk, self._keys = items.delta_pk(lane), part.keys
        self._pages: Pages[Query] | None = None
        for first, last in part.between:
            self._keys, self._pages = (first,), Pages(Query(self._pk, first, last))

    def read(self) -> Program[list[Item]]:
        if self._keys:
            found: tuple[Any, ...] = yield GetMany(tuple(Key(self._pk, sk) for sk in self._keys))
            self._keys, self.more = (), self._pages is not None
            return [item for item in found if item is not None]
        assert self._pages is not None
        page: Page = yield from self._pages.read()
        self.more = self._pages.more
        return list(page.items)
