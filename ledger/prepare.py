"""From what a caller asks for to the delta that is put: pure, but for the clock and the entropy that are passed.

Rule 1: nothing is sent, so every refusal says that nothing was written.
Rule 2: with a key the token follows from the counter, the key and `at`, so that a retry names the same item; without
one it is drawn here, once, and is the caller's to keep.
"""

from collections.abc import Callable
from datetime import datetime

from ledger import tokens
from ledger.checks import check_counter, check_key, check_time, to_datetime
from ledger.clocks import Clock
from ledger.errors import InvalidInput, InvalidKey, InvalidTime, shown
from ledger.settings import Settings
from ledger.values import Change, Delta

AHEAD_MAX_MS = 300_000
"""How far ahead of the clock `at` may be: five minutes."""


def prepared(asked: Change, settings: Settings, clock: Clock, entropy: Callable[[int], bytes]) -> Delta:
    """The delta of a change that is asked for now. Raises InvalidInput."""
    counter, region, key, at = check_counter(asked.counter), asked.region, asked.idempotency_key, asked.at
    if region is None:
        region = settings.region
    elif type(region) is not str or region not in settings.regions:
        raise InvalidInput(f"region={shown(region)} is not one of regions={settings.regions!r}.")
    if key is None and at is None:
        token = tokens.make(_in_range(clock()), entropy(tokens.RANDOM_BYTES))
    else:
        token = tokens.keyed(counter, _checked_key(key, at), _checked_time(at, clock))
    return Delta(settings.lane_for(counter, token, region), token, asked.change)


def _checked_key(key: str | None, at: datetime | None) -> str:
    if key is None:
        raise InvalidKey("at came without idempotency_key; they go together.")
    if at is None:
        raise InvalidKey("idempotency_key came without at; they go together, and both must be the same on a retry.")
    return check_key(key)


def _checked_time(at: datetime | None, clock: Clock) -> int:
    at_ms, now_ms = check_time("at", at), clock()
    if at_ms > now_ms + AHEAD_MAX_MS:
        raise InvalidTime(f"at={_text(at_ms)} is more than five minutes ahead of this clock's {_text(now_ms)}.")
    if at_ms < 0:
        raise InvalidTime(f"at={_text(at_ms)} is before 1970.")
    return at_ms


def _in_range(now_ms: int) -> int:
    if not 0 <= now_ms <= tokens.TIME_MS_MAX:
        raise InvalidTime(f"The clock says {now_ms} ms since 1970; a change's time is from 1970 to the year 10889.")
    return now_ms


def _text(time_ms: int) -> str:
    return to_datetime(time_ms).isoformat()
