"""`Plan`: what the settings say of one counter: its lanes, its limit, its period.

Rule 1: of each setting that maps prefixes, the longest prefix that fits the name decides.
Rule 2: a plan is made once for each counter (`settings.plan_of`), and code that has it looks
nothing up. No other code looks for the prefixes of one counter, or asks whether a period is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

from ledger.core import tokens
from ledger.core.checks import to_datetime
from ledger.core.errors import InvalidCounter, InvalidTime
from ledger.core.keep import Keep, Term
from ledger.core.limit import Limit, Threshold
from ledger.core.period import check_base
from ledger.core.values import Lane

Rule = TypeVar("Rule")

LANES_MAX = 10_000
_lane = lru_cache(LANES_MAX)(Lane)
"""A lane checks itself when it is made; those that a process uses again are made once."""


class Plan(NamedTuple):
    """counter: its name. regions: of the settings. shards: how many lanes it has in each of them.

    limit: None where it has none. thresholds: whichever Region publishes them. keep: of its
    periods; None where no prefix of periods fits its name. term: its period; None of a base, and
    where keep is None. retires_s: the second since 1970 from which on the table may delete its
    items; 0: never.
    """

    counter: str
    regions: tuple[str, ...]
    shards: int
    limit: Limit | None
    thresholds: tuple[Threshold, ...]
    keep: Keep | None
    term: Term | None
    retires_s: int

    def lane_for(self, token: str, region: str) -> Lane:
        """The lane of a change.

        It follows from these alone, so that a retry finds the lane of its first attempt.
        """
        number = self.shards
        shard = tokens.draw(token, number) if number > 1 else 0
        return _lane(region, shard, self.counter, number, self.retires_s)

    def lanes(self, region: str | None = None) -> tuple[Lane, ...]:
        """Every lane of the counter, or those of one Region."""
        return tuple(
            _lane(of, shard, self.counter, self.shards, self.retires_s)
            for of in (self.regions if region is None else (region,))
            for shard in range(self.shards)
        )

    def check_good_for(self, token: str) -> None:
        """Raises InvalidCounter for a base, and InvalidTime where the time in a change's token is
        not in the name's period.
        """
        if self.keep is None:
            return
        if self.term is None:
            raise InvalidCounter(
                f"{self.counter} ends with no period, and counters with its prefix have periods. "
                "Nothing was written. End the name with a period such as @2026-11: Period.name "
                "makes it from a time."
            )
        check_base(self.term.base)
        self.check_window()
        time_ms = tokens.time_ms(token)
        if not self.term.is_good_for(time_ms):
            raise InvalidTime(
                f"{to_datetime(time_ms).isoformat()} is not in the period of {self.counter}. "
                "Nothing was written. Name the counter by the time of the change, once, before "
                "its first attempt: Period.name does."
            )

    def check_window(self) -> None:
        """Raises InvalidCounter for a window that begins where none does by the anchor."""
        if self.term is not None:
            self.term.check_window()

    def check_takes(self, now_ms: int) -> None:
        """Raises PeriodOver where the counter is a period that takes no more changes."""
        if self.term is not None:
            self.term.check_takes(now_ms)

    def is_kept(self, now_ms: int) -> bool:
        """Whether the counter can be read: not when it is a period whose items may retire."""
        return self.term is None or now_ms < self.term.kept_until_ms

    def check_kept(self, now_ms: int) -> None:
        """Raises PeriodOver where the counter can no longer be read."""
        if self.term is not None:
            self.term.check_kept(now_ms)


def longest(prefixes: Iterable[str], counter: str) -> str | None:
    """The longest prefix that fits a name; None when none fits."""
    return max((prefix for prefix in prefixes if counter.startswith(prefix)), key=len, default=None)


def rule_of(rules: Mapping[str, Rule], counter: str, default: Rule) -> Rule:
    """The rule of the longest prefix that fits a name."""
    prefix = longest(rules, counter)
    return default if prefix is None else rules[prefix]
