"""From what a caller asks for to the delta that is put: pure, but for the clock and the entropy that are passed.

Rule 1: nothing is sent, so every refusal says that nothing was written.
Rule 2: with a key the token follows from the counter, the key and `at`, so that a retry names the same item; without
one it is drawn here, once, and is the caller's to keep.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from ledger import tokens
from ledger.checks import check_counter, check_key, check_time, to_datetime
from ledger.clocks import Clock
from ledger.errors import InvalidChange, InvalidInput, InvalidKey, InvalidTime, shown
from ledger.settings import Settings
from ledger.tokens import HOLD, HOLD_MS_MAX, with_length
from ledger.values import Change, Delta, Lane

AHEAD_MAX_MS = 300_000
"""How far ahead of the clock `at` may be: five minutes."""


def prepared(asked: Change, settings: Settings, clock: Clock, entropy: Callable[[int], bytes]) -> Delta:
    """The delta of a change that is asked for now. Raises InvalidInput."""
    token = _token(asked, clock, entropy, "")
    return Delta(_lane(asked, token, settings), token, asked.change)


def prepared_hold(
    asked: Change, expires: timedelta, settings: Settings, clock: Clock, entropy: Callable[[int], bytes]
) -> Delta:
    """The delta that a hold sets aside, whose token says until when. Raises InvalidInput."""
    length_ms = _length_ms(expires)
    token = with_length(_token(asked, clock, entropy, HOLD), length_ms)
    delta = Delta(_lane(asked, token, settings), token, asked.change)
    if delta.change == 0:
        raise InvalidChange("A hold is of 1 to 10**18, either way: 0 sets nothing aside.")
    return delta


def _token(asked: Change, clock: Clock, entropy: Callable[[int], bytes], kind: str) -> str:
    counter, key, at = check_counter(asked.counter), asked.idempotency_key, asked.at
    if key is None and at is None:
        return tokens.make(_in_range(clock()), entropy(tokens.RANDOM_BYTES))
    return tokens.keyed(counter, _checked_key(key, at), _checked_time(at, clock), kind)


def _lane(asked: Change, token: str, settings: Settings) -> Lane:
    region = asked.region
    if region is None:
        region = settings.region
    elif type(region) is not str or region not in settings.regions:
        raise InvalidInput(f"region={shown(region)} is not one of regions={settings.regions!r}.")
    return settings.lane_for(asked.counter, token, region)


def _length_ms(expires: object) -> int:
    if not isinstance(expires, timedelta):
        raise InvalidTime(f"expires is a timedelta, how long the hold holds from `at` on, not {shown(expires)}.")
    length_ms, more = divmod(expires, timedelta(milliseconds=1))
    length_ms += bool(more)  # rounded up
    if not 0 < length_ms <= HOLD_MS_MAX:
        raise InvalidTime(f"expires={shown(expires)} is not above 0 and at most {HOLD_MS_MAX // 86_400_000} days.")
    return length_ms


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
