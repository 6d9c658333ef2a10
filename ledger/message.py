"""`ledger.message`: a change as JSON, as queues carry it."""

from ledger.client.message import (
    CHECKS,
    MANY,
    NO_XML,
    OPTIONAL,
    Made,
    dumps,
    dumps_many,
    joined,
    loads,
    loads_many,
    parsed,
    read,
    time_of,
    time_text,
)

__all__ = [
    "CHECKS",
    "MANY",
    "NO_XML",
    "OPTIONAL",
    "Made",
    "dumps",
    "dumps_many",
    "joined",
    "loads",
    "loads_many",
    "parsed",
    "read",
    "time_of",
    "time_text",
]
