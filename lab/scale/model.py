"""A lane of the service, without its table: when it rings, is looked at and visited, and what that is charged.

Rule 1: The draw is the shipped one, and so are all constants. What the handlers decide is written down here once more,
short, so that years of lanes pass in seconds; what the shipped functions do with the same load stands beside it
(lives.py), and a test holds the two together.
Rule 2: A lane is looked at from when it has been at work for a while. Its tail is weighed by time.
Rule 3: No sweep, no failure, one process of `ring` for each lane; it forgets every PROCESS_S.
"""

import heapq
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from compactor.named import ASK_AGAIN_MS
from lab.scale.region import PROCESS_MS
from lab.scale.tails import Tails
from ledger.cost import TRANSACTIONAL, read_units, write_units
from ledger.entries import ENTRY
from ledger.requests import Key
from ledger.settings import Settings
from ledgerctl.sizes import CHECKPOINT_BYTES, DELTA_BYTES, NOTE_BYTES, PACK_BYTES, SEGMENT_BYTES
from service.compact.serve import BUSY_PER_S, COMMITS_OF_VISIT
from service.ring.draw import rings
from service.ring.records import ROUNDED_MS
from service.ring.ring import EVERY_S, delay_s

SETTINGS = Settings(table="counters", region="eu-west-1")
PROCESS_S = PROCESS_MS / 1_000
LATENESS_S = SETTINGS.allowed_lateness_ms / 1_000
RING, FOLLOWS, NAMED, AGAIN = "ring", "follows", "named", "again"

Coming = Iterator[tuple[float, float]]
"""(when it is put, the time of its token) of each item, in seconds and in order of the first."""


@dataclass(slots=True)
class Told:
    """What became of a lane. changes are put; visits fold; messages and what they were about; units by what for."""

    changes: int = 0
    items: int = 0
    messages: Counter[str] = field(default_factory=Counter)
    spared: int = 0
    visits: int = 0
    looks: int = 0
    settles: int = 0
    write_units: Counter[str] = field(default_factory=Counter)
    read_units: Counter[str] = field(default_factory=Counter)
    tails: Tails = field(default_factory=Tails)

    def writes(self, *what: str) -> float:
        """Of a change, for these or for all."""
        return sum(units for name, units in self.write_units.items() if name in what or not what) / self.changes

    def reads(self, *what: str) -> float:
        return sum(units for name, units in self.read_units.items() if name in what or not what) / self.changes

    @property
    def all_messages(self) -> int:
        return sum(self.messages.values())


