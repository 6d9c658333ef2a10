"""The canary: it adds changes to its own counter, which go the way of all changes, and publishes
how far they came.

Rule 1: It adds `fold_min` changes of 1 in one pack. A pack of so many always rings, so one that an
earlier run put and that is still in the tail long after is a fold that did not happen: stream,
ring, work queue or compactor.
Rule 2: It reads strongly before and after its put, its own Region's part of the value alone,
because the canaries of other Regions add meanwhile. Between the two that part must rise by what it
added. So a Region has one canary at a time.
Rule 4: It raises what the table refuses, so the function's errors show it.
"""

from __future__ import annotations

from typing import Any

from ledger.core import clocks, items, tokens
from ledger.core.errors import InvalidSettings
from ledger.core.requests import Get, Item, Program, Put, Result, Table
from ledger.core.running import run
from ledger.core.settings import Settings
from ledger.core.values import Delta, Lane
from ledger.lane.add import pack_of
from ledger.lane.tail import TailSum
from reader import Reader
from service.observe import Watch

COUNTER = "ledger:canary"


class Canary:
    """Raises InvalidSettings where the counter has a limit: it only ever rises."""

    def __init__(
        self,
        settings: Settings,
        table: Table,
        watch: Watch,
        *,
        clock: clocks.Clock = clocks.wall_clock,
        entropy: clocks.Entropy = clocks.entropy,
    ) -> None:
        if settings.limit_of(COUNTER) is not None:
            why = (
                f"limits: {COUNTER}, the canary's counter, rises for ever, and a prefix of "
                "limits fits it"
            )
            raise InvalidSettings(f"{why}. Choose other prefixes.")
        self._settings, self._table, self._watch = settings, table, watch
        self._clock, self._entropy = clock, entropy
        # Rule 3: the tokens are fresh and of the counter's first shard, whatever shards the
        # counter has: one lane is enough.
        self._lane = settings.lanes_of(COUNTER, settings.region)[0]
        self._reader = Reader(settings, table=table, clock=clock)

    def __call__(self) -> dict[str, Any]:
        """Add and read. The answer is for the deployment, which waits until `folded_ms` reaches
        `newest_ms`.

        Raises SettingsMismatch, DamagedItem, OutcomeUnknown and the other TableErrors.
        """
        now_ms = self._clock()
        before = self._value()
        folded_ms, oldest_ms = self._run(standing(self._lane))
        lag_ms = max(0, now_ms - oldest_ms) if oldest_ms is not None else 0
        self._watch.publish({"CanaryLagMs": lag_ms})
        added = self._settings.fold_min
        self._run(put(self._lane, [self._token(now_ms) for _ in range(added)]))
        value = self._value()
        read = value - before == added
        self._watch.publish({"CanaryWrong": int(not read)})
        shown: dict[str, Any] = {"region": self._lane.region, "added": added, "read": read}
        shown |= {"newest_ms": now_ms, "folded_ms": folded_ms, "lag_ms": lag_ms}
        if read:
            self._watch.logger.info("canary", extra=shown)
        else:
            why = "the counter did not rise by what the canary added"
            self._watch.logger.error(why, extra=shown | {"rose": value - before})
        return shown | {"value": value}

    def _value(self) -> int:
        return self._reader.read(COUNTER).by_region[self._lane.region]

    def _token(self, now_ms: int) -> str:
        number = int.from_bytes(self._entropy(tokens.RANDOM_BYTES), "big")
        return tokens.make(
            now_ms, (number - number % self._lane.shards).to_bytes(tokens.RANDOM_BYTES, "big")
        )

    def _run(self, program: Program[Result]) -> Result:
        return run(program, self._table, clocks.instants(self._clock))


def standing(lane: Lane) -> Program[tuple[int | None, int | None]]:
    """The time of a lane's watermark, and of the oldest change above it; None without one."""
    item: Item | None = yield Get(items.checkpoint_key(lane))
    watermark = items.checkpoint_of(lane, item).watermark if item is not None else None
    tail = TailSum(lane, watermark, consistent=True)
    while tail.more:
        yield from tail.read()
    return tokens.time_ms(watermark) if watermark is not None else None, tail.oldest_ms


def put(lane: Lane, names: list[str]) -> Program[None]:
    yield Put(items.pack_item(pack_of([Delta(lane, token, 1) for token in sorted(names)])))
