"""The program `settle_named` puts the named items below the watermark into the sum.

Rule 1: Begin, then read the named items strongly, then their covers strongly. An item that is gone
was cleaned, so it was listed; an eventually consistent read that does not see it yet would lose it.
Rule 2: An entry above the watermark is in the tail, but a fold in progress may not have seen it and
pass it. So its item is named again ASK_AGAIN_MS later: by then each such fold has committed or
never will (fold.py, rule 5), and every other fold sees it. Naming once is not enough, and twice is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from compactor.commit import begin
from compactor.known import KnownCovers
from compactor.report import Tally
from compactor.settle import COMMITS_MAX, settle_these
from ledger.core import items, tokens
from ledger.core.errors import DamagedItem
from ledger.core.requests import GetMany, Item, Key, Page, Program, Query, key_of
from ledger.core.values import Lane
from ledger.lane.named import Named
from ledger.lane.tail import HIGHEST, LOWEST

ASK_AGAIN_MS = 300_000
"""Twice the time that a commit may come after its Query, and a minute for a request of the last
moment.
"""

KEYS_READ = 100
"""How many named items are read, and settled, at once."""


@dataclass(slots=True)
class Naming:
    """How far named items are settled, page by page: a program that was stopped goes on behind the
    last page.

    left: not yet. above: with entries above the watermark, to be named again. damaged: unreadable.
    """

    left: Named
    above: Named = field(default_factory=Named)
    damaged: Named = field(default_factory=Named)

    @property
    def undone(self) -> Named:
        """The items that the next program has to name."""
        return self.left | self.damaged


def settle_named(
    lane: Lane,
    tally: Tally,
    naming: Naming,
    *,
    fold_max: int,
    commits_max: int = COMMITS_MAX,
    known: KnownCovers | None = None,
) -> Program[None]:
    """Settle the named items, and note in `naming` how far that went. `tally.unsettled`:
    `commits_max` stopped it. known: the covers that this process remembers.

    Raises GaveUp, LaneDamaged, DamagedItem, OutcomeUnknown and the other TableErrors; earlier
    commits stay.
    """
    last, damage = tally.commits + commits_max, None
    while naming.left:
        checkpoint = yield from begin(lane)
        if checkpoint is None:
            naming.left, naming.above = Named(), naming.above | naming.left
            break
        page, rest = yield from _page(items.delta_pk(lane), naming.left)
        found = _sorted(lane, page, tokens.to_bytes(checkpoint.watermark))
        yield from settle_these(
            lane,
            tally,
            found.below,
            fold_max=fold_max,
            commits_max=last - tally.commits,
            begun=checkpoint,
            known=known,
        )
        if tally.unsettled:  # this page again
            return
        naming.left, naming.above = rest, naming.above | Named.of(found.above)
        naming.damaged |= Named.of(found.damaged)
        damage = found.damage or damage
    if damage is not None:  # raised at the end: a damaged item hides no other one
        raise damage


class _Sorted(NamedTuple):
    """Named items. below: their entries at or below the watermark. above: the keys of those with
    entries above it. damaged: the keys of those that are unreadable; damage: why the last of them
    is.
    """

    below: list[bytes]
    above: list[str]
    damaged: list[str]
    damage: DamagedItem | None


def _sorted(lane: Lane, page: Sequence[Item], watermark: bytes) -> _Sorted:
    below: list[bytes] = []
    above: list[str] = []
    damaged: list[str] = []
    damage = None
    for item in page:
        key = key_of(item).sk
        try:
            held = items.entries_of(lane, item)
        except DamagedItem as error:
            damaged.append(key)
            damage = error
            continue
        if len(held.between(watermark, HIGHEST)):
            above.append(key)
        below += held.between(LOWEST, watermark).apart
    return _Sorted(below, above, damaged, damage)


def _page(pk: str, named: Named) -> Program[tuple[list[Item], Named]]:
    """The first of the named items that are there, read strongly, and the rest of the names."""
    pair, ranges = (None, named.between) if named.keys else (named.between[0], named.between[1:])
    keys = named.keys[:KEYS_READ] if pair is None else pair[:1]
    answers: tuple[Any, ...] = yield GetMany(tuple(Key(pk, sk) for sk in keys))
    found = [item for item in answers if item is not None]
    if pair is None:
        return found, Named(named.keys[KEYS_READ:], ranges)
    page: Page = yield Query(pk, *pair)
    more = ((page.last, pair[1]),) if page.last is not None else ()
    return [*found, *page.items], Named((), (*more, *ranges))
