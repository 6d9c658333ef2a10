"""The lanes of a counter, and the lane of a change: pure, because a retry must find the lane of its first attempt.

Rule 1: the lane follows from the counter's name, the token and the home Region alone, under the shards of its prefix.
Rule 2: the longest prefix that fits a name decides; without one there is a single shard.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from ledger import tokens
from ledger.checks import check_counter
from ledger.values import Lane

Rule = TypeVar("Rule")

Shards = Mapping[str, int]
"""The number of shards of the counters whose names begin with a prefix."""


def of_prefix(rules: Mapping[str, Rule], counter: str) -> Rule | None:
    """What is said of the longest prefix that fits a name; None when none fits."""
    prefix = longest(rules, counter)
    return None if prefix is None else rules[prefix]


def longest(prefixes: Iterable[str], counter: str) -> str | None:
    """The longest of the prefixes that fit a name; None when none fits."""
    return max((prefix for prefix in prefixes if counter.startswith(prefix)), key=len, default=None)


def shards_of(shards: Shards, counter: str) -> int:
    return of_prefix(shards, counter) or 1


def lane_for(shards: Shards, counter: str, token: str, region: str) -> Lane:
    number = shards_of(shards, counter)
    return Lane(region, tokens.draw(token, number) if number > 1 else 0, counter, number)


def lanes_of(shards: Shards, counter: str, regions: Iterable[str]) -> tuple[Lane, ...]:
    """Raises InvalidCounter."""
    counter = check_counter(counter)
    number = shards_of(shards, counter)
    return tuple(Lane(region, shard, counter, number) for region in regions for shard in range(number))
