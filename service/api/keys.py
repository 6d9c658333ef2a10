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
from ledger.core.checks import to_ms
from ledger.core.keys import UUID_V7, time_in
from service.api.problems import Problem

_QUOTED = r'"(?:[ !#-\[\]-~]|\\["\\]){1,1024}"'
HEADER = rf"^(?:{_QUOTED}|[!#-~](?:[ -~]{{0,1022}}[!-~])?)$"
"""A key in the header: as it is, or in quotes with `\\` before a quote and a backslash."""

TIMED = f"^(?:{tokens.ULID}|{UUID_V7})$"
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
    own = time_in(key)
    if own is not None:
        # Rule 5: the API refuses two instants that differ, because a retry with only one of them
        # would count again.
        if at is not None and to_ms(at) != to_ms(own):
            raise Problem("invalid-time", _TWO_TIMES)
        return own
    if at is not None:
        return at
    # Rule 4: any other key needs `at`.
    canonical = _canonical(key)
    if canonical is None:
        raise Problem("invalid-time", _NO_TIME)
    raise Problem("invalid-key", _NOT_CANONICAL, members={"canonical": canonical})


def _canonical(key: str) -> str | None:
    """The canonical spelling of a ULID or a UUIDv7; None for any other key."""
    if not key.isascii():
        return None
    if tokens.is_token(key.upper()):
        return key.upper()
    try:
        named = uuid.UUID(key)
    except ValueError:
        return None
    return str(named) if named.version == 7 else None
