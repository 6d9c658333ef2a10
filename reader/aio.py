"""`AsyncReader`: a Reader whose calls are awaited, on aiobotocore.

Rule 1: its calls send and answer what those of `Reader` do, by the same programs.
Rule 2: of tasks that read the same counter at once, one loads; if it fails or is cancelled, the
next one does (`cache.py`). A task that is interrupted, at any line, leaves no load behind.
"""

import asyncio
from collections.abc import Iterable, Sequence
from math import inf
from typing import Unpack

from ledger.core import clocks
from ledger.core.checks import check_counter
from ledger.core.observing import READ, Observe, observed
from ledger.core.settings import Settings
from ledger.tables.aio import Edge, awaited, drive
from ledger.tables.dynamo import Given
from reader.balance import Balance
from reader.cache import WAIT_S, Began, Cache
from reader.counters_page import counters
from reader.crossed import crossed
from reader.histories import history, history_page
from reader.periods import periods
from reader.rules import Rules, names_of
from reader.series import series, value_at
from reader.standing import holds, standing
from reader.top import top


class AsyncReader(Edge):
    """Reads counters inside `async with`, for the tasks of one event loop: make one in each loop
    and keep it.

    client and table as for AsyncLedger; all arguments, answers and errors are otherwise those of
    `Reader`.
    """

    _rules: Rules

    def __init__(
        self,
        settings: Settings,
        ttl: float = 5.0,
        *,
        consistent: bool = True,
        clock: clocks.Clock = clocks.wall_clock,
        observe: Observe | None = None,
        **given: Unpack[Given],
    ) -> None:
        super().__init__(settings, Rules(settings, ttl, consistent, clock), observe, **given)
        self.ttl = self._rules.ttl
        self._cache = Cache(self._rules.now, asyncio.Event.set, waits_max=inf)

    @observed("reader.value", READ)
    async def value(self, counter: str) -> int:
        """As `Reader.value`."""
        return (await self._read(check_counter(counter), self.ttl, 0)).value

    @observed("reader.values", READ)
    async def values(self, counters: Iterable[str]) -> dict[str, int]:
        """As `Reader.values`."""
        names = names_of(counters)
        self._check_loop()
        known = self._cache.young(names, self.ttl)
        lacking = [name for name in names if name not in known]
        known |= await self._load(lacking) if lacking else {}
        return {name: known[name].value for name in names}

    @observed("reader.read", READ)
    async def read(self, counter: str, max_age: float = 0, *, behind: float = 0) -> Balance:
        """As `Reader.read`."""
        return await self._read(*self._rules.checked(counter, max_age, behind))

    async def _read(self, counter: str, most_s: float, behind_ms: int) -> Balance:
        self._check_loop()
        if not most_s:
            return (await self._load([counter], behind_ms))[counter]
        mine = asyncio.Event()
        try:
            known = await drive(self._cache.known(counter, most_s, mine), _has_ended)
            balance = known or (await self._load([counter]))[counter]
            self._cache.end(counter, mine)
        except BaseException:  # also of an interruption in `end`
            self._cache.end(counter, mine)
            raise
        return balance

    history = awaited(history, "reader.history", READ)
    """As `Reader.history`; it sends all its requests when you await it."""
    history_page = awaited(history_page, "reader.history_page", READ)
    """As `Reader.history_page`."""
    series = awaited(series, "reader.series", READ)
    """As `Reader.series`."""
    value_at = awaited(value_at, "reader.value_at", READ)
    """As `Reader.value_at`."""
    counters = awaited(counters, "reader.counters", READ)
    """As `Reader.counters`."""
    top = awaited(top, "reader.top", READ)
    """As `Reader.top`."""
    crossed = awaited(crossed, "reader.crossed", READ)
    """As `Reader.crossed`."""
    standing = awaited(standing, "reader.standing", READ)
    """As `Reader.standing`."""
    periods = awaited(periods, "reader.periods", READ)
    """As `Reader.periods`."""
    holds = awaited(holds, "reader.holds", READ)
    """As `Reader.holds`."""

    async def _load(self, counters: Sequence[str], behind_ms: int = 0) -> dict[str, Balance]:
        began = Began(next(self._cache.numbers), self._rules.now())
        found = await self._run(self._rules.balances(counters, behind_ms))
        if not behind_ms:
            self._cache.keep(found, began)
        return found


async def _has_ended(load: asyncio.Event) -> bool:
    """Wait for a load of another task; whether it ended in time."""
    try:
        async with asyncio.timeout(WAIT_S):
            await load.wait()
    except TimeoutError:
        return False
    return True
