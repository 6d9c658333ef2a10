"""The backstop: a slow scan of the table's keys finds lanes in need whose mark was lost, and picks some to verify.

Rule 1: A page a step, and the cursor is kept after each, so a crash repeats a page at most.
Rule 2: A lane with a mark is left to its mark.
Rule 3: A page holds all deltas of every lane but the first and the last one in it, because a collection's items stand
together in a scan: those two are looked at. A lane that was ever folded is known by its partition, so one that lacks
its checkpoint is in need, too: the visit tells. All reads are eventually consistent: what a pass misses, the next
finds.
Rule 4: What it finds needlessly costs a visit. Of limited counters it only tells: `gates_seen.py`.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compactor.lanes import by_lane
from compactor.outlook import Outlook, outlook
from ledger import items, tokens
from ledger.errors import DamagedItem, LedgerError
from ledger.requests import Get, GetMany, Instant, Item, Key, KeyPage, Now, Put, Scan
from ledger.settings import Settings
from ledger.values import Lane
from service.find.gates_seen import Gates, look
from service.marks import Again, key_of, mark_of
from service.runtime import chunks
from service.work import MESSAGES_MAX, Send, Work

PAGES_OF_RUN = 20
"""Pages of one run, 1 MB each."""

GRACE_MS = 120_000
"""A fold that has been due for less than this may have its mark on the way."""


@dataclass(slots=True)
class Findings:
    pages: int = 0
    forgotten: list[Lane] = field(default_factory=list)
    unread: set[Lane] = field(default_factory=set)
    """Lanes of any Region that no reader of the settings looks at."""
    gates: Gates = field(default_factory=Gates)
    picked: int = 0
    unsent: int = 0
    ended: bool = False
    """The pass came to the end of the table."""


def cursor_key(region: str) -> Key:
    return Key(f"mark#{region}#find", "cursor")


def cursor_item(region: str, after: Key | None) -> Item:
    key = cursor_key(region)
    place = {"after_pk": {"S": after.pk}, "after_sk": {"S": after.sk}} if after is not None else {}
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}, **place}


def cursor_of(item: Item | None) -> Key | None:
    """Where to go on; None, the beginning, also when nobody can read it."""
    pk, sk = ((item or {}).get(name, {}).get("S") for name in ("after_pk", "after_sk"))
    return Key(pk, sk) if isinstance(pk, str) and isinstance(sk, str) and pk and sk else None


def find(
    findings: Findings, settings: Settings, pick: Callable[[], bool], stop: Callable[[], bool]
) -> Generator[Any, Any, None]:
    """One run. pick() says whether a lane is to be verified. Raises the TableErrors."""
    item: Item | None = yield Get(cursor_key(settings.region))
    after = cursor_of(item)
    for _ in range(PAGES_OF_RUN):
        if stop():
            return
        page: KeyPage = yield Scan(after)
        folded = _folded(page.keys, after, settings.region)
        for lane in (yield from _in_need(page.keys, folded, settings)):
            now: Instant = yield Now()
            yield Again(lane, now.wall_ms, None)
            findings.forgotten.append(lane)
        findings.unread.update(lane for lane, _, _ in by_lane(page.keys) if not settings.reads(lane))
        yield from look(findings.gates, page.keys, settings)
        yield from _pick(folded, findings, pick)
        findings.pages += 1
        after = page.last
        yield Put(cursor_item(settings.region, after))
        if after is None:
            findings.ended = True
            return


def _folded(keys: Sequence[Key], after: Key | None, region: str) -> dict[Lane, bool]:
    """The lanes that were ever folded, and whether the checkpoint is there; each in the page that it begins in."""
    folded: dict[Lane, bool] = {}
    for lane, kind, key in by_lane(keys):
        if kind == "fold" and lane.region == region and (after is None or key.pk != after.pk):
            folded[lane] = folded.get(lane, False) or key == items.checkpoint_key(lane)
    return folded


def _pick(lanes: Iterable[Lane], findings: Findings, pick: Callable[[], bool]) -> Generator[Any, Any, None]:
    """Each lane that was ever folded is drawn once a pass."""
    picked = [Work(lane, verify=True) for lane in lanes if pick()]
    for chunk in chunks(picked, MESSAGES_MAX):
        try:
            unsent: tuple[Work, ...] = yield Send(tuple(chunk))
        except LedgerError:
            unsent = tuple(chunk)
        findings.picked += len(chunk) - len(unsent)
        findings.unsent += len(unsent)


def _in_need(keys: Sequence[Key], folded: Mapping[Lane, bool], settings: Settings) -> Generator[Any, Any, list[Lane]]:
    deltas: dict[Lane, list[str]] = {}
    for lane, kind, key in by_lane(keys):
        if kind == "delta" and lane.region == settings.region:
            deltas.setdefault(lane, []).append(key.sk)
    lanes = tuple({**deltas, **{lane: [] for lane, whole in folded.items() if not whole}})
    if not lanes:
        return []
    marks: tuple[Item | None, ...] = yield GetMany(tuple(map(key_of, lanes)), consistent=False)
    lanes = tuple(lane for lane, item in zip(lanes, marks, strict=True) if not _planned(item))
    if not lanes:
        return []
    checkpoints: tuple[Item | None, ...] = yield GetMany(tuple(map(items.checkpoint_key, lanes)), consistent=False)
    edges = {keys[0].pk, keys[-1].pk}
    now: Instant = yield Now()
    needy = []
    for lane, item in zip(lanes, checkpoints, strict=True):
        if item is None and lane in folded:
            needy.append(lane)
            continue
        if lane not in deltas:
            continue
        packs = any(map(items.is_pack, deltas[lane]))  # their keys do not tell what they hold
        whole = items.delta_pk(lane) not in edges and not packs
        try:
            if whole:
                found = Outlook.of(lane, item, deltas[lane], settings)
            else:
                found = yield from outlook(lane, settings, consistent=False)
        except DamagedItem:  # the visit will say so, with an alarm
            needy.append(lane)
            continue
        due = found.fold_ms is not None and found.fold_ms + GRACE_MS <= now.wall_ms
        if due or found.below or (whole and not all(map(tokens.is_token, deltas[lane]))):
            needy.append(lane)
    return needy


def _planned(item: Item | None) -> bool:
    """Whether there is a mark that says when; one that nobody can read is as good as lost."""
    mark = mark_of(item) if item is not None else None
    return mark is not None and not (mark.due_ms is None and mark.next_ms is None)
