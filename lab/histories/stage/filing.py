"""When, and how much, the gates of a history file: constants of ledger/gate/filing.py, replaced
while it is played.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from ledger.gate import filing


@dataclass(frozen=True, slots=True)
class Filing:
    """What stands there in a history; the defaults are what is shipped."""

    unit_bytes: int = filing.UNIT_BYTES
    enough: int = filing.ENOUGH
    beside: int = filing.BESIDE
    draw: int = filing.DRAW
    holds_beside: int = filing.HOLDS_BESIDE
    holds_left: int = filing.HOLDS_LEFT
    slack_ms: int = filing.SLACK_MS
    marks_of_holds: int = filing.MARKS_OF_HOLDS
    moved_max: int = filing.MOVED_MAX


SHIPPED = Filing()


def file_as(chosen: Filing) -> None:
    """From here on every gate files so."""
    for name, value in asdict(chosen).items():
        setattr(filing, name.upper(), value)


@contextmanager
def filed_as(chosen: Filing = SHIPPED) -> Iterator[None]:
    """Gates file so, and as shipped afterwards, whatever was set meanwhile."""
    file_as(chosen)
    try:
        yield
    finally:
        file_as(SHIPPED)
