"""A table in memory on a clock that stands still until a test lets time pass."""

from __future__ import annotations

from datetime import datetime, timedelta

from ledger.core.checks import check_time, plain_length, to_datetime
from ledger.core.clocks import wall_clock
from ledger.tables.memory import MemoryTable

_MILLISECOND = timedelta(milliseconds=1)


class ClockedTable(MemoryTable):
    """One replica, which all Regions share, as if replication took no time, and its clock.

    Give it as `table=`, or for each Region in `tables=`, and `clock` as the clock, to Ledger,
    Reader, Compactor and Budgets. start: the time at which the clock stands, an aware datetime;
    default: now.
    """

    def __init__(self, start: datetime | None = None) -> None:
        super().__init__()
        self._time_ms = wall_clock() if start is None else check_time("start", start)

    def clock(self) -> int:
        """The time of this table, in milliseconds since 1970."""
        return self._time_ms

    def now(self) -> datetime:
        """The time of this table, for `at=`."""
        return to_datetime(self._time_ms)

    def wait(self, length: timedelta) -> None:
        """Let time pass. Raises ValueError for what is no timedelta of 0 or more."""
        plain = plain_length(length)
        if plain is None or plain < timedelta(0):
            raise ValueError(f"wait takes a timedelta of 0 or more, not {length!r}")
        self._time_ms += plain // _MILLISECOND

    def _now_ms(self) -> int:
        return self._time_ms
