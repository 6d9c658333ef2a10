"""Keys that bring their time: a ULID and a UUIDv7, each in its canonical spelling.

Rule 1: the time follows from the key alone, so every retry, in any process and language, names the
same change.
Rule 2: the canonical spelling alone brings it. A key counts to the letter, so in another spelling
it is another change.
Sources: https://github.com/ulid/spec, RFC 9562 (UUIDv7). Vectors: docs/data-model.md.
"""

import re
from datetime import datetime

from ledger.core import tokens
from ledger.core.checks import to_datetime

UUID_V7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_UUID_V7 = re.compile(UUID_V7)

NEEDS_NO_AT = (
    "A key that is a ULID or a UUIDv7, in its canonical spelling, needs no `at`: a ULID is in "
    "capitals, a UUID in small letters."
)


def needs_at(key: object) -> str:
    """`NEEDS_NO_AT`, and what keeps this key from being one of them, if that is its spelling."""
    own = ""
    if isinstance(key, str) and tokens.is_token(key.upper()):
        own = " This key is a ULID in small letters."
    elif isinstance(key, str) and _UUID_V7.fullmatch(key.lower()):
        own = " This key is a UUIDv7 in capitals."
    return NEEDS_NO_AT + own


def at_of(key: object, at: datetime | None) -> datetime | None:
    """When a change was first requested: `at` as the caller gave it, else the time in its key;
    None where neither says it.
    """
    return time_in(key) if at is None else at


def time_in(key: object) -> datetime | None:
    """The time in a ULID or a UUIDv7 in its canonical spelling; None for any other key."""
    if not isinstance(key, str):
        return None
    if tokens.is_token(key):
        return to_datetime(tokens.time_ms(key))
    if found := _UUID_V7.fullmatch(key):
        # 48 bits of milliseconds come first, in 8 and 4 digits
        return to_datetime(int(found[0][:8] + found[0][9:13], 16))
    return None
