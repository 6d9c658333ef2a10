"""A change as JSON, as queues carry it."""

from ledger.client.message import (
    CHECKS,
    MANY,
    NAMES,
    NO_XML,
    OF_THEN,
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
    "NAMES",
    "NO_XML",
    "OF_THEN",
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
