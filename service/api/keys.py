"""Idempotency keys of HTTP requests, and the instant that each stands for.

Rule 1: The same request gives the same key and instant on every retry, so neither may come from
this machine's clock.
Rule 2: A key counts to the letter, as in a message or in the library, so that the same change is
the same by every way.
Rule 3: A ULID and a UUIDv7 carry their instant, in their canonical spelling alone, because one in
another spelling would be another change beside it.
Sources: https://github.com/ulid/spec, RFC 9562 (UUIDv7), draft-ietf-httpapi-idempotency-key-header
(the quotes).
"""

import re
import uuid
from datetime import datetime

from ledger.core import tokens
from ledger.core.checks import to_datetime, to_ms
from service.api.problems import Problem

_QUOTED = r'"(?:[ !#-\[\]-~]|\\["\\]){1,1024}"'
HEADER = rf"^(?:{_QUOTED}|[!#-~](?:[ -~]{{0,1022}}[!-~])?)$"
"""A key in the header: as it is, or in quotes with `\\` before a quote and a backslash."""

ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
UUID_V7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
TIMED = f"^(?:{ULID}|{UUID_V7})$"
"""A key that carries its time: a ULID or a UUIDv7 in its canonical spelling."""

_MISSING = (
    "Send Idempotency-Key, the same on every retry: a ULID or a UUIDv7, or any other text "
    "with at in the body."
)
_NOT_SPELLED = (
    "In the header a key is 1 to 1,024 printable ASCII characters, in quotes if it "
    "begins with a quote."
)
_NO_TIME = (
    "This key is neither a ULID nor a UUIDv7, so it needs at: when you first asked for the change."
)
_TWO_TIMES = (
    "This key is a ULID or a UUIDv7, and at contradicts its time. Leave out at, or use "
    "a key of another form."
)
_NOT_CANONICAL = (
    "This is a ULID or a UUIDv7 in another spelling than canonical. Send canonical, "
    "or this key with at."
)


def key_of_header(header: str | None) -> str:
    """The key in an Idempotency-Key header; it may stand in quotes. Raises Problem."""
    key = (header or "").strip()
    if not key:
        raise Problem("idempotency-key-missing", _MISSING)
    if not re.fullmatch(HEADER, key):
        raise Problem("invalid-key", _NOT_SPELLED)
    return re.sub(r"\\(.)", r"\1", key[1:-1]) if key.startswith('"') else key


def time_of_key(key: str, at: datetime | None) -> datetime:
    """The instant that a key with its `at` stands for. Raises Problem."""
    canonical, own_ms = _with_time(key)
    if key == canonical:
        # Rule 5: the API refuses two instants that differ, because a retry with only one of them
        # would count again.
        if at is not None and to_ms(at) != own_ms:
            raise Problem("invalid-time", _TWO_TIMES)
        return to_datetime(own_ms)
    if at is not None:
        return at
    # Rule 4: any other key needs `at`.
    if canonical is None:
        raise Problem("invalid-time", _NO_TIME)
    raise Problem("invalid-key", _NOT_CANONICAL, members={"canonical": canonical})


def _with_time(key: str) -> tuple[str | None, int]:
    """The canonical spelling of a ULID or a UUIDv7 and its milliseconds since 1970; None for any
    other key.
    """
    if key.isascii() and tokens.is_token(key.upper()):
        return key.upper(), tokens.time_ms(key.upper())
    try:
        named = uuid.UUID(key) if key.isascii() else None
    except ValueError:
        named = None
    return (str(named), named.int >> 80) if named and named.version == 7 else (None, 0)
