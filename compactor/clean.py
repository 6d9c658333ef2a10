"""The program `clean` deletes listed deltas, in two visits at least `keep_ms` apart.

Rule 1: The first visit notes a version that every Region's checkpoint has reached, with the time
after the last answer.
Rule 2: A later visit deletes a delta if a segment of that version or an older one lists it with the
same change, and only while it has that change; a pack, if each of its entries is listed so.
Rule 3: No visit renews a note younger than `keep_ms`, unless it is from the future.
"""

from collections.abc import Iterator, Sequence, Set

from compactor.listing import Below
from compactor.report import Tally
from ledger.core import items, tokens
from ledger.core.cost import item_bytes, write_units
from ledger.core.entries import TOKEN_BYTES, Entries
from ledger.core.errors import LedgerError
from ledger.core.requests import (
    AlreadyThere,
    At,
    DeleteMany,
    Get,
    Instant,
    Item,
    Now,
    Pause,
    Program,
    Put,
    key_of,
)
from ledger.core.running import answered
from ledger.core.settings import Settings
from ledger.core.values import Checkpoint, CleanNote, Lane

DELETES_MAX, UNITS_MAX = 100, 100
"""Deletes of one request, and their write units."""

DELETING_MAX_MS = 60_000
"""How long a visit reads and deletes; the rest waits for the next one, because the fold comes
after the clean.
"""

AHEAD_MAX_MS = 300_000
"""A wrong clock wrote a note from further ahead: waiting for its time could take for ever."""

STRAYS_MAX = 100_000
"""The most strays that one visit hands on; the next one sees the others again."""


def clean(lane: Lane, tally: Tally, settings: Settings) -> Program[list[bytes]]:
    """Do one visit. Raises DamagedItem, OutcomeUnknown and the other TableErrors.

    It returns the entries that it saw listed nowhere, for settle: 24 bytes each, by eventually
    consistent reads.
    """
    strays: list[bytes] = []
    item: Item | None = yield Get(items.checkpoint_key(lane))
    if item is None:
        return strays
    checkpoint = items.checkpoint_of(lane, item)
    noted: Item | None = yield Get(items.note_key(lane))
    note = items.note_of(lane, noted) if noted is not None else None
    if note is not None:
        now: Instant = yield Now()
        if is_young(note.noted_ms, now.wall_ms, settings.keep_ms):
            return strays
        if note.noted_ms > now.wall_ms:  # a wrong clock wrote it
            note = None
        else:
            pace = settings.clean_units_per_s
            ended = yield from _delete_listed(
                lane, tally, checkpoint.watermark, note.version, now, pace, strays
            )
            # if nothing could be deleted, a later version may list what is there
            if not ended and tally.cleaned:
                tally.uncleaned = True
                return strays
    if note is None or note.version < checkpoint.version:
        yield from _note(lane, tally, checkpoint, settings.regions)
    return strays


def is_young(noted_ms: int, now_ms: int, keep_ms: int) -> bool:
    """Whether a clean waits for a note to grow older (Rule 3)."""
    return -AHEAD_MAX_MS <= now_ms - noted_ms < keep_ms


def _note(
    lane: Lane, tally: Tally, checkpoint: Checkpoint, regions: Sequence[str]
) -> Program[None]:
    """Note the checkpoint's version if every other Region has reached it; else report which have
    not.
    """
    for region in regions:
        if region == lane.region:
            continue
        try:
            item = yield At(region, Get(items.checkpoint_key(lane)))
            reached = (
                item is not None and items.checkpoint_of(lane, item).version >= checkpoint.version
            )
        except LedgerError:  # cut off, throttled or not allowed: that Region has not answered
            reached = False
        if not reached:  # Rule 1: this Region may hold an older checkpoint
            tally.postponed_by.append(region)
    if not tally.postponed_by:
        now: Instant = yield Now()
        yield Put(items.note_item(CleanNote(lane, checkpoint.version, now.wall_ms)))


def _delete_listed(
    lane: Lane,
    tally: Tally,
    watermark: str,
    version: int,
    began: Instant,
    units_per_s: int,
    strays: list[bytes],
) -> Program[bool]:
    """Delete deltas that segments up to `version` list with the same change; keep and report those
    that they list with another; add to `strays` those that no segment lists.

    It returns whether it came to its end.
    """
    spent, most = 0, min(UNITS_MAX, units_per_s)
    # whole: a pack that reaches above the watermark has an entry that no segment lists
    below = Below(lane, watermark, consistent=False, whole=True, versions_upto=version)
    while below.more:
        if below.upto is not None and not (yield from _wait(began, spent, units_per_s)):
            return False
        found = yield from below.read()
        # settle learns from here of a stray that everything else forgot
        strays += found.unlisted[: STRAYS_MAX - len(strays)]
        listed = found.as_listed
        tally.conflicts += _conflicts([held for _, held in below.page], listed)
        same = [(item, held) for item, held in below.page if listed.issuperset(held.apart)]
        for deletes, units in _requests(same, most):
            if spent and not (yield from _wait(began, spent, units_per_s)):
                return False
            yield from _delete(tally, deletes)
            spent += units
    return True


def _conflicts(page: Sequence[Entries], listed: Set[bytes]) -> list[str]:
    """The tokens that segments list with another change than an item has."""
    others = {
        entry[:TOKEN_BYTES] for entry in set[bytes]().union(*(held.apart for held in page)) - listed
    }
    taken = others and {entry[:TOKEN_BYTES] for entry in listed}
    return [tokens.from_bytes(token) for token in sorted(others & taken)]


def _requests(
    deletes: Sequence[tuple[Item, Entries]], most: int
) -> Iterator[tuple[list[tuple[Item, Entries]], int]]:
    """Yield the deletes of each request, and their write units: `most` at most, unless a single
    one takes more.
    """
    batch: list[tuple[Item, Entries]] = []
    spent = 0
    for item, held in deletes:
        units = write_units(item_bytes(item))
        if batch and (len(batch) == DELETES_MAX or spent + units > most):
            yield batch, spent
            batch, spent = [], 0
        batch.append((item, held))
        spent += units
    if batch:
        yield batch, spent


def _delete(tally: Tally, deletes: Sequence[tuple[Item, Entries]]) -> Program[None]:
    """Delete each item; a delta only while it has its change: one put meanwhile with another
    proves a conflict.
    """
    answers = yield DeleteMany(tuple(items.as_seen(item) for item, _ in deletes))
    for (item, held), answer in zip(deletes, answers, strict=True):
        tally.cleaned += len(held) if answer is None else 0
        if isinstance(answer, AlreadyThere):
            tally.conflicts.append(key_of(item).sk)
    answered(answers)


def _wait(began: Instant, spent: int, units_per_s: int) -> Program[bool]:
    """Wait until `spent` write units fit the time, because adds need the same partition. False when
    the visit has no more time.
    """
    now: Instant = yield Now()
    passed_ms = now.steady_ms - began.steady_ms
    due_ms = spent * 1_000 // units_per_s
    if max(passed_ms, due_ms) > DELETING_MAX_MS:
        return False
    if due_ms > passed_ms:
        yield Pause(due_ms - passed_ms)
    return True
