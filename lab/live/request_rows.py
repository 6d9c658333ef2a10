"""The last requests to the table, as rows in words."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from ledger.requests import Put
from simulator.trace import in_words

KINDS = ("writer", "compactor", "reader", "naive")
ROWS = 14
ASKED_MAX, CAME_MAX = 140, 100


@dataclass(frozen=True, slots=True)
class Row:
    """A request and its answer. kind: one of KINDS; who: the program that asked."""

    number: int
    at_ms: int
    region: str
    kind: str
    who: str
    asked: str
    came: str


class Requests:
    """Keeps the last rows of each kind."""

    def __init__(self) -> None:
        self.count = 0
        self._rows: dict[str, deque[Row]] = {kind: deque(maxlen=ROWS) for kind in KINDS}

    def heard(self, at_ms: int, region: str, kind: str, who: str, what: object, came: object) -> None:
        """A request was answered."""
        self.count += 1
        asked, answer = in_words(what, came)
        if isinstance(what, Put) and isinstance(came, Mapping):
            answer = "there already: replayed"
        self._rows[kind].append(
            Row(self.count, at_ms, region, kind, who, _cut(asked, ASKED_MAX), _cut(answer, CAME_MAX))
        )

    def rows(self) -> list[Row]:
        """All that are kept, the newest first."""
        return sorted((row for rows in self._rows.values() for row in rows), key=lambda row: -row.number)

    def last_of_ours(self) -> int:
        """The number of the last request that changed or might change a counter of ours."""
        return max((self._rows[kind][-1].number for kind in ("writer", "compactor") if self._rows[kind]), default=0)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
