"""The last requests of this library's writers and compactors to the table, as rows in words."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from ledger.requests import Put
from simulator.trace import in_words

SHOWN = ("writer", "compactor")
ROWS = 14
ASKED_MAX, CAME_MAX = 140, 100


@dataclass(frozen=True, slots=True)
class Row:
    """A request and its answer. who: the program that asked."""

    at_ms: int
    region: str
    who: str
    asked: str
    came: str


class Requests:
    """`rows`: the newest first; `count`: of all that there were."""

    def __init__(self) -> None:
        self.count = 0
        self.rows: deque[Row] = deque(maxlen=ROWS)

    def heard(self, at_ms: int, region: str, who: str, request: object, answer: object) -> None:
        """A request was answered."""
        if who not in SHOWN:
            return
        self.count += 1
        asked, came = in_words(request, answer)
        if isinstance(request, Put) and isinstance(answer, Mapping):
            came = "there already: replayed"
        self.rows.appendleft(Row(at_ms, region, who, _cut(asked, ASKED_MAX), _cut(came, CAME_MAX)))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
