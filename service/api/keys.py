"""Idempotency keys of HTTP requests, and the instant that each stands for.

Rules: the same request gives the same key and instant on every retry, so neither may come from this machine's clock; a
ULID and a UUIDv7 carry their instant, in one spelling here whatever the client's; any other key needs `at`; two
instants that differ are refused, because a retry with only one of them would count again.
Sources: https://github.com/ulid/spec, RFC 9562 (UUIDv7), draft-ietf-httpapi-idempotency-key-header (the quotes).
"""

from __future__ import annotations

import re
from datetime import datetime

from ledger import tokens
from ledger.message import time_text
from ledger.values import to_datetime, to_ms
from service.api.problems import NOT_WRITTEN, Problem

_UUID_V7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_HEADER = re.compile(r"[ -~]+")
_QUOTED = re.compile(r'"(?:[^"\\]|\\["\\])*"')


def key_of_header(header: str | None) -> str:
    """The key in an Idempotency-Key header; it may stand in quotes. Raises Problem."""
    if header is None or not header.strip():
        raise Problem(
            "idempotency-key-missing",
            "Every change needs the header Idempotency-Key: a ULID or a UUIDv7, or any other text together with at in "
            f"the body. It must be the same on every retry. {NOT_WRITTEN}",
        )
    key = header.strip()
    if key.startswith('"') and _QUOTED.fullmatch(key):
        key = re.sub(r"\\(.)", r"\1", key[1:-1])
    if not _HEADER.fullmatch(key):
        raise Problem(
            "invalid-key",
            f"In the header a key is printable ASCII, not empty; POST /deltas takes any Unicode. {NOT_WRITTEN}",
        )
    return key


def key_and_time(key: str, at: datetime | None) -> tuple[str, datetime]:
    """The key in its one spelling, and the instant that it stands for. Raises Problem."""
    spelled, own_ms = _with_time(key)
    if own_ms is None:
        if at is None:
            raise Problem(
                "invalid-time",
                "This key carries no time (it is neither a ULID nor a UUIDv7), so the request needs at: when the "
                f"change was first asked for, the same on every retry. {NOT_WRITTEN}",
            )
        return spelled, at
    own = to_datetime(own_ms)
    if at is not None and to_ms(at) != own_ms:
        raise Problem(
            "invalid-time",
            f"This key is a ULID or a UUIDv7 and carries the time {time_text(own)}, which at contradicts. Leave out "
            f"at, or use a key of another form. {NOT_WRITTEN}",
        )
    return spelled, own


def _with_time(key: str) -> tuple[str, int | None]:
    if not key.isascii():
        return key, None
    if tokens.is_token(key.upper()):
        return key.upper(), tokens.time_ms(key.upper())
    if _UUID_V7.fullmatch(key.lower()):
        return key.lower(), int(key.replace("-", "")[:12], 16)
    return key, None
