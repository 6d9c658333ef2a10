"""The program `clean`: listed deltas are deleted, in two visits at least `keep_ms` apart.

Rules: the first visit notes a version that every Region's checkpoint has reached, with the time after the last Region
answered; a later visit deletes only deltas that a segment of that version or an older one lists with the same change;
a note younger than `keep_ms` is never renewed; a Region that cannot be asked, or lags, postpones the clean.
"""

from __future__ import annotations

from collections.abc import Sequence

from compactor.listing import Found, look_up
from compactor.report import Tally
from ledger import items
from ledger.errors import LedgerError
from ledger.paging import PAGES_MAX
from ledger.requests import DeleteMany, Get, Instant, Item, Now, Page, Program, Put, Query
from ledger.values import Checkpoint, CleanNote, Lane


def clean(lane: Lane, tally: Tally, regions: Sequence[str], *, keep_ms: int) -> Program[None]:
    """One visit. `regions`: every Region of the table. Raises DamagedItem, OutcomeUnknown and the other TableErrors."""
    item: Item | None = yield Get(items.checkpoint_key(lane))
    if item is None:
        return
    checkpoint = items.checkpoint_of(lane, item)
    noted: Item | None = yield Get(items.note_key(lane))
    note = items.note_of(lane, noted) if noted is not None else None
    if note is not None:
        now: Instant = yield Now()
        if now.wall_ms - note.noted_ms < keep_ms:
            return
        yield from _delete_listed(lane, tally, checkpoint.watermark, note.version)
    if note is None or note.version < checkpoint.version:
        yield from _note(lane, tally, checkpoint, regions)


def _note(lane: Lane, tally: Tally, checkpoint: Checkpoint, regions: Sequence[str]) -> Program[None]:
    """Note the checkpoint's version if every other Region has reached it; else tell which have not."""
    for region in regions:
        if region == lane.region:
            continue
        try:
            item = yield Get(items.checkpoint_key(lane), region=region)
            reached = item is not None and items.checkpoint_of(lane, item).version >= checkpoint.version
        except LedgerError:  # cut off, throttled, not allowed: whatever it is, that Region has not answered
            reached = False
        if not reached:
            tally.postponed_by.append(region)
    if not tally.postponed_by:
        now: Instant = yield Now()
        yield Put(items.note_item(CleanNote(lane, checkpoint.version, now.wall_ms)))


def _delete_listed(lane: Lane, tally: Tally, watermark: str, version: int) -> Program[None]:
    """Delete what segments up to `version` list with the same change; keep and tell what they list with another."""
    after: str | None = None
    for _ in range(PAGES_MAX):
        page: Page = yield Query(items.delta_pk(lane), after, watermark, consistent=False)
        deltas = [items.delta_of(lane, item) for item in page.items]
        found: list[Found] = yield from look_up(lane, deltas, consistent=False)
        listed = [f for f in found if f.version is not None and f.version <= version]
        same = tuple(items.delta_key(f.delta) for f in listed if f.change == f.delta.change)
        tally.conflicts += [f.delta.token for f in listed if f.change != f.delta.change]
        if same:
            yield DeleteMany(same)
            tally.cleaned += len(same)
        if page.last is None:
            break
        after = page.last
