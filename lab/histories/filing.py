"""When, and how much, the gates of a history file: constants of ledger/gate/past.py, replaced while it is played."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from ledger.gate import past


@dataclass(frozen=True, slots=True)
class Filing:
    """What stands there in a history; the defaults are what is shipped."""

    unit_bytes: int = past.UNIT_BYTES
    enough: int = past.ENOUGH
    beside: int = past.BESIDE
    draw: int = past.DRAW
    holds_beside: int = past.HOLDS_BESIDE
    holds_left: int = past.HOLDS_LEFT
    slack_ms: int = past.SLACK_MS
    marks_of_holds: int = past.MARKS_OF_HOLDS
    moved_max: int = past.MOVED_MAX


SHIPPED = Filing()


def file_as(filing: Filing) -> None:
    """From here on every gate files so."""
    for name, value in asdict(filing).items():
        setattr(past, name.upper(), value)


@contextmanager
def filed_as(filing: Filing = SHIPPED) -> Iterator[None]:
    """Gates file so, and as shipped afterwards, whatever was set meanwhile."""
    file_as(filing)
    try:
        yield
    finally:
        file_as(SHIPPED)