class LaneModel:
    """each: changes of an item. draw_k: an item of n changes rings with n / draw_k; fold_min where that is not said."""

    def __init__(self, name: str, each: int = 1, settings: Settings = SETTINGS, draw_k: int | None = None) -> None:
        self.told = Told()
        self._pk, self._each, self._settings = f"delta#eu-west-1#0#{name}", each, settings
        self._draw_k = draw_k or settings.fold_min
        self._item_bytes = DELTA_BYTES if each == 1 else PACK_BYTES + each * ENTRY.size
        self._tail: list[float] = []  # the times of the items above the watermark
        self._watermark, self._version = -1e9, 0
        self._segment = 0  # bytes of the last one
        self._new, self._noted = [0, 0], [0, 0]  # (items, segments) folded since the note, and those that it lists
        self._note_s: float | None = None
        self._rung_s = -1e9
        self._messages: list[tuple[float, int, str, float]] = []
        self._order = count()
        self._looked_s = 0.0

    def run(self, coming: Coming, items: int) -> None:
        """So many items come, and all is done that is due before the last."""
        for _ in range(items):
            at_s, token_s = next(coming)
            while self._messages and self._messages[0][0] <= at_s:
                due_s, _, about, what = heapq.heappop(self._messages)
                self._pass(due_s)
                self._serve(due_s, about, what)
            self._pass(at_s)
            self._put(at_s, token_s)

    def forget(self) -> None:
        """What comes from now on is told, and nothing of before."""
        self.told = Told()

    def _pass(self, at_s: float) -> None:
        self.told.tails.add(len(self._tail) * self._each, at_s - self._looked_s)
        self._looked_s = at_s

    def _put(self, at_s: float, token_s: float) -> None:
        told = self.told
        told.items += 1
        told.changes += self._each
        told.write_units["put"] += write_units(self._item_bytes)
        if token_s > self._watermark:
            insort(self._tail, token_s)
        made_s = int(at_s) + ROUNDED_MS / 1_000
        if made_s - token_s > LATENESS_S / 2:
            self._send(at_s, NAMED, token_s)
        if rings(Key(self._pk, str(told.items)), self._each, self._draw_k):
            is_new = int(self._rung_s / PROCESS_S) != int(at_s / PROCESS_S)
            if not is_new and at_s - self._rung_s <= EVERY_S:
                told.spared += 1
            else:
                self._rung_s = at_s
                self._send(at_s + delay_s(self._settings, EVERY_S), RING)

    def _send(self, at_s: float, about: str, what: float = 0.0) -> None:
        self.told.messages[about] += 1
        heapq.heappush(self._messages, (at_s, next(self._order), about, what))

    def _serve(self, now_s: float, about: str, what: float) -> None:
        if about in (NAMED, AGAIN):
            self._settle(now_s, about, what)
            return
        least = -(-self._settings.fold_min // self._each)  # items
        seen = min(len(self._tail), least) * self._item_bytes
        self._read("look", read_units(CHECKPOINT_BYTES, consistent=False), read_units(seen, consistent=False))
        is_short = len(self._tail) < least
        if is_short or (about == FOLLOWS and self._version > what):
            self.told.looks += 1
            return
        due_s = self._tail[least - 1] + LATENESS_S
        if due_s > now_s:
            self.told.looks += 1
            self._send(due_s, RING)
            return
        self.told.visits += 1
        self._clean(now_s)
        self._fold(now_s)

    def _clean(self, now_s: float) -> None:
        if not self._version or not self._settings.clean:
            return
        self._read("clean", 1, 1)
        if self._note_s is not None and now_s - self._note_s < self._settings.keep_ms / 1_000:
            return
        if self._note_s is not None:
            below = (self._new[0] + self._noted[0]) * self._item_bytes
            segments = self._new[1] + self._noted[1]
            self._read("clean", read_units(below, consistent=False), segments * self._cover(consistent=False))
            self.told.write_units["delete"] += self._noted[0] * write_units(self._item_bytes)
        self.told.write_units["note"] += write_units(NOTE_BYTES)
        self._noted, self._new, self._note_s = self._new, [0, 0], now_s

    def _cover(self, *, consistent: bool) -> float:
        """One segment, and the look for others under its hi."""
        return read_units(self._segment, consistent=consistent) + read_units(0, consistent=consistent)

    def _begin(self) -> float:
        return 1 + read_units(self._segment, consistent=True)

    def _fold(self, now_s: float) -> None:
        before_s, cutoff_s = self._watermark, now_s - LATENESS_S
        self._read("fold", self._begin(), read_units(len(self._tail) * self._item_bytes, consistent=True))
        folded = commits = 0
        while commits < COMMITS_OF_VISIT:
            items = min(bisect_right(self._tail, cutoff_s), self._settings.fold_max // self._each)
            if items * self._each < self._settings.fold_min:
                break
            self._watermark = self._tail[items - 1]
            del self._tail[:items]
            self._segment = SEGMENT_BYTES + ENTRY.size * items * self._each
            self._commit()
            self._new = [self._new[0] + items, self._new[1] + 1]
            folded += items * self._each
            commits += 1
            self._read("fold", self._begin())
        if commits == COMMITS_OF_VISIT:
            self._send(now_s, RING)
            return
        self._read("fold", 1)
        if before_s > 0 and folded >= BUSY_PER_S * max(0.001, self._watermark - before_s):
            self._send(now_s + LATENESS_S, FOLLOWS, self._version)

    def _commit(self) -> None:
        self._version += 1
        units = write_units(CHECKPOINT_BYTES) + write_units(self._segment)
        self.told.write_units["commit"] += TRANSACTIONAL * units

    def _settle(self, now_s: float, about: str, token_s: float) -> None:
        """One item by its name."""
        self.told.settles += 1
        if not self._version:
            return
        self._read("settle", self._begin(), 1)
        if token_s > self._watermark:
            if about == NAMED:
                self._send(now_s + ASK_AGAIN_MS / 1_000, AGAIN, token_s)
            return
        self._read("settle", self._begin(), self._cover(consistent=True))
        if about == NAMED:  # else a fold has listed it meanwhile
            self._segment = SEGMENT_BYTES + ENTRY.size * self._each
            self._commit()

    def _read(self, what: str, *units: float) -> None:
        self.told.read_units[what] += sum(units)  # type: ignore[assignment]
