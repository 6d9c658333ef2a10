"""How the commands show numbers, times and tables, and read a typed time.

Rule 1: Pure.
Rule 2: Every time is in UTC.
Rule 3: A table fits 80 columns and folds a long name.
"""

import re
import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo

from rich.console import RenderableType
from rich.table import Table

from ledger.client.message import time_of, time_text
from ledger.core.cost import Cost
from reader import Balance

AGES = ((86_400_000 * 365, "y"), (86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
NUMBER = re.compile(r"-?[0-9]{1,100}", re.ASCII)
QUOTED = re.compile(r"`[^`]*`")
COMMAND = re.compile(r"([A-Z_]+=.* )?ledgerctl ")
NO_BREAK = "\N{NO-BREAK SPACE}"
NOT_CLOSED = (
    "not closed: a lane got rights from another whose newer state has not reached this Region "
    "yet, so the sum may be outside its limit"
)


def counted(number: float, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def fitted(text: str, columns: int, indent: str = "") -> str:
    """A sentence in lines of at most so many columns, each behind the indent.

    A word that is longer stands alone. A command stays in one line, between backticks or as a line
    of its own, so that you can copy it.
    """
    lines = [
        indent + line
        if COMMAND.match(line)
        else textwrap.fill(
            QUOTED.sub(lambda quoted: quoted[0].replace(" ", NO_BREAK), line),
            columns,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ).replace(NO_BREAK, " ")
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def age(age_ms: int | None) -> str:
    """An age in the largest unit that fits, whole: "3 min"."""
    if age_ms is None:
        return "-"
    unit_ms, name = next(((ms, name) for ms, name in AGES if age_ms >= ms), (1, "ms"))
    return f"{age_ms // unit_ms} {name}"


def moment(at: datetime) -> str:
    """A time to the second, in UTC, as people write it."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def cost(consumed: Cost) -> str:
    """The cost of requests; "at least" where the endpoint left some of it out."""
    if not consumed.requests:
        return "no requests to DynamoDB"
    least = "at least " if consumed.untold else ""
    kinds = ((consumed.read_units, "read"), (consumed.write_units, "write"))
    units = [f"{n:,.1f} {kind} units" for n, kind in kinds if n]
    return f"{counted(consumed.requests, 'request')}, {least}{', '.join(units) or '0 units'}"


def cost_fields(consumed: Cost) -> dict[str, int | float]:
    return {
        "requests": consumed.requests,
        "read_units": consumed.read_units,
        "write_units": consumed.write_units,
    }


def balance(counter: str, read: Balance) -> dict[str, object]:
    """A balance for JSON; amounts are integers."""
    sums = {"counter": counter, "value": read.value, "count": read.count, "pending": read.pending}
    parts = {"by_region": dict(read.by_region), "as_of": time_text(read.as_of)}
    return {**sums, **parts, "closed": read.closed}


def time_typed(text: str | None, zone: tzinfo = UTC) -> datetime | None:
    """The instant of a typed time: RFC 3339, or a date for its first instant.

    Raises InvalidTime.
    """
    if text is None:
        return None
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return time_of(f"{text}T00:00:00Z").replace(tzinfo=zone)
    return time_of(text)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[RenderableType]], *, left: int = 1
) -> Table:
    """A plain table: the `left` first columns are text and may fold, the others are numbers."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for i, name in enumerate(columns):
        made.add_column(
            name, justify="left" if i < left else "right", overflow="fold", no_wrap=i >= left
        )
    for row in rows:
        made.add_row(*row)
    return made
