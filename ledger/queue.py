"""Changes through SQS: `exact_counter.queue` has them."""

from ledger.client.queue import (
    AGAIN,
    CONFIG,
    ENTRIES_MAX,
    MESSAGE_BYTES_MAX,
    PAUSE_BASE_S,
    REQUEST_BYTES_MAX,
    TRIES_MAX,
    ChangeQueue,
)

__all__ = [
    "AGAIN",
    "CONFIG",
    "ENTRIES_MAX",
    "MESSAGE_BYTES_MAX",
    "PAUSE_BASE_S",
    "REQUEST_BYTES_MAX",
    "TRIES_MAX",
    "ChangeQueue",
]
